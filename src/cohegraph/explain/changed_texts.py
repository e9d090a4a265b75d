"""A text with a sentence taken out, or put elsewhere: what a writer would have after the change."""

from collections.abc import Sequence
from itertools import pairwise

from cohegraph.text.document import Document


def without(document: Document, sentence: int) -> str:
    """The text without a sentence, counted from 0; of the gaps beside it the wider one stays."""
    return joined(*_taken_out(document, sentence))


def moved(document: Document, sentence: int, place: int) -> str:
    """The text with a sentence moved, so that it is the one with the number ``place``, counted from 0."""
    sentences, gaps = _taken_out(document, sentence)
    mover = document.sentences[sentence].text
    # A heading, without a full stop, would grow together with its neighbour.
    gap = " " if mover[-1:] in ".!?…\"'”’)" else "\n"
    sentences = [*sentences[:place], mover, *sentences[place:]]
    # It joins the paragraph before it; as the first of all, the one behind it.
    gaps = [gap, *gaps] if place == 0 else [*gaps[: place - 1], gap, *gaps[place - 1 :]]
    return joined(sentences, gaps)


def _taken_out(document: Document, sentence: int) -> tuple[list[str], list[str]]:
    """The other sentences, and the gaps between them."""
    texts, gaps = apart(document)
    beside = slice(max(sentence - 1, 0), sentence + 1)
    between = 0 < sentence < len(texts) - 1
    gaps[beside] = [max(gaps[beside], key=lambda gap: (gap.count("\n"), len(gap)))] if between else []
    del texts[sentence]
    return texts, gaps


def apart(document: Document) -> tuple[list[str], list[str]]:
    """The sentences of a document, and the gaps between them."""
    spans = [(one.start, one.end) for one in document.sentences]
    gaps = [document.text[end:start] for (_, end), (start, _) in pairwise(spans)]
    return [document.text[start:end] for start, end in spans], gaps


def joined(sentences: Sequence[str], gaps: Sequence[str]) -> str:
    """Sentences with gaps between them, as one text."""
    ends = [*gaps, ""] if sentences else []
    return "".join(part for pair in zip(sentences, ends, strict=True) for part in pair)
