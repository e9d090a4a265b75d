"""Algorithm 1: which sentence links to which later sentence, through which two nouns, and how similar these are."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cohegraph.graph.links.spelling import spelling_similarity

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float32]

# A block of comparisons has at most 2,000 times 4,000 nouns; few documents have that many.
_MOST_SENTENCES_AT_ONCE = 256
_MOST_ROWS = 2_000
_MOST_COLUMNS = 4_000
# Puts every link by spelling below every link by meaning when the strongest pair is looked for.
_SPELLING_OFFSET = np.float32(4)


@dataclass(frozen=True)
class NounTable:
    """The nouns of one document, in reading order: the input of Algorithm 1 as arrays.

    ``sentence[i]`` is the sentence of noun i, ``word[i]`` its word. ``vectors[word]`` has length 1, or is all zero for
    a word without a vector: such a word is similar to itself alone.
    """

    size: int
    sentence: IntArray
    word: IntArray
    vectors: FloatArray
    words: Sequence[str]


@dataclass(frozen=True)
class NounLinks:
    """Links between sentences, ordered by source and target; for each the nouns (of the NounTable) behind it."""

    size: int
    source: IntArray
    target: IntArray
    source_noun: IntArray
    target_noun: IntArray
    similarity: FloatArray
    by_spelling: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.source)

    def adjacency(self) -> npt.NDArray[np.bool_]:
        """The matrix G of Algorithm 1."""
        matrix = np.zeros((self.size, self.size), dtype=bool)
        matrix[self.source, self.target] = True
        return matrix


def link_nouns(
    nouns: NounTable, delta: float, *, inclusive: bool = False, spelling: float | None = None, reach: int | None = None
) -> NounLinks:
    """Link sentence u to sentence v > u where the best cosine between their nouns is over ``delta``.

    Args:
        nouns: The document.
        delta: The threshold of the cosine.
        inclusive: A cosine equal to ``delta`` links too (the released code).
        spelling: Two nouns also link where their spelling similarity reaches this (the released code: 0.75).
        reach: Only look for links between sentences less than this far apart. Counting within windows of w
            sentences needs no more than ``reach=w``; without it the cost grows with the square of the length.
    """
    parts = [
        _links_of_block(nouns, rows, columns, delta, inclusive, spelling, reach)
        for rows, columns in _blocks(nouns, reach)
    ]
    none = np.zeros(0, dtype=np.int64)
    empty = (none, none, none, none, none.astype(np.float32))
    columns = [np.concatenate(column) for column in zip(empty, *parts, strict=True)]
    source, target, source_noun, target_noun, strength = columns if len(parts) < 2 else _strongest(columns)
    spelled = strength < -1
    similarity = np.where(spelled, strength + _SPELLING_OFFSET, np.minimum(strength, 1))
    return NounLinks(nouns.size, source, target, source_noun, target_noun, similarity, spelled)


def similarities(nouns: NounTable, sentence: int) -> FloatArray:
    """The best cosine of a sentence's nouns with those of each other sentence, (sentences,); 0 where it has none."""
    found = np.zeros(nouns.size, dtype=np.float32)
    own = np.unique(nouns.word[nouns.sentence == sentence])
    if len(own):
        cosine = (nouns.vectors @ nouns.vectors[own].T).max(axis=1)
        cosine[own] = 1
        np.maximum.at(found, nouns.sentence, np.clip(cosine, 0, 1)[nouns.word])
    found[sentence] = 0
    return found


def _strongest(columns: list[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
    """Of links that several blocks have found, the strongest, of equals the first in reading order."""
    source, target, source_noun, target_noun, strength = columns
    order = np.lexsort((target_noun, source_noun, -strength, target, source))
    first = np.ones(len(order), dtype=bool)
    first[1:] = (np.diff(source[order]) != 0) | (np.diff(target[order]) != 0)
    return [column[order[first]] for column in columns]


def _blocks(nouns: NounTable, reach: int | None) -> Iterator[tuple[IntArray, IntArray]]:
    """Nouns to compare with nouns: the whole document at once, or, where it is long, a bounded part at a time.

    A noun that is repeated within its sentence stands for all its repetitions.
    """
    keys = nouns.sentence * max(1, len(nouns.words)) + nouns.word
    kept = np.sort(np.unique(keys, return_index=True)[1])
    sentence = nouns.sentence[kept]
    for first in range(0, nouns.size - 1, _MOST_SENTENCES_AT_ONCE):
        end = first + _MOST_SENTENCES_AT_ONCE
        last_target = nouns.size if reach is None else end + reach
        low, high, last = np.searchsorted(sentence, [first, end, last_target])
        for row in range(low, high, _MOST_ROWS):
            rows = slice(row, min(row + _MOST_ROWS, high))
            for column in range(low, last, _MOST_COLUMNS):
                columns = slice(column, min(column + _MOST_COLUMNS, last))
                if sentence[columns.stop - 1] > sentence[row]:
                    yield kept[rows], kept[columns]


def _links_of_block(
    nouns: NounTable,
    rows: IntArray,
    columns: IntArray,
    delta: float,
    inclusive: bool,
    spelling: float | None,
    reach: int | None,
) -> tuple[npt.NDArray[Any], ...]:
    """Source, target, their nouns and the strength of the links between these nouns."""
    row_words, column_words = nouns.word[rows], nouns.word[columns]
    cosine = nouns.vectors[row_words] @ nouns.vectors[column_words].T
    cosine[row_words[:, None] == column_words] = 1
    by_meaning = cosine >= np.float32(delta) if inclusive else cosine > np.float32(delta)
    strength = np.where(by_meaning, cosine, np.float32(-np.inf))
    if spelling is not None:
        alike = spelling_similarity([nouns.words[i] for i in row_words], [nouns.words[i] for i in column_words])
        by_spelling = ~by_meaning & (alike >= spelling)
        strength[by_spelling] = alike[by_spelling] - _SPELLING_OFFSET

    row_sentences, row_starts = np.unique(nouns.sentence[rows], return_index=True)
    column_sentences, column_starts = np.unique(nouns.sentence[columns], return_index=True)
    best = np.maximum.reduceat(np.maximum.reduceat(strength, row_starts, axis=0), column_starts, axis=1)
    distance = column_sentences - row_sentences[:, None]
    best[distance < 1] = -np.inf
    if reach is not None:
        best[distance >= reach] = -np.inf

    # The first noun pair, in reading order, that reaches the best strength of its two sentences.
    row_of = np.searchsorted(row_sentences, nouns.sentence[rows])
    column_of = np.searchsorted(column_sentences, nouns.sentence[columns])
    best_of_pair = best[row_of[:, None], column_of]
    row, column = np.nonzero((strength == best_of_pair) & (best_of_pair > -np.inf))
    link = row_of[row] * len(column_sentences) + column_of[column]
    first = np.unique(link, return_index=True)[1]
    row, column = row[first], column[first]
    return (
        nouns.sentence[rows[row]],
        nouns.sentence[columns[column]],
        rows[row],
        columns[column],
        strength[row, column],
    )
