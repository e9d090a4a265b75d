"""Is the sentence that an explanation calls the loosest really the one that hangs loose?

    python benchmarks/loosest_sentence.py            # the model and the texts that come with cohegraph
    python benchmarks/loosest_sentence.py ../shared/data/hanna/stories.jsonl

Texts are shuffled, so that some sentences stand where they do not belong. Prints how often the expected level rises
when the loosest sentence is removed, and by how much, against the mean over all sentences of the same text, which is
what a random one can expect; every removal is really rescored. With a corpus (columns "text" and "label"), a model is
trained on one half of it and texts of the other half are shuffled; with the texts inside, each half is once the other.
"""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from shuffle_test import shuffled

from cohegraph import CoherenceModel
from cohegraph.corpora.own import read_own
from cohegraph.corpora.starter import hold_out_topics, starter_corpus
from cohegraph.explain.changed_texts import without
from cohegraph.explain.explain import look_at, parsed
from cohegraph.features import Featurizer
from cohegraph.features.cache import FeatureCache
from cohegraph.models.starter import untrained
from cohegraph.presets import preset
from cohegraph.progress import track
from cohegraph.text.document import Document

MOST_TEXTS, FEWEST_SENTENCES, MOST_SENTENCES, SEED = 150, 6, 40, 0


def main() -> None:
    torch.set_num_threads(2)
    pairs = [from_corpus(Path(sys.argv[1]))] if len(sys.argv) > 1 else from_starter()
    tried = [(model, document) for model, texts in pairs for document in mixed(model, texts)]
    rises, changes = [], []
    for model, document in track(tried, "rescoring", len(tried)):
        seen = look_at(model, document).explanation
        found = model.assess([without(document, sentence) for sentence in range(len(document.sentences))])
        change = np.array([one.score for one in found]) - seen.verdict.score
        loosest = seen.loosest[0] - 1
        rises.append([change[loosest] > 0, (change > 0).mean()])
        changes.append([change[loosest], change.mean()])
    print(f"{len(tried)} shuffled texts; without the loosest sentence, and without one at random:")
    report("the expected level rises in", 100 * np.array(rises, dtype=float), "% of texts", "points")
    report("it changes by", np.array(changes), "of 100", "")


def report(what: str, values: np.ndarray, unit: str, of_difference: str) -> None:
    """Both means, and their difference with a 95 % interval over texts."""
    difference = values[:, 0] - values[:, 1]
    half = 1.96 * difference.std(ddof=1) / len(difference) ** 0.5
    loosest, random = values.mean(axis=0)
    middle = difference.mean()
    print(
        f"{what} {loosest:.1f} and {random:.1f} {unit}: "
        f"{middle:+.1f} {of_difference} ({middle - half:+.1f} to {middle + half:+.1f})"
    )


def mixed(model: CoherenceModel, texts: list[str]) -> list[Document]:
    """The texts, shuffled and parsed; those of a length that can be shuffled and whose every removal can be tried."""
    new, _ = shuffled(texts, list(range(len(texts))), Featurizer(model.settings_))
    documents = (parsed(model, text) for text in new)
    fitting = (one for one in documents if FEWEST_SENTENCES <= len(one.sentences) <= MOST_SENTENCES)
    return list(islice(fitting, MOST_TEXTS))


def from_starter() -> list[tuple[CoherenceModel, list[str]]]:
    """Models on half of the topics of the corpus inside, and the texts of the others; the shipped one has seen all."""
    halves = hold_out_topics(starter_corpus(), every=2)
    pairs = []
    for training, held_out in (halves, halves[::-1]):
        pairs.append((untrained().fit(training.texts, training.labels), list(held_out.texts)))
    return pairs


def from_corpus(file: Path) -> tuple[CoherenceModel, list[str]]:
    """A model on one half of a corpus, and the texts of the other."""
    documents = read_own(file)
    settings = preset().replaced({"training.weight_decay": 0.01, "training.hidden": 64})
    features = FeatureCache().features(documents.texts, Featurizer(settings), show_progress=True)
    half = np.random.default_rng(SEED).permutation(len(documents))
    training, rest = np.sort(half[::2]), np.sort(half[1::2])
    model = CoherenceModel(settings=settings).fit(features[training], [documents.labels[row] for row in training])
    return model, [documents.texts[row] for row in rest]


if __name__ == "__main__":
    main()
