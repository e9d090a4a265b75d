"""What a system is: something that learns from graded documents and then judges others."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, Protocol, Self, TypeVar, get_type_hints, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from scipy import sparse

from cohegraph.errors import CohegraphError, in_words
from cohegraph.features import Features, Material
from cohegraph.learning.objectives import Ints, Objective, Targets, nothing_to_rank
from cohegraph.settings import Settings
from cohegraph.systems.gcn.training import Trainer

Reading = Literal["patterns", "vector"] | Material
Predictions = npt.NDArray[np.float64]
Arrays = Mapping[str, npt.NDArray[Any]]
Search = Mapping[str, tuple[Any, ...]]
Trained = TypeVar("Trained")


@dataclass(frozen=True)
class Graded:
    """Documents with what they should be predicted to be."""

    features: Features
    targets: Targets

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, rows: Any) -> "Graded":
        return Graded(self.features[rows], self.targets[rows])

    def __add__(self, other: "Graded") -> "Graded":
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

    def __post_init__(self) -> None:
        """Raise where there is nothing to learn."""
        if not self.objective.can_learn(self.training.targets):
            raise nothing_to_rank("training documents")

    @property
    def seen(self) -> npt.NDArray[np.uint8]:
        """Which outputs can be learnt, (outputs,): not those of levels that no training document has."""
        return self.objective.seen(self.training.targets)

    @property
    def known_dev(self) -> Graded | None:
        """The dev documents whose target can be predicted; none where these cannot tell one epoch from another."""
        if self.dev is None:
            return None
        known = self.dev[self.objective.learnable(self.dev.targets, self.seen)]
        return known if len(known) and self.objective.can_learn(known.targets) else None

    def narrowed(self, columns: Ints) -> "Lesson":
        """The lesson with these outputs only, numbered in this order, and without dev documents of others."""

        def narrow(part: Graded) -> Graded:
            return Graded(part.features, self.objective.narrow_targets(part.targets, columns))

        dev = None if self.known_dev is None else narrow(self.known_dev)
        return replace(self, training=narrow(self.training), dev=dev, objective=self.objective.narrowed(columns))

    def watched(self, fitted: "Callable[[Trained, int], Fitted]") -> Callable[[int, Trained], None] | None:
        """What a training is to call after every epoch; ``fitted`` makes a system of a network and its epoch."""
        on_epoch = self.on_epoch
        if on_epoch is None:
            return None

        def watch(number: int, network: Trained) -> None:
            # Whatever is drawn at random meanwhile does not disturb the training.
            with torch.random.fork_rng(devices=[]):
                on_epoch(number, fitted(network, number).predict)

        return watch


@dataclass(frozen=True)
class Fitted(ABC):
    """A system that has learnt.

    Args:
        objective: What it predicts.
        chosen: What was chosen on dev while it learnt (the epoch), as changes to the system.
    """

    objective: Objective
    chosen: Mapping[str, Any] = field(default_factory=dict, kw_only=True)

    @property
    @abstractmethod
    def parameters(self) -> int:
        """How many numbers it has learnt."""

    @abstractmethod
    def predict(self, features: Features) -> Predictions:
        """The predictions of its objective, (documents, outputs): for levels, the probability of each."""

    def arrays(self) -> Arrays:
        """All that was learnt, by name: what `System.restored` takes. By default, all fields that are arrays."""
        found = {item.name: getattr(self, item.name) for item in fields(self)}
        return {name: value for name, value in found.items() if isinstance(value, np.ndarray)}


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
    # What it looks at in a document, besides the tallies.
    looks_at: ClassVar[frozenset[Reading]] = frozenset()
    # How many sentences a document must have for a system that does not count patterns to see more than its wording.
    least_sentences: ClassVar[int] = 1
    # How many sentences of a document it reads, where it does not read all of them.
    most_sentences: ClassVar[int | None] = None
    # What it is blind to, a sentence each, for the cards of its models.
    limits: ClassVar[tuple[str, ...]] = ()
    # Changes that the search on dev tries, unless the experiment names others: each list of values by its name.
    search: ClassVar[Search] = {}
    # Hyper-parameters whose value is not taken from the settings.
    fixed: ClassVar[Mapping[str, Any]] = {}

    @property
    def reads(self) -> frozenset[Reading]:
        """All that it reads of a document besides the tallies."""
        return self.looks_at

    @property
    def needs(self) -> frozenset[Material]:
        """What features must hold besides counts, vector and tallies."""
        return frozenset(one for one in self.reads if one != "patterns" and one != "vector")

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The system with those groups of settings that its fields are named after; the rest has its defaults."""
        names = {item.name for item in fields(cls)} & set(Settings.model_fields)  # type: ignore[arg-type]
        return cls(**{name: getattr(settings, name) for name in names}).changed(cls.fixed)

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
        hints = get_type_hints(type(self), include_extras=True)
        for item in fields(self):  # type: ignore[arg-type]
            value = getattr(self, item.name)
            if not isinstance(value, BaseModel):
                object.__setattr__(self, item.name, _valid(hints[item.name], value, item.name, value))

    def fewest_sentences(self, settings: Settings) -> int:
        """How many sentences a document must have for the system to see more of it than its wording."""
        return settings.subgraphs.k if "patterns" in self.reads else self.least_sentences

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
            if name in self.fixed and value != self.fixed[name]:
                raise CohegraphError(
                    f"The system '{self.name}' always has {name}={self.fixed[name]}: leave it as it is.",
                    code="fixed-setting",
                )
            first, _, rest = name.partition(".")
            now = values.get(first, getattr(self, first))
            values[first] = _valid(type(now), now.model_dump() | {rest: value}, name, value) if rest else value
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


def _valid(hint: Any, value: Any, name: str, given: Any) -> Any:
    """A value of a type and within its range; otherwise raise, and name the hyper-parameter that was given."""
    why = "it takes no truth value"
    if hint is bool or not isinstance(value, bool):
        config = None if isinstance(hint, type) and issubclass(hint, BaseModel) else ConfigDict(allow_inf_nan=False)
        try:
            return TypeAdapter(hint, config=config).validate_python(value)
        except ValidationError as error:
            why = in_words(error.errors()[0])
    raise not_valid(name, given, why)


def not_valid(name: str, value: Any, why: str) -> CohegraphError:
    """What to raise where a hyper-parameter cannot have a value."""
    return CohegraphError(f"{name}={value!r} is not valid: {why}.", code="bad-hyper-parameter")


def expect_shapes(arrays: Arrays, shapes: Mapping[str, str], **lengths: int) -> None:
    """Raise a ValueError where arrays have other names or shapes than these.

    A shape names its axes, such as ``"patterns hidden"``. Axes of the same name have the same length, which ``lengths``
    may give.
    """
    if set(arrays) != set(shapes):
        raise ValueError(f"the arrays {', '.join(sorted(set(arrays) ^ set(shapes)))} are missing or too many")
    for name, shape in shapes.items():
        axes, found = shape.split(), arrays[name].shape
        if len(axes) != len(found) or any(
            lengths.setdefault(axis, n) != n for axis, n in zip(axes, found, strict=True)
        ):
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
