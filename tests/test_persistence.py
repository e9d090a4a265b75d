"""Model folders: whole or refused."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from scipy import sparse

from cohegraph import CoherenceModel, Settings
from cohegraph.errors import CohegraphError
from cohegraph.features import TALLIES, Features
from cohegraph.files import new_folder, write_atomically
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
    return CoherenceModel(settings).fit(features, ["low", "high"] * 10)


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
    "no model.json": (lambda f: (f / "model.json").unlink(), "has no file model.json"),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "lacks its file model.safetensors"),
    "renamed weights": (
        lambda f: (f / "model.safetensors").rename(f / "weights.safetensors"),
        "lacks its file model.safetensors",
    ),
    "cut weights": (
        lambda f: (f / "model.safetensors").write_bytes((f / "model.safetensors").read_bytes()[:-9]),
        "bytes instead of",
    ),
    "longer weights": (
        lambda f: (f / "model.safetensors").write_bytes((f / "model.safetensors").read_bytes() + b"x" * 99),
        "bytes instead of",
    ),
    "flipped byte": (
        lambda f: (f / "model.safetensors").write_bytes((f / "model.safetensors").read_bytes()[:-1] + b"\x7f"),
        "SHA-256 differs",
    ),
    "cut json": (lambda f: (f / "model.json").write_text('{"format": 1, '), "not valid JSON"),
    "deep json": (lambda f: (f / "model.json").write_text("[" * 100_000), "not valid JSON"),
    "binary json": (lambda f: (f / "model.json").write_bytes(b"\xff\x00\x01"), "not valid JSON"),
    "oversized json": (lambda f: (f / "model.json").write_bytes(b" " * 5_000_000), "larger than any"),
    "json of another kind": (lambda f: (f / "model.json").write_text("[1]"), "which format"),
    "newer format": (lambda f: changed(f, format=2), "upgrade cohegraph"),
    "no format": (lambda f: changed(f, format=None), "which format"),
    "no weights described": (lambda f: changed(f, weights=None), "does not describe"),
    "unknown setting": (lambda f: changed(f, settings={"colour": "blue"}), "colour"),
    "other settings": (lambda f: changed(f, settings={"training": {"hidden": 5}}), "do not fit its settings"),
    "other classes": (lambda f: changed(f, classes=["low", "high", "odd"]), "not the labels"),
    "classes that are none": (lambda f: changed(f, classes=7, levels=7), "damaged"),
    "classes as one word": (lambda f: changed(f, classes="ab", levels=["a", "b"]), "damaged"),
    "endless documents": (lambda f: changed(f, documents=float("inf")), "damaged"),
    "no documents": (lambda f: changed(f, documents=0), "damaged"),
    "too few documents": (lambda f: changed(f, documents=1), "fewer documents"),
    "true documents": (lambda f: changed(f, documents=True), "damaged"),
    "parts that are none": (lambda f: changed(f, parts=[]), "damaged"),
    "endless weights": (lambda f: changed(f, weights={"bytes": float("inf")}), "does not describe"),
    "a tensor too few": (lambda f: rewritten_weights(f, lambda t: t.pop("w1")), "does not hold the arrays"),
    "a tensor too many": (
        lambda f: rewritten_weights(f, lambda t: t.update(x=torch.zeros(1))),
        "does not hold the arrays",
    ),
    "another shape": (
        lambda f: rewritten_weights(f, lambda t: t.update(w1=torch.zeros(4, 3))),
        "do not fit its settings",
    ),
    "not numbers": (
        lambda f: rewritten_weights(f, lambda t: t.update(w1=torch.full((4, 2), float("nan")))),
        "not finite",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_model_is_refused_in_one_sentence(folder, damage):
    harm, message = DAMAGES[damage]
    harm(folder)
    with pytest.raises(CohegraphError, match=message) as caught:
        CoherenceModel.load(folder)
    assert "\n" not in str(caught.value)


def test_a_folder_that_is_none(tmp_path):
    with pytest.raises(CohegraphError, match="no model folder"):
        CoherenceModel.load(tmp_path / "absent")


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
        with pytest.raises(CohegraphError, match="other things than a model"):
            trained.save(tmp_path / place)
    assert (tmp_path / "thesis" / "chapter.txt").read_text() == "years of work"
    assert (tmp_path / "project" / "notes.txt").read_text() == "years of work"
    with pytest.raises(CohegraphError, match="cannot be written"):
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
    with pytest.raises(OSError, match="no space"):
        write_atomically(tmp_path / "a.json", "2")
    assert (tmp_path / "a.json").read_text() == "1"
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_the_card_names_what_matters(folder):
    card = (folder / "README.md").read_text()
    assert "| low | 10 |" in card
    assert "subgraphs.k" in card
    assert "no training text" in card
