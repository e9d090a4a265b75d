"""All systems, by name, in the order of tables."""

from __future__ import annotations

from cohegraph.errors import CohegraphError
from cohegraph.systems.dnn import EncoderNetwork
from cohegraph.systems.gcn import CorpusGCN, WithoutEdges, WithoutPatternEdges
from cohegraph.systems.majority import Majority
from cohegraph.systems.mesgar_strube_2016 import SubgraphFeatures
from cohegraph.systems.regression import EncoderRegression, SurfaceRegression
from cohegraph.systems.system import System

SYSTEMS: dict[str, type[System]] = {
    system.name: system
    for system in (
        Majority,
        SurfaceRegression,
        EncoderRegression,
        SubgraphFeatures,
        EncoderNetwork,
        CorpusGCN,
        WithoutPatternEdges,
        WithoutEdges,
    )
}


def system_named(name: str) -> type[System]:
    """The class of a system."""
    if name not in SYSTEMS:
        raise CohegraphError(f"There is no system '{name}': choose from {', '.join(SYSTEMS)}.")
    return SYSTEMS[name]
