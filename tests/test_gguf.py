"""GGUF files: what is written reads back, and no bytes lead astray."""

from __future__ import annotations

import struct
import tracemalloc
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from material import refused
from tiny_llama import blocks_of, gguf_bytes, gguf_of, write_llama

from cohegraph.errors import CohegraphError, DamagedFileError
from cohegraph.text.gguf import GGUFFile
from cohegraph.text.llama_files import UnfitError, open_checkpoint

FIGURES = {"a": 3, "b": 0.5, "c": "word", "d": ["x", "", "é"], "e": [1, 2, 3], "f": True, "g": [False]}
HEAD = 4 + struct.calcsize("<IQQ")


@pytest.fixture
def opened(tmp_path):
    def write(content):
        file = tmp_path / "a.gguf"
        file.write_bytes(content)
        return GGUFFile(file)

    return write


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    small = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    content = gguf_of(write_llama(folder / "llama", **small))[0]
    return content, folder


def by_hand(kind, content):
    """The numbers of blocks, one after the other."""
    found = []
    size = {8: 34, 2: 18, 3: 20}[kind]
    for start in range(0, len(content), size):
        block = content[start : start + size]
        (scale,) = struct.unpack("<e", block[:2])
        if kind == 8:
            found += [scale * one for one in struct.unpack("<32b", block[2:])]
            continue
        low = struct.unpack("<e", block[2:4])[0] if kind == 3 else -8 * scale
        packed = block[-16:]
        found += [scale * (one & 15) + low for one in packed] + [scale * (one >> 4) + low for one in packed]
    return np.array(found)


@pytest.mark.parametrize("alignment", [32, 64, 1])
def test_what_is_written_reads_back(opened, alignment):
    random = np.random.default_rng(0)
    kinds = {"f32": 0, "f16": 1, "q4_0": 2, "q4_1": 3, "q8_0": 8}
    arrays = {name: (kind, random.normal(size=(3, 64)).astype(np.float32)) for name, kind in kinds.items()}
    arrays["one"] = (0, np.array([1.5, -2], dtype=np.float32))
    file = opened(gguf_bytes(FIGURES | {"general.alignment": alignment}, arrays, alignment))
    assert file.figures == FIGURES | {"general.alignment": alignment}
    for name, (kind, values) in arrays.items():
        assert file.shapes[name] == values.shape
        found = file.array(name)
        assert found.dtype == np.float32
        if kind > 1:
            expected = by_hand(kind, blocks_of(kind, values)).reshape(values.shape)
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
        steps = {0: 0, 1: 1e-3, 2: 0.5, 3: 0.3, 8: 0.03}
        np.testing.assert_allclose(found, values, atol=steps[kind])


def string(text):
    return struct.pack("<Q", len(text)) + text


def one_figure(value):
    return b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + string(b"a") + value


def one_array(dimensions, kind=0, offset=0, count=1):
    shape = struct.pack(f"<I{len(dimensions)}Q", len(dimensions), *dimensions)
    entry = shape + struct.pack("<IQ", kind, offset)
    return b"GGUF" + struct.pack("<IQQ", 3, count, 0) + b"".join(string(b"%d" % n) + entry for n in range(count))


HUGE = 2**63
DAMAGED = {
    "empty": b"",
    "something else": b"PK\x03\x04" + b"\0" * 100,
    "version": b"GGUF" + struct.pack("<IQQ", 9, 0, 0),
    "many figures": b"GGUF" + struct.pack("<IQQ", 3, 0, HUGE),
    "many arrays": b"GGUF" + struct.pack("<IQQ", 3, HUGE, 0),
    "long string": one_figure(struct.pack("<IQ", 8, HUGE)),
    "longest string": one_figure(struct.pack("<IQ", 8, 2**64 - 1)),
    "long list": one_figure(struct.pack("<IIQ", 9, 10, HUGE)),
    "long list of strings": one_figure(struct.pack("<IIQ", 9, 8, HUGE)),
    "list of lists": one_figure(struct.pack("<IIQ", 9, 9, 1) * 50),
    "unknown kind": one_figure(struct.pack("<I", 99)),
    "no UTF-8": one_figure(struct.pack("<I", 8) + string(b"\xff\xfe")),
    "twice": b"GGUF" + struct.pack("<IQQ", 3, 0, 2) + (string(b"a") + struct.pack("<IB", 0, 1)) * 2,
    "alignment 0": gguf_bytes({"general.alignment": 0}, {}),
    "alignment huge": gguf_bytes({"general.alignment": 2**31}, {}),
    "alignment text": gguf_bytes({"general.alignment": "wide"}, {}),
    "alignment truth": gguf_bytes({"general.alignment": True}, {}),
    "many dimensions": b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + string(b"a") + struct.pack("<I", 2**31) + b"\0" * 99,
    "large array": one_array([HUGE, HUGE]),
    "array behind the end": one_array([4], offset=HUGE) + b"\0" * 64,
    "unknown array": one_array([32], kind=77) + b"\0" * 64,
    "odd rows": one_array([33], kind=8) + b"\0" * 200,
    "shared bytes": one_array([400], count=20) + b"\0" * 2_000,
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_files_are_refused(opened, case):
    tracemalloc.start()
    try:
        with refused("damaged-file", DamagedFileError):
            opened(DAMAGED[case])
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def test_every_cut_is_noticed(opened, tiny):
    content = tiny[0]
    for size in [*range(0, 200, 7), *range(200, len(content), len(content) // 40), len(content) - 1]:
        with pytest.raises(DamagedFileError):
            opened(content[:size])


changes = st.lists(st.tuples(st.integers(0, 12_000), st.binary(min_size=1, max_size=9)), min_size=1, max_size=6)


@given(changes)
@settings(max_examples=150)
def test_any_bytes_open_or_are_refused(tiny, made):
    content = bytearray(tiny[0])
    for place, new in made:
        content[place : place + len(new)] = new
    file = tiny[1] / "changed.gguf"
    file.write_bytes(content)
    with suppress(CohegraphError, UnfitError):
        open_checkpoint(file).weights()


@given(st.binary(max_size=300))
@settings(max_examples=150)
def test_noise_is_refused_or_empty(tiny, noise):
    file = tiny[1] / "noise.gguf"
    for content in (noise, b"GGUF" + noise, b"GGUF" + struct.pack("<I", 3) + noise):
        file.write_bytes(content)
        with suppress(DamagedFileError):
            GGUFFile(file)
