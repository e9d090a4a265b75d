"""How well do the heads of a reader tell originals from corrupted versions, and what does that depend on?

    python benchmarks/reader_study.py examples --work FOLDER                # reads prose: hours
    python benchmarks/reader_study.py examples --work FOLDER --share 0/2    # half of it, next to a process with 1/2
    python benchmarks/reader_study.py gains --work FOLDER                   # reads pairs of sentences, for ship
    python benchmarks/reader_study.py train --work FOLDER                   # all configurations
    python benchmarks/reader_study.py train full layers-10-18 --work FOLDER
    python benchmarks/reader_study.py measure --work FOLDER                 # the heads that come with cohegraph
    python benchmarks/reader_study.py baselines --work FOLDER
    python benchmarks/reader_study.py table --work FOLDER                   # Markdown, of what is there
    python benchmarks/reader_study.py ship full --work FOLDER               # the heads that come with cohegraph

All results are kept in the work folder. A stage that was stopped or killed goes on when it is run again with the same
options; what is finished is not done again. Every stage uses what the stages before it have finished by then.

Training pieces are in a random order, so that the first 1,000 are part of the first 3,000; long ones are cut as by
`cohegraph train-reader`, and each has four corrupted versions. Dev pieces are whole, and each has a version of every
kind, with foreign sentences from other dev pieces. The configurations:

    full                    all training pieces that were read, all kept states
    pieces-1000             the first 1,000 training pieces
    layers-10-18            the mean states of layers 10 and 18 alone
    states-mean-10+last-18  any of the kept states
    up-to-18                the states up to layer 18 and no losses: all that a reader has that stops there
    up-to-0                 nothing of the reader: the encoder's vectors alone
    without-fiction         no training piece of this genre, and no foreign sentence from it
    without-order           no corruption of this group: order, foreign, joins or words

Any of them can have fewer pieces: without-order@3000 is compared with pieces-3000. By default all of the above are
trained, with the same schedule, those with other layers on 3,000 pieces.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import pickle
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from common import PROSE, set_threads
from reader_tables import GROUPS, SHIPPED, Results, group_of, heads_among, tables

from cohegraph.corpora.corruptions import DonorPool, Piece
from cohegraph.corpora.prose import ProseText
from cohegraph.features.featurizer import DEFAULT_HEADS
from cohegraph.files import alone_in, write_atomically
from cohegraph.progress import remark, track
from cohegraph.reading.accuracy import Accuracy, accuracy
from cohegraph.reading.examples import MIX, Example, ExampleFolder, Making, made_examples
from cohegraph.reading.gains import GainsSchedule, KnownGains, correlations, known_gains, made_gains, with_gains
from cohegraph.reading.heads_from_prose import Course, check_target, figures_of
from cohegraph.reading.pieces import SHORTEST, parsed_pieces, similar_sentences, stretches
from cohegraph.reading.training import Group, Schedule, groups_of, judged, train
from cohegraph.text.encoder import Encoder, TransformerEncoder
from cohegraph.text.heads import Heads
from cohegraph.text.heads_network import HeadsShape, Sentences
from cohegraph.text.reader import Reader, State
from cohegraph.text.readers import load_reader

STATES = "mean-10,mean-18,mean-26,mean-30,first-18,last-18"
# Kinds that only dev pieces have.
ON_DEV_ALONE = ("join:work",)
VERSIONS = 4
# Genres that are left out of training in turn have so many times as many dev pieces as others.
LEFT_OUT, TIMES = ("fiction", "report", "encyclopedia"), 5
CONFIGURATIONS = (
    "full",
    *(f"without-{genre}" for genre in LEFT_OUT),
    *(f"without-{group}" for group in GROUPS),
    *("pieces-1000", "pieces-3000", "pieces-10000"),
    *(f"layers-{layers}@3000" for layers in ("10", "18", "26", "30", "10-18", "18-30", "10-18-30")),
    *(f"up-to-{layer}@3000" for layer in (0, 10, 18, 26)),
)
# Pieces in a portion: a process that is killed loses one portion.
_PORTION = 32
_GROUPS_AT_ONCE = 8


class Row(NamedTuple):
    """A parsed piece of prose."""

    genre: str
    split: str
    piece: Piece


@dataclass(frozen=True)
class Portion:
    """Some pieces, and the folder of their examples."""

    folder: Path
    pieces: Sequence[Piece]

    @property
    def file(self) -> Path:
        """What the examples are, once they are there."""
        return self.folder / "portion.json"

    def about(self) -> dict[str, Any]:
        """What is known of the examples; nothing where there are none, or of other pieces."""
        if not self.file.is_file():
            return {}
        found: dict[str, Any] = json.loads(self.file.read_text("utf-8"))
        return found if found["pieces"] == [piece.id for piece in self.pieces] else {}


@dataclass(frozen=True)
class ChosenStates:
    """A folder of examples with some of its states, and with or without losses."""

    folder: ExampleFolder
    columns: np.ndarray
    losses: bool

    def sentences(self, examples: Sequence[Any]) -> list[Sentences]:
        """What heads take of the versions of one text."""
        found = [replace(one, states=one.states[:, self.columns]) for one in self.folder.sentences(examples)]
        return found if self.losses else [replace(one, figures=_without_losses(one.figures)) for one in found]


def _without_losses(figures: np.ndarray) -> np.ndarray:
    """Figures of sentences of which only the last, the number of tokens, is known."""
    return np.column_stack([np.zeros_like(figures[:, :-1]), figures[:, -1]])


@dataclass(frozen=True)
class Configuration:
    """What heads are trained with; by default all that there is."""

    states: tuple[str, ...]
    pieces: int | None = None
    genre: str | None = None
    group: str | None = None
    losses: bool = True

    @classmethod
    def named(cls, name: str, states: tuple[str, ...], genres: set[str]) -> Configuration:
        """A configuration by its name."""
        kind, _, number = name.partition("@")
        found = cls(states, int(number) if number else None)
        if kind == "full":
            return found
        what, _, value = kind.partition("-")
        if what == "pieces" and value.isdecimal():
            return replace(found, pieces=int(value))
        if what == "without" and value in GROUPS:
            return replace(found, group=value)
        if what == "without" and value in genres:
            return replace(found, genre=value)
        if what == "up" and (layer := value.removeprefix("to-")).isdecimal():
            lower = tuple(state for state in states if State.named(state).layer <= int(layer))
            return replace(found, states=lower, losses=False)
        chosen = value.split("+") if what == "states" else [f"mean-{layer}" for layer in value.split("-")]
        if what in ("states", "layers") and set(chosen) <= set(states):
            return replace(found, states=tuple(chosen))
        sys.exit(f"There is no configuration '{name}': see --help, and --states.")


class Study:
    """The work folder, and what its stages share."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.work: Path = options.work
        self.states = tuple(options.states.split(","))
        self.seed: int = options.seed

    @cached_property
    def rows(self) -> list[Row]:
        """All pieces that are long enough; each file is parsed once in the life of the work folder."""
        files, folder, rows = sorted(self.options.prose.glob("*.jsonl.gz")), self.work / "pieces", list[Row]()
        if not files:
            sys.exit(f"There is no prose (*.jsonl.gz) in {self.options.prose}: name its folder with --prose.")
        with alone_in(folder, wait=True):
            for file in files:
                kept = folder / f"{file.name.partition('.')[0]}-{self.options.rows or 'all'}.pickle"
                if not kept.is_file():
                    remark(f"Parsing {file.name}")
                    write_atomically(kept, pickle.dumps(_parsed(file, self.options.rows)))
                rows += pickle.loads(kept.read_bytes())
        return [row for row in rows if len(row.piece) >= SHORTEST]

    @cached_property
    def genres(self) -> dict[str, str]:
        """The genre of every piece."""
        return {row.piece.id: row.genre for row in self.rows}

    def weights(self) -> dict[str, float]:
        """How much each dev piece counts, so that genres have the shares that they have among all dev pieces."""
        read = [piece.id for portion in self.read("dev") for piece in portion.pieces]
        there = Counter(row.genre for row in self.rows if row.split == "dev")
        taken = Counter(self.genres[text] for text in read)
        return {text: there[self.genres[text]] / taken[self.genres[text]] for text in read}

    def pool(self, split: str) -> list[Piece]:
        """The pieces that foreign sentences come from."""
        return [row.piece for row in self.rows if row.split == split]

    def chosen(self, split: str) -> list[Piece]:
        """The pieces of a split that are used, in a random order that does not depend on how many there are."""
        pieces = sorted(
            self.pool(split), key=lambda piece: hashlib.sha256(f"{self.seed}\0{piece.id}".encode()).digest()
        )
        if split == "train":
            return stretches(pieces[: self.options.pieces], self.seed)
        most = {genre: self.options.dev * (TIMES if genre in LEFT_OUT else 1) for genre in self.genres.values()}
        taken, found = defaultdict[str, int](int), list[Piece]()
        for piece in pieces:
            taken[self.genres[piece.id]] += 1
            if taken[self.genres[piece.id]] <= most[self.genres[piece.id]]:
                found.append(piece)
        return found

    def making(self, split: str, reader: Reader, encoder: Encoder) -> Making:
        """What makes the examples of a split."""
        kinds = MIX if split == "train" else dict.fromkeys([*MIX, *ON_DEV_ALONE], 1.0)
        versions = VERSIONS if split == "train" else len(kinds)
        states = [State.named(name) for name in self.states]
        return Making(DonorPool(self.pool(split)), reader, encoder, states, kinds, versions, self.seed)

    def find_similar(self, making: Making) -> None:
        """Let the pool find similar sentences; its sample is encoded once in the life of the work folder."""
        with alone_in(folder := self.work / "similar", wait=True):
            making.pool.similar = similar_sentences(making.pool, making.encoder, making.seed, folder=folder)

    def portions(self, split: str) -> list[Portion]:
        """The pieces of a split in portions."""
        pieces, folder = self.chosen(split), self.work / "examples" / split
        starts = range(0, len(pieces), _PORTION)
        return [Portion(folder / f"{start // _PORTION:04}", pieces[start : start + _PORTION]) for start in starts]

    def read(self, split: str) -> list[Portion]:
        """The portions of a split that were read with these states."""
        found = [one for one in self.portions(split) if one.about().get("states") == list(self.states)]
        if not found:
            sys.exit(f"No {split} piece has been read with these options: run the stage 'examples' first.")
        return found

    def groups(
        self, portions: Sequence[Portion], states: Sequence[str] | None = None, *, losses: bool = True
    ) -> list[Group]:
        """The texts of portions with their versions, and with some of the kept states."""
        groups = groups_of([ExampleFolder(one.folder / one.about()["folder"]) for one in portions])
        if states is None or (tuple(states) == self.states and losses):
            return groups
        width = portions[0].about()["state_width"]
        starts = [self.states.index(name) * width for name in states]
        columns = np.array([column for start in starts for column in range(start, start + width)], dtype=np.int64)
        return [replace(group, folder=ChosenStates(group.folder, columns, losses)) for group in groups]

    @property
    def results(self) -> Path:
        """The folder of results."""
        return self.work / "results"

    def result(self, name: str) -> dict[str, Any] | None:
        """A result that is there."""
        file = self.results / f"{name}.json"
        return json.loads(file.read_text("utf-8")) if file.is_file() else None

    def keep_result(self, name: str, about: Mapping[str, Any], **found: Any) -> None:
        """Write a result, and what it was computed from."""
        self.results.mkdir(parents=True, exist_ok=True)
        write_atomically(self.results / f"{name}.json", json.dumps({"about": about, **found}))

    def is_done(self, name: str, about: Mapping[str, Any]) -> bool:
        """Whether a result is there, and was computed from this."""
        found = self.result(name)
        return found is not None and found["about"] == json.loads(json.dumps(about))

    def shared(self, items: Sequence[Any]) -> list[Any]:
        """The items that are this process's share."""
        number, of = map(int, self.options.share.split("/"))
        return list(items[number::of])


