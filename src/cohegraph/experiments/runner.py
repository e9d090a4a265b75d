"""Runs an experiment: features once, folds and seeds side by side, every finished one written at once.

The folder of an experiment holds

- ``experiment.json``: the plan, the exact settings, the corpus's fingerprint, versions and pretrained parts
- ``folds.jsonl``: which documents train, choose and test in each fold
- ``documents.jsonl``: id, section and level of every document, in the corpus's order
- ``results.jsonl``: a line a finished unit, with the probabilities of its test documents, in the fold's order
- ``costs.jsonl``: time and memory of each
- ``predictions.csv``: the same probabilities, a row a document, with its id and level

A run that was stopped, in whatever way, goes on where it was: finished units are read and not repeated. Units do not
depend on each other nor on how many run at once, so that the results are the same, byte for byte. Results of an earlier
plan in the same folder are kept behind the others, for the day when the plan is changed back.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import platform
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cohegraph.corpora.corpus import Corpus
from cohegraph.errors import CohegraphError
from cohegraph.experiments.folds import Fold, make_folds, read_folds, write_folds
from cohegraph.experiments.plan import Experiment, SystemPlan, Variant
from cohegraph.experiments.results_folder import (
    ABOUT,
    COSTS,
    DOCUMENTS,
    FOLDS,
    PREDICTIONS,
    RESULTS,
    append_line,
    check_same,
    documents,
    line_name,
    predictions,
    read_lines,
    write_lines,
)
from cohegraph.experiments.units import Cost, Result, Unit, candidates, run_unit
from cohegraph.features import Features, Featurizer
from cohegraph.features.cache import FeatureCache
from cohegraph.files import write_atomically
from cohegraph.progress import track
from cohegraph.settings import Settings
from cohegraph.systems.registry import system_named
from cohegraph.systems.system import System
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
        protocol = self.experiment.protocol
        plans = {plan.name: plan for plan in self.experiment.systems}
        base = Variant(name="base", settings={}, systems=tuple(plans))
        for variant in (base, *self.experiment.variants):
            name = "" if variant is base else variant.name
            for fold in self.folds:
                settings = self.experiment.settings_of(fold.section, name)
                for seed in variant.seeds or protocol.seeds:
                    for system_name in variant.systems:
                        plan = plans[system_name]
                        system = system_named(system_name).of(settings).changed(plan.settings)
                        yield Unit(
                            variant=name,
                            fold=fold,
                            seed=seed,
                            system=system,
                            search=_search(self.experiment, plan, variant),
                            choose_by=_chosen_by(system, settings),
                            refit=protocol.refit,
                            best_on_test=protocol.best_on_test,
                            made_from=self._made_from(fold, name),
                        )

    def _made_from(self, fold: Fold, variant: str) -> str:
        """A digest of all that a unit's documents are: their texts, labels, parts in the fold, and features."""
        if (variant, fold.name) not in self._digests:
            features = self.features[variant, fold.section]
            rows = [part.tolist() for part in (fold.training, fold.dev, fold.test)]
            settings = None if features.settings is None else features.settings.of_features(places=False)
            made_from = [self.corpus.fingerprint, rows, settings, features.parts]
            digest = hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()
            self._digests[variant, fold.name] = digest
        return self._digests[variant, fold.name]

    def local(self, fold: Fold) -> Fold:
        """The fold with numbers of documents counted within its section, as its features are."""
        rows = self.corpus.rows_of(fold.section)
        training, dev, test = (np.searchsorted(rows, part) for part in (fold.training, fold.dev, fold.test))
        return Fold(fold.section, fold.repeat, fold.number, training, dev, test)


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
    """Run an experiment, or go on with one that was stopped.

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
    folds = _folds(experiment, corpus)
    features = _all_features(experiment, corpus, cache, device, show_progress)
    return Work(experiment, corpus, tuple(folds), features)


def run_units(work: Work, folder: Path, *, cores: int | None = None, show_progress: bool = False) -> Finished:
    """Run what is not yet finished of an experiment whose features are at hand."""
    about = _about(work)
    check_same(folder, about)
    write_folds(list(work.folds), work.corpus, folder / FOLDS)
    write_atomically(folder / DOCUMENTS, documents(work.corpus))
    write_atomically(folder / ABOUT, json.dumps(about, indent=1, ensure_ascii=False, sort_keys=True))

    units = list(work.units())
    levels = len(work.corpus.levels)
    done = read_lines(folder / RESULTS, Result)
    costs = read_lines(folder / COSTS, Cost)
    waiting = [u for u in units if (found := done.get(line_name(u))) is None or not found.answers(u, levels)]
    # Whole lines only: a half-written last one would spoil the first that is added to it.
    write_lines(folder / RESULTS, done.values())
    write_lines(folder / COSTS, costs.values())
    fresh = _run_all(work, waiting, cores or _cores())
    for result, cost in track(
        fresh, "training and testing", len(units), done=len(units) - len(waiting), show=show_progress and bool(waiting)
    ):
        # The cost first: a result without a cost would never get one.
        append_line(folder / COSTS, cost)
        append_line(folder / RESULTS, result)
        done[line_name(result)], costs[line_name(cost)] = result, cost
    names = dict.fromkeys(line_name(unit) for unit in units)
    finished = Finished(
        work,
        tuple(done[name] for name in names),
        tuple(costs[name] for name in names if name in costs),
        about,
    )
    write_lines(folder / RESULTS, (*finished.results, *(line for name, line in done.items() if name not in names)))
    write_lines(folder / COSTS, (*finished.costs, *(line for name, line in costs.items() if name not in names)))
    write_atomically(folder / PREDICTIONS, predictions(finished.results, work.folds, work.corpus))
    return finished


def _check_systems(experiment: Experiment, corpus: Corpus) -> None:
    """Raise for a hyper-parameter or value that does not exist, before hours have gone into the others."""
    plans = {plan.name: plan for plan in experiment.systems}
    section = corpus.section_names[0]
    tried = [(name, "", _search(experiment, plan)) for name, plan in plans.items()]
    for variant in experiment.variants:
        tried += [(name, variant.name, _search(experiment, plans[name], variant)) for name in variant.systems]
    for name, variant_name, search in tried:
        settings = experiment.settings_of(section, variant_name)
        system = system_named(name).of(settings).changed(plans[name].settings)
        if not [system.changed(changes) for changes in candidates(search)]:
            raise CohegraphError(
                f"The search of {name} has a hyper-parameter without any value: name some.", code="no-values"
            )


def _search(experiment: Experiment, plan: SystemPlan, variant: Variant | None = None) -> Mapping[str, tuple[Any, ...]]:
    """The values to try: the variant's, else the plan's, else the system's own.

    What is set on purpose is not tried: by the experiment or the system where the values are the system's own, and by
    the variant where they are not its own.
    """
    if variant is not None and variant.search is not None:
        return variant.search
    fixed = set(variant.settings) if variant is not None else set()
    search: Mapping[str, tuple[Any, ...]] = plan.search or {}
    if plan.search is None:
        search = system_named(plan.name).search
        fixed |= set(experiment.settings) | set(plan.settings)
    return {name: values for name, values in search.items() if name not in fixed}


def _chosen_by(system: System, settings: Settings) -> str:
    own = system.hyper_parameters
    return str(own.get("training.choose_by", own.get("choose_by", settings.training.choose_by)))


def _folds(experiment: Experiment, corpus: Corpus) -> list[Fold]:
    if experiment.protocol.folds_file is None:
        return make_folds(corpus, experiment.protocol)
    return read_folds(experiment.protocol.folds_file, corpus)


def _all_features(
    experiment: Experiment, corpus: Corpus, cache: FeatureCache, device: str, show_progress: bool
) -> dict[tuple[str, str], Features]:
    plans = {plan.name: plan for plan in experiment.systems}
    by_name = {variant.name: variant for variant in experiment.variants}
    systems_of = {"": tuple(plans)} | {variant.name: variant.systems for variant in experiment.variants}
    found = {}
    for variant, systems in systems_of.items():
        for section in corpus.section_names:
            settings = experiment.settings_of(section, variant)
            needs = {
                need
                for name in systems
                for changes in candidates(_search(experiment, plans[name], by_name.get(variant)))
                for need in system_named(name).of(settings).changed({**plans[name].settings, **changes}).needs
            }
            texts = [corpus.texts[row] for row in corpus.rows_of(section).tolist()]
            featurizer = Featurizer(settings, device=device)
            found[variant, section] = cache.features(texts, featurizer, needs=needs, show_progress=show_progress)
    return found


def _about(work: Work) -> dict[str, Any]:
    """What shaped the results, and where they were made."""
    experiment, corpus = work.experiment, work.corpus
    variants = ("", *(variant.name for variant in experiment.variants))
    return {
        "format": _FORMAT,
        "cohegraph": __version__,
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "machine": f"{platform.system()} {platform.machine()}, {_cores()} cores",
        "corpus": {
            "name": corpus.name,
            "documents": len(corpus),
            "levels": list(corpus.levels),
            "ordered": corpus.ordered,
            "fingerprint": corpus.fingerprint,
        },
        "plan": _without_places(experiment.model_dump(mode="json")),
        "settings": {
            variant: {section: experiment.settings_of(section, variant).to_dict() for section in corpus.section_names}
            for variant in variants
        },
        "parts": {variant: work.features[variant, corpus.section_names[0]].parts for variant in variants},
    }


def _without_places(plan: dict[str, Any]) -> dict[str, Any]:
    """The plan without where its files are on this machine: the corpus's fingerprint says what it was."""
    plan["corpus"].pop("path")
    plan["protocol"].pop("folds_file")
    return plan


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# What a worker process knows of the work it shares in; set once when it starts.
_work: Work | None = None


