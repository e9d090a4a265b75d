"""The layers of a Llama model and its head, which foresees the next token, in float32 and in whole numbers.

Passes over numbers take as long as products where the numbers come from memory. They are made over a few rows at a
time, which stay in the processor's cache, and in place.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from cohegraph.text.int8 import LARGEST, SHIFT, SMALLEST, Product, product_of
from cohegraph.text.llama_shape import LlamaShape, Weights

# How many numbers stay in the cache of a processor's core.
_CACHED = 2**17
# How many tokens go through the feed-forward network at once, and how many are compared with how many words of the
# vocabulary.
_FED, _COMPARED, _WORDS = 512, 384, 1_024


class Layer(ABC):
    """Causal self-attention and a gated feed-forward network, each added to its input."""

    products: Sequence[Product] = ()  # with whole weights

    def __init__(self, shape: LlamaShape) -> None:
        self._shape = shape

    def __call__(
        self, x: Tensor, turns: tuple[Tensor, Tensor], mask: Tensor | None, before: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The states after the layer, and the keys and values of all tokens so far."""
        shape = self._shape
        split = self.attend(x, first=before is None).view(len(x), -1, shape.head_dim)
        turning = shape.num_attention_heads + shape.num_key_value_heads
        turned = _turned(split[:, :turning], *turns).transpose(0, 1)
        queries, keys = turned[: shape.num_attention_heads], turned[shape.num_attention_heads :]
        values = split[:, turning:].transpose(0, 1)
        if before is not None:
            keys, values = torch.cat([before[0], keys], dim=1), torch.cat([before[1], values], dim=1)
        mixed = functional.scaled_dot_product_attention(
            queries[None], keys[None], values[None], attn_mask=mask, is_causal=mask is None, enable_gqa=True
        )
        x = self.attended(x, mixed[0].transpose(0, 1).reshape(len(x), -1))
        return self.feed(x), keys, values

    @abstractmethod
    def attend(self, x: Tensor, *, first: bool) -> Tensor:
        """Queries, keys and values of every token, one after the other."""

    @abstractmethod
    def attended(self, x: Tensor, mixed: Tensor) -> Tensor:
        """States with what attention has mixed."""

    @abstractmethod
    def feed(self, x: Tensor) -> Tensor:
        """States with the feed-forward network's."""


class FloatLayer(Layer):
    """A layer in float32."""

    def __init__(self, shape: LlamaShape, weights: Weights) -> None:
        super().__init__(shape)
        self._weights = weights

    def attend(self, x: Tensor, *, first: bool) -> Tensor:
        """Queries, keys and values of every token, one after the other."""
        return self.normed(x, "attend_norm") @ self._weights["attend"].T

    def attended(self, x: Tensor, mixed: Tensor) -> Tensor:
        """States with what attention has mixed."""
        return x + mixed @ self._weights["attended"].T

    def feed(self, x: Tensor) -> Tensor:
        """States with the feed-forward network's."""
        return x + self.widened(self.normed(x, "feed_norm")) @ self._weights["narrow"].T

    def normed(self, x: Tensor, norm: str) -> Tensor:
        """States of which the mean square is 1, times the weights of a norm."""
        return _rms(x, self._shape.rms_norm_eps).mul(x).mul_(self._weights[norm])

    def widened(self, normed: Tensor) -> Tensor:
        """What the feed-forward network makes of states before it narrows them again."""
        gate, up = (normed @ self._weights["widen"].T).chunk(2, dim=1)
        return functional.silu(gate) * up


