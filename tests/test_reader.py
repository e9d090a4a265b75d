"""Readers: small Llama models against transformers, whole numbers against floats, and what cannot be loaded."""

from __future__ import annotations

import json
import random
import shutil

import numpy as np
import pytest
import torch
from material import refused
from safetensors.torch import load_file, save_file
from tiny_llama import BOS, gguf_of, tokenizer, tokens, write_llama

from cohegraph.errors import CohegraphError, DamagedFileError, MissingPartError
from cohegraph.text import llama_layers, readers
from cohegraph.text.document import Document, Sentence
from cohegraph.text.packaged import INSTALLABLE_READERS
from cohegraph.text.reader import FIGURES, LlamaReader, State
from cohegraph.text.readers import DEFAULT_READER, find_source, load_reader, source_of_part

SENTENCES = [
    "The keeper opened the hive.",
    "The bees left it at once, in a cloud.",
    "Nobody was stung.",
    "In the evening they came back, and the garden was quiet again.",
    "Honey is sweet.",
]
VARIANTS = {
    "grouped": {},
    "untied": {"tie_word_embeddings": False},
    "one key": {"num_key_value_heads": 1, "rms_norm_eps": 1e-5},
    "wide heads": {"head_dim": 12, "num_key_value_heads": 4, "rope_parameters": {"rope_theta": 500.0}},
    "bf16": {"dtype": torch.bfloat16, "tie_word_embeddings": False},
    "sharded": {"shard": "15KB", "tie_word_embeddings": False},
}


def document(sentences, gap=" "):
    text, found = "", []
    for number, sentence in enumerate(sentences):
        text += gap if number else ""
        found.append(Sentence(sentence, len(text), len(text) + len(sentence), len(sentence.split()), ()))
        text += sentence
    return Document(text, tuple(found))


def ids_of(text):
    return [BOS, *tokenizer().encode(text).ids]


def by_transformers(folder, ids):
    """Losses and the states after two layers, without any of our code."""
    from transformers import LlamaForCausalLM

    model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.no_grad():
        found = model(torch.tensor([ids]), output_hidden_states=True)
    odds = found.logits[0, :-1]
    losses = torch.nn.functional.cross_entropy(odds, torch.tensor(ids[1:]), reduction="none")
    return losses, torch.distributions.Categorical(logits=odds).entropy(), found.hidden_states[2][0]


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    return write_llama(tmp_path_factory.mktemp("llama"))


@pytest.fixture(scope="module")
def exact(llama) -> LlamaReader:
    return load_reader(str(llama), "float32")


@pytest.fixture(scope="module")
def whole(llama) -> LlamaReader:
    return load_reader(str(llama), "int8")


@pytest.fixture
def own(tmp_path, monkeypatch, llama):
    """A copy of the model to change, and a cache of its own."""
    monkeypatch.setenv("COHEGRAPH_CACHE", str(tmp_path / "cache"))
    return shutil.copytree(llama, tmp_path / "llama")


def change(folder, **values):
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | values), "utf-8")


