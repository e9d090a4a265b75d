"""A script that uses the public interface, for type checkers: ``make lint`` runs mypy on it, pyright accepts it too."""

from __future__ import annotations

from typing import assert_type

import numpy as np
import numpy.typing as npt

import cohegraph
from cohegraph import CohegraphError, CoherenceModel, Settings, load
from cohegraph.assessment import Assessment
from cohegraph.explain.explanation import Explanation
from cohegraph.features import Features

texts = ["The train was late. It left at noon.", "A cup is red. The moon has no air."]
labels = ["high", "low"]

shipped = load()
assert_type(shipped, CoherenceModel)
assert_type(cohegraph.load("starter"), CoherenceModel)
assert_type(shipped.assess(texts), list[Assessment])
for assessment in shipped.assess(texts):
    assert_type(assessment.score, float | None)
    assert_type(assessment.probabilities.get("low"), float | None)

settings = Settings().replaced({"subgraphs.k": 5})
assert_type(settings, Settings)
model = CoherenceModel("gcn", settings=settings)
assert_type(model.featurize(texts), Features)
assert_type(model.fit(texts, labels), CoherenceModel)
assert_type(model.predict_proba(texts), npt.NDArray[np.float64])
assert_type(model.explain(texts[0]), Explanation)
assert_type([sentence.loose for sentence in model.explain(texts[0]).sentences], list[bool])

try:
    model.save("my-model")
    assert_type(CoherenceModel.load("my-model"), CoherenceModel)
except CohegraphError as error:
    assert_type(error.code, str)
assert_type(cohegraph.__version__, str)
