"""From prose to trained heads, in a folder of examples from which an interrupted run resumes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from math import ceil
from pathlib import Path
from typing import Any

from cohegraph.corpora.corruptions import DonorPool, Piece
from cohegraph.corpora.prose import ProseText
from cohegraph.errors import CohegraphError
from cohegraph.files import alone_in
from cohegraph.progress import remark
from cohegraph.reading.accuracy import Accuracy, accuracy
from cohegraph.reading.examples import MIX, ExampleFolder, Making, made_examples, remove_examples
from cohegraph.reading.gains import (
    GainsSchedule,
    chosen_for_gains,
    correlations,
    known_gains,
    made_gains,
    remove_gains,
    with_gains,
)
from cohegraph.reading.pieces import SHORTEST, beginning, parsed_pieces, stretches
from cohegraph.reading.training import Group, Schedule, groups_of, train
from cohegraph.text.encoder import Encoder
from cohegraph.text.heads import Heads, holds_heads
from cohegraph.text.heads_network import Floats, HeadsNetwork, HeadsShape
from cohegraph.text.reader import Reader, State
from cohegraph.version import __version__

# Of which layers the usual states are, as shares of all layers.
_LAYERS = (("mean", 1 / 3), ("mean", 0.6), ("mean", 0.87), ("mean", 1.0), ("first", 0.6), ("last", 0.6))
# Training texts with gains for each dev text with gains.
_TRAIN_TO_DEV = 10


@dataclass(frozen=True)
class Course:
    """How heads learn from prose.

    Args:
        kinds: Kinds of corruptions, and how often each is drawn.
        versions: How many corrupted versions of a text are made.
        states: The names of the reader's states to use; by default some from the middle of the reader.
        gains: In how many texts gains are read exactly, to learn them; 0 for heads that do not say them. A tenth as
            many dev texts measure how well they are learnt.
        schedule: How the network is trained; its seed is that of all random choices.
    """

    kinds: Mapping[str, float] = field(default_factory=lambda: MIX)
    versions: int = 4
    states: Sequence[str] = ()
    gains: int = 500
    schedule: Schedule = field(default_factory=Schedule)


def check_target(out: Path, *, replace: bool = False) -> Path:
    """Where heads will be written, as an absolute path; an error where nothing may or can be written."""
    out = out.resolve()
    if out.exists() and not holds_heads(out):
        message = f"{out} exists and holds other things than the heads of a reader: choose another folder."
        raise CohegraphError(message, code="foreign-folder")
    if out.exists() and not replace:
        raise CohegraphError(f"{out} exists: replace it with --force, or choose another folder.", code="exists")
    if not out.parent.is_dir():
        raise CohegraphError(f"There is no folder {out.parent}: make it first.", code="cannot-write")
    return out


def unfinished(out: Path) -> Path:
    """The folder of examples of heads that are not trained yet."""
    return out.with_name(f"{out.name}.unfinished")


def states_of(reader: Reader, names: Sequence[str] = ()) -> tuple[str, ...]:
    """The names of the states that heads take: those that are named, or the usual ones."""
    if not names:
        return tuple(dict.fromkeys(f"{of}-{max(1, round(share * reader.layers))}" for of, share in _LAYERS))
    for name in names:
        if State.named(name).layer > reader.layers:
            message = f"The reader has {reader.layers} layers, so there is no state '{name}'."
            raise CohegraphError(message, code="bad-setting")
    return tuple(dict.fromkeys(names))


def heads_from_prose(
    texts: Sequence[ProseText],
    dev_texts: Sequence[ProseText],
    reader: Reader,
    encoder: Encoder,
    out: Path,
    course: Course | None = None,
    *,
    replace: bool = False,
    show_progress: bool = True,
) -> Heads:
    """Train heads on corrupted versions of texts, and write them to a folder.

    What was read is kept next to the folder until the end: the same call resumes, to the same heads.

    Args:
        texts: The texts to learn from.
        dev_texts: The texts to measure accuracy on, of other works; there may be none.
        reader: Reads the texts.
        encoder: Encodes their sentences.
        out: The folder of the heads.
        course: How to train.
        replace: Whether to replace heads that are there.
        show_progress: Whether to say how far it is, and how accurate the heads are after every epoch.
    """
    course, out = course or Course(), check_target(out, replace=replace)
    names, seed, folder = states_of(reader, course.states), course.schedule.seed, unfinished(out)

    def examples(some: Sequence[Piece], pool: Sequence[Piece]) -> list[ExampleFolder]:
        states = [State.named(name) for name in names]
        making = Making(DonorPool(pool), reader, encoder, states, course.kinds, course.versions, seed)
        return made_examples(some, making, folder, show_progress=show_progress)

    def gains(some: Sequence[Piece], number: int) -> dict[str, Floats]:
        return made_gains(chosen_for_gains(some, number, seed), reader, folder, show_progress=show_progress)

    with _in_one_sentence(folder), alone_in(folder):
        pieces, dev_pieces = (_long_enough(some, show_progress) for some in (texts, dev_texts))
        if not pieces:
            message = f"No text has {SHORTEST} sentences or more: there is nothing to learn from."
            raise CohegraphError(message, code="too-short")
        if show_progress:
            remark(_summary(len(texts) + len(dev_texts), len(pieces), len(dev_pieces)))
        # Foreign sentences in dev texts come from other dev texts: heads have seen none of them.
        used = stretches(pieces, seed)
        groups = groups_of(examples(used, pieces))
        if not groups:
            remove_examples(folder)
            message = "No text can be corrupted in any of these ways: choose other kinds, or texts from several works."
            raise CohegraphError(message, code="not-suitable")
        dev_groups = groups_of(examples(dev_pieces, dev_pieces))
        known = known_gains(groups, gains(used, course.gains))
        dev_known = known_gains(dev_groups, gains(dev_pieces, ceil(course.gains / _TRAIN_TO_DEV)))
        shape = HeadsShape(names, reader.width, encoder.dimensions)
        network, measured = _trained(groups, dev_groups, shape, course.schedule, show_progress)
        if known:
            network = with_gains(network, known, GainsSchedule(), seed, show_progress=show_progress)
            measured = measured and replaced(measured, gains=correlations(network, dev_known))
        figures = figures_of(course, groups, dev_groups, measured, len(pieces), len(dev_pieces))
        figures["texts_with_gains"] = len(known)
        heads = Heads(network, reader.identity, encoder.identity, figures)
        check_target(out, replace=replace)
        heads.save(out)
        remove_examples(folder)
        remove_gains(folder)
    return heads


def figures_of(
    course: Course,
    groups: Sequence[Group],
    dev_groups: Sequence[Group],
    measured: Accuracy | None,
    texts: int,
    dev_texts: int,
) -> dict[str, Any]:
    """What is recorded with heads: what they were trained on, and how accurate they are."""
    return {
        "texts": texts,
        "dev_texts": dev_texts,
        "examples": sum(len(group.versions) for group in groups),
        "dev_examples": sum(len(group.versions) for group in dev_groups),
        "accuracy": None if measured is None else measured.to_dict(),
        "seed": course.schedule.seed,
        "epochs": course.schedule.epochs,
        "versions": course.versions,
        "kinds": dict(course.kinds),
        "cohegraph": __version__,
    }


@contextmanager
def _in_one_sentence(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        message = f"Nothing can be written to {folder} ({error.strerror or error}): make room, and run this again."
        raise CohegraphError(message, code="cannot-write") from error


def _long_enough(texts: Sequence[ProseText], show_progress: bool) -> list[Piece]:
    pieces = parsed_pieces(texts, show_progress=show_progress)
    return [beginning(piece) for piece in pieces if len(piece) >= SHORTEST]


def _summary(texts: int, used: int, dev: int) -> str:
    short = texts - used - dev
    left_out = f" {short} of {texts} have fewer than {SHORTEST} sentences and are left out." if short else ""
    measured = f", {dev} to measure accuracy on." if dev else "; none is left to measure accuracy on."
    return f"Texts to learn from: {used}{measured}{left_out}"


def _trained(
    groups: Sequence[Group], dev_groups: Sequence[Group], shape: HeadsShape, schedule: Schedule, show_progress: bool
) -> tuple[HeadsNetwork, Accuracy | None]:
    """The network of the last epoch, and how accurate it is; nothing is chosen on dev texts."""
    measured: Accuracy | None = None

    def measure(epoch: int, network: HeadsNetwork) -> None:
        nonlocal measured
        measured = accuracy(network, dev_groups)
        if show_progress:
            remark(f"Epoch {epoch} of {schedule.epochs}: {measured.in_words()}")

    on_epoch = measure if dev_groups else None
    return train(groups, shape, schedule, on_epoch, show_progress=show_progress), measured
