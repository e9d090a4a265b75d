"""Model folders: whole or refused."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from material import refused
from safetensors.torch import load_file, save_file
from scipy import sparse

import cohegraph
from cohegraph import CoherenceModel, Settings
from cohegraph.errors import CohegraphError, DamagedFileError
from cohegraph.features import TALLIES, Features
from cohegraph.files import new_folder, write_atomically
from cohegraph.model.formats import FORMAT
from cohegraph.model.persistence import StoredModel, write_model
from cohegraph.text.packaged import sha256_of


@pytest.fixture
def trained():
    rng = np.random.default_rng(0)
    features = Features(
        sparse.csr_array(rng.poisson(1, (20, 31))),
        rng.normal(size=(20, 6)).astype(np.float32),
        np.zeros((20, len(TALLIES)), dtype=np.int64),
    )
    settings = Settings().replaced({"training.hidden": 4, "training.epochs": 2})
    return CoherenceModel(settings=settings).fit(features, ["low", "high"] * 10)


@pytest.fixture
def folder(trained, tmp_path):
    trained.save(tmp_path / "model")
    return tmp_path / "model"


def changed(folder, **values):
    about = json.loads((folder / "model.json").read_text())
    about.update(values)
    (folder / "model.json").write_text(json.dumps(about))


def rewritten_weights(folder, change):
    """Other tensors with a description that fits them, as an attacker or a careless script would make them."""
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")
    weights = {
        "bytes": (folder / "model.safetensors").stat().st_size,
        "sha256": sha256_of(folder / "model.safetensors"),
        "shapes": {name: list(tensor.shape) for name, tensor in tensors.items()},
    }
    changed(folder, weights=weights)


DAMAGES = {
    "no weights": lambda f: (f / "model.safetensors").unlink(),
    "renamed weights": lambda f: (f / "model.safetensors").rename(f / "weights.safetensors"),
    "cut weights": lambda f: (f / "model.safetensors").write_bytes((f / "model.safetensors").read_bytes()[:-9]),
    "longer weights": lambda f: (f / "model.safetensors").write_bytes(
        (f / "model.safetensors").read_bytes() + b"x" * 99
    ),
    "flipped byte": lambda f: (f / "model.safetensors").write_bytes(
        (f / "model.safetensors").read_bytes()[:-1] + b"\x7f"
    ),
    "cut json": lambda f: (f / "model.json").write_text('{"format": 1, '),
    "deep json": lambda f: (f / "model.json").write_text("[" * 100_000),
    "binary json": lambda f: (f / "model.json").write_bytes(b"\xff\x00\x01"),
    "oversized json": lambda f: (f / "model.json").write_bytes(b" " * 5_000_000),
    "json of another kind": lambda f: (f / "model.json").write_text("[1]"),
    "no format": lambda f: changed(f, format=None),
    "no weights described": lambda f: changed(f, weights=None),
    "unknown setting": lambda f: changed(f, settings={"colour": "blue"}),
    "other settings": lambda f: changed(f, settings={"training": {"hidden": 5}}),
    "other classes": lambda f: changed(f, classes=["low", "high", "odd"]),
    "classes that are none": lambda f: changed(f, classes=7, levels=7),
    "classes as one word": lambda f: changed(f, classes="ab", levels=["a", "b"]),
    "endless documents": lambda f: changed(f, documents=float("inf")),
    "no documents": lambda f: changed(f, documents=0),
    "true documents": lambda f: changed(f, documents=True),
    "parts that are none": lambda f: changed(f, parts=[]),
    "endless weights": lambda f: changed(f, weights={"bytes": float("inf")}),
    "a tensor too few": lambda f: rewritten_weights(f, lambda t: t.pop("w1")),
    "a tensor too many": lambda f: rewritten_weights(f, lambda t: t.update(x=torch.zeros(1))),
    "another shape": lambda f: rewritten_weights(f, lambda t: t.update(w1=torch.zeros(4, 3))),
    "not numbers": lambda f: rewritten_weights(f, lambda t: t.update(w1=torch.full((4, 2), float("nan")))),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_model_is_refused_in_one_sentence(folder, damage):
    DAMAGES[damage](folder)
    with refused("damaged-file", DamagedFileError):
        CoherenceModel.load(folder)


def test_a_newer_format_is_refused(folder):
    changed(folder, format=FORMAT + 1)
    with refused("newer-format"):
        CoherenceModel.load(folder)


def test_a_folder_that_is_none(tmp_path):
    with refused("no-model"):
        CoherenceModel.load(tmp_path / "absent")
    (tmp_path / "empty").mkdir()
    for load in (CoherenceModel.load, cohegraph.load):
        with refused("no-model"):
            load(tmp_path / "empty")


def test_weights_that_are_not_finite_are_not_written(tmp_path):
    with refused("diverged"):
        write_model(tmp_path / "model", StoredModel({"w": np.array([np.nan])}, {}), "")
    assert not (tmp_path / "model").exists()


def test_saving_replaces_a_model_and_nothing_else(trained, folder, tmp_path):
    trained.save(folder, name="second")
    assert CoherenceModel.load(folder).name_ == "second"
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    (tmp_path / "file").write_text("x")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "model.json").write_text('{"format": 1}')
    (tmp_path / "project" / "notes.txt").write_text("years of work")
    for place in ("thesis", "file", "project"):
        with refused("foreign-folder"):
            trained.save(tmp_path / place)
    assert (tmp_path / "thesis" / "chapter.txt").read_text() == "years of work"
    assert (tmp_path / "project" / "notes.txt").read_text() == "years of work"
    with refused("cannot-write"):
        trained.save(tmp_path / "file" / "model")


def test_saving_into_the_present_folder_or_through_a_link(trained, folder, tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to(folder)
    trained.save(tmp_path / "link", name="linked")
    assert (tmp_path / "link").is_symlink()
    assert CoherenceModel.load(folder).name_ == "linked"
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    trained.save(".")
    assert CoherenceModel.load(tmp_path / "here").name_ == "here"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here", "link", "model"]


def test_two_processes_may_write_at_once(tmp_path):
    def write(number):
        with new_folder(tmp_path / "place") as work:
            (work / "a").write_text(str(number))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(200)))
    assert [path.name for path in tmp_path.iterdir()] == ["place"]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, OSError, MemoryError])
def test_an_interrupted_save_leaves_the_old_model_and_no_trace(trained, folder, monkeypatch, kind):
    before = sorted((file.name, file.read_bytes()) for file in folder.iterdir())

    def fail(*_):
        raise kind("stopped")

    monkeypatch.setattr("cohegraph.model.persistence.sha256_of", fail)
    with pytest.raises((kind, CohegraphError)):
        trained.save(folder)
    assert sorted((file.name, file.read_bytes()) for file in folder.iterdir()) == before
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_a_folder_appears_only_when_complete(tmp_path):
    with new_folder(tmp_path / "new") as work:
        (work / "a").write_text("1")
        assert not (tmp_path / "new").exists()
    assert (tmp_path / "new" / "a").read_text() == "1"


def test_files_are_written_whole(tmp_path, monkeypatch):
    def full(_):
        raise OSError("no space left")

    write_atomically(tmp_path / "a.json", "1")
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError):  # noqa: PT011 (the made-up one)
        write_atomically(tmp_path / "a.json", "2")
    assert (tmp_path / "a.json").read_text() == "1"
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_the_card_names_what_matters(folder):
    card = (folder / "README.md").read_text()
    assert "| low | 10 |" in card
    assert "subgraphs.k" in card
    assert "no training text" in card