def _parsed(file: Path, most: int | None) -> list[Row]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines][:most]
    texts = [ProseText(row["id"], row["id"].rpartition("/")[0], row["source"], row["text"]) for row in rows]
    return [Row(row["genre"], row["split"], one) for row, one in zip(rows, parsed_pieces(texts), strict=True)]


def examples(study: Study) -> None:
    """Read dev pieces, then training pieces."""
    reader, encoder = load_reader(), TransformerEncoder(precision="auto", device="cpu")
    for split in ("dev", "train"):
        making, portions = study.making(split, reader, encoder), study.shared(study.portions(split))
        missing = [one for one in portions if one.about().get("folder") != making.fingerprint(one.pieces)]
        if missing:
            study.find_similar(making)
        total = sum(len(one.pieces) for one in portions)
        done = total - sum(len(one.pieces) for one in missing)
        for portion in track(missing, f"reading {split} pieces", total, done=done, size=lambda one: len(one.pieces)):
            start = time.process_time()
            with alone_in(portion.folder):
                made_examples(portion.pieces, making, portion.folder)
                about = {
                    "folder": making.fingerprint(portion.pieces),
                    "pieces": [piece.id for piece in portion.pieces],
                    "donors": {piece.id: _donors(study, making, piece) for piece in portion.pieces},
                    "states": study.states,
                    "state_width": reader.width,
                    "vector_width": encoder.dimensions,
                    "reader": reader.identity,
                    "encoder": encoder.identity,
                    "seconds": time.process_time() - start,
                }
                write_atomically(portion.file, json.dumps(about))


