"""The whole pipeline on 200 documents against the bare time of spaCy and the encoder on the same texts.

Takes ``../shared/data/hanna/stories.jsonl`` where it is, and else texts of similar length made of the starter corpus.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from common import report, seconds, set_threads

from cohegraph import CoherenceModel
from cohegraph.corpora.starter import MODEL, starter_corpus

DOCUMENTS, ROUNDS = 200, 5
HANNA = Path(__file__).parents[2] / "shared" / "data" / "hanna" / "stories.jsonl"


def texts() -> tuple[list[str], str]:
    if HANNA.is_file():
        return [json.loads(line)["text"] for line in HANNA.read_text("utf-8").splitlines()][:DOCUMENTS], "HANNA stories"
    corpus = [one.text for one in starter_corpus()]
    return [f"{corpus[i % 90]} {corpus[(i * 7 + 1) % 90]}" for i in range(DOCUMENTS)], "pairs of starter texts"


def main() -> None:
    set_threads(2)
    documents, name = texts()
    model = CoherenceModel.load(MODEL)
    featurizer = model.featurizer
    nlp, encoder = featurizer.parser._nlp, featurizer.encoder  # the bare parts, past our own code
    tokenizer, network = encoder._tokenizer, encoder._model

    def bare_parser() -> None:
        for _ in nlp.pipe(documents, batch_size=32):
            pass

    def bare_encoder() -> None:
        with torch.inference_mode():
            for text in documents:
                network(**tokenizer(text, truncation=True, max_length=512, return_tensors="pt")).last_hidden_state.mean(
                    1
                )

    model.assess(documents[:20])
    bare_parser()
    rounds = [
        (seconds(bare_parser, 1), seconds(bare_encoder, 1), seconds(lambda: model.assess(documents), 1))
        for _ in range(ROUNDS)
    ]
    ratios = [whole / (parser + bare) for parser, bare, whole in rounds]
    parser, bare, whole = np.median(rounds, axis=0)
    detail = f"{whole:.1f} s against {parser:.1f} s spaCy and {bare:.1f} s encoder, {DOCUMENTS} {name}"
    report("the whole pipeline against its bare parts", float(np.median(ratios)), "at most 1.05x", detail)


if __name__ == "__main__":
    main()
