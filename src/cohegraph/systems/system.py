"""What a system is: something that learns from graded documents and then judges others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self, get_type_hints, runtime_checkable

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from scipy import sparse

from cohegraph.errors import CohegraphError, in_words
from cohegraph.features import Features, Material
from cohegraph.learning.objectives import Objective, Targets
from cohegraph.settings import Settings

if TYPE_CHECKING:
    from cohegraph.systems.gcn.training import Trainer

Reading = Literal["patterns", "vector"] | Material
Predictions = npt.NDArray[np.float64]
Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Graded:
    """Documents with what they should be predicted to be."""

    features: Features
    targets: Targets

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, rows: Any) -> Graded:
        return Graded(self.features[rows], self.targets[rows])

    def __add__(self, other: Graded) -> Graded:
        return Graded(Features.concatenate([self.features, other.features]), self.targets + other.targets)


Predict = Callable[[Features], Predictions]
OnEpoch = Callable[[int, Predict], None]


@dataclass(frozen=True)
class Lesson:
    """What a system is given to learn from.

    Args:
        training: The documents to learn from.
        objective: What to learn.
        dev: Documents to choose the epoch with; without them the last one is taken.
        seed: Of all that is drawn at random.
        on_epoch: Called after every epoch with its number and how the system predicts then; systems that do not learn
            in epochs do not call it.
        label_order: The numbers of the levels in the alphabetical order of their labels, in which the GCN lays out its
            outputs; by default the levels are in their own order.
    """

    training: Graded
    objective: Objective
    dev: Graded | None = None
    seed: int = 0
    on_epoch: OnEpoch | None = None
    label_order: tuple[int, ...] | None = None

    @property
    def seen(self) -> npt.NDArray[np.uint8]:
        """Which outputs can be learnt, (outputs,): not those of levels that no training document has."""
        return self.objective.seen(self.training.targets)

    def narrowed(self) -> Lesson:
        """The lesson without outputs that cannot be learnt, and without dev documents that have such a target."""
        seen, objective, dev = self.seen, self.objective, self.dev
        if dev is not None:
            chosen = objective.learnable(dev.targets, seen)
            targets = objective.narrow_targets(dev.targets[chosen], seen)
            dev = Graded(dev.features[chosen], targets) if chosen.any() else None
        training = Graded(self.training.features, objective.narrow_targets(self.training.targets, seen))
        return replace(self, training=training, dev=dev, objective=objective.narrowed(seen))


class Fitted(Protocol):
    """A system that has learnt."""

    @property
    def parameters(self) -> int:
        """How many numbers it has learnt."""

    @property
    def chosen(self) -> Mapping[str, Any]:
        """What was chosen on dev while it learnt (the epoch), as changes to the system."""

    def predict(self, features: Features) -> Predictions:
        """The predictions of its objective, (documents, outputs): for levels, the probability of each."""

    def arrays(self) -> Arrays:
        """All that was learnt, by name: what `System.restored` takes."""


@dataclass(frozen=True)
class PatternShares:
    """A document's outputs as a sum.

    Shapes, with P patterns in the document: ``patterns`` and ``weights`` (P,), ``of_patterns`` (P, outputs) and
    ``of_text`` (outputs,).
    """

    patterns: npt.NDArray[np.integer]
    weights: npt.NDArray[np.float64]
    of_patterns: npt.NDArray[np.floating]
    of_text: npt.NDArray[np.floating]


@runtime_checkable
class ExplainsByShares(Protocol):
    """A fitted system whose outputs are a sum over the patterns of a document."""

    def shares(self, features: Features) -> PatternShares:
        """What the patterns and the text of one document add to its outputs."""


@runtime_checkable
class CountsUnseen(Protocol):
    """A fitted system that knows which patterns its training documents had."""

    def unseen_subgraphs(self, counts: sparse.csr_array) -> npt.NDArray[np.int64]:
        """How many subgraphs of each document have a pattern that no training document has."""


@runtime_checkable
class TrainsInChunks(Protocol):
    """A system that can be trained on more documents than fit into memory, and by several processes together."""

    def fit_with(self, lesson: Lesson, trainer: Trainer) -> Fitted:
        """Learn in the way of a trainer."""


class System(ABC):
    """A way to judge documents, with its hyper-parameters; a frozen dataclass.

    A new system is one file with one subclass, and one line in `registry`.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    citation: ClassVar[str] = ""
    # Which of the features that every document has it looks at, besides the tallies.
    looks_at: ClassVar[frozenset[Literal["patterns", "vector"]]] = frozenset()
    # How many sentences of a document it reads, where it does not read all of them.
    most_sentences: ClassVar[int | None] = None
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
    def fit(self, lesson: Lesson) -> Fitted:
        """Learn from graded documents."""

    @abstractmethod
    def restored(self, arrays: Arrays, objective: Objective) -> Fitted:
        """The fitted system that gave these arrays.

        Raises KeyError, ValueError or RuntimeError where they are not those of such a system.
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
                    + (f": it has {', '.join(self.hyper_parameters)}." if self.hyper_parameters else "."),
                    code="no-hyper-parameter",
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
        raise _not_valid(name, value, "it takes no truth value")
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(hint, config=ConfigDict(allow_inf_nan=False))
        return adapter.validate_python(value)
    except ValidationError as error:
        raise _not_valid(name, value, in_words(error.errors()[0])) from None


def _changed_group(group: BaseModel, name: str, value: Any, full_name: str) -> BaseModel:
    try:
        return type(group).model_validate(group.model_dump() | {name: value})
    except ValidationError as error:
        raise _not_valid(full_name, value, in_words(error.errors()[0])) from None


def _not_valid(name: str, value: Any, why: str) -> CohegraphError:
    return CohegraphError(f"{name}={value!r} is not valid: {why}.", code="bad-hyper-parameter")


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


NOUNS_ALONE = (
    "It sees connections between nouns: a text that is held together by pronouns, or whose sentences are in a wrong "
    "order though their nouns recur, may be judged wrongly."
)
RECURRING_NOUNS = (
    "It sees which nouns recur, and in which grammatical role: a text that is held together by pronouns or by other "
    "words for the same thing may be judged wrongly."
)
ONE_VECTOR = (
    "It sees the wording of the whole text as one vector: how sentences connect, and in which order they stand, hardly "
    "shows in it."
)