def _donors(study: Study, making: Making, piece: Piece) -> dict[str, list[str]]:
    """The genres that foreign sentences in the versions of a piece come from, by kind."""
    made = {Example.of(piece, 0, one).kind: one.corrupted for one in making._corruptions(piece)}
    foreign = {kind: [version.origins[number].text for number in version.foreign] for kind, version in made.items()}
    return {kind: sorted({study.genres[text] for text in texts}) for kind, texts in foreign.items()}


def train_all(study: Study) -> None:
    """Train configurations and measure them."""
    portions, dev_portions = study.read("train"), study.read("dev")
    pieces, schedule = sum(len(one.pieces) for one in portions), Schedule(epochs=study.options.epochs, seed=study.seed)
    for name in study.shared(study.options.names or CONFIGURATIONS):
        chosen = Configuration.named(name, study.states, set(study.genres.values()))
        if chosen.pieces is not None and chosen.pieces > pieces:
            remark(f"{name}: only {pieces} pieces have been read")
            continue
        groups = list(_groups(study, portions, chosen))
        kinds = {kind: share for kind, share in MIX.items() if group_of(kind) != chosen.group}
        about = {
            "states": chosen.states,
            "kinds": kinds,
            "versions": _digest(f"{one.text} {one.kind}" for group in groups for one in group.versions),
            "dev": [one.about()["folder"] for one in dev_portions],
            "schedule": vars(schedule),
        } | ({} if chosen.losses else {"losses": False})
        if study.is_done(name, about):
            continue
        if study.is_done("full", about):
            remark(f"{name} is the same as full")
            continue
        course = Course(kinds, VERSIONS, chosen.states, schedule=schedule)
        dev_groups = study.groups(dev_portions, chosen.states, losses=chosen.losses)
        heads, found = _trained(study, name, course, groups, dev_groups)
        heads.save(study.work / "heads" / name)
        study.keep_result(name, about, pieces=len(groups), **found)


