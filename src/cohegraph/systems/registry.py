"""All systems, by name, in the order of tables."""

from __future__ import annotations

from cohegraph.systems import check_names
from cohegraph.systems.dnn import EncoderNetwork
from cohegraph.systems.dong_2017 import AttentionNetwork
from cohegraph.systems.entity_graph import EntityGraphRegression
from cohegraph.systems.entity_grid import EntityGridRegression
from cohegraph.systems.gcn.system import CorpusGCN, WithoutEdges, WithoutPatternEdges
from cohegraph.systems.jeon_strube_2020_centering import CenteringModel
from cohegraph.systems.jeon_strube_2020_incremental import IncrementalModel
from cohegraph.systems.lai_tetreault_2018 import ParSeq
from cohegraph.systems.li_jurafsky_2017 import CliqueModel
from cohegraph.systems.majority import Majority
from cohegraph.systems.mesgar_strube_2016 import SubgraphFeatures, SubgraphRegression
from cohegraph.systems.mesgar_strube_2018 import NeuralLocalCoherence
from cohegraph.systems.moon_2019 import UnifiedModel
from cohegraph.systems.neighbour_similarity import NeighbourSimilarity
from cohegraph.systems.regression import EncoderRegression, SurfaceRegression
from cohegraph.systems.sgc import SimpleGraphConvolution
from cohegraph.systems.system import System

SYSTEMS: dict[str, type[System]] = {
    system.name: system
    for system in (
        Majority,
        SurfaceRegression,
        NeighbourSimilarity,
        EntityGridRegression,
        EntityGraphRegression,
        SubgraphRegression,
        CliqueModel,
        ParSeq,
        NeuralLocalCoherence,
        AttentionNetwork,
        UnifiedModel,
        CenteringModel,
        IncrementalModel,
        EncoderRegression,
        SubgraphFeatures,
        EncoderNetwork,
        SimpleGraphConvolution,
        CorpusGCN,
        WithoutPatternEdges,
        WithoutEdges,
    )
}

# What an experiment compares unless it names others: quick to train, and enough to see what the method is worth.
USUAL = ("majority", "surface", "encoder", "subgraph-features", "dnn", "gcn", "gcn-no-pmi", "gcn-no-edges")


def system_named(name: str) -> type[System]:
    """The class of a system."""
    check_names(name)
    return SYSTEMS[name]
