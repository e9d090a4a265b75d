"""Runs an experiment: features once, folds and seeds side by side, every finished one written at once.

The folder of an experiment holds

- ``experiment.json``: the plan, the exact settings, the corpus's fingerprint, versions and pretrained parts
- ``folds.jsonl``: which documents train, choose and test in each fold
- ``documents.jsonl``: id, section and level of every document, in the corpus's order
- ``results.jsonl``: one line per finished unit, with the probabilities of its test documents, in the fold's order
- ``costs.jsonl``: time and memory of each
- ``predictions.csv``: the same probabilities, one row per document, with its id and level

A run that was stopped, in whatever way, can be resumed: finished units are read and not repeated. Units depend neither
on each other nor on how many run at once, so that results are byte-identical. Results of an earlier plan in the same
folder are kept behind the others, in case the plan is changed back.
"""

import gc
import hashlib
import json
import platform
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from cohegraph.corpora.corpus import Corpus
from cohegraph.errors import CohegraphError
from cohegraph.experiments import results_folder as files
from cohegraph.experiments.folds import Fold, make_folds, read_folds, write_folds
from cohegraph.experiments.plan import Experiment
from cohegraph.experiments.units import Cost, Result, Unit, candidates, run_unit
from cohegraph.features import Features, Featurizer
from cohegraph.features.cache import FeatureCache
from cohegraph.files import write_atomically
from cohegraph.progress import track
from cohegraph.scale import processes
from cohegraph.version import __version__

_PACKAGES = ("numpy", "scipy", "scikit-learn", "torch", "transformers", "spacy", "stanza")
_FORMAT = 1


@dataclass(frozen=True)
class Work:
    """An experiment with all that its units need: features by variant and section."""

    experiment: Experiment
    corpus: Corpus
    folds: tuple[Fold, ...]
    features: dict[tuple[str, str], Features]
    _digests: dict[tuple[str, str], str] = field(default_factory=dict, repr=False)

    def units(self) -> Iterator[Unit]:
        """All units, in the order of tables: the experiment itself, then its variants."""
        experiment, protocol = self.experiment, self.experiment.protocol
        for variant in experiment.arms:
            for fold in self.folds:
                settings = experiment.settings_of(fold.section, variant.name)
                for seed in variant.seeds or protocol.seeds:
                    for name in variant.systems:
                        system = experiment.system(name, settings)
                        own = system.hyper_parameters
                        choose_by = own.get("training.choose_by", own.get("choose_by", settings.training.choose_by))
                        yield Unit(
                            variant=variant.name,
                            fold=fold,
                            seed=seed,
                            system=system,
                            search=experiment.search(name, variant),
                            choose_by=str(choose_by),
                            refit=protocol.refit,
                            best_on_test=protocol.best_on_test,
                            made_from=self._made_from(fold, variant.name),
                        )

    def _made_from(self, fold: Fold, variant: str) -> str:
        """A digest of all that a unit's documents are: their texts, labels, parts in the fold, and features."""
        if (variant, fold.name) not in self._digests:
            features = self.features[variant, fold.section]
            rows = [part.tolist() for part in fold.parts]
            settings = None if features.settings is None else features.settings.of_features(places=False)
            made_from = [self.corpus.fingerprint, rows, settings, features.parts]
            digest = hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()
            self._digests[variant, fold.name] = digest
        return self._digests[variant, fold.name]

    def local(self, fold: Fold) -> Fold:
        """The fold with numbers of documents counted within its section, as its features are."""
        rows = self.corpus.rows_of(fold.section)
        parts = (np.searchsorted(rows, part) for part in fold.parts)
        return Fold(fold.section, fold.repeat, fold.number, *parts)


@dataclass(frozen=True)
class Finished:
    """A finished experiment: its work, and the results and costs of all units in order."""

    work: Work
    results: tuple[Result, ...]
    costs: tuple[Cost, ...]
    about: dict[str, Any]


def run_experiment(
    experiment: Experiment,
    folder: Path,
    *,
    cores: int | None = None,
    device: str = "auto",
    cache: FeatureCache | None = None,
    show_progress: bool = False,
) -> Finished:
    """Run an experiment, or resume one that was stopped.

    Args:
        experiment: What to do.
        folder: Where results are written, and looked for.
        cores: How many units run at once; by default all cores.
        device: Where the encoder runs.
        cache: Where features are kept.
        show_progress: Show bars with the time left.
    """
    corpus = experiment.corpus.read()
    _check_systems(experiment, corpus)
    folder.mkdir(parents=True, exist_ok=True)
    work = prepare(experiment, corpus, cache or FeatureCache(), device=device, show_progress=show_progress)
    return run_units(work, folder, cores=cores, show_progress=show_progress)


def prepare(
    experiment: Experiment, corpus: Corpus, cache: FeatureCache, *, device: str = "auto", show_progress: bool = False
) -> Work:
    """Folds and features of an experiment."""
    protocol = experiment.protocol
    earlier = protocol.folds_file
    folds = make_folds(corpus, protocol) if earlier is None else read_folds(earlier, corpus)
    features = {}
    for variant in experiment.arms:
        for section in corpus.section_names:
            settings = experiment.settings_of(section, variant.name)
            needs = {
                need
                for name in variant.systems
                for changes in candidates(experiment.search(name, variant))
                for need in experiment.system(name, settings).changed(changes).needs
            }
            texts = [corpus.texts[row] for row in corpus.rows_of(section).tolist()]
            featurizer = Featurizer(settings, device=device)
            found = cache.features(texts, featurizer, needs=needs, show_progress=show_progress)
            features[variant.name, section] = found
    return Work(experiment, corpus, tuple(folds), features)