def _run_all(work: Work, units: list[Unit], cores: int) -> Iterator[tuple[Result, Cost]]:
    """Results as they come. One thread a process: more would get into each other's way."""
    if not units:
        return
    workers = min(cores, len(units))
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _start_worker, (work, os.getpid()))
    ahead = 2 * workers
    queue = iter(units)
    running: set[Future[tuple[Result, Cost]]] = set()
    try:
        while True:
            for unit in queue:
                running.add(pool.submit(_run_in_worker, unit))
                if len(running) >= ahead:
                    break
            if not running:
                break
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                yield future.result()
    except BrokenProcessPool:
        raise CohegraphError(
            "A worker process ended unexpectedly, perhaps for want of memory: run the same command again with fewer "
            "--cores; what is finished is kept.",
            code="process-ended",
        ) from None
    finally:
        processes = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()


def _start_worker(work: Work, parent: int) -> None:
    import torch
    from threadpoolctl import threadpool_limits

    global _work
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    threadpool_limits(1)
    # What is loaded at first use would else count as memory of the first system that runs.
    warm = torch.nn.Linear(1, 1)
    warm(torch.ones(1, 1)).sum().backward()
    torch.optim.Adam(warm.parameters()).step()
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    _work = work
    # Every unit collects garbage before it measures memory: what the libraries hold need not be searched each time.
    gc.collect()
    gc.freeze()


def _end_with(parent: int) -> None:
    """End when the parent is gone, however it went: a killed process cannot tell its children."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _run_in_worker(unit: Unit) -> tuple[Result, Cost]:
    if _work is None:
        raise RuntimeError("the worker was not started")
    section = unit.fold.section
    classes = _section_classes(_work.corpus, section)
    local = replace(unit, fold=_work.local(unit.fold))
    return run_unit(local, _work.features[unit.variant, section], classes, len(_work.corpus.levels))


def _section_classes(corpus: Corpus, section: str) -> npt.NDArray[np.int64]:
    return corpus.codes[corpus.rows_of(section)]
