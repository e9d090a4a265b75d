r"""Simple graph convolution (Wu et al., 2019) on the paper's corpus graph: the cheapest honest graph baseline.

The nonlinearity of the GCN is removed. Two layers are then one linear map of the smoothed vectors

.. math:: P = softmax(\hat A^2 X W)

and training is a logistic regression on :math:`\hat A^2 X`, standardised, which is computed once; as in the method,
pattern nodes carry zeros, so that edges between patterns count in degrees only. A new document has a closed form as
in the GCN: with its vector :math:`x`, its weights :math:`b`, its degree :math:`d = 1 + \sum b`, the sums :math:`S =
B^T (X / \sqrt{d})` over the training documents' vectors :math:`X` and weights :math:`B`, and the degrees :math:`s'
= s + b` of the patterns,

.. math:: \tilde x = \sum_j \frac{b_j}{\sqrt{s'_j d}} \cdot \frac{S_j + b_j x / \sqrt d}{\sqrt{s'_j}} + \frac{x}{d^2}
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from cohegraph.features import Features
from cohegraph.graph.corpus_graph import CorpusGraph, build_corpus_graph
from cohegraph.learning.objectives import Objective
from cohegraph.settings import CorpusGraphSettings
from cohegraph.systems.gcn.system import weights_of
from cohegraph.systems.regression import Floats, LinearModel, Strength
from cohegraph.systems.system import NOUNS_ALONE, Arrays, Lesson, Search, System, expect_shapes

_SHAPES = {"sums": "patterns dimensions", "degrees": "patterns", "frequency": "patterns", "documents": "one"}


@dataclass(frozen=True)
class _Smoother:
    """What is kept of the training documents.

    Shapes: ``sums`` (patterns, dimensions), ``degrees`` and ``frequency`` (patterns,), ``documents`` (1,).
    """

    sums: Floats
    degrees: Floats
    frequency: npt.NDArray[np.int64]
    documents: npt.NDArray[np.int64]
    options: CorpusGraphSettings

    def __call__(self, features: Features) -> Floats:
        """The smoothed vectors of documents outside the graph, each added to it alone."""
        weights = weights_of(features.counts, self.frequency, int(self.documents[0]), self.options)
        vectors = features.array.astype(np.float64)
        rows = zip(weights.indptr[:-1], weights.indptr[1:], vectors, strict=True)
        return np.stack([self._smoothed(weights.indices[a:z], weights.data[a:z], vector) for a, z, vector in rows])

    def _smoothed(self, patterns: npt.NDArray[Any], b: Floats, vector: Floats) -> Floats:
        degree = 1 + b.sum()
        degrees = self.degrees[patterns] + b
        through = self.sums[patterns] + b[:, None] * vector / np.sqrt(degree)
        smoothed: Floats = (b / degrees) @ through / np.sqrt(degree) + vector / degree**2
        return smoothed


def smoothed_in_graph(graph: CorpusGraph, vectors: Floats) -> tuple[Floats, Floats]:
    """The smoothed vectors of the documents in the graph, and the sums of each pattern."""
    degrees = graph.document_degrees[:, None]
    sums = graph.weights.T @ (vectors / np.sqrt(degrees))
    through = graph.weights @ (sums / graph.pattern_degrees[:, None]) / np.sqrt(degrees)
    return through + vectors / degrees**2, sums


@dataclass(frozen=True)
class _FittedSGC(LinearModel):
    inputs: _Smoother

    def arrays(self) -> Arrays:
        return {**super().arrays(), **{name: getattr(self.inputs, name) for name in _SHAPES}}


@dataclass(frozen=True)
class SimpleGraphConvolution(System):
    """Logistic regression on vectors that were smoothed over the corpus graph.

    Args:
        corpus_graph: As in the method.
        strength: scikit-learn's C: the smaller, the stronger the L2 penalty.
    """

    name = "sgc"
    title = "SGC"
    looks_at = frozenset({"patterns", "vector"})
    limits = (NOUNS_ALONE,)
    citation = "Wu, Souza, Zhang, Fifty, Yu and Weinberger (2019)"
    search: ClassVar[Search] = {"strength": (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1)}

    corpus_graph: CorpusGraphSettings
    strength: Strength = 0.01

    def fit(self, lesson: Lesson) -> _FittedSGC:
        """Smooth once, then regress; nothing is random."""
        training = lesson.training.features
        graph = build_corpus_graph(training.counts, **self.corpus_graph.model_dump())
        smoothed, sums = smoothed_in_graph(graph, training.array.astype(np.float64))
        documents = np.array([len(training)])
        smoother = _Smoother(sums, graph.pattern_degrees, graph.frequency, documents, self.corpus_graph)
        return _FittedSGC.fit(smoothed, lesson, self.strength, smoother)

    def restored(self, arrays: Arrays, objective: Objective) -> _FittedSGC:
        """The smoother's sums and the regression's coefficients."""
        own = {name: arrays[name] for name in _SHAPES}
        expect_shapes(own, _SHAPES, one=1)
        if own["documents"][0] < max(1, own["frequency"].max(initial=0)) or own["degrees"].min(initial=1) <= 0:
            raise ValueError("the sums are of no documents")
        rest = {name: array for name, array in arrays.items() if name not in own}
        return _FittedSGC.restored(rest, objective, _Smoother(**own, options=self.corpus_graph))
