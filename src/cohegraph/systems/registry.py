"""All systems, by name, in the order of tables."""

from importlib import import_module

from cohegraph.systems import PLACES, check_names
from cohegraph.systems.system import System


def _class_at(place: str) -> type[System]:
    module, name = place.split(":")
    found: type[System] = getattr(import_module(f"cohegraph.systems.{module}"), name)
    return found


SYSTEMS: dict[str, type[System]] = {name: _class_at(place) for name, place in PLACES.items()}

# What an experiment compares unless it names others: quick to train, and enough to see what the method is worth.
USUAL = ("majority", "surface", "encoder", "subgraph-features", "dnn", "gcn", "gcn-no-pmi", "gcn-no-edges")


def system_named(name: str) -> type[System]:
    """The class of a system."""
    check_names(name)
    return SYSTEMS[name]
