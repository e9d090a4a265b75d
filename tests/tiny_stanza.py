"""Small English models for Stanza, trained with its own code in a few seconds, as the real ones must be fetched."""

from __future__ import annotations

import json
import logging
import random
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

# Every word has one tag and one lemma, so that the text below is its own treebank.
_WORDS = {
    "ADJ": "big small old red happy",
    "ADP": "in on near with",
    "ADV": "here today often",
    "AUX": "is:be are:be was:be",
    "CCONJ": "and but",
    "DET": "the a an this every",
    "NOUN": "dog dogs:dog cat cats:cat bird birds:bird house houses:house garden tree trees:tree book books:book "
    "teacher teachers:teacher child children:child river city letter",
    "PART": "'s not",
    "PRON": "he she it they we him",
    "PROPN": "Anna Tom London Paris Peter Maria",
    "PUNCT": ". , ! ?",
    "VERB": "sees:see see saw:see likes:like like liked:like reads:read runs:run lives:live walks:walk walk "
    "finds:find found:find writes:write sleeps:sleep sleep",
}
_TEXT = """
The dog sees the cat. The cat likes Anna. Anna likes the cat. Tom sees the bird. A bird lives in the tree.
The big dog runs in the garden. Tom and Anna walk near the river. The children like the small cats.
The teacher reads a book. Every teacher likes books. Peter writes a letter. Maria reads the letter today.
London is a big city. Paris is an old city. The house is old. The houses are red. The trees are big and old.
He sees Tom. She sees Anna. They like London. We like Paris. It sleeps here. He saw him in the city.
Anna's dog sleeps. Tom's cat likes the garden. The dog's house is small. The teacher's book is red.
Peter’s bird sleeps in the house. Maria’s letter is old. The cat's tree is near the river. Anna’s cat runs.
The dogs see the cats. The cats see the birds. Birds like trees. Dogs like children. Children like books.
Is the cat happy? Is Anna here? Are the dogs in the garden? The cat is here! Tom likes him!
The dog, the cat and the bird are happy. Anna, Tom and Peter like the river. The child is not happy.
A child found the letter. The teacher found the book in London. Tom liked the house. Maria liked Paris.
This house is near the garden. This book is big. The bird often sleeps in the old tree. She often reads here.
The teachers are here, but the children are in the city. Peter lives in Paris. Maria lives in London.
The city is near the river. The river is big. The garden is near the house. The letter was on the book.
Every dog likes the garden. Every child likes the dog. The small child sees Peter. The happy dog finds the bird.
Cats sleep here. Teachers like books. The old teacher walks with the dog. Anna walks with Tom. Tom was here.
"""
_TOKEN = re.compile(r"\w+(?:['’]s)?|[^\w\s]")
_TAGGER_SIZES = (
    "hidden_dim",
    "char_hidden_dim",
    "char_emb_dim",
    "word_emb_dim",
    "tag_emb_dim",
    "transformed_dim",
    "deep_biaff_hidden_dim",
    "composite_deep_biaff_hidden_dim",
)
_PROCESSORS = ("tokenize", "mwt", "pos", "lemma", "depparse")
_NAME = "tiny"


def build_tiny_stanza(folder: Path) -> None:
    """Fill a folder in the layout of Stanza's own one, ready for a pipeline that downloads nothing."""
    with tempfile.TemporaryDirectory() as place, _unnoticed():
        _train(folder, Path(place))
    packages = {"default": dict.fromkeys(_PROCESSORS, _NAME)}
    english = {"lang_name": "English", "packages": packages, **{name: {_NAME: {}} for name in _PROCESSORS}}
    (folder / "resources.json").write_text(json.dumps({"en": english}), encoding="utf-8")


