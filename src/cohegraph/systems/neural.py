"""What the sequence models share: documents as flat tensors, and training in small batches.

All of them read the vectors of a document's tokens, sentence by sentence: the states of the frozen encoder or word
vectors, whichever ``tokens`` names. A linear layer brings these to ``hidden`` dimensions, the model's own layers
follow, and a linear layer gives the outputs. Adam minimises the loss over batches of documents; the epoch is chosen on
dev.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field
from torch import Tensor, nn

from cohegraph.errors import CohegraphError
from cohegraph.features import Features, Material
from cohegraph.learning.loop import Dev, Schedule, optimise
from cohegraph.learning.objectives import Objective, Targets
from cohegraph.settings import Settings
from cohegraph.systems.system import Arrays, Lesson, Predictions, System
from cohegraph.text.token_sequence import TokenSequence

# A longer document is read so far: attention between sentences grows with their square.
MOST_SENTENCES = 1_000
# So many pieces of similar length run through an LSTM together.
_SIDE_BY_SIDE = 64
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
    def of(cls, sequences: Sequence[TokenSequence]) -> Batch:
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


def owners(lengths: Tensor) -> Tensor:
    """For pieces of these lengths, one after the other, the number of the piece that each item belongs to."""
    return torch.repeat_interleave(torch.arange(len(lengths)), lengths)


def piece_sums(items: Tensor, lengths: Tensor) -> Tensor:
    """The sum of the items of each piece, (pieces, ...)."""
    sums = items.new_zeros(len(lengths), *items.shape[1:])
    return sums.index_add(0, owners(lengths), items)


def piece_means(items: Tensor, lengths: Tensor) -> Tensor:
    """The mean of the items of each piece, (pieces, ...)."""
    return piece_sums(items, lengths) / lengths.reshape(-1, *(1,) * (items.dim() - 1))


def piece_softmax(scores: Tensor, lengths: Tensor) -> Tensor:
    """Softmax of scores, (items,), within each piece."""
    owner = owners(lengths)
    highest = scores.new_full((len(lengths),), -torch.inf).scatter_reduce(0, owner, scores.detach(), "amax")
    weights = torch.exp(scores - highest[owner])
    return weights / piece_sums(weights, lengths)[owner]


def padded(items: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Pieces below each other, (pieces, longest, dimensions), with zeros behind; and which places are real."""
    real = torch.arange(int(lengths.max())) < lengths[:, None]
    matrix = items.new_zeros(*real.shape, items.shape[1])
    matrix[real] = items
    return matrix, real


class Recurrent(nn.Module):
    """An LSTM over pieces of different lengths; both ways it is two, one of which reads backwards."""

    def __init__(self, inputs: int, hidden: int, *, both_ways: bool = False) -> None:
        super().__init__()
        self.lstms = nn.ModuleList(nn.LSTM(inputs, hidden) for _ in range(1 + both_ways))

    def forward(self, items: Tensor, lengths: Tensor) -> Tensor:
        """The state after every item, (items, hidden), or (items, 2 hidden) both ways."""
        states = [_states(self.lstms[0], items, lengths)]
        if len(self.lstms) > 1:
            turned = _turned(lengths)
            backwards = _states(self.lstms[1], items.index_select(0, turned), lengths)
            states.append(backwards.index_select(0, turned))
        return torch.cat(states, dim=1)

    def last(self, items: Tensor, lengths: Tensor) -> Tensor:
        """The state of every piece at its end, and both ways at its beginning too: (pieces, hidden or 2 hidden)."""
        states: Tensor = self(items, lengths)
        ends = lengths.cumsum(0)
        found = [states.index_select(0, place) for place in (ends - 1, ends - lengths)]
        hidden = self.lstms[0].hidden_size
        return torch.cat([found[0][:, :hidden], found[1][:, hidden:]], dim=1)


def _states(lstm: nn.Module, items: Tensor, lengths: Tensor) -> Tensor:
    """The states of an LSTM on each piece by itself.

    Pieces of similar length run side by side, padded, some at a time: what stands behind a piece does not change its
    states. The gradient of a packed LSTM takes time with the square of the steps.
    """
    starts = lengths.cumsum(0) - lengths
    states, places = [], []
    for part in torch.argsort(lengths, descending=True, stable=True).split(_SIDE_BY_SIDE):
        number = torch.arange(int(lengths[part[0]]))[:, None]
        real = number < lengths[part]
        place = torch.where(real, starts[part] + number, 0)
        rows = items.index_select(0, place.flatten()).unflatten(0, place.shape)
        states.append(lstm(rows)[0][real])
        places.append(place[real])
    return torch.cat(states).index_select(0, torch.argsort(torch.cat(places)))


def _turned(lengths: Tensor) -> Tensor:
    """Where each item goes when every piece is turned round."""
    starts = lengths.cumsum(0) - lengths
    return (2 * starts + lengths - 1)[owners(lengths)] - torch.arange(int(lengths.sum()))


class Network(nn.Module):
    """A network on batches. A subclass defines `forward`: the outputs of the documents, (documents, outputs)."""

    reader: Reader
    verdict: Verdict

    def outputs(self, batch: Batch) -> Tensor:
        """The outputs of the documents, (documents, outputs)."""
        outputs: Tensor = self(batch)
        return outputs

    def loss(self, batch: Batch, targets: Targets, objective: Objective) -> Tensor:
        """What training minimises."""
        outputs = self.outputs(batch)
        return objective.loss(targets, outputs.dtype)(outputs)


