"""Every corpus that can be read, by name."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

from cohegraph.corpora.asap import read_asap
from cohegraph.corpora.corpus import Corpus
from cohegraph.corpora.ellipse import read_ellipse
from cohegraph.corpora.gcdc import read_gcdc
from cohegraph.corpora.hanna import read_hanna
from cohegraph.corpora.own import read_own
from cohegraph.corpora.toefl import read_toefl
from cohegraph.errors import CohegraphError

READERS: dict[str, Callable[..., Corpus]] = {
    "gcdc": read_gcdc,
    "toefl": read_toefl,
    "asap": read_asap,
    "ellipse": read_ellipse,
    "hanna": read_hanna,
    "table": read_own,
}


def read_corpus(kind: str, place: Path, options: dict[str, Any] | None = None) -> Corpus:
    """The corpus at a place; ``options`` are the keyword arguments of its reader."""
    if kind not in READERS:
        raise CohegraphError(f"There is no reader for '{kind}': choose from {', '.join(READERS)}.")
    if not place.exists():
        raise CohegraphError(f"There is no file or folder {place}: say where the corpus is.")
    known = list(signature(READERS[kind]).parameters)[1:]
    for name in options or {}:
        if name not in known:
            raise CohegraphError(f"The corpus '{kind}' has no option '{name}': it has {', '.join(known)}.")
    return READERS[kind](place, **(options or {}))
