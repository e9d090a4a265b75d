"""The files of an experiment's folder: what is written, and read again when a run is resumed."""

import csv
import io
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from cohegraph.corpora.corpus import Corpus
from cohegraph.errors import CohegraphError, DamagedFileError
from cohegraph.experiments.folds import Fold
from cohegraph.experiments.units import Cost, Name, Result
from cohegraph.files import write_atomically

ABOUT, FOLDS, RESULTS, COSTS = "experiment.json", "folds.jsonl", "results.jsonl", "costs.jsonl"
DOCUMENTS, PREDICTIONS = "documents.jsonl", "predictions.csv"
_LINE = TypeVar("_LINE", Result, Cost)


def check_same(folder: Path, about: dict[str, Any]) -> None:
    """Raise where the folder holds results of other documents or another protocol."""
    file = folder / ABOUT
    if not file.exists():
        return
    try:
        earlier = json.loads(file.read_text("utf-8"))
        compared = (
            ("another version of cohegraph", "other-version", about["cohegraph"], earlier["cohegraph"]),
            ("another corpus, or other documents", "other-corpus", about["corpus"], earlier["corpus"]),
            ("another protocol", "other-protocol", about["plan"]["protocol"], earlier["plan"]["protocol"]),
            ("other settings", "other-settings", about["settings"][""], earlier["settings"][""]),
            ("other pretrained parts", "other-part", about["parts"][""], earlier["parts"][""]),
        )
    except (ValueError, KeyError, TypeError):
        raise DamagedFileError(f"{file} is damaged: choose another folder with --out, or delete this one.") from None
    for what, code, now, then in compared:
        if now != then:
            remedy = "choose another folder with --out, or delete this one"
            raise CohegraphError(f"{folder} holds results of {what}: {remedy}.", code=code)


def documents(corpus: Corpus) -> str:
    """What is known of every document but its text."""
    columns: dict[str, Sequence[Any]] = {"id": corpus.ids, "section": corpus.sections, "level": corpus.labels}
    others: dict[str, Sequence[Any] | None] = {"group": corpus.groups, "score": corpus.scores, "test": corpus.test}
    columns |= {name: column for name, column in others.items() if column is not None}
    rows = zip(*columns.values(), strict=True)
    return "".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows)


def predictions(results: Iterable[Result], folds: Iterable[Fold], corpus: Corpus) -> str:
    """All probabilities as a table, one row per tested document."""
    tested = {fold.name: fold.test.tolist() for fold in folds}
    page = io.StringIO()
    table = csv.writer(page, lineterminator="\n")
    table.writerow(["system", "variant", "fold", "seed", "document", "level", "predicted", *corpus.levels])
    for result in results:
        for row, probabilities in zip(tested[result.fold], result.probabilities, strict=True):
            predicted = corpus.levels[int(np.argmax(probabilities))]
            about = (result.system, result.variant, result.fold, result.seed)
            table.writerow([*about, corpus.ids[row], corpus.labels[row], predicted, *probabilities])
    return page.getvalue()


def append_line(file: Path, line: Result | Cost) -> None:
    """Add a line that is on the disk when this returns."""
    with file.open("a", encoding="utf-8") as stream:
        stream.write(_line(line))
        stream.flush()
        os.fsync(stream.fileno())


def write_lines(file: Path, lines: Iterable[Result | Cost]) -> None:
    """Write a file of lines, all at once."""
    write_atomically(file, "".join(map(_line, lines)))


def _line(line: Result | Cost) -> str:
    return json.dumps(asdict(line)) + "\n"


def read_lines(file: Path, kind: type[_LINE]) -> dict[Name, _LINE]:
    """The lines of a file; the last may be half written, damaged ones are left out, later ones replace earlier ones."""
    found: dict[Name, _LINE] = {}
    if not file.exists():
        return found
    for text in file.read_text("utf-8", errors="replace").split("\n"):
        try:
            line = kind(**json.loads(text))
            found[line.name] = line
        except (ValueError, TypeError, RecursionError):
            continue
    return found
