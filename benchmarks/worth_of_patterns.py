"""What patterns know of levels that vector and surface figures do not: regressions with and without them.

``python benchmarks/worth_of_patterns.py ../shared/data`` prints cross-entropy and accuracy of a logistic regression on
each set of inputs, over 3 × 5 folds of HANNA and ELLIPSE. The strength of the penalty is the best of six on the test
folds themselves, for every set alike: figures to compare with each other, and with nothing else.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from common import set_threads
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cohegraph.corpora.registry import read_corpus
from cohegraph.features import Features, Featurizer
from cohegraph.features.cache import FeatureCache
from cohegraph.presets import preset
from cohegraph.systems.mesgar_strube_2016 import pattern_shares

TASKS = {
    "HANNA": ("hanna", "hanna/stories.jsonl", {}),
    "ELLIPSE cohesion": ("ellipse", "ellipse/essays.jsonl", {"score": "cohesion"}),
    "ELLIPSE overall, all prompts": ("ellipse", "ellipse/essays.jsonl", {"score": "overall"}),
}
STRENGTHS = (0.001, 0.003, 0.01, 0.03, 0.1, 1.0)
SPLITS = 3


def inputs(features: dict[int, Features]) -> dict[str, np.ndarray]:
    vectors, surface = features[4].vectors, features[4].surface
    patterns = {size: np.sqrt(pattern_shares(one.counts)) for size, one in features.items()}
    known = np.hstack([vectors, surface])
    return {
        "vector and surface figures": known,
        **{f"the same and patterns of {size}": np.hstack([known, shares]) for size, shares in patterns.items()},
        "surface figures": surface,
        "surface figures and patterns of 3": np.hstack([surface, patterns[3]]),
    }


def figures(matrix: np.ndarray, classes: np.ndarray, strength: float) -> tuple[float, float]:
    losses, accuracies = [], []
    for split in range(SPLITS):
        for training, test in StratifiedKFold(5, shuffle=True, random_state=split).split(matrix, classes):
            regression = make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=500))
            found = regression.fit(matrix[training], classes[training]).predict_proba(matrix[test])
            losses.append(log_loss(classes[test], found))
            accuracies.append((found.argmax(axis=1) == classes[test]).mean())
    return float(np.mean(losses)), float(np.mean(accuracies))


def main() -> None:
    set_threads(1)
    data = Path(sys.argv[1])
    cache = FeatureCache()
    for title, (kind, file, options) in TASKS.items():
        corpus = read_corpus(kind, data / file, options)
        classes = np.unique(corpus.labels, return_inverse=True)[1]
        features = {
            size: cache.features(corpus.texts, Featurizer(preset().replaced({"subgraphs.k": size}))) for size in (3, 4)
        }
        for name, matrix in inputs(features).items():
            loss, accuracy = min(figures(matrix, classes, strength) for strength in STRENGTHS)
            print(f"{title}, {name}: cross-entropy {loss:.4f}, accuracy {100 * accuracy:.1f} %", flush=True)


if __name__ == "__main__":
    main()
