"""What an experiment is: a corpus, a protocol, systems and analyses. Read from a TOML file or made from options."""

import math
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from cohegraph.corpora.corpus import Corpus
from cohegraph.corpora.registry import read_corpus
from cohegraph.corpora.tables import decoded
from cohegraph.errors import CohegraphError, in_words
from cohegraph.experiments.ready import READY
from cohegraph.presets import preset
from cohegraph.settings import Settings
from cohegraph.systems.registry import USUAL, system_named
from cohegraph.systems.system import System


def _each_once(values: tuple[Any, ...], *, what: str = "name at least one, and each of them once") -> tuple[Any, ...]:
    if not values or len(set(values)) < len(values):
        raise CohegraphError(what, code="each-once")
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
        try:
            return read_corpus(self.kind, self.path, self.options, self.sections).in_words()
        except CohegraphError as error:
            if error.code != "ratings-as-levels":
                raise
            raise CohegraphError(
                "The labels are ratings, numbers with fractions, and experiments compare systems on levels only: name "
                "a column with levels, as words or whole numbers (--label-column, or label_column among the corpus's "
                "options).",
                code=error.code,
            ) from None

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
    repeats: int = Field(1, ge=1, le=1000, description="How many times documents are split.")
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

    @property
    def arms(self) -> tuple[Variant, ...]:
        """The experiment itself, as a variant without a name that changes nothing, and its variants."""
        return (Variant(name="", settings={}, systems=tuple(system.name for system in self.systems)), *self.variants)

    @model_validator(mode="after")
    def _names_are_known(self) -> Self:
        names = tuple(system.name for system in self.systems)
        _each_once(names, what="name every system once")
        for name in names:
            system_named(name)
        for variant in self.variants:
            for name in (name for name in variant.systems if name not in names):
                what = f"the variant '{variant.name}' names the system '{name}', which is not listed"
                raise CohegraphError(what, code="system-not-listed")
        for setting, values in self.sensitivity.items():
            if not values or not all(_is_number(value) for value in values):
                what = f"the values of '{setting}' to vary are not all numbers: put others into variants"
                raise CohegraphError(what, code="not-a-number")
            _each_once(values, what=f"the values of '{setting}' to vary have one of them twice")
        # The experiment itself has the empty name.
        _each_once(tuple(arm.name for arm in self.arms), what="give every variant a name of its own")
        return self

    def settings_of(self, section: str, variant: str = "") -> Settings:
        """The settings of a section."""
        settings = preset(self.section_presets.get(section, self.preset), self.stack).replaced(self.settings)
        for one in self.variants:
            if one.name == variant:
                settings = settings.replaced(one.settings)
        return settings

    def system(self, name: str, settings: Settings) -> System:
        """A system with its hyper-parameters."""
        return system_named(name).of(settings).changed(self.plan_of(name).settings)

    def search(self, name: str, variant: Variant) -> Mapping[str, tuple[Any, ...]]:
        """The values to try for a system: the variant's, else the plan's, else the system's own.

        What is set on purpose is not tried: by the experiment or the system where the values are the system's own, and
        by the variant where they are not its own.
        """
        if variant.search is not None:
            return variant.search
        plan, fixed = self.plan_of(name), set(variant.settings)
        if plan.search is not None:
            return {setting: values for setting, values in plan.search.items() if setting not in fixed}
        fixed |= {*self.settings, *plan.settings}
        return {setting: values for setting, values in system_named(name).search.items() if setting not in fixed}

    def plan_of(self, system: str) -> SystemPlan:
        """What the plan says of a system."""
        return next(plan for plan in self.systems if plan.name == system)


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
        what = f"{file} is not an experiment: its values are nested too deeply."
        raise CohegraphError(what, code="too-deep") from None
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
            what = f"'{name}' is none of its systems: choose from {', '.join(listed)}"
            raise _not_valid("analyses.compare", what, "system-not-listed")
    values = plan.model_dump(by_alias=True, exclude_unset=True)
    changes = dict(changes or {})
    only = changes.pop("only_systems", None)
    for name, value in changes.items():
        group = values
        *path, last = name.split(".")
        for step in path:
            group = group.setdefault(step, {})
        group[last] = value
    values["settings"] = {**plan.settings, **(settings or {})}
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
        kind, place, cause = first["type"], first["loc"], first.get("ctx", {}).get("error")
        if kind == "extra_forbidden":
            what = f"there is no such key, choose from {', '.join(_keys_at(place[:-1]))}"
        elif kind == "missing" and isinstance(place[-1], int):
            what = "the list is too short"
        else:
            what = _IN_WORDS.get(kind) or in_words(first)
        code = _CODES.get(kind, "wrong-type" if kind.endswith("_type") else "bad-plan")
        # Our own validators name their codes.
        code = cause.code if isinstance(cause, CohegraphError) else code
        raise _not_valid(".".join(map(str, place)), what, code) from None


def _not_valid(place: str, what: str, code: str) -> CohegraphError:
    return CohegraphError(f"The experiment is not valid{f' ({place})' if place else ''}: {what}.", code=code)


_IN_WORDS = {
    "missing": "this key is missing",
    "model_type": "this must be a table",
    "dict_type": "this must be a table",
    "tuple_type": "this must be a list",
    "string_type": "this must be a text",
    "path_type": "this must be a text",
}

_CODES = {"missing": "missing-key", "extra_forbidden": "no-key"}


def _keys_at(place: tuple[int | str, ...]) -> list[str]:
    """The keys that a group of an experiment may have."""
    group: type[BaseModel] = Experiment
    for step in place:
        field = next((f for name, f in group.model_fields.items() if step in (name, f.alias)), None)
        if field is not None:
            kinds = (field.annotation, *get_args(field.annotation))
            group = next(kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel))
    return [field.alias or name for name, field in group.model_fields.items()]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _flattened(settings: Any) -> dict[str, Any]:
    """Settings written as TOML tables, ``[settings.training]``, or with dotted names, all by their dotted names."""
    if not isinstance(settings, dict):
        raise _not_valid("settings", _IN_WORDS["dict_type"], "wrong-type")
    found: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            found |= {f"{name}.{inner}": deeper for inner, deeper in value.items()}
        else:
            found[name] = value
    return found
