"""Everything that predicts levels or ratings, one file per system, all with the same verbs.

A new system is one file, and one line here.
"""

from collections.abc import Iterable

from cohegraph.errors import CohegraphError
from cohegraph.settings import Settings

# Where the class of each system is, in the order of tables. The classes are in `registry`, which imports torch: that
# takes seconds, and a wrong name is refused at once.
PLACES = {
    "majority": "majority:Majority",
    "surface": "regression:SurfaceRegression",
    "neighbour-similarity": "neighbour_similarity:NeighbourSimilarity",
    "entity-grid": "entity_grid:EntityGridRegression",
    "entity-graph": "entity_graph:EntityGraphRegression",
    "subgraphs": "mesgar_strube_2016:SubgraphRegression",
    "li-jurafsky-2017": "li_jurafsky_2017:CliqueModel",
    "lai-tetreault-2018": "lai_tetreault_2018:ParSeq",
    "mesgar-strube-2018": "mesgar_strube_2018:NeuralLocalCoherence",
    "dong-2017": "dong_2017:AttentionNetwork",
    "moon-2019": "moon_2019:UnifiedModel",
    "jeon-strube-2020-centering": "jeon_strube_2020_centering:CenteringModel",
    "jeon-strube-2020-incremental": "jeon_strube_2020_incremental:IncrementalModel",
    "encoder": "regression:EncoderRegression",
    "reading": "reading:ReadingRegression",
    "subgraph-features": "mesgar_strube_2016:SubgraphFeatures",
    "dnn": "dnn:EncoderNetwork",
    "sgc": "sgc:SimpleGraphConvolution",
    "gcn": "gcn.system:CorpusGCN",
    "gcn-no-pmi": "gcn.system:WithoutPatternEdges",
    "gcn-no-edges": "gcn.system:WithoutEdges",
}


def check_names(system: str, changes: Iterable[str] = ()) -> None:
    """Raise where there is no such system, or no such setting; names without a dot may be its hyper-parameters."""
    if system not in PLACES:
        raise CohegraphError(f"There is no system '{system}': choose from {', '.join(PLACES)}.", code="no-system")
    settings = Settings().flat()
    for name in changes:
        if "." in name and name not in settings:
            raise CohegraphError(f"There is no setting '{name}': choose from {', '.join(settings)}.", code="no-setting")
