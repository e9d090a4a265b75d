"""What the sequence models share: documents as flat tensors, and training in small batches.

All of them read the vectors of a document's tokens, sentence by sentence: the states of the frozen encoder or word
vectors, whichever ``tokens`` names. A linear layer brings these to ``hidden`` dimensions, the model's own layers
follow, and a linear layer gives the outputs. Adam minimises the loss over batches of documents; the epoch is chosen on
dev.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field
from torch import Tensor, nn

from cohegraph.features import Features
from cohegraph.learning.loop import backward, optimise
from cohegraph.learning.objectives import Objective, Targets
from cohegraph.settings import Settings, TrainingSettings
from cohegraph.systems.system import Arrays, Fitted, Graded, Lesson, Predictions, Reading, System, not_valid
from cohegraph.text.token_sequence import TokenSequence

Tokens = Literal["states", "words"]

# A longer document is read so far: attention between sentences grows with their square.
MOST_SENTENCES = 1_000
# No gradient is longer than this: recurrent networks sometimes jump.
_LONGEST_GRADIENT = 1.0


@dataclass(frozen=True)
class Batch:
    """Some documents, token after token.

    Shapes: ``tokens`` (all tokens, width); ``sentences`` (all sentences,), the tokens of each; ``documents``
    (documents,), the sentences of each; ``paragraphs`` (all paragraphs,), the sentences of each; ``paragraphs_of``
    (documents,), the paragraphs of each. Every document has at least one sentence: an empty one has a single token, a
    row of zeros.
    """

    tokens: Tensor
    sentences: Tensor
    documents: Tensor
    paragraphs: Tensor
    paragraphs_of: Tensor

    @classmethod
    def of(cls, sequences: Sequence[TokenSequence]) -> Self:
        """The batch of these documents."""
        parts = [_arrays(sequence) for sequence in sequences]
        vectors, sentences, paragraphs = zip(*parts, strict=True)
        return cls(
            torch.from_numpy(np.concatenate(vectors).astype(np.float32)),
            torch.from_numpy(np.concatenate(sentences)),
            torch.tensor([len(one) for one in sentences]),
            torch.from_numpy(np.concatenate(paragraphs)),
            torch.tensor([len(one) for one in paragraphs]),
        )


def _arrays(sequence: TokenSequence) -> tuple[Any, Any, Any]:
    vectors = np.asarray(sequence.vectors)
    sentences, paragraphs = sequence.sentences, sequence.paragraphs
    if not len(sentences):
        one = np.ones(1, dtype=np.int64)
        return np.zeros((1, vectors.shape[1]), dtype=np.float16), one, one
    if len(sentences) > MOST_SENTENCES:
        ends = np.minimum(np.cumsum(paragraphs), MOST_SENTENCES)
        paragraphs = np.diff(ends, prepend=0)
        sentences, paragraphs = sentences[:MOST_SENTENCES], paragraphs[paragraphs > 0]
        vectors = vectors[: sentences.sum()]
    return vectors, sentences, paragraphs


class Reader(nn.Linear):
    """The first layer of every sequence model: token vectors at the model's width, some numbers left out at random."""

    def __init__(self, width: int, hidden: int, dropout: float) -> None:
        super().__init__(width, hidden)
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: Tensor) -> Tensor:
        """(tokens, hidden)."""
        return self.dropout(super().forward(tokens))  # type: ignore[no-any-return]


class Verdict(nn.Linear):
    """The last layer: the document's vector, some of it left out at random, to outputs.

    A level of which there was no training document has the output -inf.
    """

    __call__: Callable[..., Tensor]
    seen: Tensor

    def __init__(self, inputs: int, outputs: int, dropout: float) -> None:
        super().__init__(inputs, outputs)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("seen", torch.ones(outputs, dtype=torch.bool))

    def forward(self, documents: Tensor) -> Tensor:
        """(documents, outputs)."""
        return super().forward(self.dropout(documents)).masked_fill(~self.seen, -torch.inf)


