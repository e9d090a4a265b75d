"""How well do the gains that heads predict (`context`) imitate exact ones (`context-exact`), and what do both cost?

    python benchmarks/context_links.py [--texts 40] [--heads default] [--density 0.5] [--prose ../shared/data/prose]

Of dev pieces of prose that are drawn evenly from all genres, pairs of sentences less than 8 apart are compared; of long
pieces the first 20 sentences are used. Prints:

- variance: how much of the variance of exact gains depends on the earlier sentence; the rest is between later ones.
- correlation: Pearson's and Spearman's of both gains over all pairs, and the mean of Spearman's over the pairs of one
  later sentence.
- links: both linkers link the same share of pairs (--density), those with the largest gains. How many pairs are linked
  by both, of those that are linked by any (Jaccard) and of those that the exact one links; and what chance would give.
- best earlier sentence: how often both find the same sentence with the largest gain for a later one, which has two or
  more to choose from; the same for always choosing the previous sentence, and for chance.
- cost: seconds of one core per text. The predicted gains come with all else that the reader and its heads say: the text
  is read, its sentences are encoded, and the heads judge it. For exact gains only pairs in reach are read.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from common import PROSE, set_threads
from link_density import REACH, sample
from scipy.stats import spearmanr

from cohegraph.features import Featurizer
from cohegraph.presets import preset
from cohegraph.progress import track
from cohegraph.text.document import Document
from cohegraph.text.reader import exact_gains
from cohegraph.text.readers import DEFAULT_READER

FEWEST, MOST_SENTENCES = 4, 20


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--texts", type=int, default=40)
    options.add_argument("--heads", default="default")
    options.add_argument("--density", type=float, default=0.5)
    options.add_argument("--prose", type=Path, default=PROSE)
    chosen = options.parse_args()
    set_threads(1)
    changes = {"reader.source": DEFAULT_READER, "reader.heads": chosen.heads, "links.linkers": "context"}
    featurizer = Featurizer(preset().replaced(changes))
    parsed = featurizer.parser.parse(sample(chosen.prose, 2 * chosen.texts))
    documents = [beginning(one) for one in parsed if len(one.sentences) >= FEWEST][: chosen.texts]
    featurizer.featurize(["This text is read first. It loads all parts."])
    texts = [compared(featurizer, one) for one in track(documents, "reading pairs", len(documents))]
    exact, predicted = (np.concatenate([getattr(one, name)[one.near] for one in texts]) for name in Text.GAINS)
    print(f"{len(texts)} pieces of prose, {len(exact)} pairs; exact gains: {exact.mean():.2f} ± {exact.std():.2f} nats")
    centred = np.concatenate([column - column.mean() for one in texts for column, _ in one.columns()])
    print(f"variance of exact gains between earlier sentences: {centred.var() / exact.var():.0%}")
    within = [rank for one in texts for rank in one.ranks()]
    pearson, spearman = np.corrcoef(predicted, exact)[0, 1], spearmanr(predicted, exact).statistic
    print(f"correlation: {pearson:.3f}, of ranks {spearman:.3f}, of ranks for one sentence {np.mean(within):.3f}")
    print(f"links at density {chosen.density:.2f}: {links(exact, predicted, chosen.density)}")
    same, previous, chance = np.mean([row for one in texts for row in one.best()], axis=0)
    print(f"best earlier sentence: {same:.1%} the same; previous sentence {previous:.1%}, chance {chance:.1%}")
    slow, fast = (np.mean([getattr(one, name) for one in texts]) for name in ("exact_seconds", "predicted_seconds"))
    print(f"cost: {slow:.2f} s per text exact, {fast:.3f} s predicted, {slow / fast:.1f} times as fast")


def beginning(document: Document) -> Document:
    """The first sentences of a document."""
    sentences = document.sentences[:MOST_SENTENCES]
    return Document(document.text[: sentences[-1].end], sentences)


@dataclass(frozen=True)
class Text:
    """Both gains of a text, (sentences, sentences), and how long they took."""

    GAINS = ("exact", "predicted")

    exact: npt.NDArray[np.float32]
    predicted: npt.NDArray[np.float32]
    exact_seconds: float
    predicted_seconds: float

    @property
    def near(self) -> npt.NDArray[np.bool_]:
        """Which pairs are compared."""
        return ~np.isnan(self.exact)

    def columns(self) -> list[tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]]:
        """Both gains of every sentence after those before it, where these are two or more."""
        rows = [(self.exact[near, v], self.predicted[near, v]) for v, near in enumerate(self.near.T)]
        return [row for row in rows if len(row[0]) > 1]

    def ranks(self) -> list[float]:
        """The rank correlations for one later sentence; of three earlier ones or more."""
        return [spearmanr(*row).statistic for row in self.columns() if len(row[0]) > 2]

    def best(self) -> list[tuple[float, float, float]]:
        """For every later sentence whether the best earlier one is the same, is the previous one, and chance."""
        return [
            (exact.argmax() == predicted.argmax(), exact.argmax() == len(exact) - 1, 1 / len(exact))
            for exact, predicted in self.columns()
        ]


def compared(featurizer: Featurizer, document: Document) -> Text:
    """Both gains of a document."""
    start = time.process_time()
    predicted = featurizer.read(document).judgement.gains
    between = time.process_time()
    size = len(document.sentences)
    near = [(u, v) for u in range(size) for v in range(u + 1, min(u + REACH, size))]
    exact = exact_gains(featurizer.reader, document, near)
    return Text(exact, predicted, time.process_time() - between, between - start)


def links(exact: npt.NDArray[np.float32], predicted: npt.NDArray[np.float32], density: float) -> str:
    """How well links agree if both link the same share of pairs."""
    first, second = (gains > np.quantile(gains, 1 - density) for gains in (exact, predicted))
    jaccard, found = (first & second).sum() / (first | second).sum(), (first & second).sum() / first.sum()
    by_chance = density / (2 - density)
    return f"Jaccard {jaccard:.3f} (chance {by_chance:.3f}), {found:.1%} of exact links (chance {density:.1%})"


if __name__ == "__main__":
    main()
