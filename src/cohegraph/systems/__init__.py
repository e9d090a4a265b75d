"""Everything that predicts levels or ratings, one file per system, all with the same verbs."""

from cohegraph.errors import CohegraphError

# The names of all systems, in the order of tables, and of all hyper-parameters that are no settings. `registry` has the
# systems themselves, but imports torch, which takes seconds: with these, a wrong name is refused at once.
NAMES = (
    "majority",
    "surface",
    "neighbour-similarity",
    "entity-grid",
    "entity-graph",
    "subgraphs",
    "li-jurafsky-2017",
    "lai-tetreault-2018",
    "mesgar-strube-2018",
    "dong-2017",
    "moon-2019",
    "jeon-strube-2020-centering",
    "jeon-strube-2020-incremental",
    "encoder",
    "subgraph-features",
    "dnn",
    "sgc",
    "gcn",
    "gcn-no-pmi",
    "gcn-no-edges",
)
HYPER_PARAMETERS = frozenset(
    "batch centres choose_by discounted dropout epochs heads hidden kernel layers learning_rate length patience "
    "projection reach relations salient strength support threshold tokens weight_decay".split()
)


def check_system(name: str) -> None:
    """Raise where no system has this name."""
    if name not in NAMES:
        raise CohegraphError(f"There is no system '{name}': choose from {', '.join(NAMES)}.", code="no-system")