@dataclass(frozen=True)
class FittedSequenceModel:
    """A trained network, and what it reads."""

    network: Network
    tokens: Literal["states", "words"]
    objective: Objective
    epoch: int = 0

    @property
    def parameters(self) -> int:
        """How many numbers it has learnt."""
        return sum(parameter.numel() for parameter in self.network.parameters())

    @property
    def chosen(self) -> Mapping[str, Any]:
        """The epoch."""
        return {"epochs": self.epoch}

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
        loss = self._network.loss(batch, self._targets[rows], self._objective)
        if torch.isfinite(loss):
            loss.backward()
        return loss.item()

    def _batches(self) -> Iterator[Tensor]:
        """Documents in a random order; those of a group together where they are ranked within it."""
        order = torch.randperm(len(self._targets))
        if self._objective.kind != "ranking" or self._targets.groups is None:
            yield from order.split(self._batch)
            return
        groups = torch.from_numpy(self._targets.groups)[order]
        numbers = groups.unique()
        for group in numbers[torch.randperm(len(numbers))]:
            for rows in order[groups == group].split(self._batch):
                if self._objective.can_learn(self._targets[rows.numpy()]):
                    yield rows


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
        batch: Documents in a step.
        learning_rate: Of Adam.
        weight_decay: Of Adam.
        choose_by: The dev figure that chooses the epoch: accuracy or loss.
    """

    most_sentences: ClassVar[int | None] = MOST_SENTENCES
    limits = (
        f"It reads the first {MOST_SENTENCES:,} sentences of a longer text, with token vectors that were not trained "
        "along.",
    )

    tokens: Literal["states", "words"] = "states"
    hidden: Annotated[int, Field(ge=1, le=1024)] = 64
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.3
    epochs: Annotated[int, Field(ge=1, le=10**6)] = 20
    patience: Annotated[int, Field(ge=1, le=10**6)] = 3
    batch: Annotated[int, Field(ge=1, le=10**6)] = 32
    learning_rate: Annotated[float, Field(gt=0, le=10)] = 0.002
    weight_decay: Annotated[float, Field(ge=0, le=10)] = 0.0001
    choose_by: Literal["accuracy", "loss"] = "accuracy"

    @property
    def needs(self) -> frozenset[Material]:
        """The token vectors."""
        return frozenset({self.tokens})

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The way of choosing is the settings'; all else is the system's own."""
        return cls(choose_by=settings.training.choose_by)

    @abstractmethod
    def network(self, width: int, outputs: int) -> Network:
        """A new network for token vectors of this width; its weights are drawn from torch's generator."""

    def fit(self, lesson: Lesson) -> FittedSequenceModel:
        """Train in batches; with dev documents, keep the best epoch."""
        sequences = lesson.training.features.sequences(self.tokens)
        width = np.asarray(sequences[0].vectors).shape[1]
        objective, on_epoch = lesson.objective, lesson.on_epoch
        schedule = Schedule(
            self.epochs, self.learning_rate, self.weight_decay, _LONGEST_GRADIENT, self.choose_by, self.patience
        )
        # All that is drawn depends on the seed alone, and nothing outside is disturbed.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(lesson.seed)
            network = self.network(width, objective.outputs)
            network.verdict.seen.copy_(torch.from_numpy(lesson.seen))

            def watched(number: int, _: Any) -> None:
                if on_epoch is not None:
                    with torch.random.fork_rng(devices=[]):
                        on_epoch(number, FittedSequenceModel(network, self.tokens, objective, number).predict)

            result = optimise(
                _InBatches(network, sequences, lesson, self.batch),
                schedule,
                dev=self._dev(network, lesson),
                on_epoch=None if on_epoch is None else watched,
            )
        network.load_state_dict(result.network)
        network.eval()
        return FittedSequenceModel(network, self.tokens, objective, result.chosen_epoch)

    def restored(self, arrays: Arrays, objective: Objective) -> FittedSequenceModel:
        """The weights."""
        inputs = arrays["reader.weight"]
        with torch.random.fork_rng(devices=[]):
            network = self.network(inputs.shape[1], objective.outputs)
        network.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in arrays.items()})
        network.eval()
        return FittedSequenceModel(network, self.tokens, objective)

    def _dev(self, network: Network, lesson: Lesson) -> Dev[Any] | None:
        if lesson.dev is None:
            return None
        known = lesson.objective.learnable(lesson.dev.targets, lesson.seen)
        if not known.any():
            return None
        dev = lesson.dev[known]
        sequences = dev.features.sequences(self.tokens)
        return Dev(lambda _: _outputs(network, sequences, self.batch), dev.targets, lesson.objective)


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
            raise CohegraphError(f"kernel={self.kernel} is not valid: it must be odd.", code="bad-hyper-parameter")


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
        raise CohegraphError(
            f"heads={heads} is not valid: it must divide hidden, which is {hidden}.", code="bad-hyper-parameter"
        )


class Reader(nn.Linear):
    """The first layer of every sequence model: token vectors at the model's width, some numbers left out at random."""

    def __init__(self, width: int, hidden: int, dropout: float) -> None:
        super().__init__(width, hidden)
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: Tensor) -> Tensor:
        """(tokens, hidden)."""
        read: Tensor = self.dropout(super().forward(tokens))
        return read


class Verdict(nn.Linear):
    """The last layer: the document's vector, some of it left out at random, to outputs.

    A level of which there was no training document has the output -inf.
    """

    seen: Tensor

    def __init__(self, inputs: int, outputs: int, dropout: float) -> None:
        super().__init__(inputs, outputs)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("seen", torch.ones(outputs, dtype=torch.bool))

    def forward(self, documents: Tensor) -> Tensor:
        """(documents, outputs)."""
        return super().forward(self.dropout(documents)).masked_fill(~self.seen, -torch.inf)
