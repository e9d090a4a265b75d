"""Up to a million synthetic documents (k=5, 384 dimensions): graph, exact training and scoring in bounded memory.

    python benchmarks/many_documents.py [--documents 10000 100000 1000000] [--epochs 5]

Every size is a process of its own, so that its memory is its own; vectors are in a file that is mapped into memory.
Prints seconds an epoch against what the smallest size would take if time grew with the number of documents, and the
memory at the peak, which counts the pages of the mapped file too.
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

from cohegraph.graph.catalogue import catalogue
from cohegraph.graph.corpus_graph import build_corpus_graph
from cohegraph.scale.training import train_in_chunks
from cohegraph.settings import TrainingSettings

DIMENSIONS, PATTERNS_A_DOCUMENT, CLASSES, HIDDEN = 384, 40, 3, 240
AT_ONCE, SCORED_AT_ONCE = 10_000, 1_000


def synthetic_counts(documents: int) -> sparse.csr_array:
    """Documents with some forty patterns each, frequent ones more often."""
    rng = np.random.default_rng(0)
    patterns = len(catalogue(5))
    popularity = 1 / np.arange(1, patterns + 1)
    parts = []
    for start in range(0, documents, AT_ONCE):
        rows = min(AT_ONCE, documents - start)
        column = rng.choice(patterns, (rows, PATTERNS_A_DOCUMENT), p=popularity / popularity.sum()).ravel()
        row = np.repeat(np.arange(rows), PATTERNS_A_DOCUMENT)
        counts = sparse.coo_array((np.ones(len(column), np.int32), (row, column)), shape=(rows, patterns))
        parts.append(counts.tocsr())
    return sparse.vstack(parts, format="csr")


def synthetic_vectors(documents: int, file: Path) -> np.ndarray:
    """Vectors in a file, mapped into memory."""
    rng = np.random.default_rng(1)
    shape = (documents, DIMENSIONS)
    vectors = np.lib.format.open_memmap(file, mode="w+", dtype=np.float32, shape=shape)
    for start in range(0, documents, AT_ONCE):
        part = vectors[start : start + AT_ONCE]
        part[:] = rng.standard_normal(part.shape, dtype=np.float32)
    vectors.flush()
    del vectors
    return np.load(file, mmap_mode="r")


def measured(documents: int, epochs: int, folder: Path) -> dict[str, float]:
    set_threads(2)
    counts = synthetic_counts(documents)
    vectors = synthetic_vectors(documents, folder / "vectors.npy")
    classes = np.random.default_rng(2).integers(0, CLASSES, documents)
    start = time.perf_counter()
    graph = build_corpus_graph(counts)
    built = time.perf_counter()
    ends = []
    settings = TrainingSettings(hidden=HIDDEN, epochs=epochs)
    trained = train_in_chunks(
        graph, vectors, classes, CLASSES, settings, on_epoch=lambda *_: ends.append(time.perf_counter())
    ).network
    before = time.perf_counter()
    for first in range(0, documents, SCORED_AT_ONCE):
        rows = slice(first, first + SCORED_AT_ONCE)
        trained.logits_together(graph.weights[rows], vectors[rows])
    scored = time.perf_counter()
    return {
        "graph": built - start,
        # The first epoch is not counted: sums that all epochs share are made before it.
        "epoch": (ends[-1] - ends[0]) / (len(ends) - 1),
        "scoring": scored - before,
        "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def main() -> None:
    options = _options()
    if options.only:
        print(json.dumps(measured(options.only, options.epochs, options.folder)))
        return
    smallest = None
    for documents in options.documents:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            command = [sys.executable, __file__, "--only", str(documents), "--epochs", str(options.epochs)]
            done = subprocess.run([*command, "--folder", folder], stdout=subprocess.PIPE, text=True, check=True)
        found = json.loads(done.stdout)
        smallest = smallest or (documents, found["epoch"])
        ratio = found["epoch"] / (smallest[1] * documents / smallest[0])
        print(
            f"{documents:>9,} documents: graph {found['graph']:.1f} s, an epoch {found['epoch']:.2f} s "
            f"({ratio:.2f} of proportional; asked for: at most 1.3), scoring all {found['scoring']:.1f} s, "
            f"{found['gigabytes']:.2f} GB at the peak (asked for: under 4)",
            flush=True,
        )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="Where the vectors are kept meanwhile, 1.5 GB for a million.")
    parser.add_argument("--only", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
