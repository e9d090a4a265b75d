"""Up to a million synthetic documents (k=5, 384 dimensions): graph, exact training and scoring in bounded memory.

    python benchmarks/many_documents.py [--documents 10000 100000 1000000] [--epochs 5] [--workers 1]

Features are in a store, as 'cohegraph featurize' writes it, and are read from there. Every size is a process of its
own, so that its memory is its own. Prints seconds an epoch against what the smallest size would take if time grew with
the number of documents, and the memory at the peak, which counts the pages of files that are mapped into memory too.
With more workers, memory is that of the largest of the processes.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common import set_threads
from scipy import sparse

from cohegraph.features import TALLIES, Features
from cohegraph.features.shards import Shard, key_of, write_shard
from cohegraph.features.store import Contents, FeatureStore, write_contents
from cohegraph.graph.catalogue import catalogue
from cohegraph.learning.objectives import Levels, Targets
from cohegraph.presets import preset
from cohegraph.scale.team import Team, run_together
from cohegraph.scale.training import ChunkTrainer
from cohegraph.settings import TrainingSettings
from cohegraph.systems.gcn.network import TrainedGCN
from cohegraph.systems.gcn.training import Task

DIMENSIONS, PATTERNS_A_DOCUMENT, CLASSES, HIDDEN = 384, 40, 3, 240
SHARD, SCORED_AT_ONCE = 4_096, 1_000


def synthetic_store(documents: int, folder: Path) -> None:
    """Documents with some forty patterns each, frequent ones more often, and vectors without any meaning."""
    rng = np.random.default_rng(0)
    patterns = len(catalogue(5))
    popularity = 1 / np.arange(1, patterns + 1)
    shards = []
    for number, start in enumerate(range(0, documents, SHARD)):
        rows = min(SHARD, documents - start)
        column = rng.choice(patterns, (rows, PATTERNS_A_DOCUMENT), p=popularity / popularity.sum()).ravel()
        row = np.repeat(np.arange(rows), PATTERNS_A_DOCUMENT)
        ids = [str(start + one) for one in range(rows)]
        shard = Shard(
            keys=[key_of(one) for one in ids],
            ids=ids,
            labels=rng.integers(0, CLASSES, rows).tolist(),
            groups=[None] * rows,
            counts=sparse.coo_array((np.ones(len(column), np.int64), (row, column)), shape=(rows, patterns)).tocsr(),
            tallies=np.ones((rows, len(TALLIES)), dtype=np.int64),
            vectors=rng.standard_normal((rows, DIMENSIONS), dtype=np.float32),
            stages={"structure": "synthetic", "vectors": "synthetic"},
        )
        shards.append((write_shard(folder, number, shard).name, rows))
    settings = preset().replaced({"subgraphs.k": 5}).to_dict()
    about = {"documents": documents, "patterns": patterns, "dimensions": DIMENSIONS, "parts": {}}
    write_contents(folder, Contents(settings=settings, shards=shards, **about))


def trained(team: Team, features: Features, classes: np.ndarray, epochs: int) -> tuple[TrainedGCN, list[float], float]:
    """The network, the times of the beginning, of the graph and of every epoch's end, and the memory in gigabytes."""
    trainer, ends = ChunkTrainer(team), [time.perf_counter()]
    settings = preset().replaced({"subgraphs.k": 5}).corpus_graph.model_dump()
    graph = trainer.graph(features.counts, settings)
    ends.append(time.perf_counter())
    task = Task(
        graph,
        features.vectors,
        Targets(classes),
        Levels(CLASSES),
        TrainingSettings(hidden=HIDDEN, epochs=epochs),
        on_epoch=lambda *_: ends.append(time.perf_counter()),
    )
    done = trainer.train(task)
    return done.network, ends, _gigabytes()


def _gigabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def measured(documents: int, epochs: int, folder: Path, workers: int) -> dict[str, float]:
    set_threads(2)
    start = time.perf_counter()
    corpus = FeatureStore(folder).corpus()
    opened = time.perf_counter()
    features, classes = corpus.features, np.array(corpus.labels)
    network, (begun, built, *ends), gigabytes = run_together(workers, trained, features, classes, epochs)
    before = time.perf_counter()
    weights = ChunkTrainer().graph(features.counts, {}).weights
    for first in range(0, documents, SCORED_AT_ONCE):
        rows = slice(first, first + SCORED_AT_ONCE)
        network.outputs_together(weights[rows], features[rows].array)
    scored = time.perf_counter()
    return {
        "opening": opened - start,
        "graph": built - begun,
        # The first epoch is not counted: sums that all epochs share are made before it.
        "epoch": (ends[-1] - ends[0]) / (len(ends) - 1),
        "scoring": scored - before,
        "gigabytes": max(gigabytes, _gigabytes()),
    }


def main() -> None:
    options = _options()
    if options.only:
        print(json.dumps(measured(options.only, options.epochs, options.folder, options.workers)))
        return
    smallest = None
    for documents in options.documents:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            synthetic_store(documents, Path(folder))
            command = [sys.executable, __file__, "--only", str(documents), "--epochs", str(options.epochs)]
            command += ["--folder", folder, "--workers", str(options.workers)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        found = json.loads(done.stdout)
        smallest = smallest or (documents, found["epoch"])
        ratio = found["epoch"] / (smallest[1] * documents / smallest[0])
        print(
            f"{documents:>9,} documents: store {found['opening']:.1f} s, graph {found['graph']:.1f} s, an epoch "
            f"{found['epoch']:.2f} s "
            f"({ratio:.2f} of proportional; asked for: at most 1.3), scoring all {found['scoring']:.1f} s, "
            f"{found['gigabytes']:.2f} GB at the peak (asked for: under 4)",
            flush=True,
        )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="Where the store is meanwhile, 2.1 GB for a million.")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--only", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
