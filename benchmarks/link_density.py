"""How dense are the sentence graphs of each linker, and which threshold of `vectors` makes them as dense as `nouns`?

    python benchmarks/link_density.py [--texts 150] [--prose ../shared/data/prose]

Density is the share of sentence pairs less than 8 apart that link, averaged over dev pieces of prose that are drawn
evenly from all genres. Prints a line for every linker at its default threshold, then one for thresholds of `vectors`.
"""

from __future__ import annotations

import argparse
from itertools import chain, islice, zip_longest
from pathlib import Path

import numpy as np
from common import PROSE, dev_prose, set_threads

from cohegraph.features import Featurizer
from cohegraph.graph.links import LINKERS, Linker
from cohegraph.presets import preset
from cohegraph.text.document import Document

REACH, SEED = 8, 0
CANDIDATES = np.arange(0.20, 0.451, 0.01)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--texts", type=int, default=150)
    options.add_argument("--prose", type=Path, default=PROSE)
    chosen = options.parse_args()
    set_threads(1)
    featurizer = Featurizer(preset().replaced({"links.linkers": list(LINKERS)}))
    documents = list(featurizer.parser.parse(sample(chosen.prose, chosen.texts)))
    linkers = {linker.name: linker for linker in featurizer.linkers}
    print(f"{len(documents)} pieces of prose, {sum(len(one.sentences) for one in documents)} sentences")
    found = {name: density(linker, documents) for name, linker in linkers.items()}
    for name, value in found.items():
        print(f"{name:<12} {value:.3f}", flush=True)
    by_threshold = {float(limit): density(linkers["vectors"], documents, float(limit)) for limit in CANDIDATES}
    for limit, value in by_threshold.items():
        print(f"vectors over {limit:.2f}: {value:.3f}")
    nearest = min(by_threshold, key=lambda limit: abs(by_threshold[limit] - found["nouns"]))
    print(f"nearest to nouns: {nearest:.2f}")


def sample(folder: Path, number: int) -> list[str]:
    """So many dev pieces, as evenly from all genres as there are pieces."""
    generator = np.random.default_rng(SEED)
    genres = [[pieces[i]["text"] for i in generator.permutation(len(pieces))] for pieces in dev_prose(folder).values()]
    in_turn = chain.from_iterable(zip_longest(*genres))
    return list(islice((text for text in in_turn if text is not None), number))


def density(linker: Linker, documents: list[Document], threshold: float | None = None) -> float:
    """The mean share of linked pairs within reach."""
    shares = []
    for document in documents:
        size = len(document.sentences)
        pairs = sum(max(0, size - distance) for distance in range(1, REACH))
        if pairs:
            links = linker.link(document, range(size), reach=REACH, threshold=threshold)
            shares.append(len(links.pairs()[0]) / pairs)
    return float(np.mean(shares))


if __name__ == "__main__":
    main()
