r"""The entity grid (Barzilay and Lapata, 2008).

Entities by sentences, with the role of each: subject, object, another, or absent. The features of a document are
the probabilities of its transitions, that is of each sequence of roles that an entity has in ``length``
neighbouring sentences:

.. math:: p(r_1 \dots r_n) = \frac{|\{(e, i): role(e, i) = r_1, \dots, role(e, i+n-1) = r_n\}|}{|\{(e, i)\}|}

Entities that are named ``salient`` times or more are counted apart from the others. A multinomial logistic regression
takes the place of the ranking SVM, since there are levels to tell.

Simplified: nouns with the same lemma are one entity (the original's "Coreference-" setting). Roles come from the
dependency of each noun, and are the underlying ones: the subject of a passive is an object, its agent a subject.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from cohegraph.features import Features
from cohegraph.settings import Settings
from cohegraph.systems.regression import Floats, Regression
from cohegraph.systems.system import RECURRING_NOUNS, Search


@dataclass(frozen=True)
class EntityGridRegression(Regression):
    """Logistic regression on the shares of transitions of roles of entities.

    Args:
        length: How many neighbouring sentences a transition spans.
        salient: Entities named so often are counted by themselves; 0 counts all together.
    """

    name = "entity-grid"
    title = "Entity grid"
    looks_at = frozenset({"grid"})
    limits = (RECURRING_NOUNS,)
    citation = "Barzilay and Lapata (2008)"
    search: ClassVar[Search] = {
        "strength": (0.01, 0.1, 1.0, 10.0),
        "length": (2, 3),
        "salient": (0, 2),
    }

    length: Annotated[int, Field(ge=1, le=4)] = 2
    salient: Annotated[int, Field(ge=0)] = 2

    def fewest_sentences(self, settings: Settings) -> int:
        """As many as a transition spans."""
        return self.length

    def inputs(self, features: Features) -> Floats:
        """The shares of all transitions."""
        return np.stack([grid.transitions(self.length, self.salient) for grid in features.grids])
