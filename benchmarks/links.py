"""How well do links tell sentences of one text from sentences of two?

    python benchmarks/links.py [--texts 200] [--linkers nouns,vectors] [--heads default] [--prose ../shared/data/prose]

The first half of a dev piece of prose is joined with the second half of another piece of the same source. Pairs of
sentences less than 8 apart lie within one of the pieces or across the join. Prints for every linker:

- AUC: how often the strength of a pair within is higher than that of a pair across at the same distance (ties count
  half), averaged over distances, weighted by the number of pairs across. 0.5 is chance.
- AUC 1: the same for neighbours alone, that is for distance 1.
- within, across: the shares of these pairs that link at the default threshold, with the same weights.
- 1 within, 1 across: the same for neighbours.
- over the break: how many links lead over the join, per text, and the share of texts in which any does.

`context-exact` reads every pair, which takes several seconds per text: name it to have it.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from common import PROSE, dev_prose, set_threads
from sklearn.metrics import roc_auc_score

from cohegraph.features import Featurizer
from cohegraph.graph.links import Linker
from cohegraph.presets import preset
from cohegraph.progress import track
from cohegraph.text.document import Document, Parser
from cohegraph.text.readers import DEFAULT_READER

REACH, SEED, FEWEST_SENTENCES = 8, 0, 6


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--texts", type=int, default=200)
    options.add_argument("--linkers", default="nouns,connective,vectors,context,reading")
    options.add_argument("--heads", default="default")
    options.add_argument("--prose", type=Path, default=PROSE)
    chosen = options.parse_args()
    set_threads(1)
    changes = {"reader.source": DEFAULT_READER, "reader.heads": chosen.heads, "links.linkers": chosen.linkers}
    featurizer = Featurizer(preset().replaced(changes))
    joined = list(track(joined_texts(chosen.prose, chosen.texts, featurizer.parser), "joining", chosen.texts))
    print(f"{len(joined)} joined texts, {sum(len(one.document.sentences) for one in joined)} sentences")
    columns = f"{'AUC':>7}{'AUC 1':>7}{'within':>9}{'across':>9}{'1 within':>10}{'1 across':>10}"
    print(f"{'linker':<14}{columns}  over the break")
    for linker in featurizer.linkers:
        print(f"{linker.name:<14}{measured(linker, joined)}", flush=True)


@dataclass(frozen=True)
class Joined:
    """A joined text; its sentences from number ``second`` on are of another piece."""

    document: Document
    second: int


def joined_texts(folder: Path, number: int, parser: Parser) -> Iterator[Joined]:
    """Joined texts, evenly over the genres that have a source with two pieces or more."""
    generator = np.random.default_rng(SEED)
    genres = [pieces for pieces in map(with_another, dev_prose(folder).values()) if pieces]
    made = 0
    for attempt in range(10 * number):
        pieces = genres[attempt % len(genres)]
        first = pieces[generator.integers(len(pieces))]
        rest = [piece for piece in pieces if piece["source"] == first["source"] and piece is not first]
        other = rest[generator.integers(len(rest))]
        found = joined(*parser.parse([first["text"], other["text"]]), parser)
        if found is not None:
            made += 1
            yield found
        if made == number:
            return


def with_another(pieces: list[dict[str, str]]) -> list[dict[str, str]]:
    """The pieces of sources that have two or more."""
    counts = Counter(piece["source"] for piece in pieces)
    return [piece for piece in pieces if counts[piece["source"]] > 1]


def joined(first: Document, other: Document, parser: Parser) -> Joined | None:
    """The first half of a text and the second half of another, unless one of them is too short."""
    if min(len(first.sentences), len(other.sentences)) < FEWEST_SENTENCES:
        return None
    begins = first.text[: first.sentences[len(first.sentences) // 2 - 1].end]
    ends = other.text[other.sentences[len(other.sentences) // 2].start :]
    (document,) = parser.parse([f"{begins}\n\n{ends}"])
    second = sum(sentence.start < len(begins) for sentence in document.sentences)
    return Joined(document, second)


@dataclass(frozen=True)
class Pairs:
    """Pairs of sentences: how far apart, whether across the join, how strongly related, and whether linked."""

    distance: npt.NDArray[np.int64]
    across: npt.NDArray[np.bool_]
    strength: npt.NDArray[np.float32]
    linked: npt.NDArray[np.bool_]


def pairs_of(linker: Linker, one: Joined) -> Pairs:
    size = len(one.document.sentences)
    source, target = np.triu_indices(size, 1)
    near = target - source < REACH
    source, target = source[near], target[near]
    strength = linker.strengths(one.document, range(size), range(size))[source, target]
    linked = linker.link(one.document, range(size), reach=REACH).adjacency()[source, target]
    return Pairs(target - source, (source < one.second) & (target >= one.second), strength, linked)


def measured(linker: Linker, joined: list[Joined]) -> str:
    """The figures of a linker as a line."""
    found = [pairs_of(linker, one) for one in track(joined, linker.name, len(joined))]
    distance, across, strength, linked = (
        np.concatenate([getattr(one, name) for one in found]) for name in ("distance", "across", "strength", "linked")
    )
    rows = []
    for step in range(1, REACH):
        here = distance == step
        within, over = here & ~across, here & across
        auc = roc_auc_score(~across[here], strength[here])
        rows.append((over.sum(), auc, linked[within].mean(), linked[over].mean()))
    weight, *figures = np.array(rows, dtype=float).T
    auc, within, over = (np.average(figure, weights=weight) for figure in figures)
    over_break = [int((one.linked & one.across).sum()) for one in found]
    return (
        f"{auc:7.3f}{figures[0][0]:7.3f}{100 * within:8.1f}%{100 * over:8.1f}%"
        f"{100 * figures[1][0]:9.1f}%{100 * figures[2][0]:9.1f}%"
        f"  {np.mean(over_break):.1f} links, {100 * np.mean(np.array(over_break) > 0):.0f}% of texts"
    )


if __name__ == "__main__":
    main()
