"""At which threshold are the sentence graphs of a linker as dense as those of nouns?

    python benchmarks/link_density.py [--texts 150] [--linkers nouns,vectors,context,reading] [--heads default]

Density is the share of sentence pairs less than 8 apart that link, averaged over dev pieces of prose that are drawn
evenly from all genres. Prints a line for every linker at its default threshold. For all but `nouns` and `connective`,
which have no such threshold, it then prints the density at thresholds around the one that comes nearest to `nouns`,
and proposes that one. `context-exact` reads every pair, which takes several seconds per piece: name it to have it.
"""

from __future__ import annotations

import argparse
from itertools import chain, islice, zip_longest
from pathlib import Path

import numpy as np
import numpy.typing as npt
from common import PROSE, dev_prose, set_threads

from cohegraph.features import Featurizer
from cohegraph.graph.links import Linker
from cohegraph.presets import preset
from cohegraph.progress import track
from cohegraph.text.document import Document
from cohegraph.text.readers import DEFAULT_READER

REACH, SEED = 8, 0
CANDIDATES = np.round(np.arange(0.01, 1, 0.01), 2)
# Thresholds that are printed on either side of the proposed one.
AROUND = 5
WITHOUT_THRESHOLD = ("nouns", "connective")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--texts", type=int, default=150)
    options.add_argument("--linkers", default="nouns,connective,vectors,context,reading")
    options.add_argument("--heads", default="default")
    options.add_argument("--prose", type=Path, default=PROSE)
    chosen = options.parse_args()
    set_threads(1)
    changes = {"reader.source": DEFAULT_READER, "reader.heads": chosen.heads, "links.linkers": chosen.linkers}
    featurizer = Featurizer(preset().replaced(changes))
    documents = list(featurizer.parser.parse(sample(chosen.prose, chosen.texts)))
    documents = [document for document in documents if len(document.sentences) > 1]
    print(f"{len(documents)} pieces of prose, {sum(len(one.sentences) for one in documents)} sentences")
    nouns = Featurizer(preset().replaced({"links.linkers": "nouns"})).linkers[0]
    wanted = float(np.mean([density(nouns, document) for document in documents]))
    print(f"nouns: {wanted:.3f}")
    for linker in featurizer.linkers:
        if linker.name == "nouns":
            continue
        if linker.name in WITHOUT_THRESHOLD:
            print(f"{linker.name}: {np.mean([density(linker, document) for document in documents]):.3f}", flush=True)
            continue
        strengths = [near(linker, document) for document in track(documents, linker.name, len(documents))]
        print(f"{linker.name}: {over(strengths, linker.threshold):.3f} over {linker.threshold:g}, the default")
        propose(linker.name, strengths, wanted)


def propose(name: str, strengths: list[npt.NDArray[np.float32]], wanted: float) -> None:
    """Print the density at some thresholds, and the threshold whose density is nearest to the one that is wanted."""
    densities = [over(strengths, limit) for limit in CANDIDATES]
    best = int(np.abs(np.array(densities) - wanted).argmin())
    for number in range(max(0, best - AROUND), min(len(CANDIDATES), best + AROUND + 1)):
        print(f"  over {CANDIDATES[number]:.2f}: {densities[number]:.3f}")
    print(f"{name}: {CANDIDATES[best]:.2f} is nearest to nouns", flush=True)


def sample(folder: Path, number: int) -> list[str]:
    """So many dev pieces, as evenly from all genres as there are pieces."""
    generator = np.random.default_rng(SEED)
    genres = [[pieces[i]["text"] for i in generator.permutation(len(pieces))] for pieces in dev_prose(folder).values()]
    in_turn = chain.from_iterable(zip_longest(*genres))
    return list(islice((text for text in in_turn if text is not None), number))


def near(linker: Linker, document: Document) -> npt.NDArray[np.float32]:
    """The strengths of all pairs within reach."""
    size = len(document.sentences)
    source, target = np.triu_indices(size, 1)
    return linker.strengths(document, range(size), range(size))[source, target][target - source < REACH]


def over(strengths: list[npt.NDArray[np.float32]], threshold: float) -> float:
    """The mean share of pairs that link at a threshold."""
    return float(np.mean([(one > np.float32(threshold)).mean() for one in strengths]))


def density(linker: Linker, document: Document) -> float:
    """The share of pairs within reach that link."""
    size = len(document.sentences)
    pairs = sum(max(0, size - distance) for distance in range(1, REACH))
    return len(linker.link(document, range(size), reach=REACH).pairs()[0]) / pairs


if __name__ == "__main__":
    main()