def _trained(
    study: Study, name: str, course: Course, groups: Sequence[Group], dev_groups: Sequence[Group]
) -> tuple[Heads, dict[str, Any]]:
    """The heads of a configuration, and how accurate they are."""
    remark(f"Training {name} on {len(groups)} pieces")
    begin, first = time.process_time(), study.read("dev")[0].about()
    shape = HeadsShape(tuple(course.states), first["state_width"], first["vector_width"])
    network = train(groups, shape, course.schedule, show_progress=True)
    seconds = time.process_time() - begin
    measured, found = measure(study, network, dev_groups)
    remark(f"{name}, {seconds:.0f} seconds: {measured.in_words()}")
    figures = figures_of(course, groups, dev_groups, measured, len(groups), len(dev_groups))
    return Heads(network, first["reader"], first["encoder"], figures), {"seconds": seconds, **found}


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _groups(study: Study, portions: Sequence[Portion], chosen: Configuration) -> Iterator[Group]:
    """The training texts of a configuration with the versions that it may see."""
    donors = {text: kinds for one in portions for text, kinds in one.about()["donors"].items()}
    for group in study.groups(portions, chosen.states, losses=chosen.losses)[: chosen.pieces]:
        original, *corrupted = group.versions
        if chosen.genre is not None and study.genres[original.text] == chosen.genre:
            continue
        seen = [
            one
            for one in corrupted
            if (chosen.group is None or group_of(one.kind) != chosen.group)
            and (chosen.genre is None or chosen.genre not in donors[one.text][one.kind])
        ]
        if seen:
            yield replace(group, versions=[original, *seen])


