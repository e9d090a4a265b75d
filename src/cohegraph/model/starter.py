"""The starter model: trained on the corpus inside this package, shipped with it, rebuilt by ``make starter-model``."""

from __future__ import annotations

import numpy as np

from cohegraph.corpora.corpus import LEVELS, Corpus
from cohegraph.corpora.starter import MODEL, starter_corpus
from cohegraph.model.coherence_model import CoherenceModel
from cohegraph.model.validation import validated_fit
from cohegraph.presets import preset

NAME = "starter"
NOTE = (
    "It learnt from short texts written for this project, whose levels are by construction (connected, drifting, "
    "disjointed) and were given by no rater: good for a first look, not for a verdict that matters."
)
_FOLDS = 5
# Chosen by cross-validation over topics. Without edges between patterns: there are more patterns than documents here,
# and the degrees that such edges add leave hardly any weight to the documents that a pattern connects.
SETTINGS = preset("default").replaced({"subgraphs.k": 5, "corpus_graph.pmi": False, "training.weight_decay": 0.001})


def train_starter(corpus: Corpus) -> CoherenceModel:
    """The starter model on some of the corpus."""
    return CoherenceModel(SETTINGS, levels=LEVELS).fit(corpus.texts, corpus.labels)


def hold_out_topics(corpus: Corpus, every: int = 5) -> tuple[Corpus, Corpus]:
    """All versions of every fifth topic apart from the rest."""
    topics = np.array(corpus.groups)
    held_out = np.isin(topics, np.unique(topics)[every - 1 :: every])
    return corpus.at(np.flatnonzero(~held_out).tolist()), corpus.at(np.flatnonzero(held_out).tolist())


def rebuild() -> None:
    """Train on the whole corpus and put the model into the package."""
    corpus = starter_corpus()
    model = CoherenceModel(SETTINGS, levels=LEVELS)
    features = model.featurize(corpus.texts, show_progress=True)
    labels = np.array(corpus.labels)
    validated_fit(model, features, labels, corpus.groups, _FOLDS)
    model.keep_neighbours(features, labels, ids=corpus.ids)
    model.save(MODEL, name=NAME, note=NOTE)
    figures = model.training_["validation"]
    print(f"{NAME}: accuracy {100 * figures['accuracy']:.1f} % (± {100 * figures['std']:.1f}) over {_FOLDS} folds")


if __name__ == "__main__":
    rebuild()
