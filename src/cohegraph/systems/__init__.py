"""Everything that predicts levels or ratings, one file per system, all with the same verbs."""

from collections.abc import Iterable

from cohegraph.errors import CohegraphError
from cohegraph.settings import Settings

_OF_NETWORKS = (
    "tokens",
    "hidden",
    "dropout",
    "epochs",
    "patience",
    "batch",
    "learning_rate",
    "weight_decay",
    "choose_by",
)
# All systems in the order of tables, with their hyper-parameters that are no settings. `registry` has the systems
# themselves, but imports torch, which takes seconds: with these names, wrong ones are refused at once.
HYPER_PARAMETERS: dict[str, tuple[str, ...]] = {
    "majority": (),
    "surface": ("strength",),
    "neighbour-similarity": ("strength", "tokens"),
    "entity-grid": ("strength", "length", "salient"),
    "entity-graph": ("strength", "projection", "discounted"),
    "subgraphs": ("strength", "support"),
    "li-jurafsky-2017": (*_OF_NETWORKS, "reach"),
    "lai-tetreault-2018": _OF_NETWORKS,
    "mesgar-strube-2018": (*_OF_NETWORKS, "kernel"),
    "dong-2017": (*_OF_NETWORKS, "kernel"),
    "moon-2019": (*_OF_NETWORKS, "kernel", "relations", "layers", "heads"),
    "jeon-strube-2020-centering": (*_OF_NETWORKS, "centres", "threshold", "heads"),
    "jeon-strube-2020-incremental": (*_OF_NETWORKS, "kernel"),
    "encoder": ("strength",),
    "subgraph-features": (),
    "dnn": (),
    "sgc": ("strength",),
    "gcn": (),
    "gcn-no-pmi": (),
    "gcn-no-edges": (),
}


def check_names(system: str, changes: Iterable[str] = ()) -> None:
    """Raise where there is no such system, or neither a setting nor a hyper-parameter of it for one of the changes."""
    if system not in HYPER_PARAMETERS:
        choice = ", ".join(HYPER_PARAMETERS)
        raise CohegraphError(f"There is no system '{system}': choose from {choice}.", code="no-system")
    own, settings = HYPER_PARAMETERS[system], Settings().flat()
    for name in changes:
        if own and name not in own and name not in settings:
            raise CohegraphError(
                f"There is no setting '{name}', and the system '{system}' has no hyper-parameter of this name: it has "
                f"{', '.join(own)}.",
                code="no-setting",
            )