def measure(study: Study, network: torch.nn.Module, groups: Sequence[Group]) -> tuple[Accuracy, dict[str, Any]]:
    """How accurate a network is: on all texts, by genre, and pair by pair."""
    by_genre, right = defaultdict[str, list[Group]](list), defaultdict[str, dict[str, float]](dict)
    for group in groups:
        by_genre[study.genres[group.versions[0].text]].append(group)
    for begin in range(0, len(groups), _GROUPS_AT_ONCE):
        with torch.inference_mode():
            outputs, versions, pairs = judged(network, groups[begin : begin + _GROUPS_AT_ONCE])
        for original, number in pairs:
            better, worse = float(outputs.scores[original]), float(outputs.scores[number])
            right[versions[number].kind][versions[number].text] = (better > worse) + 0.5 * (better == worse)
    measured = accuracy(network, groups)
    genres = {genre: accuracy(network, some).to_dict() for genre, some in sorted(by_genre.items())}
    return measured, {"accuracy": measured.to_dict(), "genres": genres, "right": right}


def measure_shipped(study: Study) -> None:
    """Measure heads that are trained already: those that come with cohegraph, or others."""
    heads, portions = Heads.load(study.options.heads), study.read("dev")
    about = {"heads": heads.identity, "states": heads.shape.states, "dev": [one.about()["folder"] for one in portions]}
    measured, found = measure(study, heads.network().eval(), study.groups(portions, heads.shape.states))
    study.keep_result(SHIPPED, about, pieces=heads.figures["texts"], **found)
    remark(measured.in_words())


def run_baselines(study: Study) -> None:
    """Measure what heads are compared with."""
    from reader_baselines import baselines

    baselines(study, measure)


def print_tables(study: Study) -> None:
    """Print the tables of all results."""
    results = {file.stem: json.loads(file.read_text("utf-8")) for file in sorted(study.results.glob("*.json"))}
    if not (heads := heads_among(results)):
        sys.exit("No heads have been measured yet: run the stage 'train' or 'measure' first.")
    whole = results[heads]["about"]
    for name, result in list(results.items()):
        if result["about"]["dev"] != whole["dev"]:
            remark(f"{name} is left out: it was run with other dev pieces than {heads}")
            del results[name]
    for table in tables(Results(results, study.weights()), study.genres, LEFT_OUT):
        print(table.markdown())