class Int8Layer(Layer):
    """A layer in whole numbers."""

    def __init__(self, shape: LlamaShape, weights: Weights) -> None:
        super().__init__(shape)
        self._attend_norm, self._feed_norm = weights["attend_norm"], weights["feed_norm"]
        self._first = weights["first"]
        self.products = [
            product_of(weights[f"{name}.weight"], weights[f"{name}.scale"], in_pairs=True)
            for name in ("attend", "attended", "widen", "narrow")
        ]
        self._attend, self._attended, self._widen, self._narrow = self.products

    def attend(self, x: Tensor, *, first: bool) -> Tensor:
        """Queries, keys and values of every token, one after the other; those of the first token are known."""
        whole, scale = _whole_normed(x, self._attend_norm, self._shape.rms_norm_eps)
        found = self._attend(whole).mul_(scale)
        if first:
            found[0, -len(self._first) :] = self._first
        return found

    def attended(self, x: Tensor, mixed: Tensor) -> Tensor:
        """States with what attention has mixed, in place."""
        whole, scale = _whole(mixed)
        return x.addcmul_(self._attended(whole), scale)

    def feed(self, x: Tensor) -> Tensor:
        """States with the feed-forward network's, in place."""
        for some in x.split(_share(len(x), _FED)):
            whole, scale = _whole_normed(some, self._feed_norm, self._shape.rms_norm_eps)
            wide = self._widen(whole)
            whole, inner = torch.empty((len(wide), wide.shape[1] // 2), dtype=torch.int8), torch.empty_like(scale)
            for rows in _slices(whole):
                gate, up = wide[rows].chunk(2, dim=1)
                # The scale of ``up`` is a factor of all that follows, and comes in at the end.
                functional.silu(gate.mul_(scale[rows]), inplace=True).mul_(up)
                _round(gate, whole[rows], inner[rows])
            some.addcmul_(self._narrow(_shifted(whole)), inner.mul_(scale))
        return x


class FloatHead:
    """Foresees tokens in float32."""

    products: Sequence[Product] = ()

    def __init__(self, weight: Tensor, norm: Tensor, epsilon: float) -> None:
        self._parts, self._norm, self._epsilon = weight.split(_WORDS), norm, epsilon

    def losses(self, x: Tensor, targets: Tensor) -> Tensor:
        """What `_losses` gives."""
        normed = _rms(x, self._epsilon).mul(x).mul_(self._norm)
        return _losses(lambda rows: (normed[rows] @ part.T for part in self._parts), targets)


class Int8Head:
    """Foresees tokens in whole numbers."""

    def __init__(self, weight: Tensor, scale: Tensor, norm: Tensor, epsilon: float) -> None:
        self._norm, self._epsilon = norm, epsilon
        parts = zip(weight.split(_WORDS), scale.split(_WORDS), strict=True)
        self.products = [product_of(*part, in_pairs=True) for part in parts]

    def losses(self, x: Tensor, targets: Tensor) -> Tensor:
        """What `_losses` gives."""
        whole, scale = _whole_normed(x, self._norm, self._epsilon)
        return _losses(lambda rows: (product(whole[rows]).mul_(scale[rows]) for product in self.products), targets)


def _losses(logits: Callable[[slice], Iterable[Tensor]], targets: Tensor) -> Tensor:
    """Minus the logarithm of the probability of every target, and its mean over the vocabulary, (targets, 2).

    ``logits`` gives those of some rows for one part of the vocabulary after the other, which stay in the cache.
    """
    found, size = [torch.zeros((0, 2))], _share(len(targets), _COMPARED)
    for begin in range(0, len(targets), size):
        rows = slice(begin, begin + size)
        found.append(_losses_of_rows(logits(rows), targets[rows, None]))
    return torch.cat(found)


def _losses_of_rows(parts: Iterable[Tensor], targets: Tensor) -> Tensor:
    largest, total, mean, words = list[Tensor](), list[Tensor](), list[Tensor](), 0
    chosen = torch.zeros(targets.shape)
    for logits in parts:
        largest.append(logits.amax(dim=1, keepdim=True))
        odds = (logits - largest[-1]).exp_()
        total.append(odds.sum(dim=1))
        mean.append(odds.mul_(logits).sum(dim=1))
        place = (targets - words).clamp_(0, logits.shape[1] - 1)
        chosen = torch.where(place + words == targets, logits.gather(1, place), chosen)
        words += logits.shape[1]
    tops = torch.cat(largest, dim=1)
    top = tops.amax(dim=1, keepdim=True)
    share = (tops - top).exp_()
    all_odds = (torch.stack(total, dim=1) * share).sum(dim=1)
    level = all_odds.log() + top[:, 0]
    expected = level - (torch.stack(mean, dim=1) * share).sum(dim=1) / all_odds
    return torch.stack([level - chosen[:, 0], expected], dim=1)


def _share(length: int, most: int) -> int:
    """The size of equal parts, of which none is larger than the most."""
    return max(1, -(-length // max(1, -(-length // most))))


def _turned(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Heads (tokens, heads, size), turned by their positions."""
    half = x.shape[2] // 2
    turned = x * cosine
    turned[..., :half].addcmul_(x[..., half:], sine, value=-1)
    turned[..., half:].addcmul_(x[..., :half], sine)
    return turned


def _rms(x: Tensor, epsilon: float) -> Tensor:
    """What every row is multiplied with so that the mean of its squares is 1."""
    norm: Tensor = torch.linalg.vector_norm(x, dim=1, keepdim=True)
    return norm.square_().div_(x.shape[1]).add_(epsilon).rsqrt_()


def _slices(x: Tensor) -> Iterator[slice]:
    """Rows that stay in the cache together."""
    size = max(1, _CACHED // x.shape[1])
    return (slice(begin, begin + size) for begin in range(0, len(x), size))


def _round(x: Tensor, whole: Tensor, scale: Tensor) -> None:
    """Rows as whole numbers, and their scales; changes the rows."""
    # Several times as fast as the norm with this meaning.
    largest = torch.maximum(x.amax(dim=1, keepdim=True), x.amin(dim=1, keepdim=True).neg_())
    torch.clamp(largest.div_(LARGEST), min=SMALLEST, out=scale)
    whole.copy_(x.mul_(scale.reciprocal()).round_())


def _shifted(whole: Tensor) -> Tensor:
    """Whole numbers as products want them."""
    return whole.view(torch.uint8).bitwise_xor_(SHIFT)


def _whole(x: Tensor) -> tuple[Tensor, Tensor]:
    """Rows as whole numbers, shifted as products want them, and their scales; changes the rows."""
    whole, scale = torch.empty(x.shape, dtype=torch.int8), torch.empty((len(x), 1))
    for rows in _slices(x):
        _round(x[rows], whole[rows], scale[rows])
    return _shifted(whole), scale


def _whole_normed(x: Tensor, norm: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """The same of rows that are normalised, and do not change; the size of a row is part of its scale."""
    whole, scale = torch.empty(x.shape, dtype=torch.int8), torch.empty((len(x), 1))
    for rows in _slices(x):
        _round(x[rows] * norm, whole[rows], scale[rows])
        scale[rows].mul_(_rms(x[rows], epsilon))
    return _shifted(whole), scale
