"""The tables of reader_study.py, from its results.

For every dev pair, by kind and piece, a result has 1 if the original scored higher, 0 if lower, and 0.5 if equal.
Means run over kinds, so that each kind has the same weight. Pieces count so that each genre has the share that it has
among all dev pieces, because more of some genres were read. The 95 % half-widths come from 1,000 bootstrap samples of
pieces: the pairs of a piece are not independent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from cohegraph.experiments.table import Cell, Number, Table, with_best

# Groups of kinds, which are left out of training in turn.
GROUPS = {
    "order": ("shuffle", "blocks", "swap", "move"),
    "foreign": ("replace-one", "replace-two", "insert"),
    "joins": ("join", "interleave"),
    "words": ("drop", "repeat", "names", "connective"),
}
# The heads that come with cohegraph.
SHIPPED = "shipped"
# The columns of the first table.
SYSTEMS = {
    SHIPPED: "heads",
    "full": "heads",
    "mean-loss": "mean loss",
    "cosine": "cosine",
    "entity-grid": "entity grid",
    "moon-2019": "Moon et al. (2019)",
    "length": "length",
}
_SAMPLES = 1_000
_LEAST = 1e-9
Floats = npt.NDArray[np.float64]
Genres = Mapping[str, str]


class Results(dict[str, Mapping[str, Any]]):
    """Results by the name of a configuration or baseline, and how much each dev piece counts."""

    def __init__(self, found: Mapping[str, Mapping[str, Any]], weights: Mapping[str, float]) -> None:
        super().__init__(found)
        self.weights = weights
        self.heads = heads_among(found) or "full"

    @property
    def systems(self) -> list[str]:
        """The heads, and what they are compared with."""
        return [name for name in SYSTEMS if name in self and (name == self.heads or SYSTEMS[name] != "heads")]


def heads_among(results: Mapping[str, Any]) -> str | None:
    """The name of the result that is compared with baselines: that of the heads that ship, or of all pieces."""
    return next((name for name in (SHIPPED, "full") if name in results), None)


def group_of(kind: str) -> str:
    """The group of a kind; none for originals."""
    return next((name for name, kinds in GROUPS.items() if kind.partition(":")[0] in kinds), "")


def tables(results: Results, genres: Genres, left_out: Sequence[str]) -> Iterator[Table]:
    """All tables for which there are results."""
    yield _by_kind(results)
    for table in (
        _by_genre(results, genres),
        _without_genres(results, genres, left_out),
        _without_kinds(results),
        _breaks(results),
        _variants("learning-curve", "Training pieces", results, (SHIPPED, "full", "pieces-")),
        _variants("layers", "States of the reader", results, ("full", "pieces-", "layers-", "states-", "up-to-")),
    ):
        if len(table.rows) > 1:
            yield table


class Right:
    """Which pairs are right, (pieces, kinds); NaN where a piece has no version of a kind."""

    def __init__(self, values: Floats, weights: Floats) -> None:
        self.values, self._weights = values, weights

    @classmethod
    def of(cls, results: Results, name: str, kinds: Sequence[str], texts: Sequence[str]) -> Right:
        """The pairs of some kinds and texts in a result."""
        right = results.get(name, {}).get("right", {})
        values = np.array([[right.get(kind, {}).get(text, np.nan) for kind in kinds] for text in texts])
        return cls(values, np.array([results.weights[text] for text in texts]))

    def __sub__(self, other: Right) -> Right:
        return Right(self.values - other.values, self._weights)

    @property
    def pairs(self) -> int:
        """How many pairs there are."""
        return int((~np.isnan(self.values)).sum())

    @property
    def mean(self) -> float:
        """The mean over kinds, in per cent."""
        return float(self._means(self._weights[None])[0])

    @property
    def half_width(self) -> float:
        """Half of the 95 % interval of the mean, by bootstrap samples of pieces."""
        pieces = len(self.values)
        samples = np.random.default_rng(0).multinomial(pieces, np.full(pieces, 1 / pieces), _SAMPLES)
        return float(1.96 * self._means(samples * self._weights).std())

    def _means(self, weights: Floats) -> Floats:
        """The mean over kinds for each row of weights of pieces."""
        if not self.pairs:
            return np.full(len(weights), np.nan)
        there = ~np.isnan(self.values)
        kinds = there.any(axis=0)
        numbers = weights @ there[:, kinds]
        shares = weights @ np.nan_to_num(self.values[:, kinds]) / np.maximum(numbers, _LEAST)
        # A sample may have no pair of a rare kind.
        return np.asarray(100 * shares.sum(axis=1) / np.maximum((numbers > 0).sum(axis=1), 1))


def _right(results: Results, name: str, kinds: Sequence[str], texts: Sequence[str] | None = None) -> Right:
    """The pairs of a result; of all texts by default."""
    return Right.of(results, name, kinds, _texts(results) if texts is None else texts)


def _kinds(results: Results, group: str | None = None) -> list[str]:
    """The kinds of dev pairs, in the order of their groups."""
    order = list(chain(*GROUPS.values()))
    found = sorted(results[results.heads]["right"], key=lambda kind: (order.index(kind.partition(":")[0]), kind))
    return [kind for kind in found if group in (None, group_of(kind))]


def _texts(results: Results) -> list[str]:
    return sorted({text for pairs in results[results.heads]["right"].values() for text in pairs})


def _percent(value: float, **options: Any) -> Number:
    return Number(value, decimals=1, **options)


def _by_kind(results: Results) -> Table:
    """Accuracy by kind of corruption, of heads and of baselines."""
    systems, kinds, rows = results.systems, _kinds(results), list[tuple[Cell, ...]]()
    of_kind = {kind: [_right(results, name, [kind]) for name in systems] for kind in kinds}
    for kind, found in of_kind.items():
        shares = with_best([_percent(one.mean) for one in found])
        rows.append((f"`{kind}`", *shares, Number(found[0].pairs, decimals=0)))
    whole = [_right(results, name, kinds) for name in systems]
    rows.append(("mean", *with_best([_percent(one.mean) for one in whole]), Number(whole[0].pairs, decimals=0)))
    widths = [one.half_width for found in of_kind.values() for one in found]
    notes = [
        f"How often the original scores above its corrupted version, in %; {len(_texts(results))} dev pieces, "
        "weighted so that each genre has its share of all dev pieces. "
        f"95 % half-widths: {min(widths):.1f} to {max(widths):.1f} points for a kind, at most "
        f"{max(one.half_width for one in whole):.1f} for the mean. With mean loss the text with the lower loss of a "
        "token is taken for the original, with cosine that with the more similar neighbours, with length the longer.",
        f"Heads were trained on {results[results.heads]['pieces']:,} pieces. "
        + " ".join(
            f"{SYSTEMS[name]}: {results[name]['pairs']:,} pairs of {results[name]['pieces']:,} of these pieces, "
            f"{results[name]['seconds'] / 60:.1f} minutes; measured on {results[name]['judged']} of the dev pieces."
            for name in ("entity-grid", "moon-2019")
            if name in results
        ),
    ]
    columns = ("kind", *(SYSTEMS[name] for name in systems), "pairs")
    return Table("by-kind", "Originals and corrupted versions", columns, tuple(rows), tuple(notes))


def _by_genre(results: Results, genres: Genres) -> Table:
    """Accuracy of heads by genre."""
    rows = list[tuple[Cell, ...]]()
    for genre in sorted({genres[text] for text in _texts(results)}):
        texts = [text for text in _texts(results) if genres[text] == genre]
        kinds = [_kinds(results, group) for group in GROUPS]
        shares = [
            _right(results, results.heads, some, texts).mean for some in (_kinds(results), *kinds, ["join:source"])
        ]
        rows.append((genre, *map(_percent, shares), Number(len(texts), decimals=0)))
    columns = ("genre", "mean", *GROUPS, "`join:source`", "pieces")
    note = "Heads, in %: the mean over all kinds, over those of each group, and over texts joined within a source."
    return Table("by-genre", "Genres", columns, tuple(rows), (note,))


def _without(results: Results, what: str) -> tuple[str, str] | None:
    """The configuration without a genre or a group of kinds, and the one to compare it with."""
    for name in results:
        kind, _, pieces = name.partition("@")
        reference = f"pieces-{pieces}" if pieces else "full"
        if kind == f"without-{what}" and reference in results:
            return reference, name
    return None


def _compared(
    results: Results, names: tuple[str, str], kinds: Sequence[str], texts: Sequence[str] | None = None
) -> list[Cell]:
    """The accuracy with and without something in training, the difference, its half-width, and the pairs."""
    whole, without = (_right(results, name, kinds, texts) for name in names)
    difference = without - whole
    shares = [_percent(one.mean) for one in (whole, without)]
    width = _percent(difference.half_width)
    return [*shares, _percent(difference.mean, signed=True), width, Number(whole.pairs, decimals=0)]


def _pieces(results: Results, compared: Mapping[str, tuple[str, str]]) -> str:
    """How many pieces the configurations that are compared were trained on."""
    found = [
        f"{results[whole]['pieces']:,} and {results[name]['pieces']:,} without {what}"
        for what, (whole, name) in compared.items()
    ]
    return f"Training pieces: {'; '.join(found)}."


def _without_genres(results: Results, genres: Genres, left_out: Sequence[str]) -> Table:
    """Accuracy on genres that training lacked."""
    rows, ruled = list[tuple[Cell, ...]](), set[int]()
    compared = {genre: names for genre in left_out if (names := _without(results, genre)) is not None}
    for genre, names in compared.items():
        texts = [text for text in _texts(results) if genres[text] == genre]
        ruled.add(len(rows))
        for group in (*GROUPS, None):
            rows.append((genre, group or "mean", *_compared(results, names, _kinds(results, group), texts)))
    columns = ("genre", "kinds", "all genres", "without it", "difference", "±", "pairs")
    note = f"On dev pieces of the genre, in %. {_pieces(results, compared)}"
    return Table("held-out-genres", "Genres that training lacks", columns, tuple(rows), (note,), ruled=frozenset(ruled))


def _without_kinds(results: Results) -> Table:
    """Accuracy on kinds of corruptions that training lacked."""
    rows, ruled = list[tuple[Cell, ...]](), set[int]()
    compared = {group: names for group in GROUPS if (names := _without(results, group)) is not None}
    for group, names in compared.items():
        kinds = _kinds(results, group)
        ruled.add(len(rows))
        rows += [(group, f"`{kind}`", *_compared(results, names, [kind])) for kind in kinds]
        rows.append((group, "mean", *_compared(results, names, kinds)))
    columns = ("left out", "kind", "all kinds", "without them", "difference", "±", "pairs")
    note = f"On versions of the kinds that were left out together, in %. {_pieces(results, compared)}"
    return Table("held-out-kinds", "Kinds that training lacks", columns, tuple(rows), (note,), ruled=frozenset(ruled))


def _breaks(results: Results) -> Table:
    """How well breaks and foreign sentences are found."""
    names = [name for name in (results.heads, "cosine", "mean-loss") if name in results]
    figures = [results[name]["accuracy"] for name in names]
    questions = {
        "boundaries": "broken boundaries, area under the ROC curve",
        "belonging": "foreign or repeated sentences, the same",
        "related": "sentences of one text or of two, at equal distance, the same",
    }
    rows: list[tuple[Cell, ...]] = []
    for name, title in questions.items():
        # Mean loss says nothing of two sentences.
        found = [
            np.nan if (one, name) == ("mean-loss", "related") else of[name]
            for one, of in zip(names, figures, strict=True)
        ]
        rows.append((title, *with_best([Number(value, decimals=3) for value in found]), Number(0.5, decimals=3)))
    for kind, (_, chance) in figures[0]["found"].items():
        what = "break" if kind.startswith("join") else "foreign sentence"
        shares = with_best([_percent(100 * of["found"][kind][0]) for of in figures])
        rows.append((f"`{kind}`: the {what} found first, %", *shares, _percent(100 * chance)))
    note = (
        "Cosine: a boundary is broken where the neighbours are least similar, a sentence is foreign where it is least "
        "similar to all others. Mean loss: where the (next) sentence has the highest loss of a token."
    )
    columns = ("question", *(SYSTEMS[name] for name in names), "chance")
    return Table("breaks", "Where texts break", columns, tuple(rows), (note,))


def _variants(name: str, title: str, results: Results, beginnings: tuple[str, ...]) -> Table:
    """The accuracy of several configurations."""
    chosen = [one for one in results if one.startswith(beginnings)]
    chosen.sort(key=lambda one: (results[one]["pieces"], len(results[one]["about"]["states"]), one))
    rows: list[tuple[Cell, ...]] = []
    for one in chosen:
        found = results[one]
        groups = [_percent(_right(results, one, _kinds(results, group)).mean) for group in GROUPS]
        whole = _right(results, one, _kinds(results))
        areas = [Number(found["accuracy"][area], decimals=3) for area in ("boundaries", "belonging", "related")]
        minutes = Number(found["seconds"] / 60 if "seconds" in found else np.nan, decimals=1)
        states = ", ".join(found["about"]["states"]) + ("" if found["about"].get("losses", True) else "; no losses")
        about = (states, Number(found["pieces"], decimals=0))
        rows.append((*about, _percent(whole.mean), *groups, *areas, minutes))
    columns = ("states", "pieces", "mean", *GROUPS, "boundaries", "belonging", "related", "minutes")
    width = max((_right(results, one, _kinds(results)).half_width for one in chosen), default=0.0)
    note = (
        "In %, the mean over kinds and over those of each group; areas under the ROC curve for boundaries, sentences "
        f"and pairs of sentences. The 95 % half-width of the mean is {width:.1f} points or less."
    )
    return Table(name, title, columns, tuple(rows), (note,))
