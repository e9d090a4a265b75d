"""What an experiment is: a corpus, a protocol, systems and analyses. Read from a TOML file or made from options."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from cohegraph.corpora.corpus import Corpus
from cohegraph.corpora.registry import read_corpus
from cohegraph.corpora.tables import decoded
from cohegraph.errors import CohegraphError, in_words
from cohegraph.experiments.ready import READY
from cohegraph.presets import preset
from cohegraph.settings import Settings
from cohegraph.systems.registry import USUAL, system_named


def _each_once(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if not values or len(set(values)) < len(values):
        raise CohegraphError("name at least one, and each of them once", code="each-once")
    return values


_Names = Annotated[tuple[str, ...], AfterValidator(_each_once)]
_Seeds = Annotated[tuple[Annotated[int, Field(ge=0, lt=2**32)], ...], AfterValidator(_each_once)]
# Values to try of each hyper-parameter; nothing is tried where it is empty.
Search = dict[str, tuple[Any, ...]]


class _Group(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, validate_by_alias=True)


class CorpusPlan(_Group):
    """Which corpus, where it is, and the options of its reader."""

    kind: str
    path: Path | None = None
    sections: _Names | None = Field(None, description="Only these sections, in this order.")
    options: dict[str, Any] = {}

    def read(self) -> Corpus:
        """The corpus."""
        if self.path is None:
            raise CohegraphError(
                f"Say where the corpus '{self.kind}' is: --corpus PLACE, or path in the experiment file.",
                code="no-path",
            )
        return read_corpus(self.kind, self.path, self.options, self.sections).in_words()

    @property
    def partial(self) -> bool:
        """Whether an incomplete corpus was asked for."""
        return self.options.get("partial") is True


class Protocol(_Group):
    """How documents are split, and how choices are made."""

    kind: Literal["folds", "fixed-test", "leave-one-group-out"] = Field(
        "folds", description="Folds that test in turn, folds over a training split, or each group tests in turn."
    )
    folds: int = Field(5, ge=2, le=1000, description="Folds of a section.")
    repeats: int = Field(1, ge=1, le=1000, description="Times that documents are split anew.")
    seeds: _Seeds = Field((0,), description="Each fold is trained once with each seed.")
    dev: float = Field(0.2, gt=0, lt=1, description="Share of the documents not in test that choose.")
    stratify: Literal["level", "group and level"] = Field("level", description="What folds have equal shares of.")
    grouped: bool = Field(False, description="A group is never on both sides of a fold.")
    refit: bool = Field(False, description="Train the chosen system once more on training and dev documents.")
    folds_file: Path | None = Field(None, description="Folds of an earlier run, instead of new ones.")
    best_on_test: bool = Field(False, description="Also note the best accuracy on test, for comparison only.")


class SystemPlan(_Group):
    """One system of an experiment."""

    name: str
    title: str | None = None
    settings: dict[str, Any] = Field({}, description="Hyper-parameters that differ from the experiment's settings.")
    search: Search | None = Field(None, description="Values to try on dev; by default the system's own.")


class Variant(_Group):
    """The experiment once more with other settings, for some systems."""

    name: str
    settings: dict[str, Any]
    systems: tuple[str, ...] = ("gcn",)
    seeds: _Seeds | None = Field(None, description="By default all of the protocol's.")
    search: Search | None = Field(None, description="Values to try on dev, instead of each system's.")
    sensitivity: bool = Field(False, description="One point of a curve, rather than a row of a table.")


class Analyses(_Group):
    """What is looked at besides the measures."""

    examples: int = Field(1, ge=0, le=20, description="Documents of each level shown with their sentence graph.")
    compare: tuple[str, str] = Field(("gcn", "dnn"), description="The two systems of the figures: method and baseline.")
    length_bins: int = Field(5, ge=2, le=20, description="Bins of document length.")


class Experiment(_Group):
    """All of it."""

    name: str = Field(min_length=1, pattern=r"^[^/\\\x00-\x1f]+$")
    title: str = ""
    corpus: CorpusPlan
    protocol: Protocol = Protocol()
    preset: str = "default"
    stack: str = "compact"
    settings: dict[str, Any] = {}
    section_presets: dict[str, str] = Field({}, description="Presets of single sections.")
    systems: tuple[SystemPlan, ...] = tuple(SystemPlan(name=name) for name in USUAL)
    named_variants: tuple[Variant, ...] = Field((), alias="variants")
    sensitivity: dict[str, tuple[Any, ...]] = Field({}, description="Settings to vary one at a time, with one seed.")
    analyses: Analyses = Analyses()

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The variants named in the plan, and a point for each value of the settings to vary."""
        points = tuple(
            Variant(
                name=f"{setting} = {value}",
                settings={setting: value},
                systems=(self.analyses.compare[0],),
                seeds=self.protocol.seeds[:1],
                sensitivity=True,
            )
            for setting, values in self.sensitivity.items()
            for value in values
        )
        return self.named_variants + points

    @model_validator(mode="after")
    def _names_are_known(self) -> Experiment:
        names = [system.name for system in self.systems]
        if len(set(names)) < len(names) or not names:
            raise CohegraphError("name every system once", code="each-once")
        for system in self.systems:
            system_named(system.name)
        for variant in self.variants:
            for name in variant.systems:
                if name not in names:
                    raise CohegraphError(
                        f"the variant '{variant.name}' names the system '{name}', which is not listed",
                        code="system-not-listed",
                    )
        for setting, values in self.sensitivity.items():
            if not values or not all(_is_number(value) for value in values):
                raise CohegraphError(
                    f"the values of '{setting}' to vary are not all numbers: put others into variants",
                    code="not-a-number",
                )
            if len(set(values)) < len(values):
                raise CohegraphError(f"the values of '{setting}' to vary have one of them twice", code="each-once")
        variants = [variant.name for variant in self.variants]
        if len(set(variants)) < len(variants) or "" in variants:
            raise CohegraphError("give every variant a name of its own", code="each-once")
        return self

    def settings_of(self, section: str, variant: str = "") -> Settings:
        """The settings of a section."""
        settings = preset(self.section_presets.get(section, self.preset), self.stack).replaced(self.settings)
        for one in self.variants:
            if one.name == variant:
                settings = settings.replaced(one.settings)
        return settings


