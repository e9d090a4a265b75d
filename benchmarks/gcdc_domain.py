"""A domain of GCDC's size: 1,200 documents, 10 folds, 160 epochs, the paper's hyper-parameters, features ready."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
from scoring import counts

from cohegraph.corpora.corpus import Corpus
from cohegraph.experiments.folds import make_folds
from cohegraph.experiments.plan import read_experiment
from cohegraph.experiments.ready import ready_experiments
from cohegraph.experiments.runner import Work, run_units
from cohegraph.features import TALLIES, Features
from cohegraph.graph.catalogue import catalogue

TRAINING, TEST, DIMENSIONS = 1_000, 200, 768
LIMIT_SECONDS = 120


def work(systems: list[str]) -> Work:
    generator = np.random.default_rng(0)
    documents = TRAINING + TEST
    levels = ("low", "medium", "high")
    corpus = Corpus(
        name="GCDC",
        ids=tuple(map(str, range(documents))),
        texts=("",) * documents,
        labels=tuple(generator.choice(levels, documents).tolist()),
        levels=levels,
        sections=("Clinton",) * documents,
        test=tuple(row >= TRAINING for row in range(documents)),
    )
    experiment = read_experiment(ready_experiments()["gcdc"], {"only_systems": systems})
    features = Features(
        counts(documents, len(catalogue(4)), 0),
        generator.normal(size=(documents, DIMENSIONS)).astype(np.float32),
        generator.integers(1, 300, (documents, len(TALLIES))),
        {},
        experiment.settings_of("Clinton"),
    )
    folds = make_folds(corpus, experiment.protocol)
    return Work(experiment, corpus, tuple(folds), {("", "Clinton"): features})


def main() -> None:
    for systems in (
        ["gcn"],
        ["majority", "surface", "encoder", "subgraph-features", "dnn", "gcn", "gcn-no-pmi", "gcn-no-edges"],
    ):
        todo = work(systems)
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            finished = run_units(todo, Path(folder), cores=2)
            seconds = time.perf_counter() - start
        print(
            f"{len(finished.results)} trainings ({', '.join(systems)}), 160 epochs, two cores: {seconds:.0f} s, "
            f"{seconds / LIMIT_SECONDS:.2f} of two minutes"
        )


if __name__ == "__main__":
    main()
