"""``cohegraph train-reader``: heads of a reader, from prose."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from cohegraph.cli import options
from cohegraph.cli.output import counted, interruptible, say, show
from cohegraph.corpora.corruptions import chosen, equally_often
from cohegraph.corpora.prose import (
    ProseText,
    collect_prose,
    prose_columns,
    prose_documents,
    sample,
    split_by_work,
)
from cohegraph.errors import CohegraphError
from cohegraph.text.reader import State
from cohegraph.text.readers import DEFAULT_READER

Precision = StrEnum("Precision", ["auto", "float32", "int8"])
_SPLITS = ("train", "dev")
_DEV_SHARE = 0.1


def train_reader(
    prose: Annotated[list[str], Argument(help="Tables (CSV, TSV, JSONL, Parquet), text files, or folders of either.")],
    out: Annotated[Path, Option(help="The folder to write the heads to.")],
    reader: Annotated[
        str, Option(help="The reader: a packaged name, a folder, a GGUF file, or a name on the model hub.")
    ] = DEFAULT_READER,
    precision: Annotated[
        Precision, Option(help="Arithmetic of the reader; auto uses int8 if its loss is within 0.5 %.")
    ] = Precision.auto,
    states: Annotated[
        str | None, Option(help="States of the reader to use, such as mean-18,first-18; by default four.")
    ] = None,
    texts: Annotated[
        int | None, Option(min=1, help="Use only this many texts, chosen at random; by default all.")
    ] = None,
    versions: Annotated[int, Option(min=1, max=1000, help="Corrupted versions of each text.")] = 4,
    kinds: Annotated[
        str | None,
        Option(help="Kinds of 'cohegraph corrupt', each drawn equally often; by default a mix of most of them."),
    ] = None,
    gains: Annotated[
        int,
        Option(min=0, help="Number of texts in which pairs of nearby sentences are read, for links by context."),
    ] = 500,
    epochs: Annotated[int, Option(min=1, max=1000, help="Number of passes over the texts.")] = 6,
    dev_share: Annotated[
        float | None, Option(min=0.0, max=0.9, help="Share of works held out to measure accuracy; by default 0.1.")
    ] = None,
    split_column: Annotated[
        str | None, Option(help="A column with train and dev, instead of --dev-share; other rows are left out.")
    ] = None,
    seed: Annotated[int, Option(min=0, max=2**63 - 1, help="The seed of all random choices.")] = 0,
    force: Annotated[bool, Option("--force", help="Overwrite existing heads.")] = False,
    text_column: options.TextColumn = "text",
    id_column: options.ProseIdColumn = None,
    source_column: options.SourceColumn = None,
    work_column: options.WorkColumn = None,
    threads: options.Threads = None,
) -> None:
    """Train the heads of a reader on corrupted versions of coherent texts.

    The heads learn which boundaries are broken, which sentences do not belong, and which of two versions is the
    original. Reading takes most of the time: what was read is kept next to the heads, in a folder that ends in
    .unfinished. An interrupted run resumes when you run the same command again, and produces the same heads.
    """
    names = chosen(options.listed(kinds)) if kinds is not None else ()
    if kinds is not None and not names:
        raise CohegraphError("--kinds names no kind: leave it out for the usual mix.", code="unknown-kind")
    if split_column is not None and dev_share is not None:
        raise CohegraphError(
            "--split-column says which texts are held out: leave out --dev-share.", code="contradiction"
        )
    state_names = options.listed(states)
    for name in state_names or ():
        State.named(name)
    if state_names == []:
        raise CohegraphError("--states names no state: leave it out for the usual ones.", code="bad-setting")
    documents = prose_documents(prose, prose_columns(text_column, id_column, work_column, source_column, split_column))
    found = collect_prose(documents)
    say(*documents.remarks)
    if not found:
        raise CohegraphError("There is no text to learn from: name files with prose.", code="no-texts")
    if split_column is not None:
        found = _with_split(found, split_column)
    found = found if texts is None else sample(found, texts, seed)
    share = _DEV_SHARE if dev_share is None else dev_share
    train, dev = split_by_work(found, share) if split_column is None else _by_column(found, split_column)
    # All that can be checked is checked before torch is imported, which takes seconds.
    from cohegraph.reading.accuracy import share_in_words
    from cohegraph.reading.heads_from_prose import Course, check_target, heads_from_prose, states_of, unfinished
    from cohegraph.reading.training import Schedule
    from cohegraph.text.encoder import TransformerEncoder
    from cohegraph.text.readers import load_reader

    target = check_target(out, replace=force)
    options.set_threads(threads)

    def state() -> str:
        folder = unfinished(target)
        kept = f"; run the same command again to resume from {folder}" if folder.is_dir() else ""
        return f"nothing was written to {out}{kept}"

    with interruptible(state):
        loaded = load_reader(reader, precision.value)  # type: ignore[arg-type]
        chosen_states = states_of(loaded, state_names or ())
        encoder = TransformerEncoder(precision="auto", device="cpu")
        schedule = Schedule(epochs=epochs, seed=seed)
        weights = {"kinds": equally_often(names)} if names else {}
        course = Course(versions=versions, states=chosen_states, gains=gains, schedule=schedule, **weights)
        heads = heads_from_prose(train, dev, loaded, encoder, target, course, replace=force)
    figures = heads.figures["accuracy"]
    if figures is None:
        remedy = "texts from more works" if split_column is None else f"rows with dev in {split_column}"
        say(f"There was no text to measure accuracy on; that takes {remedy}.")
    else:
        show(f"{share_in_words(figures)}.")
        if figures["gains"] is not None:
            show(
                "Predicted and exact gains have a correlation of {:.2f} (rank correlation {:.2f}).".format(
                    *figures["gains"]
                )
            )
    show(f"The heads are in {out}.")


def _with_split(texts: Sequence[ProseText], column: str) -> list[ProseText]:
    """The texts to learn from or to measure on; says how many others there are."""
    found = [text for text in texts if text.split in _SPLITS]
    if other := len(texts) - len(found):
        example = next(text.split for text in texts if text.split not in _SPLITS)
        say(
            f"{counted(other, 'text')} of {len(texts)} left out: the value in {column} is neither train nor dev, but "
            f"for example '{example}'."
        )
    return found


def _by_column(texts: Sequence[ProseText], column: str) -> tuple[list[ProseText], list[ProseText]]:
    train, dev = ([text for text in texts if text.split == split] for split in _SPLITS)
    if not train:
        raise CohegraphError(
            f"No text has the value 'train' in {column}: there is nothing to learn from.", code="no-texts"
        )
    return train, dev
