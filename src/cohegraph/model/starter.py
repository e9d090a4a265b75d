"""The starter model: trained on the corpus inside this package, shipped with it, rebuilt by ``make starter-model``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cohegraph.corpora.starter import LEVELS, MODEL, StarterText, starter_corpus
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


def train_starter(texts: Sequence[StarterText]) -> CoherenceModel:
    """The starter model on some of the corpus."""
    model = CoherenceModel(SETTINGS, levels=LEVELS)
    return model.fit([one.text for one in texts], [one.level for one in texts])


def hold_out_topics(texts: Sequence[StarterText], every: int = 5) -> tuple[list[StarterText], list[StarterText]]:
    """All versions of every fifth topic apart from the rest."""
    held_out = set(sorted({one.topic for one in texts})[every - 1 :: every])
    rest = [one for one in texts if one.topic not in held_out]
    return rest, [one for one in texts if one.topic in held_out]


def rebuild() -> None:
    """Train on the whole corpus and put the model into the package."""
    texts = starter_corpus()
    model = CoherenceModel(SETTINGS, levels=LEVELS)
    features = model.featurize([one.text for one in texts], show_progress=True)
    labels = np.array([one.level for one in texts])
    validated_fit(model, features, labels, [one.topic for one in texts], _FOLDS)
    model.keep_neighbours(features, labels, ids=[one.id for one in texts])
    model.save(MODEL, name=NAME, note=NOTE)
    figures = model.training_["validation"]
    print(f"{NAME}: accuracy {100 * figures['accuracy']:.1f} % (± {100 * figures['std']:.1f}) over {_FOLDS} folds")


if __name__ == "__main__":
    rebuild()
