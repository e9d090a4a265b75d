"""Which documents train, choose (dev) and test in each fold; made once, saved, and the same for every system."""

import json
import warnings
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import StratifiedGroupKFold

from cohegraph.corpora.corpus import Corpus
from cohegraph.errors import CohegraphError, DamagedFileError
from cohegraph.experiments.plan import Protocol
from cohegraph.files import write_atomically

Rows = npt.NDArray[np.int64]
_FEWEST = 3
# The parts of a fold, as its file names them.
_PARTS = ("training", "dev", "test")


@dataclass(frozen=True)
class Fold:
    """Numbers of documents in the corpus. No document is in two of the three parts."""

    section: str
    repeat: int
    number: int
    training: Rows
    dev: Rows
    test: Rows

    @property
    def name(self) -> str:
        """What the fold is called in results."""
        return f"{self.section}/{self.repeat}/{self.number}"

    @property
    def parts(self) -> tuple[Rows, Rows, Rows]:
        """Training, dev and test."""
        return self.training, self.dev, self.test


def make_folds(corpus: Corpus, protocol: Protocol) -> list[Fold]:
    """The folds of all sections."""
    folds = [
        fold
        for section in corpus.section_names
        for repeat in range(protocol.repeats)
        for fold in _folds_of(corpus, protocol, section, repeat)
    ]
    for fold in folds:
        if not all(len(part) for part in fold.parts):
            raise CohegraphError(
                f"Section '{fold.section}' of {corpus.name} is too small for {protocol.folds} folds: use fewer folds "
                "or leave the section out.",
                code="few-documents",
            )
    _check_levels(folds, corpus)
    return folds


def _check_levels(folds: list[Fold], corpus: Corpus) -> None:
    """Raise where there is nothing to learn."""
    codes = corpus.codes
    for fold in folds:
        known = np.unique(codes[fold.training])
        if len(known) < 2:
            raise CohegraphError(
                f"In section '{fold.section}', all training documents of a fold have the level "
                f"'{corpus.levels[known[0]]}': leave the section out, or give it more documents of other levels.",
                code="one-level",
            )


def _folds_of(corpus: Corpus, protocol: Protocol, section: str, repeat: int) -> list[Fold]:
    rows = corpus.rows_of(section)
    if protocol.kind == "fixed-test":
        return _with_fixed_test(corpus, protocol, section, repeat, rows)
    if protocol.kind == "leave-one-group-out":
        tests = _by_group(corpus, section, rows)
    else:
        groups = _groups(corpus, rows) if protocol.grouped else None
        tests = _split(_strata(corpus, protocol, rows), groups, protocol.folds, repeat, f"Section '{section}'")
    found = []
    for number, test in enumerate(tests):
        rest = np.setdiff1d(np.arange(len(rows)), test)
        dev = _dev(corpus, protocol, section, rows[rest], repeat, number)
        training = np.setdiff1d(np.arange(len(rest)), dev)
        found.append(Fold(section, repeat, number, rows[rest[training]], rows[rest[dev]], rows[test]))
    return found


def _dev(corpus: Corpus, protocol: Protocol, section: str, rows: Rows, repeat: int, number: int) -> Rows:
    """Which of the documents that are not in test choose."""
    strata = _strata(corpus, protocol, rows)
    if not protocol.grouped:
        share = Fraction(protocol.dev).limit_denominator(1000)
        place = np.arange(len(rows)) - number
        return np.sort(_shuffled(strata, repeat)[place * share.numerator % share.denominator < share.numerator])
    groups = _groups(corpus, rows)
    if len(set(groups)) < 2:
        raise CohegraphError(
            f"Section '{section}' has too few groups: to keep each together, training, dev and test need one or more "
            "each; use more folds, or leave 'grouped' out.",
            code="few-groups",
        )
    # As near to the share as whole groups allow.
    parts = max(2, min(round(1 / protocol.dev), len(set(groups))))
    return _split(strata, groups, parts, repeat, f"What trains in section '{section}'")[number % parts]


def _with_fixed_test(corpus: Corpus, protocol: Protocol, section: str, repeat: int, rows: Rows) -> list[Fold]:
    """Folds over the training split, each of which chooses once; the test split is the same for all."""
    if corpus.test is None:
        raise CohegraphError(
            f"{corpus.name} has no fixed test split: choose the protocol 'folds'.", code="no-test-split"
        )
    is_test = np.array(corpus.test)[rows]
    test, rest = rows[is_test], rows[~is_test]
    groups = _groups(corpus, rest) if protocol.grouped else None
    devs = _split(_strata(corpus, protocol, rest), groups, protocol.folds, repeat, f"Section '{section}'")
    return [Fold(section, repeat, number, np.delete(rest, dev), rest[dev], test) for number, dev in enumerate(devs)]


