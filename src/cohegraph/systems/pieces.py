"""Pieces of different lengths (sentences, paragraphs, documents) whose items stand one after the other in a tensor."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

# So many pieces of similar length run through an LSTM together.
_SIDE_BY_SIDE = 64


def owners(lengths: Tensor) -> Tensor:
    """For pieces of these lengths, one after the other, the number of the piece that each item belongs to."""
    return torch.repeat_interleave(torch.arange(len(lengths)), lengths)


def sums(items: Tensor, lengths: Tensor) -> Tensor:
    """The sum of the items of each piece, (pieces, ...)."""
    found = items.new_zeros(len(lengths), *items.shape[1:])
    return found.index_add(0, owners(lengths), items)


def means(items: Tensor, lengths: Tensor) -> Tensor:
    """The mean of the items of each piece, (pieces, ...)."""
    return sums(items, lengths) / lengths.reshape(-1, *(1,) * (items.dim() - 1))


def softmax(scores: Tensor, lengths: Tensor) -> Tensor:
    """Softmax of scores, (items,), within each piece."""
    owner = owners(lengths)
    highest = scores.new_full((len(lengths),), -torch.inf).scatter_reduce(0, owner, scores.detach(), "amax")
    weights = torch.exp(scores - highest[owner])
    return weights / sums(weights, lengths)[owner]


def padded(items: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Pieces below each other, (pieces, longest, dimensions), with zeros behind; and which places are real."""
    real = torch.arange(int(lengths.max())) < lengths[:, None]
    matrix = items.new_zeros(*real.shape, items.shape[1])
    matrix[real] = items
    return matrix, real


class Recurrent(nn.Module):
    """An LSTM over pieces of different lengths; both ways it is two, one of which reads backwards."""

    __call__: Callable[..., Tensor]

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
        states = self(items, lengths)
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
