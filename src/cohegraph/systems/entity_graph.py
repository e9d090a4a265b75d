r"""The entity graph (Guinaudeau and Strube, 2013).

Sentences and entities are the two sides of a graph, with an edge where an entity is named in a sentence, weighted
by its role (subject 3, object 2, other 1). Its projection on the sentences has an edge from each sentence to every
later one that shares an entity with it:

- ``unweighted`` (P_U): weight 1;
- ``shared`` (P_W): how many entities they share;
- ``roles`` (P_Acc): :math:`\sum_e w(e, s_i) w(e, s_j)` over the shared entities.

With ``discounted``, a weight is divided by the distance :math:`j - i`. The coherence of the document is the mean
out-degree of its sentences. `entity_graph_score` gives it without any training; the system is a logistic regression
on it. Experiments choose the projection on dev.

Simplified: nouns with the same lemma are one entity, and a regression tells levels where the original ranks by the
score.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from scipy import sparse

from cohegraph.features import Features
from cohegraph.graph.entity_grid import EntityGrid
from cohegraph.systems.regression import Floats, Regression
from cohegraph.systems.system import RECURRING_NOUNS, Search

Projection = Literal["unweighted", "shared", "roles"]

# So many sentences are compared with all others at once.
_AT_ONCE = 256


def entity_graph_score(grid: EntityGrid, projection: Projection = "roles", *, discounted: bool = True) -> float:
    """The mean out-degree of the projected graph; 0 where there are no sentences."""
    if not grid.sentences:
        return 0.0
    # The role's number is its weight: other 1, object 2, subject 3.
    weights = grid.role if projection == "roles" else np.ones_like(grid.role)
    shape = (grid.sentences, grid.entities)
    sides = sparse.csr_array((weights.astype(np.float64), (grid.sentence, grid.entity)), shape=shape)
    other_side = sides.T.tocsc()
    total = 0.0
    for start in range(0, grid.sentences, _AT_ONCE):
        edges = (sides[start : start + _AT_ONCE] @ other_side).tocoo()
        row, column = edges.coords
        distance = column.astype(np.int64) - row - start
        weight = np.ones_like(edges.data) if projection == "unweighted" else edges.data
        later = distance > 0
        total += float((weight[later] / (distance[later] if discounted else 1)).sum())
    return total / grid.sentences


@dataclass(frozen=True)
class EntityGraphRegression(Regression):
    """Logistic regression on the mean out-degree of the graph of sentences that share entities.

    Args:
        projection: What an edge weighs.
        discounted: Whether sentences far apart weigh less.
    """

    name = "entity-graph"
    title = "Entity graph"
    looks_at = frozenset({"grid"})
    least_sentences = 2
    limits = (RECURRING_NOUNS,)
    citation = "Guinaudeau and Strube (2013)"
    search: ClassVar[Search] = {
        "projection": ("unweighted", "shared", "roles"),
        "discounted": (True, False),
    }

    projection: Projection = "roles"
    discounted: bool = True

    def inputs(self, features: Features) -> Floats:
        """The score, one figure a document."""
        scores = [entity_graph_score(grid, self.projection, discounted=self.discounted) for grid in features.grids]
        return np.array(scores)[:, None]