class Network(nn.Module):
    """A network on batches, with the hyper-parameters of its system.

    A subclass defines its own layers, then ``verdict``, and `forward`: the outputs of the documents, (documents,
    outputs).
    """

    __call__: Callable[..., Tensor]
    verdict: Verdict

    def __init__(self, system: "SequenceModel", width: int) -> None:
        super().__init__()
        self.reader = Reader(width, system.hidden, system.dropout)

    def outputs(self, batch: Batch) -> Tensor:
        """The outputs of the documents, (documents, outputs)."""
        return self(batch)

    def loss(self, batch: Batch, targets: Targets, objective: Objective) -> Tensor:
        """What training minimises."""
        outputs = self.outputs(batch)
        if objective.kind == "ordinal":
            # The output of a level that training lacks is -inf, and its gradient would be no number.
            columns = np.flatnonzero(self.verdict.seen)
            outputs, targets = outputs[:, columns], objective.narrow_targets(targets, columns)
        return objective.loss(targets, outputs.dtype)(outputs)


@dataclass(frozen=True)
class FittedSequenceModel(Fitted):
    """A trained network, and what it reads."""

    network: Network
    tokens: Tokens

    @property
    def parameters(self) -> int:
        """How many numbers it has learnt."""
        return sum(parameter.numel() for parameter in self.network.parameters())

    def predict(self, features: Features) -> Predictions:
        """Each document by itself, so that its digits do not depend on the others."""
        return self.objective.predictions(_outputs(self.network, features.sequences(self.tokens), at_once=1))

    def arrays(self) -> Arrays:
        """All weights by name."""
        return {name: tensor.numpy().copy() for name, tensor in self.network.state_dict().items()}


def _outputs(network: Network, sequences: Sequence[TokenSequence], at_once: int) -> npt.NDArray[np.float32]:
    network.eval()
    none = np.zeros((0, network.verdict.out_features), dtype=np.float32)
    starts = range(0, len(sequences), at_once)
    with torch.inference_mode():
        found = [network.outputs(Batch.of(sequences[start : start + at_once])).numpy() for start in starts]
    return np.concatenate([none, *found])


class _InBatches:
    """A network with its training documents, which it sees in batches."""

    def __init__(self, network: Network, sequences: Sequence[TokenSequence], lesson: Lesson, batch: int) -> None:
        self._network, self._sequences, self._batch = network, sequences, batch
        self._targets, self._objective = lesson.training.targets, lesson.objective

    def parameters(self) -> Iterator[nn.Parameter]:
        return self._network.parameters()

    def steps(self) -> Iterator[Callable[[], float]]:
        self._network.train()
        for rows in self._batches():
            yield partial(self._step, rows.numpy())

    def trained(self) -> dict[str, Tensor]:
        return {name: tensor.clone() for name, tensor in self._network.state_dict().items()}

    def _step(self, rows: npt.NDArray[np.int64]) -> float:
        batch = Batch.of([self._sequences[row] for row in rows.tolist()])
        return backward(self._network.loss(batch, self._targets[rows], self._objective))

    def _batches(self) -> Iterator[Tensor]:
        """Documents in a random order; those of a group together where they are ranked within it."""
        order = torch.randperm(len(self._targets))
        if self._objective.kind != "ranking":
            yield from order.split(self._batch)
            return
        groups = torch.from_numpy(self._targets.group_numbers)[order]
        numbers = groups.unique()
        for number in numbers[torch.randperm(len(numbers))]:
            group = order[groups == number]
            # Where no batch of a group happens to have a pair, the whole group is one batch.
            for batches in (group.split(self._batch), [group]):
                with_pairs = [rows for rows in batches if self._objective.can_learn(self._targets[rows.numpy()])]
                yield from with_pairs
                if with_pairs:
                    break


