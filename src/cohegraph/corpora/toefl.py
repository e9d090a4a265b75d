"""TOEFL11 (Blanchard et al., 2013), as the Linguistic Data Consortium gives it out (LDC2014T06).

Somewhere in the folder lies ``index.csv`` (file name, prompt, native language, score level) and, in
``responses/original``, one text file per essay. The prompts are the sections.
"""

from collections import Counter
from pathlib import Path

from cohegraph.corpora.corpus import LEVELS, Corpus, Labelled, check_sizes, incomplete, official_rows
from cohegraph.corpora.tables import read_plain_text
from cohegraph.errors import CohegraphError

# Table of statistics of the paper: essays to prompts 1 to 8.
_SIZES = {f"P{n}": (size,) for n, size in enumerate((1656, 1562, 1396, 1509, 1648, 960, 1686, 1683), start=1)}
_COLUMNS = {
    "file": ("Filename", "File name", "File"),
    "prompt": ("Prompt",),
    "level": ("Score Level", "ScoreLevel", "Score", "Level"),
}
_MISSING = "missing-file"
_PLACES = ("responses/original", "original", "responses", ".")


def read_toefl(folder: Path, *, partial: bool = False) -> Corpus:
    """All essays of the index."""
    index = _index(folder)
    texts = next((index.parent / place for place in _PLACES if any((index.parent / place).glob("*.txt"))), None)
    if texts is None:
        raise CohegraphError(f"{index.parent} has no essays in responses/original.", code=_MISSING)
    documents, missing = [], []
    for row in official_rows(index, _COLUMNS, "TOEFL11"):
        level, prompt = str(row["level"]).strip().lower(), str(row["prompt"]).strip().upper()
        prompt = prompt if prompt.startswith("P") else f"P{prompt}"
        if level not in LEVELS or prompt not in _SIZES:
            wanted = "a prompt from P1 to P8 and a level low, medium or high"
            message = f"{row.place}: '{row['prompt']}' and '{row['level']}' are not {wanted}."
            raise CohegraphError(message, code="unknown-level")
        file = texts / str(row["file"]).strip()
        if not file.is_file():
            missing.append(file.name)
            continue
        row["text"], row.place = read_plain_text(file), str(file)
        documents.append(Labelled(file.stem, row.text(), level, prompt))
    if missing and not partial:
        raise incomplete(f"{len(missing)} essays of {index.name} are not in {texts} (the first: {missing[0]})")
    if not documents:
        raise CohegraphError(f"None of the essays of {index} is in {texts}.", code=_MISSING)
    corpus = Corpus.of("TOEFL11", sorted(documents, key=lambda document: (document.section, document.id)))
    check_sizes("TOEFL11", Counter(corpus.sections), _SIZES, partial)
    return corpus


def _index(folder: Path) -> Path:
    if not folder.is_dir():
        raise CohegraphError(f"TOEFL11 is a folder with an index.csv in it, and {folder} is none.", code=_MISSING)
    found = sorted(folder.rglob("index.csv"), key=lambda file: (len(file.parts), file))
    if not found:
        raise CohegraphError(f"There is no index.csv of TOEFL11 in {folder} or below it.", code=_MISSING)
    return found[0]
