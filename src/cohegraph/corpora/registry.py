"""Every corpus that can be read, by name."""

import reprlib
from collections import Counter
from collections.abc import Callable, Sequence
from inspect import signature
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from cohegraph.corpora.asap import read_asap
from cohegraph.corpora.corpus import Corpus
from cohegraph.corpora.ellipse import read_ellipse
from cohegraph.corpora.gcdc import read_gcdc
from cohegraph.corpora.hanna import read_hanna
from cohegraph.corpora.own import read_own
from cohegraph.corpora.toefl import read_toefl
from cohegraph.errors import CohegraphError, in_words

# The keyword by which a reader is told that only some sections are wanted.
_SECTIONS = "sections"

READERS: dict[str, Callable[..., Corpus]] = {
    "gcdc": read_gcdc,
    "toefl": read_toefl,
    "asap": read_asap,
    "ellipse": read_ellipse,
    "hanna": read_hanna,
    "table": read_own,
}


def read_corpus(
    kind: str, place: Path, options: dict[str, Any] | None = None, sections: Sequence[str] | None = None
) -> Corpus:
    """The corpus at a place, or some sections of it; ``options`` are the keyword arguments of its reader."""
    if kind not in READERS:
        choice = ", ".join(READERS)
        raise CohegraphError(f"There is no reader for '{kind}': choose from {choice}.", code="unknown-corpus")
    if not place.exists():
        raise CohegraphError(f"There is no file or folder {place}: say where the corpus is.", code="missing-file")
    reader, given = READERS[kind], dict(options or {})
    hints = get_type_hints(reader)
    known = [name for name in list(signature(reader).parameters)[1:] if name != _SECTIONS]
    for name, value in given.items():
        if name not in known:
            message = f"The corpus '{kind}' has no option '{name}': it has {', '.join(known)}."
            raise CohegraphError(message, code="unknown-option")
        try:
            TypeAdapter(hints[name]).validate_python(value, strict=True)
        except ValidationError as error:
            wrong = f"The option '{name}' of the corpus '{kind}' is {reprlib.repr(value)}"
            raise CohegraphError(f"{wrong}: {in_words(error.errors()[0])}.", code="bad-option") from None
    if _SECTIONS in hints:
        given[_SECTIONS] = sections
    corpus = reader(place, **given)
    for name in (name for name, count in Counter(corpus.ids).items() if count > 1):
        raise CohegraphError(f"{corpus.name} has two documents with the id '{name}'.", code="same-ids")
    return corpus if sections is None else corpus.only(sections)
