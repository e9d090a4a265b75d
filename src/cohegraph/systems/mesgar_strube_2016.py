r"""Subgraphs as features (Mesgar and Strube, 2016): by themselves, and beside the encoder as the paper has them.

The original mines frequent subgraphs of lexical coherence graphs, whose sentences are linked where two of their
words have similar embeddings, and ranks documents by the subgraphs' frequencies with an SVM. Here the graphs, whose
links are between nouns, and the subgraphs are the method's; the share of pattern g in document d is :math:`\phi(g,
d) = count(g, d) / \sum_h count(h, d)`, and levels are told by

- ``subgraphs``: a logistic regression on the share of each frequent, connected pattern, as near to the original as
  levels allow;
- ``subgraph-features``: a two-layer network on the encoder's vector and the share of every pattern, side by side,
  as the paper has it.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field
from scipy import sparse

from cohegraph.features import Features, patterns_of
from cohegraph.settings import Settings
from cohegraph.systems.dnn import TwoLayerNetwork
from cohegraph.systems.regression import Floats, Regression
from cohegraph.systems.system import NOUNS_ALONE


@dataclass(frozen=True)
class SubgraphFeatures(TwoLayerNetwork):
    """A two-layer network on the encoder's vector and the share of each pattern."""

    name = "subgraph-features"
    title = "Mesgar & Strube (2016)"
    looks_at = frozenset({"patterns", "vector"})
    limits = (NOUNS_ALONE,)
    citation = "Mesgar and Strube (2016), as compared by Liu, Fu and Strube (2023)"

    def inputs(self, features: Features) -> Floats:
        """The vector and the shares."""
        return np.hstack([features.array, pattern_shares(features.counts)])


def pattern_shares(counts: sparse.csr_array) -> Floats:
    """The share of each pattern among a document's subgraphs; all 0 where it has none."""
    dense = counts.toarray().astype(np.float32)
    shares: Floats = dense / np.maximum(dense.sum(axis=1, keepdims=True), 1)
    return shares


@dataclass(frozen=True)
class SubgraphRegression(Regression):
    """Logistic regression on the shares of frequent, connected patterns among all connected ones.

    Args:
        support: The share of training documents in which a pattern must occur to be frequent.
    """

    name = "subgraphs"
    title = "Mesgar & Strube (2016), subgraphs alone"
    looks_at = frozenset({"patterns"})
    limits = (NOUNS_ALONE,)
    citation = "Mesgar and Strube (2016)"

    support: Annotated[float, Field(ge=0, le=1)] = 0.1

    def inputs(self, features: Features) -> Floats:
        """The share of every pattern; disconnected ones have none."""
        patterns = patterns_of(features.settings or Settings())
        connected = sparse.diags_array([float(pattern.connected) for pattern in patterns])
        return pattern_shares(sparse.csr_array(features.counts @ connected))

    def used(self, inputs: Floats) -> Floats:
        """Frequent patterns only; the others get coefficients of 0."""
        return np.where((inputs > 0).mean(axis=0) >= self.support, inputs, 0)
