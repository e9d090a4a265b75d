"""Sentences and nouns from a Stanza pipeline, as in the paper."""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

from cohegraph.errors import MissingPartError
from cohegraph.strings import well_formed
from cohegraph.text.document import Document, Noun, Sentence, is_noun, is_word, trimmed
from cohegraph.text.packaged import sha256_once

_BATCH = 32
# What Stanza puts in place of a token that is longer than its tokeniser was trained on.
_TOO_LONG = "<UNK>"


class StanzaParser:
    """A Stanza pipeline of tokeniser, tagger and lemmatiser.

    Args:
        model: A language (`en`), whose models Stanza keeps in its own folder and fetches once, or a folder with
            English models in Stanza's layout, which is used without any download.
        dependencies: Whether nouns get their dependency.
    """

    def __init__(self, model: str = "en", *, dependencies: bool = False) -> None:
        try:
            import stanza
        except ImportError:
            raise MissingPartError(
                "Stanza is not installed: pip install 'cohegraph[stanza]'.", code="not-installed"
            ) from None
        folder = Path(model)
        is_folder = folder.is_dir()
        if not is_folder and folder.name != model:  # Stanza would look for a language of that name on the net.
            raise MissingPartError(
                f"There is no folder '{model}': name one with Stanza's English models, or 'en'.", code="no-folder"
            )
        self._after_tokenising = "pos,lemma,depparse" if dependencies else "pos,lemma"
        options: dict[str, Any] = {"model_dir": str(folder)} if is_folder else {}
        reuse = stanza.DownloadMethod.NONE if is_folder else stanza.DownloadMethod.REUSE_RESOURCES
        try:
            self._pipeline = stanza.Pipeline(
                lang="en" if is_folder else model,
                processors=f"tokenize,{self._after_tokenising}",
                download_method=reuse,
                verbose=False,
                **options,
            )
        except Exception as error:  # Stanza and its downloader raise many kinds.
            raise MissingPartError(
                f"Stanza's models for '{model}' cannot be loaded ({type(error).__name__}): fetch them once with "
                "stanza.download('en'), or name a folder that holds them.",
                code="cannot-load",
            ) from error
        name = f"folder:{_fingerprint(self._pipeline)}" if is_folder else model
        identity = f"stanza:{name}@{stanza.__version__}"
        self.identity = f"{identity}+dependencies" if dependencies else identity

    def parse(self, texts: Iterable[str]) -> Iterator[Document]:
        """One document a text, in order."""
        waiting = iter(texts)
        while batch := list(islice(waiting, _BATCH)):
            clean = [well_formed(text) for text in batch]
            spoken = [text for text in clean if text.strip()]
            # In company, Stanza's tokeniser splits a paragraph of over 1000 characters differently than alone.
            tokenized = [self._pipeline.process(text, processors="tokenize") for text in spoken]
            parsed = iter(self._pipeline.bulk_process(tokenized, processors=self._after_tokenising))
            for original, text in zip(batch, clean, strict=True):
                yield Document(original, tuple(_sentences(next(parsed), text)) if text.strip() else ())


def _fingerprint(pipeline: Any) -> str:
    """The content of all files that a pipeline was loaded from."""
    files = sorted((name, Path(place)) for name, place in pipeline.config.items() if name.endswith("_path"))
    return sha256("\n".join(f"{name} {sha256_once(file)}" for name, file in files).encode()).hexdigest()


def _sentences(parsed: Any, text: str) -> Iterator[Sentence]:
    for sentence in parsed.sentences:
        first, last = sentence.tokens[0], sentence.tokens[-1]
        start, end = trimmed(text, first.start_char, last.end_char)
        found = (_noun(word, token, text) for token in sentence.tokens for word in token.words)
        nouns = tuple(noun for noun in found if is_noun(noun.text, noun.tag))
        words = sum(is_word(text[token.start_char : token.end_char]) for token in sentence.tokens)
        yield Sentence(text[start:end], start, end, words, nouns)


def _noun(word: Any, token: Any, text: str) -> Noun:
    """A word as it is written in the text: Stanza's own spelling differs in white space and for very long tokens."""
    start, end = trimmed(text, *_place(word, token, text))
    written = text[start:end]
    lemma = word.lemma if word.lemma and (word.text != _TOO_LONG or written == _TOO_LONG) else written
    return Noun(written, lemma, start, end, word.upos, word.deprel or "")


def _place(word: Any, token: Any, text: str) -> tuple[int, int]:
    if word.start_char is not None:
        return word.start_char, word.end_char
    # Stanza gives the words of a contraction no place if they are spelled otherwise there, be it only one of them.
    start = text.find(word.text, token.start_char, token.end_char)
    return (start, start + len(word.text)) if start >= 0 else (token.start_char, token.end_char)
