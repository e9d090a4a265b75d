"""The results of an experiment, arranged for questions: which system is how good, where, and better than which."""

from collections import defaultdict
from functools import cached_property

import numpy as np

from cohegraph.experiments.measures import Estimate, Floats, Run, SectionRuns, average, draw_documents, measures_of
from cohegraph.experiments.runner import Finished
from cohegraph.experiments.significance import Comparison, compare
from cohegraph.experiments.units import Result
from cohegraph.features import Features
from cohegraph.systems.registry import system_named


class Outcome:
    """All runs of an experiment by variant, system and section."""

    def __init__(self, finished: Finished) -> None:
        self.finished = finished
        self.corpus = finished.work.corpus
        self.experiment = finished.work.experiment
        corpus = self.corpus
        self.measures = measures_of(corpus.levels, ordered=corpus.ordered, scored=corpus.scores is not None)
        self._runs = self._arranged()
        self._estimates: dict[tuple[str, str, str], dict[str, Estimate]] = {}

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems of the experiment, in the order of tables."""
        return tuple(plan.name for plan in self.experiment.systems)

    @property
    def method(self) -> str:
        """The system that others are compared with: the one named in the plan, else the last."""
        named = self.experiment.analyses.compare[0]
        return named if named in self.systems else self.systems[-1]

    @property
    def baseline(self) -> str:
        """The system beside it in figures: the one named in the plan, else the first other."""
        named = self.experiment.analyses.compare[1]
        others = [system for system in self.systems if system != self.method]
        return named if named in others else (others or [self.method])[0]

    def title(self, system: str) -> str:
        """What a system is called in tables."""
        return self.experiment.plan_of(system).title or system_named(system).title

    @property
    def titles(self) -> list[str]:
        """What all systems are called, in the order of tables."""
        return [self.title(system) for system in self.systems]

    def runs(self, system: str, section: str, variant: str = "") -> SectionRuns:
        """All runs of a system in a section."""
        return self._runs[variant, system, section]

    def features(self, section: str) -> Features:
        """The features of a section's documents."""
        return self.finished.work.features["", section]

    def results(self, system: str) -> list[Result]:
        """The results of a system, without those of variants."""
        return [result for result in self.finished.results if (result.system, result.variant) == (system, "")]

    def estimates(self, system: str, measure: str, variant: str = "") -> dict[str, Estimate]:
        """A measure of a system in every section, and under "" its mean over sections."""
        key = (variant, system, measure)
        if key not in self._estimates:
            by_section = {
                section: self.measures[measure](self.runs(system, section, variant), self._draws[section])
                for section in self.corpus.section_names
            }
            self._estimates[key] = by_section | {"": average(list(by_section.values()))}
        return self._estimates[key]

    def overall(self, system: str, measure: str = "accuracy", variant: str = "") -> Estimate:
        """The mean of a measure over sections."""
        return self.estimates(system, measure, variant)[""]

    def comparison(self, first: str, second: str, variants: tuple[str, str] = ("", "")) -> Comparison:
        """The accuracy of the first system against that of the second."""
        pairs = tuple(zip((first, second), variants, strict=True))
        estimates = [self.overall(system, "accuracy", variant) for system, variant in pairs]
        sections = self.corpus.section_names
        runs = [[self.runs(system, section, variant) for section in sections] for system, variant in pairs]
        return compare(estimates[0], estimates[1], runs[0], runs[1])

    @cached_property
    def _draws(self) -> dict[str, Floats]:
        """Times that each document of a section was drawn; only tested documents are."""
        found = {}
        for number, section in enumerate(self.corpus.section_names):
            tested = self.runs(self.systems[0], section).tested
            weights = draw_documents(int(tested.sum()), seed=number)
            found[section] = np.zeros((len(weights), len(tested)))
            found[section][:, tested] = weights
        return found

    def _arranged(self) -> dict[tuple[str, str, str], SectionRuns]:
        work, corpus = self.finished.work, self.corpus
        local = {fold.name: work.local(fold) for fold in work.folds}
        runs = defaultdict[tuple[str, str, str], list[Run]](list)
        for result in self.finished.results:
            fold = local[result.fold]
            run = Run(fold.test, np.array(result.probabilities, dtype=np.float64))
            runs[result.variant, result.system, fold.section].append(run)
        rows = {section: corpus.rows_of(section) for section in corpus.section_names}
        gold = {section: corpus.codes[rows[section]] for section in rows}
        scores = {
            section: None if corpus.scores is None else np.array(corpus.scores)[rows[section]] for section in rows
        }
        return {
            key: SectionRuns(gold[key[2]], len(corpus.levels), tuple(found), scores[key[2]])
            for key, found in runs.items()
        }