def read_gains(study: Study) -> None:
    """Read the gains of some training and dev pieces."""
    reader = load_reader()
    for split in ("train", "dev"):
        _known_gains(study, split, reader, study.states)


def _known_gains(study: Study, split: str, reader: Reader, states: Sequence[str]) -> list[KnownGains]:
    """The first pieces that were read, with their gains."""
    portions = study.read(split)
    number = study.options.gains if split == "train" else study.options.dev_gains
    pieces = [piece for portion in portions for piece in portion.pieces][:number]
    with alone_in(folder := study.work / "gains" / split, wait=True):
        gains = made_gains(pieces, reader, folder, show_progress=True)
    return known_gains(study.groups(portions, states), gains)


def ship(study: Study) -> None:
    """Copy the heads of a configuration, with gains."""
    name = (study.options.names or ["full"])[0]
    out = check_target(study.options.out, replace=True)
    heads, reader = Heads.load(study.work / "heads" / name), load_reader()
    known, dev_known = (_known_gains(study, split, reader, heads.shape.states) for split in ("train", "dev"))
    network = with_gains(heads.network(), known, GainsSchedule(), study.seed, show_progress=True)
    gains = correlations(network, dev_known)
    figures = heads.figures | {"texts_with_gains": len(known)}
    figures["accuracy"] = heads.figures["accuracy"] | {"gains": gains}
    Heads(network, heads.reader, heads.encoder, figures).save(out)
    print(f"The heads of {name} are in {out}; correlations of gains on {len(dev_known)} dev pieces: {gains}.")


STAGES = {
    "examples": examples,
    "gains": read_gains,
    "train": train_all,
    "measure": measure_shipped,
    "baselines": run_baselines,
    "table": print_tables,
    "ship": ship,
}


def main() -> None:
    options = _options()
    set_threads(1)
    STAGES[options.stage](Study(options))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=STAGES)
    parser.add_argument("names", nargs="*", help="configurations, for the stages 'train' and 'ship'")
    parser.add_argument("--work", type=Path, required=True, help="the folder of all results, outside the repository")
    parser.add_argument("--prose", type=Path, default=PROSE)
    parser.add_argument("--rows", type=int, help="of each file of prose, the first so many rows; by default all")
    parser.add_argument("--pieces", type=int, default=10_000, help="training pieces")
    parser.add_argument("--dev", type=int, default=16, help=f"dev pieces of a genre; {TIMES} times as many of some")
    parser.add_argument("--states", default=STATES, help="states of the reader to keep")
    parser.add_argument("--epochs", type=int, default=Schedule.epochs)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--share", default="0/1", help="K/N: every Nth portion or configuration, from K on")
    parser.add_argument("--gains", type=int, default=1_000, help="training pieces to learn gains from")
    parser.add_argument("--dev-gains", type=int, default=200, help="dev pieces to compare gains on")
    parser.add_argument("--baseline-pieces", type=int, default=800, help="training pieces of the baselines")
    parser.add_argument("--baseline-dev", type=int, default=100, help="dev pieces of the baselines that are trained")
    parser.add_argument("--baseline-epochs", type=int, default=8, help="how often Moon et al. (2019) sees each pair")
    parser.add_argument("--heads", type=Path, default=DEFAULT_HEADS, help="the heads of the stage 'measure'")
    parser.add_argument("--out", type=Path, default=DEFAULT_HEADS, help="where to ship heads to")
    options = parser.parse_intermixed_args()
    share = re.fullmatch(r"(\d+)/(\d+)", options.share)
    if share is None or int(share[1]) >= int(share[2]):
        parser.error("--share is a number from 0 and how many there are, such as 0/2")
    return options


if __name__ == "__main__":
    main()