def run_units(work: Work, folder: Path, *, cores: int | None = None, show_progress: bool = False) -> Finished:
    """Run what is not yet finished of an experiment whose features are at hand."""
    about = _about(work)
    files.check_same(folder, about)
    write_folds(list(work.folds), work.corpus, folder / files.FOLDS)
    write_atomically(folder / files.DOCUMENTS, files.documents(work.corpus))
    write_atomically(folder / files.ABOUT, json.dumps(about, indent=1, ensure_ascii=False, sort_keys=True))

    units = {unit.name: unit for unit in work.units()}
    levels = len(work.corpus.levels)
    done = files.read_lines(folder / files.RESULTS, Result)
    costs = files.read_lines(folder / files.COSTS, Cost)
    waiting = [unit for name, unit in units.items() if name not in done or not done[name].answers(unit, levels)]
    # Whole lines only: a half-written last one would spoil the first that is added to it.
    files.write_lines(folder / files.RESULTS, done.values())
    files.write_lines(folder / files.COSTS, costs.values())
    fresh = _run_all(work, waiting, cores or processes.cores())
    finished, show = len(units) - len(waiting), show_progress and bool(waiting)
    for result, cost in track(fresh, "training and testing", len(units), done=finished, show=show):
        # The cost first: a result without a cost would never get one.
        files.append_line(folder / files.COSTS, cost)
        files.append_line(folder / files.RESULTS, result)
        done[result.name], costs[cost.name] = result, cost
    # In the order of the plan; what belongs to earlier plans stands behind.
    done = {name: done[name] for name in units} | done
    costs = {name: costs[name] for name in units if name in costs} | costs
    files.write_lines(folder / files.RESULTS, done.values())
    files.write_lines(folder / files.COSTS, costs.values())
    results = tuple(done[name] for name in units)
    write_atomically(folder / files.PREDICTIONS, files.predictions(results, work.folds, work.corpus))
    return Finished(work, results, tuple(costs[name] for name in units if name in costs), about)


def _check_systems(experiment: Experiment, corpus: Corpus) -> None:
    """Raise for a hyper-parameter or value that does not exist, before hours have gone into the others."""
    for variant in experiment.arms:
        settings = experiment.settings_of(corpus.section_names[0], variant.name)
        if settings.objective.kind != "levels":
            raise CohegraphError(
                "Experiments compare systems on levels only: leave out objective.kind, and compare models of other "
                "objectives with 'cohegraph train'.",
                code="levels-only",
            )
        for name in variant.systems:
            system = experiment.system(name, settings)
            if not [system.changed(changes) for changes in candidates(experiment.search(name, variant))]:
                raise CohegraphError(
                    f"The search of {name} has a hyper-parameter without any value: name some.", code="no-values"
                )


def _about(work: Work) -> dict[str, Any]:
    """What shaped the results, and where they were made; not where files are on this machine."""
    experiment, corpus = work.experiment, work.corpus
    sections, variants = corpus.section_names, [variant.name for variant in experiment.arms]
    return {
        "format": _FORMAT,
        "cohegraph": __version__,
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "machine": f"{platform.system()} {platform.machine()}, {processes.cores()} cores",
        "corpus": {
            "name": corpus.name,
            "documents": len(corpus),
            "levels": list(corpus.levels),
            "ordered": corpus.ordered,
            "fingerprint": corpus.fingerprint,
        },
        "plan": experiment.model_dump(mode="json", exclude={"corpus": {"path"}, "protocol": {"folds_file"}}),
        "settings": {
            variant: {section: experiment.settings_of(section, variant).to_dict() for section in sections}
            for variant in variants
        },
        "parts": {variant: work.features[variant, sections[0]].parts for variant in variants},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


# What a worker process knows of the work it shares in; set once when it starts.
_work: Work | None = None


def _run_all(work: Work, units: list[Unit], cores: int) -> Iterator[tuple[Result, Cost]]:
    """Results as they come. Each process has one thread: more would slow each other down."""
    if not units:
        return
    pool = ProcessPoolExecutor(min(cores, len(units)), get_context("spawn"), _start_worker, (work,))
    try:
        for future in as_completed(pool.submit(_run_in_worker, unit) for unit in units):
            yield future.result()
    except BrokenProcessPool:
        raise CohegraphError(
            "A worker process ended unexpectedly, perhaps for lack of memory: run the same command again with fewer "
            "--cores; what is finished is kept.",
            code="process-ended",
        ) from None
    finally:
        workers = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in workers:
            process.terminate()


def _start_worker(work: Work) -> None:
    import torch
    from threadpoolctl import threadpool_limits

    global _work
    processes.end_with_parent()
    torch.set_num_threads(1)
    threadpool_limits(1)
    # Or what is loaded at first use would count as memory of the first system that runs.
    warm = torch.nn.Linear(1, 1)
    warm(torch.ones(1, 1)).sum().backward()
    torch.optim.Adam(warm.parameters()).step()
    _work = work
    # Every unit collects garbage before it measures memory: what the libraries hold need not be searched each time.
    gc.collect()
    gc.freeze()


def _run_in_worker(unit: Unit) -> tuple[Result, Cost]:
    if _work is None:
        raise RuntimeError("the worker was not started")
    corpus, section = _work.corpus, unit.fold.section
    local = replace(unit, fold=_work.local(unit.fold))
    classes = corpus.codes[corpus.rows_of(section)]
    return run_unit(local, _work.features[unit.variant, section], classes, len(corpus.levels))
