"""Changes to settings and hyper-parameters by name, as a command is given them: what has no effect is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cohegraph.errors import CohegraphError
from cohegraph.settings import Settings
from cohegraph.systems import HYPER_PARAMETERS, check_names
from cohegraph.systems.registry import system_named
from cohegraph.systems.system import Reading, System

# Settings that concern every system: what is learnt, and how documents are split.
_OF_ALL = ("training.seed", "training.dev_share")
_GROUPS_OF_ALL = ("language", "objective")
# Which systems a setting of features concerns: those that read one of these. The parser concerns all.
_READERS: Mapping[str, frozenset[Reading]] = {
    "encoder": frozenset({"vector", "states"}),
    "links": frozenset({"patterns"}),
    "subgraphs": frozenset({"patterns"}),
}


def apply_changes(system: str, settings: Settings, changes: Mapping[str, Any]) -> tuple[Settings, dict[str, Any]]:
    """The settings with changes, and those changes that are hyper-parameters of the system and no settings."""
    check_names(system, changes)
    kind, known = system_named(system), settings.flat()
    hyper_parameters = {name: value for name, value in changes.items() if name in HYPER_PARAMETERS[system]}
    changed = settings.replaced({name: value for name, value in changes.items() if name not in hyper_parameters})
    reads = kind.of(changed).changed(hyper_parameters).reads
    for name in changes:
        if name in settings.of_features():
            # Where parts are found concerns all systems: they are loaded in any case.
            if name in settings.of_features(places=False) and changed.flat()[name] != known[name]:
                _check_reader(system, reads, name)
        elif name not in hyper_parameters:
            _check_effect(kind, settings, changed, name)
    return changed, hyper_parameters


def _check_reader(system: str, reads: frozenset[Reading], name: str) -> None:
    """Raise where a setting of features was changed that the system does not read."""
    readers = _READERS.get(name.split(".")[0])
    if readers is not None and readers.isdisjoint(reads):
        raise CohegraphError(
            f"The setting '{name}' does not concern the system '{system}'.", code="setting-without-effect"
        )


def _check_effect(kind: type[System], settings: Settings, changed: Settings, name: str) -> None:
    """Raise where a setting was changed that the system does not heed: nobody would notice."""
    if name in _OF_ALL or name.split(".")[0] in _GROUPS_OF_ALL:
        return
    value, used = changed.flat()[name], kind.of(changed).hyper_parameters.get(name, changed.flat()[name])
    if used != value:
        raise CohegraphError(
            f"The system '{kind.name}' always has {name}={used}: leave it as it is.", code="fixed-setting"
        )
    before = kind.of(settings)
    if value != settings.flat()[name] and kind.of(settings.replaced({name: value})) == before:
        raise CohegraphError(
            f"The setting '{name}' does not concern the system '{kind.name}'"
            + (f", which has {', '.join(before.hyper_parameters)}." if before.hyper_parameters else "."),
            code="setting-without-effect",
        )
