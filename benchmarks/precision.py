"""What whole numbers in the encoder change: the vectors, and what models learn from them.

    python benchmarks/precision.py ../shared/data

For HANNA and for both scores of ELLIPSE: the cosine of each document's vector with the float one, and accuracy and log
loss of the method (64 hidden units, weight decay 0.01) and accuracy of a logistic regression on the vector, over four
times five folds, each with floats and with whole numbers on the same folds.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from common import set_threads
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RepeatedStratifiedKFold

from cohegraph import CoherenceModel
from cohegraph.corpora.registry import read_corpus
from cohegraph.features import Features, Featurizer
from cohegraph.features.cache import FeatureCache
from cohegraph.presets import preset
from cohegraph.settings import Settings

CORPORA = {
    "HANNA": ("hanna", "hanna/stories.jsonl", {}),
    "ELLIPSE cohesion": ("ellipse", "ellipse/essays.jsonl", {"score": "cohesion"}),
    "ELLIPSE overall": ("ellipse", "ellipse/essays.jsonl", {"score": "overall"}),
}
FOLDS, REPEATS = 5, 4


def outcomes(features: Features, labels: np.ndarray, settings: Settings) -> dict[str, np.ndarray]:
    """Figures of every document, averaged over repeats."""
    found = {name: np.zeros(len(labels)) for name in ("accuracy", "log loss", "accuracy of a regression")}
    folds = RepeatedStratifiedKFold(n_splits=FOLDS, n_repeats=REPEATS, random_state=0)
    for training, test in folds.split(labels, labels):
        model = CoherenceModel(settings=settings).fit(features[training], labels[training], bare=True)
        probabilities = model.predict_proba(features[test])
        right = probabilities[np.arange(len(test)), np.searchsorted(model.classes_, labels[test])]
        found["accuracy"][test] += model.classes_[probabilities.argmax(axis=1)] == labels[test]
        found["log loss"][test] -= np.log(right)
        regression = LogisticRegression(C=10, max_iter=2_000).fit(features.array[training], labels[training])
        found["accuracy of a regression"][test] += regression.predict(features.array[test]) == labels[test]
    return {name: values / REPEATS for name, values in found.items()}


def main() -> None:
    set_threads(2)
    data = Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/data")
    changes = {"training.weight_decay": 0.01, "training.hidden": 64}
    for name, (kind, place, options) in CORPORA.items():
        corpus = read_corpus(kind, data / place, options)
        labels, vectors, figures = np.array(corpus.labels), [], []
        for precision in ("float32", "int8"):
            settings = preset().replaced({"encoder.precision": precision, **changes})
            features = FeatureCache().features(corpus.texts, Featurizer(settings), show_progress=True)
            vectors.append(features.array)
            figures.append(outcomes(features, labels, settings))
        floats, whole = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in vectors)
        cosines = (floats * whole).sum(axis=1)
        print(f"{name}: cosines {cosines.mean():.4f} on average, {cosines.min():.4f} at least (asked for: 0.99)")
        for what, before in figures[0].items():
            change = figures[1][what] - before
            error = change.std(ddof=1) / len(change) ** 0.5
            print(
                f"  {what}: {before.mean():.4f} with floats, {figures[1][what].mean():.4f} with whole numbers, "
                f"{change.mean():+.4f} (standard error over documents {error:.4f})",
                flush=True,
            )


if __name__ == "__main__":
    main()
