"""Is the sentence that an explanation calls the loosest really the one that hangs loose?

    python benchmarks/loosest_sentence.py            # the model and the texts that come with cohegraph
    python benchmarks/loosest_sentence.py ../shared/data/hanna/stories.jsonl

Texts are shuffled, so that some sentences stand where they do not belong. Prints how often the expected level rises
when the loosest sentence is removed, against how often it rises when a random one is, each really rescored. With a
corpus (columns "text" and "label"), a model is trained on one half of it and the texts of the other half are shuffled.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from shuffle_test import shuffled

from cohegraph import CoherenceModel, load_model
from cohegraph.corpora.starter import MODEL, starter_corpus
from cohegraph.corpora.tables import read_graded
from cohegraph.explain.changed_texts import without
from cohegraph.explain.explain import look_at, parsed, verdict_of
from cohegraph.features import Featurizer
from cohegraph.model.starter import SETTINGS, hold_out_topics
from cohegraph.presets import preset
from cohegraph.progress import track
from cohegraph.scale.feature_store import FeatureStore

MOST_TEXTS, FEWEST_SENTENCES, SEED = 300, 6, 0


def main() -> None:
    torch.set_num_threads(2)
    model, texts = from_corpus(Path(sys.argv[1])) if len(sys.argv) > 1 else from_starter()
    mixed, _ = shuffled(texts, list(range(len(texts))), Featurizer(model.settings_))
    random = np.random.default_rng(SEED)
    documents = [parsed(model, text) for text in mixed]
    documents = [one for one in documents if len(one.sentences) >= FEWEST_SENTENCES][:MOST_TEXTS]
    rises = []
    for document in track(documents, "rescoring", len(documents)):
        seen = look_at(model, document).explanation
        tried = [seen.loosest[0] - 1, int(random.integers(len(document.sentences)))]
        found = model.assess([without(document, sentence) for sentence in tried])
        rises.append([verdict_of(one, True).score - seen.verdict.score for one in found])
    change = np.array(rises)
    for name, column in (("the loosest sentence", change[:, 0]), ("a random sentence", change[:, 1])):
        print(
            f"without {name}: the expected level rises in {100 * (column > 0).mean():.1f} % of {len(column)} texts, "
            f"by {column.mean():+.2f} of 100 on average"
        )
    better = int((change[:, 0] > change[:, 1]).sum())
    worse = int((change[:, 0] < change[:, 1]).sum())
    print(f"it rises more without the loosest than without the random one in {better} texts, less in {worse}")
    print(f"ratio of rises: {(change[:, 0] > 0).mean() / (change[:, 1] > 0).mean():.2f}")


def from_starter() -> tuple[CoherenceModel, list[str]]:
    """A model on most topics of the corpus inside, and the texts of the others; with the shipped one they were seen."""
    training, held_out = hold_out_topics(starter_corpus(), every=2)
    model = CoherenceModel(SETTINGS, levels=load_model(MODEL).levels_)
    model.fit([one.text for one in training], [one.level for one in training])
    return model, [one.text for one in held_out]


def from_corpus(file: Path) -> tuple[CoherenceModel, list[str]]:
    """A model on one half of a corpus, and the texts of the other."""
    documents = read_graded(file)
    settings = preset().replaced({"training.weight_decay": 0.01, "training.hidden": 64})
    features = FeatureStore().features(documents.texts, Featurizer(settings), show_progress=True)
    half = np.random.default_rng(SEED).permutation(len(documents.texts))
    training, rest = np.sort(half[::2]), np.sort(half[1::2])
    model = CoherenceModel(settings).fit(features[training], [documents.labels[row] for row in training])
    return model, [documents.texts[row] for row in rest]


if __name__ == "__main__":
    main()
