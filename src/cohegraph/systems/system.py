"""What a system is: something that learns levels from graded documents and then tells those of others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, Protocol, Self, get_type_hints

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from cohegraph.errors import CohegraphError, in_words
from cohegraph.features import Features, Material
from cohegraph.settings import Settings

Reading = Literal["patterns", "vector"] | Material
Classes = npt.NDArray[np.int64]
Probabilities = npt.NDArray[np.float64]
Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Graded:
    """Documents with their classes, 0 for the lowest level."""

    features: Features
    classes: Classes

    def __add__(self, other: Graded) -> Graded:
        return Graded(
            Features.concatenate([self.features, other.features]), np.concatenate([self.classes, other.classes])
        )

    def of_levels(self, levels: Classes) -> Graded | None:
        """The documents of some levels only, or nothing where there are none."""
        chosen = np.isin(self.classes, levels)
        return Graded(self.features[chosen], self.classes[chosen]) if chosen.any() else None


class Fitted(Protocol):
    """A system that has learnt."""

    @property
    def parameters(self) -> int:
        """How many numbers it has learnt."""

    @property
    def chosen(self) -> Mapping[str, Any]:
        """What was chosen on dev while it learnt (the epoch), as changes to the system."""

    def probabilities(self, features: Features) -> Probabilities:
        """The probability of every level, (documents, levels)."""


class StorableFitted(Fitted, Protocol):
    """A system that has learnt and can be written to a file."""

    def arrays(self) -> Arrays:
        """All that was learnt, by name: what `StorableSystem.restored` takes."""


OnEpoch = Callable[[int, Callable[[Features], Probabilities]], None]


class System(ABC):
    """A way to predict levels, with its hyper-parameters; a frozen dataclass.

    A new system is one file with one subclass, and one line in `registry`.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    citation: ClassVar[str] = ""
    # Which of the features that every document has it looks at, besides the tallies.
    looks_at: ClassVar[frozenset[Literal["patterns", "vector"]]] = frozenset()
    # What it is blind to, a sentence each, for the cards of its models.
    limits: ClassVar[tuple[str, ...]] = ()
    # Changes that the search on dev tries, unless the experiment names others: each list of values by its name.
    search: ClassVar[Mapping[str, tuple[Any, ...]]] = {}

    @property
    def needs(self) -> frozenset[Material]:
        """What features must hold besides counts, vector and tallies."""
        return frozenset()

    @property
    def reads(self) -> frozenset[Reading]:
        """All that it reads of a document besides the tallies."""
        return frozenset({*self.looks_at, *self.needs})

    @classmethod
    @abstractmethod
    def of(cls, settings: Settings) -> Self:
        """The system with those of the settings that concern it."""

    @abstractmethod
    def fit(
        self,
        training: Graded,
        dev: Graded | None,
        levels: int,
        *,
        seed: int,
        on_epoch: OnEpoch | None = None,
    ) -> Fitted:
        """Learn from graded documents.

        Args:
            training: The documents to learn from.
            dev: Documents to choose the epoch with; without them the last one is taken.
            levels: How many levels there are, also where the documents do not show all of them.
            seed: Of all that is drawn at random.
            on_epoch: Called after every epoch with its number and the probabilities that the system gives then;
                systems that do not learn in epochs do not call it.
        """

    def __post_init__(self) -> None:
        """Raise where a hyper-parameter is not of its type or out of its range."""
        for item in fields(self):  # type: ignore[arg-type]
            value = getattr(self, item.name)
            if not isinstance(value, BaseModel):
                object.__setattr__(self, item.name, _checked(type(self), item.name, value))

    def fewest_sentences(self, settings: Settings) -> int:
        """How many sentences a document must have for the system to see more of it than its wording."""
        return 1

    def changed(self, changes: Mapping[str, Any]) -> Self:
        """The same system with some hyper-parameters changed, named with dots: ``{"training.weight_decay": 0.01}``."""
        values: dict[str, Any] = {}
        for name, value in changes.items():
            if name not in self.hyper_parameters:
                raise CohegraphError(
                    f"The system '{self.name}' has no hyper-parameter '{name}'"
                    + (f": it has {', '.join(self.hyper_parameters)}." if self.hyper_parameters else ".")
                )
            first, _, rest = name.partition(".")
            values[first] = (
                _changed_group(values.get(first, getattr(self, first)), rest, value, name) if rest else value
            )
        # All at once: some values are only valid together.
        return replace(self, **values)  # type: ignore[type-var]

    @property
    def hyper_parameters(self) -> dict[str, Any]:
        """All hyper-parameters by their dotted names."""
        found: dict[str, Any] = {}
        for item in fields(self):  # type: ignore[arg-type]
            value = getattr(self, item.name)
            if isinstance(value, BaseModel):
                found |= {f"{item.name}.{name}": inner for name, inner in value.model_dump().items()}
            else:
                found[item.name] = value
        return found


def _checked(kind: type[System], name: str, value: Any) -> Any:
    """A value of a field's type and within its range."""
    hint = get_type_hints(kind, include_extras=True)[name]
    if isinstance(value, bool) and hint is not bool:
        raise CohegraphError(f"{name}={value!r} is not valid: it takes no truth value.")
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(hint, config=ConfigDict(allow_inf_nan=False))
        return adapter.validate_python(value)
    except ValidationError as error:
        raise CohegraphError(f"{name}={value!r} is not valid: {in_words(error.errors()[0])}.") from None


def _changed_group(group: BaseModel, name: str, value: Any, full_name: str) -> BaseModel:
    try:
        return type(group).model_validate(group.model_dump() | {name: value})
    except ValidationError as error:
        raise CohegraphError(f"{full_name}={value!r} is not valid: {in_words(error.errors()[0])}.") from None


class StorableSystem(System):
    """A system whose learnt arrays are saved by `SystemModel`; the method itself has `CoherenceModel` for that."""

    @abstractmethod
    def fit(
        self,
        training: Graded,
        dev: Graded | None,
        levels: int,
        *,
        seed: int,
        on_epoch: OnEpoch | None = None,
    ) -> StorableFitted:
        """Learn from graded documents; see `System.fit`."""

    @abstractmethod
    def restored(self, arrays: Arrays, levels: int) -> StorableFitted:
        """The fitted system that gave these arrays.

        Raises KeyError, ValueError or RuntimeError where they are not those of such a system.
        """


def expect_shapes(arrays: Arrays, shapes: Mapping[str, tuple[int | None, ...]]) -> None:
    """Raise a ValueError where arrays have other names or shapes; None stands for any length."""
    if set(arrays) != set(shapes):
        raise ValueError(f"the arrays {', '.join(sorted(set(arrays) ^ set(shapes)))} are missing or too many")
    for name, shape in shapes.items():
        found = arrays[name].shape
        fits = len(found) == len(shape) and all(
            want in (None, length) for want, length in zip(shape, found, strict=True)
        )
        if not fits:
            raise ValueError(f"the array {name} has the shape {found}")


RECURRING_NOUNS = (
    "It sees which nouns recur, and in which grammatical role: a text that is held together by pronouns or by other "
    "words for the same thing may be judged wrongly."
)
ONE_VECTOR = (
    "It sees the wording of the whole text as one vector: how sentences connect, and in which order they stand, hardly "
    "shows in it."
)


def spread(probabilities: Probabilities, classes: Classes, levels: int) -> Probabilities:
    """Probabilities of the classes seen in training as those of all levels; a level never seen gets 0."""
    full = np.zeros((len(probabilities), levels))
    full[:, classes] = probabilities
    return full
