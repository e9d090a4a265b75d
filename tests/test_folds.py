"""Folds: nobody is tested on what they learnt or chose from."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from material import refused

from cohegraph.corpora.corpus import Corpus
from cohegraph.errors import CohegraphError
from cohegraph.experiments.folds import make_folds, read_folds, write_folds
from cohegraph.experiments.plan import Protocol

LEVELS = ("low", "medium", "high")


def corpus(sizes=(40, 25), groups=8, test=False, seed=0) -> Corpus:
    generator = np.random.default_rng(seed)
    count = sum(sizes)
    return Corpus(
        name="made up",
        ids=tuple(f"d{n}" for n in range(count)),
        texts=("text",) * count,
        labels=tuple(generator.choice(LEVELS, count).tolist()),
        levels=LEVELS,
        sections=tuple(f"s{n}" for n, size in enumerate(sizes) for _ in range(size)),
        groups=tuple(f"g{n % groups}" for n in range(count)),
        test=tuple(n % 5 == 0 for n in range(count)) if test else None,
    )


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 6), st.integers(1, 2), st.floats(0.1, 0.4), st.booleans(), st.integers(0, 5))
def test_parts_are_apart_and_every_document_is_tested_once(folds, repeats, dev, grouped, seed):
    documents = corpus(seed=seed)
    protocol = Protocol(folds=folds, repeats=repeats, dev=dev, grouped=grouped)
    try:
        made = make_folds(documents, protocol)
    except CohegraphError:
        assume(not grouped)
        raise
    assert len(made) == 2 * folds * repeats
    for fold in made:
        together = np.concatenate([fold.training, fold.dev, fold.test])
        assert len(np.unique(together)) == len(together) == len(documents.rows_of(fold.section))
        assert {documents.sections[row] for row in together} == {fold.section}
        if grouped:
            groups = [{documents.groups[row] for row in part} for part in (fold.training, fold.dev, fold.test)]
            assert not groups[0] & groups[2]
            assert not groups[1] & groups[2]
            assert not groups[0] & groups[1]
    for repeat in range(repeats):
        tested = np.concatenate([fold.test for fold in made if fold.repeat == repeat])
        assert sorted(tested) == list(range(len(documents)))


def test_levels_have_their_shares():
    documents = corpus((100,))
    share = np.bincount(documents.codes) / 100
    for fold in make_folds(documents, Protocol()):
        for part in (fold.training, fold.dev, fold.test):
            assert np.abs(np.bincount(documents.codes[part], minlength=3) / len(part) - share).max() < 0.08


def test_groups_and_levels_have_their_shares():
    documents = corpus((240,), groups=4)
    for fold in make_folds(documents, Protocol(stratify="group and level")):
        counted = np.unique([documents.groups[row] for row in fold.test], return_counts=True)[1]
        assert counted.min() >= 10
        assert counted.max() <= 14


def test_fixed_test_split():
    documents = corpus(test=True)
    folds = make_folds(documents, Protocol(kind="fixed-test", folds=10))
    for fold in folds:
        assert set(fold.test) == {row for row in documents.rows_of(fold.section) if documents.test[row]}
    devs = np.concatenate([fold.dev for fold in folds if fold.section == "s0"])
    assert sorted(devs) == [row for row in documents.rows_of("s0") if not documents.test[row]]
    with refused("no-test-split"):
        make_folds(corpus(), Protocol(kind="fixed-test"))


def test_leave_one_group_out():
    documents = corpus((40,))
    folds = make_folds(documents, Protocol(kind="leave-one-group-out"))
    assert len(folds) == 8
    for fold in folds:
        (group,) = {documents.groups[row] for row in fold.test}
        assert group not in {documents.groups[row] for row in np.concatenate([fold.training, fold.dev])}


def test_repeats_differ_and_the_same_protocol_gives_the_same_folds():
    documents = corpus()
    first, second = (make_folds(documents, Protocol(repeats=2)) for _ in range(2))
    assert all(
        np.array_equal(a.test, b.test) and np.array_equal(a.dev, b.dev) for a, b in zip(first, second, strict=True)
    )
    assert not np.array_equal(first[0].test, first[5].test)


def test_saved_folds_are_found_again(tmp_path):
    documents = corpus()
    made = make_folds(documents, Protocol())
    write_folds(made, documents, tmp_path / "folds.jsonl")
    read = read_folds(tmp_path / "folds.jsonl", documents)
    for a, b in zip(made, read, strict=True):
        assert a.name == b.name
        assert all(np.array_equal(getattr(a, part), getattr(b, part)) for part in ("training", "dev", "test"))
    with refused("other-corpus"):
        read_folds(tmp_path / "folds.jsonl", corpus((10,)))
    text = (tmp_path / "folds.jsonl").read_text()
    (tmp_path / "folds.jsonl").write_text(text.replace('"test": ["', '"test": ["d39", "d39", "', 1))
    with refused("same-document"):
        read_folds(tmp_path / "folds.jsonl", documents)
    (tmp_path / "folds.jsonl").write_text("nonsense")
    with refused("not-folds"):
        read_folds(tmp_path / "folds.jsonl", documents)


def test_too_small_a_corpus_is_refused():
    with refused("few-documents"):
        make_folds(corpus((4,)), Protocol())
    with refused("few-groups"):
        make_folds(corpus((40,), groups=3), Protocol(grouped=True))
