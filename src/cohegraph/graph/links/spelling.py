"""How alike two words are spelled: BLEU over characters, as the released code uses beside the cosine."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

# The weights of 1- to 4-grams.
WEIGHTS = (0.1, 0.2, 0.3, 0.4)


def spelling_similarity(references: Sequence[str], candidates: Sequence[str]) -> npt.NDArray[np.float32]:
    r"""Character BLEU of every candidate (column) against every reference (row).

    .. math:: \min(1, e^{1 - r/c}) \prod_{n=1}^{4} p_n^{w_n}

    with the clipped n-gram precisions :math:`p_n`, the weights above, and the lengths r and c of the two words. A word
    shorter than four characters has no 4-gram, so its similarity is 0.
    """
    log_score = np.zeros((len(references), len(candidates)))
    for n, weight in enumerate(WEIGHTS, start=1):
        matches, total = _clipped_matches(references, candidates, n)
        with np.errstate(divide="ignore"):
            log_score += weight * np.log(matches / np.maximum(1, total))
    reference_length = np.array([len(word) for word in references], dtype=np.float64)[:, None]
    candidate_length = np.array([max(1, len(word)) for word in candidates], dtype=np.float64)
    brevity = np.minimum(0, 1 - reference_length / candidate_length)
    return np.exp(log_score + brevity).astype(np.float32)


def _clipped_matches(
    references: Sequence[str], candidates: Sequence[str], n: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """How many n-grams of each candidate stand in each reference, and how many n-grams each candidate has."""
    counters = [Counter(word[i : i + n] for i in range(len(word) - n + 1)) for word in (*references, *candidates)]
    grams = {gram: column for column, gram in enumerate(dict.fromkeys(gram for c in counters for gram in c))}
    counts = np.zeros((len(counters), len(grams)), dtype=np.float32)
    for row, counter in enumerate(counters):
        for gram, number in counter.items():
            counts[row, grams[gram]] = number
    reference, candidate = counts[: len(references)], counts[len(references) :]
    matches = np.zeros((len(references), len(candidates)))
    # min(a, b) is the number of thresholds that both a and b reach, and few words repeat an n-gram.
    for threshold in range(1, int(counts.max(initial=0)) + 1):
        matches += (reference >= threshold).astype(np.float32) @ (candidate >= threshold).astype(np.float32).T
    return matches, candidate.sum(axis=1, dtype=np.float64)
