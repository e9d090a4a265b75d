"""Linkers: what makes links between sentences. `nouns` is Algorithm 1 of the paper."""

from cohegraph.errors import CohegraphError
from cohegraph.graph.links.connectives import ConnectiveLinker
from cohegraph.graph.links.linker import FIRST_VERSION, Linker, Part, Parts
from cohegraph.graph.links.links import Links
from cohegraph.graph.links.nouns import NounLinker
from cohegraph.graph.links.reading import ContextLinker, ExactContextLinker, ReadingLinker
from cohegraph.graph.links.vectors import VectorLinker
from cohegraph.settings import LinkSettings

__all__ = ["LINKERS", "Linker", "Links", "Part", "Parts", "kinds_of", "linkers_of", "parts_of", "versions_of"]

LINKERS: dict[str, type[Linker]] = {
    linker.name: linker
    for linker in (
        NounLinker,
        ConnectiveLinker,
        VectorLinker,
        ContextLinker,
        ExactContextLinker,
        ReadingLinker,
    )
}


def linker_named(name: str) -> type[Linker]:
    """The class of a linker."""
    if name not in LINKERS:
        raise CohegraphError(f"There is no linker '{name}': choose from {', '.join(LINKERS)}.", code="no-linker")
    return LINKERS[name]


def linkers_of(settings: LinkSettings, parts: Parts) -> tuple[Linker, ...]:
    """The linkers that settings name."""
    return tuple(linker_named(name)(settings, parts) for name in settings.linkers)


def parts_of(settings: LinkSettings) -> tuple[Part, ...]:
    """The pretrained parts that these linkers need."""
    return tuple(dict.fromkeys(part for name in settings.linkers for part in linker_named(name).parts_needed))


def versions_of(settings: LinkSettings) -> dict[str, str]:
    """The versions of these linkers, without those that have the first one."""
    versions = {name: str(linker_named(name).version) for name in settings.linkers}
    return {name: version for name, version in versions.items() if version != FIRST_VERSION}


def kinds_of(settings: LinkSettings) -> tuple[str, ...]:
    """The kinds of links that these linkers make."""
    return tuple(kind for name in settings.linkers for kind in linker_named(name).kinds_of(settings))
