"""Sentences and nouns from a Stanza pipeline, as in the paper."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from cohegraph.errors import MissingPartError
from cohegraph.text.document import Document, Noun, Sentence, is_noun, is_word, trimmed, well_formed

_BATCH = 32


class StanzaParser:
    """A Stanza pipeline of tokeniser, tagger and lemmatiser.

    Args:
        model: A language (`en`), whose models Stanza keeps in its own folder and fetches once, or a folder with
            English models in Stanza's layout, which is used without any download.
    """

    def __init__(self, model: str = "en") -> None:
        try:
            import stanza
        except ImportError:
            raise MissingPartError("Stanza is not installed: pip install 'cohegraph[stanza]'.") from None
        folder = Path(model)
        is_folder = folder.is_dir()
        options: dict[str, Any] = {"model_dir": str(folder)} if is_folder else {}
        reuse = stanza.DownloadMethod.NONE if is_folder else stanza.DownloadMethod.REUSE_RESOURCES
        try:
            self._pipeline = stanza.Pipeline(
                lang="en" if is_folder else model,
                processors="tokenize,pos,lemma",
                download_method=reuse,
                verbose=False,
                **options,
            )
        except Exception as error:  # Stanza and its downloader raise many kinds.
            raise MissingPartError(
                f"Stanza's models for '{model}' cannot be loaded ({type(error).__name__}): fetch them once with "
                "stanza.download('en'), or name a folder that holds them."
            ) from error
        self.identity = f"stanza:{'folder' if is_folder else model}@{stanza.__version__}"

    def parse(self, texts: Iterable[str]) -> Iterator[Document]:
        """One document a text, in order."""
        waiting = iter(texts)
        while batch := list(islice(waiting, _BATCH)):
            clean = [well_formed(text) for text in batch]
            spoken = [text for text in clean if text.strip()]
            parsed = iter(self._pipeline.bulk_process(spoken) if spoken else [])
            for original, text in zip(batch, clean, strict=True):
                yield Document(original, tuple(_sentences(next(parsed), text)) if text.strip() else ())


def _sentences(parsed: Any, text: str) -> Iterator[Sentence]:
    for sentence in parsed.sentences:
        first, last = sentence.tokens[0], sentence.tokens[-1]
        start, end = trimmed(text, first.start_char, last.end_char)
        nouns = tuple(
            _noun(word, token) for token in sentence.tokens for word in token.words if is_noun(word.text, word.upos)
        )
        words = sum(is_word(token.text) for token in sentence.tokens)
        yield Sentence(text[start:end], start, end, words, nouns)


def _noun(word: Any, token: Any) -> Noun:
    # A word inside a contraction has no place of its own in the text: its token has.
    own = word.start_char is not None
    start, end = (word.start_char, word.end_char) if own else (token.start_char, token.end_char)
    return Noun(word.text, word.lemma or word.text, start, end, word.upos)
