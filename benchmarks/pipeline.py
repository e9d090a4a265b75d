"""The whole pipeline on 200 documents against the bare time of spaCy and the encoder on the same texts.

Takes ``../shared/data/hanna/stories.jsonl`` where it is, and else texts of similar length made of the starter corpus.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from common import report, seconds, set_threads, stories

from cohegraph import load

DOCUMENTS, PART, ROUNDS = 200, 40, 4


def main() -> None:
    set_threads(2)
    documents, name = stories(DOCUMENTS)
    model = load()
    featurizer = model.featurizer
    nlp, encoder = featurizer.parser._nlp, featurizer.encoder  # the bare parts, past our own code
    tokenizer, network = encoder._tokenizer, encoder._network

    def bare_parser(part: list[str]) -> None:
        for _ in nlp.pipe(part, batch_size=32):
            pass

    def bare_encoder(part: list[str]) -> None:
        """All tokens of all texts through the network, in windows of its limit."""
        for first in tokenizer.encode_batch_fast(part):
            for window in (first, *first.overflowing):
                network.states([window.ids])[0].mean(dim=0)

    model.assess(documents[:PART])
    totals = np.zeros(3)
    for start in range(0, DOCUMENTS, PART):
        part = documents[start : start + PART]
        runs = (partial(bare_parser, part), partial(bare_encoder, part), partial(model.assess, part))
        # Side by side and the fastest of each: what other work on the machine adds is no part of the comparison.
        totals += np.min([[seconds(run, 1) for run in runs] for _ in range(ROUNDS)], axis=0)
    parser, bare, whole = totals
    detail = f"{whole:.1f} s against {parser:.1f} s spaCy and {bare:.1f} s encoder, {DOCUMENTS} {name}"
    report("the whole pipeline against its bare parts", whole / (parser + bare), "at most 1.05x", detail)


if __name__ == "__main__":
    main()