def _train(folder: Path, place: Path) -> None:
    from stanza.models import lemmatizer, mwt_expander, parser, tagger, tokenizer

    # Only now, as the import of these turns the log on, with a line for every step.
    logging.getLogger("stanza").setLevel(logging.ERROR)
    treebank, text, labels, no_expansions = (place / f"train.{kind}" for kind in ("conllu", "txt", "labels", "json"))
    treebank.write_text(_conllu(), encoding="utf-8")
    text.write_text(_plain(), encoding="utf-8")
    labels.write_text(_labels(), encoding="utf-8")
    no_expansions.write_text("[]", encoding="utf-8")

    def options(processor: str, *flags: str, **values: object) -> list[str]:
        target = {"shorthand": f"en_{_NAME}", "save_dir": folder / "en" / processor, "save_name": f"{_NAME}.pt"}
        return [*flags, "--cpu", *(f"--{name}={value}" for name, value in (target | values).items())]

    data = {"train_file": treebank, "eval_file": treebank, "output_file": place / "scored.conllu"}
    sizes = dict.fromkeys(("emb_dim", "hidden_dim"), 16)
    texts = {"txt_file": text, "label_file": labels, "dev_txt_file": text, "dev_label_file": labels}
    # With no score before the last step the last model is the one that is kept.
    steps = {"steps": 200, "eval_steps": 201, "batch_size": 12, "lr0": 0.01, "dropout": 0.1, "unit_dropout": 0.1}
    tokenizer.main(options("tokenize", lang="en", mwt_json_file=no_expansions, **texts, **steps, **sizes))
    mwt_expander.main(options("mwt", "--dict_only", lang="en", gold_file=treebank, **data))
    sizes = dict.fromkeys(_TAGGER_SIZES, 16) | {"num_layers": 1}
    steps = {"max_steps": 120, "eval_interval": 120, "batch_size": 20, "lr": 0.01, "dropout": 0.1, "word_dropout": 0.1}
    tagger.main(options("pos", "--no_pretrain", "--fix_eval_interval", lang="en", **data, **steps, **sizes))
    sizes = dict.fromkeys(("hidden_dim", "emb_dim", "pos_dim"), 16) | {"max_dec_len": 20}
    lemmatizer.main(options("lemma", num_epoch=3, lr=0.01, **data, **sizes))
    sizes = dict.fromkeys(_TAGGER_SIZES[:-1], 16) | {"num_layers": 1, "batch_size": 200}
    steps = {"max_steps": 30, "eval_interval": 30, "lr": 0.01, "dropout": 0.1, "word_dropout": 0.1}
    parser.main(options("depparse", "--no_pretrain", lang="en", **data, **steps, **sizes))


@contextmanager
def _unnoticed() -> Iterator[None]:
    """Leave log, threads and random numbers as they were: Stanza's training sets them for the whole process."""
    log = logging.getLogger("stanza")
    level, threads = log.level, torch.get_num_threads()
    states = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=[]):
        try:
            torch.set_num_threads(1)
            yield
        finally:
            log.setLevel(level)
            torch.set_num_threads(threads)
            random.setstate(states[0])
            np.random.set_state(states[1])


def _plain() -> str:
    return " ".join(_TEXT.split())


def _sentences() -> list[str]:
    return re.findall(r"\S[^.!?]*[.!?]", _plain())


def _labels() -> str:
    """A digit for every character: 0 inside a token, 1 at its end, 2 at the end of a sentence, 3 of a contraction."""
    labels = ["0"] * len(_plain())
    for token in _TOKEN.finditer(_plain()):
        labels[token.end() - 1] = "2" if token[0] in ".!?" else "3" if token[0].endswith(("'s", "’s")) else "1"
    return "".join(labels)


def _conllu() -> str:
    lexicon = {}
    for tag, words in _WORDS.items():
        for word in words.split():
            form, _, lemma = word.partition(":")
            lexicon[form] = (lemma or form, tag)
    return "".join(f"# text = {sentence}\n{_rows(sentence, lexicon)}\n\n" for sentence in _sentences())


def _rows(sentence: str, lexicon: dict[str, tuple[str, str]]) -> str:
    rows: list[str] = []
    number = 0
    for token in _TOKEN.finditer(sentence):
        glued = "_" if sentence[token.end() : token.end() + 1] == " " else "SpaceAfter=No"
        # As in the English treebanks, the word is spelled with a plain apostrophe whatever the token has.
        words = [token[0][:-2], "'s"] if token[0].endswith(("'s", "’s")) else [token[0]]
        if len(words) > 1:
            rows.append("\t".join([f"{number + 1}-{number + 2}", token[0], *["_"] * 7, glued]))
        for word in words:
            number += 1
            lemma, tag = lexicon.get(word) or lexicon[word.lower()]
            head, relation = ("0", "root") if number == 1 else ("1", "dep")
            misc = glued if len(words) == 1 else "_"
            rows.append("\t".join([str(number), word, lemma, tag, "_", "_", head, relation, "_", misc]))
    return "\n".join(rows)
