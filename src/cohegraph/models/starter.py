"""The starter model: a demonstration of the paper's method, trained on the small corpus inside this package."""

from pathlib import Path
from typing import TYPE_CHECKING

from cohegraph.models.ready_model import ReadyModel
from cohegraph.presets import preset

if TYPE_CHECKING:
    from cohegraph.model.coherence_model import CoherenceModel

NOTE = (
    "It learnt from short texts that were written for this project to be connected, drifting or disjointed; no rater "
    "has judged them. Use it for a first look, not for a verdict that matters."
)
_FOLDS = 5
# Chosen by cross-validation over topics. Without edges between patterns: there are more patterns than documents here,
# and the degrees that such edges add leave hardly any weight to the documents that a pattern connects.
SETTINGS = preset("default").replaced({"subgraphs.k": 5, "corpus_graph.pmi": False, "training.weight_decay": 0.001})


def untrained() -> "CoherenceModel":
    """The model before its training."""
    from cohegraph.corpora.corpus import LEVELS
    from cohegraph.model.coherence_model import CoherenceModel

    return CoherenceModel(settings=SETTINGS, levels=LEVELS)


def rebuild(folder: Path) -> None:
    """Train on the whole corpus and write the model."""
    import numpy as np

    from cohegraph.corpora.starter import starter_corpus
    from cohegraph.model.validation import validated_fit

    corpus = starter_corpus()
    model = untrained()
    features = model.featurize(corpus.texts, show_progress=True)
    labels = np.array(corpus.labels)
    validated_fit(model, features, labels, corpus.groups, _FOLDS)
    model.keep_neighbours(features, labels, ids=corpus.ids)
    model.save(folder, name=STARTER.name, note=NOTE)
    figures = model.training_["validation"]
    print(f"{STARTER.name}: accuracy {100 * figures['accuracy']:.1f} % (± {100 * figures['std']:.1f})")


STARTER = ReadyModel("starter", "a demonstration of the method, trained on 90 constructed texts", rebuild)