def _split(strata: Rows, groups: list[str] | None, folds: int, seed: int, what: str) -> list[Rows]:
    if len(strata) < max(folds, _FEWEST):
        raise CohegraphError(
            f"{what} has {len(strata)} documents, too few for {folds} folds: use fewer folds.", code="few-documents"
        )
    if groups is None:
        # Documents are dealt out to folds like cards, which works for any size.
        order = _shuffled(strata, seed)
        return [np.sort(order[fold::folds]) for fold in range(folds)]
    if len(set(groups)) < folds:
        raise CohegraphError(
            f"{what} has {len(set(groups))} groups, fewer than {folds} folds: use fewer folds.", code="few-groups"
        )
    # Small sections may have fewer documents of a level than folds: the level is then missing in some of them.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class")
        try:
            splitter = StratifiedGroupKFold(folds, shuffle=True, random_state=seed)
            return [np.sort(test) for _, test in splitter.split(np.zeros(len(strata)), strata, groups)]
        except ValueError:
            raise CohegraphError(
                f"{what} has too few documents of every level for {folds} folds: use fewer.", code="few-documents"
            ) from None


def _shuffled(strata: Rows, seed: int) -> Rows:
    """Documents one stratum after the other, each shuffled."""
    shuffled = np.random.default_rng(seed).permutation(len(strata))
    return shuffled[np.argsort(strata[shuffled], kind="stable")]


def _strata(corpus: Corpus, protocol: Protocol, rows: Rows) -> Rows:
    """What folds have equal shares of: levels, or levels within groups."""
    codes = corpus.codes[rows]
    if protocol.stratify == "level":
        return codes
    names = [f"{group}\n{code}" for group, code in zip(_groups(corpus, rows), codes.tolist(), strict=True)]
    return np.unique(names, return_inverse=True)[1]


def _groups(corpus: Corpus, rows: Rows) -> list[str]:
    if corpus.groups is None:
        raise CohegraphError(
            f"{corpus.name} has no groups: name a group column, or leave the groups out.", code="no-groups"
        )
    return [corpus.groups[row] for row in rows.tolist()]


def _by_group(corpus: Corpus, section: str, rows: Rows) -> list[Rows]:
    groups = np.array(_groups(corpus, rows))
    names = dict.fromkeys(groups.tolist())
    if len(names) < 2:
        raise CohegraphError(
            f"Section '{section}' of {corpus.name} has one group only: none can be left out.", code="few-groups"
        )
    return [np.flatnonzero(groups == name) for name in names]


def write_folds(folds: list[Fold], corpus: Corpus, file: Path) -> None:
    """Save the folds with the ids of their documents, one fold per line."""
    lines = []
    for fold in folds:
        ids = ([corpus.ids[row] for row in rows.tolist()] for rows in fold.parts)
        named = {"section": fold.section, "repeat": fold.repeat, "fold": fold.number}
        lines.append(json.dumps(named | dict(zip(_PARTS, ids, strict=True))) + "\n")
    write_atomically(file, "".join(lines))


def read_folds(file: Path, corpus: Corpus) -> list[Fold]:
    """Folds saved earlier, for the same documents."""
    number_of = {name: row for row, name in enumerate(corpus.ids)}

    def fold(line: dict[str, Any]) -> Fold:
        parts = (np.array([number_of[name] for name in line[part]], dtype=np.int64) for part in _PARTS)
        return Fold(str(line["section"]), int(line["repeat"]), int(line["fold"]), *parts)

    try:
        folds = [fold(json.loads(line)) for line in file.read_text("utf-8").split("\n") if line.strip()]
    except OSError as error:
        raise CohegraphError(f"The folds {file} cannot be read: {error.strerror}.", code="cannot-read") from None
    except KeyError as error:
        raise CohegraphError(
            f"The folds {file} are of another corpus: there is no {error} in this one.", code="other-corpus"
        ) from None
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise DamagedFileError(f"{file} is not a file of folds.", code="not-folds") from None
    _check_read(folds, corpus, file)
    _check_levels(folds, corpus)
    return folds


def _check_read(folds: list[Fold], corpus: Corpus, file: Path) -> None:
    """Raise where folds from a file would test on training documents, count some twice, or not test at all."""
    missing = set(corpus.section_names) - {fold.section for fold in folds}
    if missing:
        raise CohegraphError(
            f"The folds {file} have none of section '{min(missing)}': leave it out with --sections.",
            code="missing-section",
        )
    if len({fold.name for fold in folds}) < len(folds):
        raise CohegraphError(
            f"The folds {file} have a fold twice: each section, repeat and fold may be there once.", code="same-fold"
        )
    for fold in folds:
        everything = np.concatenate(fold.parts)
        known = fold.section in corpus.section_names
        apart = len(np.unique(everything)) == len(everything)
        inside = np.isin(everything, corpus.rows_of(fold.section)).all()
        whole = all(len(part) for part in fold.parts)
        for holds, code, what in (
            (known, "unknown-section", "is of a section that this corpus does not have"),
            (apart, "same-document", "has a document in two of its parts: it would be tested on itself"),
            (inside, "other-section", "has documents of another section than its own"),
            (whole, "empty-part", "has no documents to train, to choose or to test with"),
        ):
            if not holds:
                raise CohegraphError(f"Fold {fold.name} {what}.", code=code)