@pytest.mark.parametrize("variant", VARIANTS)
def test_losses_and_states_are_those_of_transformers(variant, tmp_path):
    folder = write_llama(tmp_path, **VARIANTS[variant])
    assert (len(list(folder.glob("*.safetensors"))) > 1) == (variant == "sharded")
    ids = ids_of(" ".join(SENTENCES))[:100]
    run = load_reader(str(folder), "float32")._network.read(ids, [2])
    losses, expected, states = by_transformers(folder, ids)
    torch.testing.assert_close(run.losses[1:], losses, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(run.expected[1:], expected, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(run.states[2], states, atol=1e-4, rtol=1e-4)
    assert run.losses[0] == 0


def test_whole_numbers_read_nearly_as_floats(exact, whole):
    ids = ids_of(" ".join(SENTENCES))[:120]
    floats, ints = exact._network.read(ids, [2]), whole._network.read(ids, [2])
    assert float((ints.losses - floats.losses).abs().mean()) < 0.03 * float(floats.losses.mean())
    assert np.corrcoef(ints.states[2].flatten(), floats.states[2].flatten())[0, 1] > 0.99
    assert whole.identity == exact.identity + "+int8.3"


@pytest.mark.parametrize("precision", ["exact", "whole"])
def test_tokens_and_words_are_read_in_parts_of_any_size(precision, request, monkeypatch):
    network = request.getfixturevalue(precision)._network
    ids = ids_of(" ".join(SENTENCES))[:100]
    at_once = network.read(ids, [1, 3])
    monkeypatch.setattr(llama_layers, "_WORDS", 50)
    for name, size in (("_CACHED", 256), ("_FED", 33), ("_COMPARED", 30)):
        monkeypatch.setattr(llama_layers, name, size)
    parts = load_reader(str(request.getfixturevalue("llama")), "float32" if precision == "exact" else "int8")._network
    in_parts = parts.read(ids, [1, 3])
    torch.testing.assert_close(in_parts.losses, at_once.losses, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(in_parts.expected, at_once.expected, atol=1e-5, rtol=1e-5)
    for layer in (1, 3):
        assert torch.equal(in_parts.states[layer], at_once.states[layer])


def test_whole_numbers_are_prepared_once(llama, whole, monkeypatch):
    monkeypatch.setattr(readers, "_write", lambda *_, **__: pytest.fail("prepared again"))
    again = load_reader(str(llama), "int8")
    one = [document(SENTENCES)]
    np.testing.assert_array_equal(again.read(one)[0].losses, whole.read(one)[0].losses)
    assert again.identity == whole.identity


def test_preparing_gives_the_same_files_with_any_number_of_threads(own):
    found = find_source(str(own))
    contents = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        try:
            readers.prepare(found, again=True, show_progress=False)
            assert torch.get_num_threads() == threads
        finally:
            torch.set_num_threads(1)
        contents.append({file.name: file.read_bytes() for file in found.prepared.iterdir()})
    assert contents[0] == contents[1]
    assert set(contents[0]) == {"model.safetensors", "config.json", "tokenizer.json", "prepared.json"}


def test_auto_takes_whole_numbers_only_where_they_are_close(llama, whole, monkeypatch):
    monkeypatch.setattr(readers, "_CLOSE", 1.0)
    assert load_reader(str(llama)).identity.endswith("+int8.3")
    monkeypatch.setattr(readers, "_CLOSE", -1.0)
    assert load_reader(str(llama)).identity == find_source(str(llama)).identity


@pytest.mark.parametrize("precision", ["exact", "whole"])
def test_the_same_digits_in_any_company(precision, request):
    reader = request.getfixturevalue(precision)
    texts = [document(SENTENCES), document(SENTENCES[:1]), document([]), document(SENTENCES[::-1], "\n\n")]
    states = [State.named("mean-2"), State.named("first-1"), State.named("last-3")]
    alone = [reader.read([one], states)[0] for one in texts]
    together, backwards = reader.read(texts, states), reader.read(texts[::-1], states)[::-1]
    torch.set_num_threads(2)
    try:
        threaded = reader.read(texts, states)
    finally:
        torch.set_num_threads(1)
    for found in (together, backwards, threaded):
        for one, other in zip(found, alone, strict=True):
            for name in ("tokens", "losses", "states"):
                np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert alone[0].states.shape == (5, 3, 32)
    assert alone[2].losses.shape == (0, len(FIGURES))


def test_what_was_read_before_need_not_be_read_again(exact):
    ids = ids_of(" ".join(SENTENCES))[:100]
    full = exact._network.read(ids, [2])
    past = exact._network.read(ids[:40], keep=True).past
    rest = exact._network.read(ids[40:], [2], past=past)
    torch.testing.assert_close(rest.losses, full.losses[40:], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(rest.states[2], full.states[2][40:], atol=1e-5, rtol=1e-5)


def test_pieces_know_nothing_of_each_other(exact):
    past = exact._network.read([BOS, 50, 60, 70], keep=True).past
    pieces = [[80, 90, 100], [110], [120, 130, 140, 150]]
    together = exact._network.read([one for piece in pieces for one in piece], past=past, pieces=[3, 1, 4]).losses
    separate = torch.cat([exact._network.read(piece, past=past).losses for piece in pieces])
    torch.testing.assert_close(together, separate, atol=1e-5, rtol=1e-5)


def test_figures_of_sentences_are_those_of_their_tokens(exact):
    reading = exact.read([document(SENTENCES)])[0]
    ids = ids_of(" ".join(SENTENCES))[:128]
    losses = exact._network.read(ids).losses[1:].numpy()
    begin = 0
    for number, sentence in enumerate(SENTENCES[:3]):
        end = begin + len(tokenizer().encode(sentence).ids)
        own = losses[begin:end]
        np.testing.assert_allclose(reading.losses[number, :3], [own.mean(), own[:4].mean(), own.max()], rtol=1e-5)
        assert reading.tokens[number] == len(own)
        # A space that is a token by itself is part of a sentence, unless it stands between two.
        begin = end + 1


def test_a_long_text_is_read_in_windows_with_context(exact):
    long = document(SENTENCES * 8)
    one = LlamaReader(exact._network, tokenizer(), "", window=64)
    ids, owner = one._tokens(long)
    assert len(ids) > 5 * 64
    reading = one.read([long])[0]
    first = exact._network.read([BOS, *ids[:63].tolist()]).losses[1:].numpy()
    for number in range(owner[62]):
        np.testing.assert_allclose(reading.losses[number, 0], first[owner[:63] == number].mean(), rtol=1e-4)
    assert (reading.tokens > 0).all()
    assert np.isfinite(reading.losses).all()
    # With context the same sentence is not read as it is at the beginning of a text.
    assert (np.abs(reading.losses[5::5, 0] - reading.losses[0, 0]) > 1e-4).all()


def test_sentences_alone_and_after_another_one(exact):
    one = document(SENTENCES)
    ids, owner = exact._tokens(one)
    pieces = [ids[owner == number].tolist() for number in range(5)]

    def by_hand(*before, target):
        run = exact._network.read([BOS, *before, *target])
        return float(run.losses[-len(target) :].mean())

    np.testing.assert_allclose(exact.alone(one), [by_hand(target=piece) for piece in pieces], rtol=1e-5)
    found = exact.after(one, 1, [0, 3, 4])
    np.testing.assert_allclose(found, [by_hand(*pieces[1], target=pieces[n]) for n in (0, 3, 4)], rtol=1e-5)


def test_very_long_sentences_are_read_in_part(exact):
    one = document(["word " * 400 + ".", SENTENCES[0], "other " * 400 + "."])
    assert np.isfinite(exact.alone(one)).all()
    assert np.isfinite(exact.after(one, 0, [1, 2])).all()
    assert np.isfinite(exact.read([one])[0].losses).all()


@pytest.mark.parametrize("name", ["middle-3", "mean", "mean-x", "mean-0", ""])
def test_states_have_names(name):
    with refused("bad-setting"):
        State.named(name)


def test_a_gguf_file_reads_as_the_folder_that_it_was_made_of(own, exact, tmp_path):
    file = tmp_path / "tiny.gguf"
    file.write_bytes(gguf_of(own)[0])
    reader = load_reader(str(file), "float32")
    one = [document(SENTENCES)]
    np.testing.assert_allclose(reader.read(one)[0].losses, exact.read(one)[0].losses, rtol=1e-4)
    assert reader.identity == f"gguf:{readers.sha256_once(file)}"
    for kind in (1, 8, 2, 3):
        file.write_bytes(gguf_of(own, kind)[0])
        other = load_reader(str(file), "int8").read(one)[0].losses
        assert np.isfinite(other).all()


def test_the_installed_reader_equals_transformers():
    """Tokens and the loss of each, with the file as transformers reads it."""
    for package in ("gguf", "accelerate"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    try:
        file = source_of_part(INSTALLABLE_READERS[DEFAULT_READER]).path
    except MissingPartError:
        pytest.skip("the reader is not installed")
    from transformers import AutoModelForCausalLM, AutoTokenizer

    where = {"gguf_file": file.name, "local_files_only": True}
    theirs = AutoModelForCausalLM.from_pretrained(file.parent, dtype=torch.float32, **where).eval()
    ours = load_reader(DEFAULT_READER, "float32")
    text = (
        "The river rose in the spring of 1,998. It's old – built by hand – yet the bridge held.\n\n"
        "“Well,” said Ana, “we should cross it.” Afterwards they walked to Łódź, 12.5 km away."
    )
    ids = [ours._bos, *ours._tokenizer.encode(text, add_special_tokens=False).ids]
    assert ids[1:] == AutoTokenizer.from_pretrained(file.parent, **where)(text, add_special_tokens=False)["input_ids"]
    with torch.inference_mode():
        logits = theirs(torch.tensor([ids])).logits[0, :-1]
        losses = torch.nn.functional.cross_entropy(logits, torch.tensor(ids[1:]), reduction="none")
    torch.testing.assert_close(ours._network.read(ids).losses[1:], losses, rtol=0, atol=1e-3)


def test_identity_is_the_content(own, exact, tmp_path):
    before = find_source(str(own)).identity
    assert before == exact.identity
    moved = shutil.copytree(own, tmp_path / "elsewhere")
    (moved / "README.md").write_text("about", "utf-8")
    assert find_source(str(moved)).identity == before
    change(moved, rms_norm_eps=1e-3)
    assert find_source(str(moved)).identity != before


def _without(name):
    return lambda folder: (folder / name).unlink()


def _weights(change_them):
    def changed(folder):
        weights = load_file(folder / "model.safetensors")
        change_them(weights)
        save_file(weights, folder / "model.safetensors")

    return changed


def _cut(name, size):
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:size])


def _more_tokens(folder):
    larger = tokenizer()
    larger.add_tokens(["grandmother"])
    larger.save(str(folder / "tokenizer.json"))


def _index(folder):
    (folder / "model.safetensors").unlink()
    index = {"weight_map": {"model.norm.weight": "model-00001-of-00002.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), "utf-8")


UNFIT = {
    "no-tokenizer": _without("tokenizer.json"),
    "no-config": _without("config.json"),
    "no-weights": _without("model.safetensors"),
    "missing-file": _index,
    "not-llama": lambda folder: change(folder, model_type="gpt2"),
    "bad-config": lambda folder: change(folder, hidden_size=None),
    "bad-config no first token": lambda folder: change(folder, bos_token_id=None),
    "bad-config scaled": lambda folder: change(folder, rope_parameters={"rope_type": "llama3", "rope_theta": 1e4}),
    "bad-config odd": lambda folder: change(folder, head_dim=7),
    "bad-config huge": lambda folder: change(folder, max_position_embeddings=1e300),
    "bad-config text": lambda folder: change(folder, num_key_value_heads="many"),
    "missing-weights": _weights(lambda weights: weights.pop("model.layers.1.mlp.up_proj.weight")),
    "missing-weights layers": lambda folder: change(folder, num_hidden_layers=10**9),
    "missing-weights untied": lambda folder: change(folder, tie_word_embeddings=False),
    "missing-weights ints": _weights(lambda w: w.update({"model.norm.weight": torch.ones(32, dtype=torch.int8)})),
    "wrong-shape": _weights(lambda weights: weights.update({"model.norm.weight": torch.ones(31)})),
    "wrong-shape vocabulary": lambda folder: change(folder, vocab_size=10**11),
    "unknown-tokens": _more_tokens,
    "not-finite": _weights(lambda weights: weights.update({"model.norm.weight": torch.full((32,), float("nan"))})),
    "damaged-file": _cut("model.safetensors", 5_000),
    "damaged-file config": _cut("config.json", 100),
    "damaged-file tokenizer": _cut("tokenizer.json", 1_000),
    "damaged-file empty": _cut("model.safetensors", 0),
}


@pytest.mark.parametrize("case", UNFIT)
@pytest.mark.parametrize("precision", ["float32", "auto"])
def test_what_cannot_be_read_is_refused_in_one_sentence(own, case, precision):
    UNFIT[case](own)
    with refused(case.split()[0], DamagedFileError if case.startswith("damaged") else MissingPartError) as caught:
        load_reader(str(own), precision)
    if case == "not-llama":
        assert "'gpt2'" in str(caught.value)
    assert not list((own.parent / "cache").glob("readers/*"))


def test_names_that_are_nothing(tmp_path, monkeypatch):
    with refused("no-file", MissingPartError):
        load_reader(str(tmp_path / "nothing"))
    with refused("no-file", MissingPartError):
        load_reader("nothing.gguf")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for name in ("nobody/no-such-model", "no such name!"):
        with refused("no-hub", MissingPartError):
            load_reader(name)


def test_a_model_on_the_hub_is_what_was_downloaded(own, monkeypatch, exact):
    wanted = []

    def download(name, allow_patterns):
        wanted.append((name, allow_patterns))
        return str(own)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    reader = load_reader("somebody/tiny", "float32")
    assert reader.identity == f"hub:somebody/tiny@{own.name}"
    assert wanted[0][0] == "somebody/tiny"
    assert not any(pattern.endswith((".py", ".bin", "*")) for pattern in wanted[0][1])


def test_the_reader_of_the_package_must_be_installed(tmp_path, monkeypatch):
    monkeypatch.setenv("COHEGRAPH_CACHE", str(tmp_path))
    for precision in ("auto", "float32"):
        with refused("not-installed", MissingPartError) as caught:
            load_reader(precision=precision)
        assert "cohegraph parts install" in str(caught.value)


@pytest.mark.parametrize("file", ["model.safetensors", "config.json", "tokenizer.json", "prepared.json"])
def test_a_damaged_prepared_reader_is_prepared_again_where_it_can_be(own, file):
    one = [document(SENTENCES)]
    expected = load_reader(str(own), "int8").read(one)[0].losses
    place = find_source(str(own)).prepared / file
    content = place.read_bytes()
    place.write_bytes(content[:-3])
    np.testing.assert_array_equal(load_reader(str(own), "int8").read(one)[0].losses, expected)
    assert place.read_bytes() == content
    assert [path.name for path in place.parent.parent.iterdir() if path.name != ".lock"] == [place.parent.name]


@pytest.mark.parametrize("loss", ["NaN", "Infinity", "-1", '"high"'])
def test_a_record_of_impossible_losses_is_damaged(own, loss):
    load_reader(str(own), "int8")
    place = find_source(str(own)).prepared / "prepared.json"
    content = place.read_text("utf-8")
    losses = json.loads(content)["losses"]
    place.write_text(content.replace(str(losses["int8"]), loss), "utf-8")
    load_reader(str(own), "int8")
    assert place.read_text("utf-8") == content


def test_nothing_can_be_prepared_where_nothing_can_be_written(own, tmp_path, monkeypatch):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "readers").write_text("", "utf-8")
    with refused("foreign-folder"):
        load_reader(str(own), "int8")
    assert load_reader(str(own), "float32")
    (tmp_path / "cache" / "readers").unlink()

    def read_only(*_):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("cohegraph.text.readers.write_atomically", read_only)
    with refused("cannot-write") as caught:
        load_reader(str(own), "auto")
    assert "float32" in str(caught.value)
    assert not (tmp_path / "cache" / "readers").exists()


@pytest.fixture(scope="module")
def smollm2():
    part = INSTALLABLE_READERS["smollm2-135m"]
    try:
        readers.check_part(part)
    except CohegraphError as error:
        pytest.skip(f"the reader is not there: {error}")
    return load_reader()


def test_the_installed_reader_reads_english(smollm2, starter):
    text = next(one.text for one in starter if one.label == "high")
    words = text.split()
    random.Random(0).shuffle(words)
    plain, mixed = (smollm2.read([document([one])])[0].losses[0, 0] for one in (text, " ".join(words)))
    assert 2 < plain < 4.5
    assert mixed > plain + 1
    assert smollm2.identity.startswith("smollm2-135m:b179c952")


def test_the_installed_reader_is_what_transformers_makes_of_its_file(smollm2):
    pytest.importorskip("gguf", reason="transformers reads GGUF files with the package gguf")
    pytest.importorskip("accelerate", reason="transformers reads GGUF files with the package accelerate")
    from transformers import AutoModelForCausalLM

    file = INSTALLABLE_READERS["smollm2-135m"].file
    model = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32).eval()
    reader = load_reader(precision="float32")
    ids = [1, *reader._tokenizer.encode(" ".join(SENTENCES)).ids]
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0]
    losses = torch.nn.functional.cross_entropy(logits[:-1], torch.tensor(ids[1:]), reduction="none")
    torch.testing.assert_close(reader._network.read(ids).losses[1:], losses, atol=1e-3, rtol=1e-3)


def test_the_tokenizer_has_a_token_for_every_byte():
    assert len(tokens()) == len(set(tokens())) > 256
