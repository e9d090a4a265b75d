"""The most frequent level for every document: what costs nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from cohegraph.features import Features
from cohegraph.settings import Settings
from cohegraph.systems.system import Arrays, Graded, OnEpoch, Probabilities, StorableSystem, expect_shapes


@dataclass(frozen=True)
class _Shares:
    shares: Probabilities
    parameters: int = 0

    @property
    def chosen(self) -> Mapping[str, Any]:
        return {}

    def probabilities(self, features: Features) -> Probabilities:
        return np.tile(self.shares, (len(features), 1))

    def arrays(self) -> Arrays:
        return {"shares": self.shares}


@dataclass(frozen=True)
class Majority(StorableSystem):
    """Gives every level its share in training."""

    name = "majority"
    title = "Majority"
    limits = ("It does not look at the text: every text gets the same level.",)

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """There is nothing to set."""
        return cls()

    def fit(
        self, training: Graded, dev: Graded | None, levels: int, *, seed: int, on_epoch: OnEpoch | None = None
    ) -> _Shares:
        """Count."""
        return _Shares(np.bincount(training.classes, minlength=levels) / len(training.classes))

    def restored(self, arrays: Arrays, levels: int) -> _Shares:
        """The shares."""
        expect_shapes(arrays, {"shares": (levels,)})
        if arrays["shares"].min() < 0 or not np.isclose(arrays["shares"].sum(), 1):
            raise ValueError("the shares are none")
        return _Shares(arrays["shares"])