@dataclass(frozen=True)
class SequenceModel(System):
    """A network that reads token vectors.

    Args:
        tokens: `states` of the encoder, or `words`: word vectors.
        hidden: Dimensions of all inner layers.
        dropout: The share of what the first layer gives, and of the document's vector, that is left out at random in
            training.
        epochs: Passes over the training documents, at most.
        patience: With dev documents, training ends after so many passes without a better one.
        batch: Documents in a step; a ranking learns from one group at a time.
        learning_rate: Of Adam.
        weight_decay: Of Adam.
        choose_by: The dev figure that chooses the epoch: accuracy or loss.
    """

    most_sentences = MOST_SENTENCES
    network_class: ClassVar[Callable[..., Network]]
    limits = (
        f"It reads the first {MOST_SENTENCES:,} sentences of a longer text, with token vectors that were not trained "
        "along.",
    )

    tokens: Tokens = "states"
    hidden: Annotated[int, Field(ge=1, le=1024)] = 64
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.3
    epochs: Annotated[int, Field(ge=1, le=10**6)] = 20
    patience: Annotated[int, Field(ge=1, le=10**6)] = 3
    batch: Annotated[int, Field(ge=1, le=10**6)] = 32
    learning_rate: Annotated[float, Field(gt=0, le=10)] = 0.002
    weight_decay: Annotated[float, Field(ge=0, le=10)] = 0.0001
    choose_by: Literal["accuracy", "loss"] = "accuracy"

    @property
    def reads(self) -> frozenset[Reading]:
        """The token vectors."""
        return frozenset({self.tokens})

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The way of choosing is the settings'; all else is the system's own."""
        return cls(choose_by=settings.training.choose_by)

    def network(self, width: int, outputs: int) -> Network:
        """A new network for token vectors of this width; its weights are drawn from torch's generator."""
        return self.network_class(self, width, outputs)

    def fit(self, lesson: Lesson) -> FittedSequenceModel:
        """Train in batches; with dev documents, keep the best epoch."""
        sequences, dev = lesson.training.features.sequences(self.tokens), lesson.known_dev
        names = ("epochs", "learning_rate", "weight_decay", "choose_by", "patience")
        settings = TrainingSettings(clip=_LONGEST_GRADIENT, **{name: getattr(self, name) for name in names})

        def fitted(_: Any, epoch: int) -> FittedSequenceModel:
            return FittedSequenceModel(lesson.objective, network, self.tokens, chosen={"epochs": epoch})

        def quality(_: Any, documents: Graded) -> tuple[float, float]:
            found = _outputs(network, documents.features.sequences(self.tokens), self.batch)
            return lesson.objective.quality(found, documents.targets)

        # All that is drawn depends on the seed alone, and nothing outside is disturbed.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(lesson.seed)
            network = self.network(np.asarray(sequences[0].vectors).shape[1], lesson.objective.outputs)
            network.verdict.seen.copy_(torch.from_numpy(lesson.seen))
            result = optimise(
                _InBatches(network, sequences, lesson, self.batch),
                settings,
                dev=None if dev is None else partial(quality, documents=dev),
                on_epoch=lesson.watched(fitted),
            )
        network.load_state_dict(result.network)
        network.eval()
        return fitted(network, result.chosen_epoch)

    def restored(self, arrays: Arrays, objective: Objective) -> FittedSequenceModel:
        """The weights."""
        inputs = arrays["reader.weight"]
        with torch.random.fork_rng(devices=[]):
            network = self.network(inputs.shape[1], objective.outputs)
        network.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in arrays.items()})
        network.eval()
        return FittedSequenceModel(objective, network, self.tokens)


@dataclass(frozen=True)
class ConvolutionModel(SequenceModel):
    """A sequence model with a convolution.

    Args:
        kernel: How many neighbours the convolution sees; odd.
    """

    kernel: Annotated[int, Field(ge=1, le=99)] = 5

    def __post_init__(self) -> None:
        """Check what single values do not show."""
        super().__post_init__()
        if self.kernel % 2 == 0:
            raise not_valid("kernel", self.kernel, "it must be odd")


class Patterns(nn.Module):
    """Patterns of figures along a document: a convolution, and each filter's largest and mean value."""

    def __init__(self, figures: int, filters: int, kernel: int) -> None:
        super().__init__()
        self.filters = nn.Conv1d(figures, filters, kernel, padding=kernel // 2)

    def forward(self, rows: Tensor, real: Tensor) -> Tensor:
        """From (documents, longest, figures) and which places are real to (documents, 2 filters)."""
        found = torch.relu(self.filters(rows.transpose(1, 2))).transpose(1, 2) * real[:, :, None]
        # Nothing is below 0, so that what stands behind a document is never its largest.
        return torch.cat([found.amax(dim=1), found.sum(dim=1) / real.sum(dim=1, keepdim=True)], dim=1)


def check_divides(heads: int, hidden: int) -> None:
    """Raise where dimensions cannot be dealt out to heads."""
    if hidden % heads:
        raise not_valid("heads", heads, f"it must divide hidden, which is {hidden}")
