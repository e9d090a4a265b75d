"""Subgraphs as features (Mesgar and Strube, 2016) in the form in which the paper compares with it.

The encoder's vector and the document's subgraph frequencies side by side are the input of a two-layer network. The
original mines frequent subgraphs of entity graphs and trains a ranking SVM; here the subgraphs are the method's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from cohegraph.features import Features
from cohegraph.systems.dnn import Floats, TwoLayerNetwork


@dataclass(frozen=True)
class SubgraphFeatures(TwoLayerNetwork):
    """On the encoder's vector and the share of each pattern among the document's subgraphs."""

    name = "subgraph-features"
    title = "Mesgar & Strube (2016)"
    citation = "Mesgar and Strube (2016)"

    def inputs(self, features: Features) -> Floats:
        """The vector and the shares."""
        return np.hstack([features.vectors, pattern_shares(features.counts)])


def pattern_shares(counts: sparse.csr_array) -> Floats:
    """The share of each pattern among a document's subgraphs; all 0 where it has none."""
    dense = counts.toarray().astype(np.float32)
    shares: Floats = dense / np.maximum(dense.sum(axis=1, keepdims=True), 1)
    return shares
