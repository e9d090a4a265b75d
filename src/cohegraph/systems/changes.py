"""Changes to settings and hyper-parameters by name, as a command is given them: what has no effect is refused."""

from collections.abc import Mapping
from typing import Any

from cohegraph.errors import CohegraphError
from cohegraph.graph.links import linker_named, parts_of
from cohegraph.settings import Settings
from cohegraph.systems.registry import system_named
from cohegraph.systems.system import Reading, System

# Settings that concern every system: what is learnt, how documents are split, and where parts are found (these are
# loaded in any case).
_OF_ALL = ("training.seed", "training.dev_share")
_GROUPS_OF_ALL = ("language", "objective", "parser", "vectors")
# Which systems a setting of features concerns: those that read one of these.
_READERS: Mapping[str, frozenset[Reading]] = {
    "encoder": frozenset({"vector", "states"}),
    "links": frozenset({"patterns"}),
    "reader": frozenset({"patterns"}),
    "subgraphs": frozenset({"patterns"}),
}


def apply_changes(system: str, settings: Settings, changes: Mapping[str, Any]) -> tuple[Settings, dict[str, Any]]:
    """The settings with changes, and those changes that are hyper-parameters of the system and no settings."""
    kind, known = system_named(system), settings.flat()
    own = [name for name in kind.of(settings).hyper_parameters if name not in known]
    for name in changes:
        if name not in known and name not in own:
            there_is = f"the system '{system}' has {', '.join(own)}" if own else f"choose from {', '.join(known)}"
            raise CohegraphError(f"There is no setting or hyper-parameter '{name}': {there_is}.", code="no-setting")
    hyper_parameters = {name: value for name, value in changes.items() if name in own}
    changed = settings.replaced({name: value for name, value in changes.items() if name in known})
    for linker in changed.links.linkers:
        linker_named(linker)  # raises where there is none of this name
    used = kind.of(changed)
    reads, now = used.changed(hyper_parameters).reads, changed.flat()
    for name in changes:
        if name in known:
            if (fixed := used.hyper_parameters.get(name, now[name])) != now[name]:
                raise CohegraphError(
                    f"The system '{system}' always has {name}={fixed}: leave it as it is.", code="fixed-setting"
                )
            why = "" if now[name] == known[name] else _why_without_effect(name, kind, reads, settings, changed)
            if why:
                raise CohegraphError(f"The setting '{name}' has no effect: {why}.", code="setting-without-effect")
    return changed, hyper_parameters


def _why_without_effect(
    name: str, kind: type[System], reads: frozenset[Reading], settings: Settings, changed: Settings
) -> str:
    """Why nobody would notice that a setting was changed; empty where it has an effect."""
    objective, group = changed.objective, name.split(".")[0]
    if objective.is_of_levels and name in ("objective.range", "objective.thresholds"):
        return f"objective.kind={objective.kind} learns levels and not ratings"
    if not objective.is_of_levels and name == "training.class_weights":
        return f"objective.kind={objective.kind} learns no levels that could be weighted"
    if name in _OF_ALL or group in _GROUPS_OF_ALL or name == "encoder.source":
        return ""
    if group == "reader" and "reader" not in parts_of(changed.links):
        return "no linker in links.linkers needs a reader"
    if group in _READERS:
        return f"the system '{kind.name}' does not read it" if _READERS[group].isdisjoint(reads) else ""
    before = kind.of(settings)
    if kind.of(settings.replaced({name: changed.flat()[name]})) != before:
        return ""
    has = ", ".join(before.hyper_parameters) or "nothing to set"
    return f"the system '{kind.name}' has {has}"