def read_experiment(
    file: Path, changes: dict[str, Any] | None = None, settings: dict[str, Any] | None = None
) -> Experiment:
    """An experiment from a TOML file; paths in it are relative to its folder. See `make_experiment` for the rest."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise CohegraphError(f"The experiment {file} cannot be read: {error.strerror}.", code="cannot-read") from None
    try:
        values = tomllib.loads(decoded(content, str(file)))
    except tomllib.TOMLDecodeError as error:
        raise CohegraphError(f"{file} is not valid TOML: {error}.", code="not-toml") from None
    except RecursionError:
        raise CohegraphError(
            f"{file} is not an experiment: its values are nested too deeply.", code="too-deep"
        ) from None
    for group, name in (("corpus", "path"), ("protocol", "folds_file")):
        inner = values.get(group)
        if isinstance(inner, dict) and isinstance(inner.get(name), str) and READY not in file.parents:
            inner[name] = str(file.parent / inner[name])
    return make_experiment({"name": file.stem} | values, changes, settings)


def make_experiment(
    values: dict[str, Any], changes: dict[str, Any] | None = None, settings: dict[str, Any] | None = None
) -> Experiment:
    """An experiment from nested dictionaries.

    Args:
        values: The groups and values of an experiment file.
        changes: Values to change, named with dots: ``{"protocol.folds": 3}``; ``only_systems`` keeps these systems.
        settings: Settings to change in all sections.
    """
    # Checked before anything is changed: what follows may rely on the types of all values.
    plan = _validated(values | {"settings": _flattened(values.get("settings", {}))})
    listed = [system.name for system in plan.systems]
    for name in plan.analyses.compare if "compare" in plan.analyses.model_fields_set else ():
        if name not in listed:
            raise CohegraphError(
                f"The experiment is not valid (analyses.compare): '{name}' is none of its systems: choose from "
                f"{', '.join(listed)}.",
                code="system-not-listed",
            )
    values = plan.model_dump(by_alias=True, exclude_unset=True)
    for name, value in (changes or {}).items():
        if name == "only_systems":
            continue
        group = values
        *path, last = name.split(".")
        for step in path:
            group = group.setdefault(step, {})
        group[last] = value
    values["settings"] = {**plan.settings, **(settings or {})}
    only = (changes or {}).get("only_systems")
    if only is not None:
        known = {system["name"]: system for system in values.get("systems", ())}
        values["systems"] = [known.get(name, {"name": name}) for name in only]
        values["variants"] = [
            variant.model_dump(exclude_unset=True) | {"systems": kept}
            for variant in plan.named_variants
            if (kept := [name for name in variant.systems if name in only])
        ]
        if plan.analyses.compare[0] not in only:
            values.pop("sensitivity", None)
    return _validated(values)


def _validated(values: dict[str, Any]) -> Experiment:
    try:
        return Experiment.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            what = f"there is no such key, choose from {', '.join(_keys_at(first['loc'][:-1]))}"
        elif first["type"] == "missing" and isinstance(first["loc"][-1], int):
            what = "the list is too short"
        else:
            what = _IN_WORDS.get(first["type"]) or in_words(first)
        raise CohegraphError(
            f"The experiment is not valid{f' ({place})' if place else ''}: {what}.", code=_code(first)
        ) from None


_IN_WORDS = {
    "missing": "this key is missing",
    "model_type": "this must be a table",
    "dict_type": "this must be a table",
    "tuple_type": "this must be a list",
    "string_type": "this must be a text",
    "path_type": "this must be a text",
}


_CODES = {"missing": "missing-key", "extra_forbidden": "no-key"}


def _code(complaint: Mapping[str, Any]) -> str:
    """What pydantic complains of, as the code of an error; our own validators name theirs."""
    cause = complaint.get("ctx", {}).get("error")
    if isinstance(cause, CohegraphError):
        return cause.code
    wrong_type = complaint["type"].endswith("_type")
    return _CODES.get(complaint["type"], "wrong-type" if wrong_type else "bad-plan")


def _keys_at(place: tuple[int | str, ...]) -> list[str]:
    """The keys that a group of an experiment may have."""
    group: type[BaseModel] = Experiment
    for step in place:
        field = next((f for name, f in group.model_fields.items() if step in (name, f.alias)), None)
        if field is not None:
            group = next(kind for kind in (field.annotation, *get_args(field.annotation)) if _is_group(kind))
    return [field.alias or name for name, field in group.model_fields.items()]


def _is_group(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _flattened(settings: Any) -> dict[str, Any]:
    """Settings written as TOML tables, ``[settings.training]``, or with dotted names, all by their dotted names."""
    if not isinstance(settings, dict):
        raise CohegraphError("The experiment is not valid (settings): this must be a table.", code="wrong-type")
    found: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            found |= {f"{name}.{inner}": deeper for inner, deeper in value.items()}
        else:
            found[name] = value
    return found
