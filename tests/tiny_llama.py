"""Llama models of random weights, as folders, GGUF files and wheels."""

from __future__ import annotations

import hashlib
import struct
import zipfile
from math import prod

import numpy as np
import torch

from cohegraph.text.packaged import Installable

BOS = 1
_MERGES = ["t h", "Ġ t", "Ġt h", "Ġth e", "i n", "e r"]
_NUMBERS = {int: (4, "<I"), float: (6, "<f"), bool: (7, "<?")}
_NAMES = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
}  # fmt: skip


def tokens():
    from tokenizers import pre_tokenizers

    return ["<unk>", "<s>", *sorted(pre_tokenizers.ByteLevel.alphabet()), *(m.replace(" ", "") for m in _MERGES)]


def tokenizer():
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocabulary = {token: number for number, token in enumerate(tokens())}
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=[tuple(merge.split(" ")) for merge in _MERGES]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    return made


def write_llama(folder, *, dtype=torch.float32, shard="1GB", **changes):
    """A folder as transformers writes it."""
    from transformers import LlamaConfig, LlamaForCausalLM

    figures = {
        "vocab_size": len(tokens()), "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 3,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128, "bos_token_id": BOS,
        "initializer_range": 0.2, "tie_word_embeddings": True,
    }  # fmt: skip
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(**figures | changes))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "norm" in name:
                weight.uniform_(0.5, 1.5)
    folder.mkdir(parents=True, exist_ok=True)
    model.to(dtype).save_pretrained(folder, max_shard_size=shard)
    tokenizer().save(str(folder / "tokenizer.json"))
    return folder


def blocks_of(kind, values):
    """Rows of 32 numbers as a block of GGUF each, one number after the other."""
    found = b""
    for row in np.asarray(values, dtype=np.float32).reshape(-1, 32):
        low, high = float(row.min()), float(row.max())
        if kind == 8:
            scale = np.float16(max(abs(low), abs(high)) / 127 or 1)
            found += scale.tobytes() + np.clip(np.round(row / np.float32(scale)), -127, 127).astype(np.int8).tobytes()
            continue
        scale = np.float16(max(abs(low), abs(high)) / 7 or 1) if kind == 2 else np.float16((high - low) / 15 or 1)
        begin = np.float32(-8 * np.float32(scale)) if kind == 2 else np.float32(np.float16(low))
        whole = np.clip(np.round((row - begin) / np.float32(scale)), 0, 15).astype(np.uint8)
        found += scale.tobytes() + (b"" if kind == 2 else np.float16(low).tobytes())
        found += bytes(int(whole[place]) | int(whole[place + 16]) << 4 for place in range(16))
    return found


def _string(text):
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _value(value):
    if isinstance(value, str):
        return struct.pack("<I", 8) + _string(value)
    if isinstance(value, list):
        inner = b"".join(_value(one)[4:] for one in value)
        return struct.pack("<IIQ", 9, struct.unpack("<I", _value(value[0])[:4])[0], len(value)) + inner
    kind, form = _NUMBERS[type(value)]
    return struct.pack("<I", kind) + struct.pack(form, value)


def gguf_bytes(figures, arrays, alignment=32):
    """A GGUF file; arrays are by name the number of a kind and the values."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(arrays), len(figures))
    head += b"".join(_string(name) + _value(value) for name, value in figures.items())
    content = b""
    for name, (kind, values) in arrays.items():
        content += b"\0" * (-len(content) % alignment)
        head += _string(name) + struct.pack("<I", values.ndim) + struct.pack(f"<{values.ndim}Q", *values.shape[::-1])
        head += struct.pack("<IQ", kind, len(content))
        as_floats = {0: np.float32, 1: np.float16}
        content += values.astype(as_floats[kind]).tobytes() if kind in as_floats else blocks_of(kind, values)
        assert prod(values.shape) == values.size
    return head + b"\0" * (-len(head) % alignment) + content


def gguf_of(folder, kind=0):
    """The model of a folder as a GGUF file."""
    import json

    from safetensors.torch import load_file

    config = json.loads((folder / "config.json").read_text("utf-8"))
    heads = {"q": config["num_attention_heads"], "k": config["num_key_value_heads"]}
    arrays = {}
    for name, tensor in load_file(folder / "model.safetensors").items():
        values = tensor.float().numpy()
        stem = name.removesuffix(".weight")
        if stem.endswith(("q_proj", "k_proj")):
            halves = values.reshape(heads[stem[-6]], 2, -1, values.shape[1])
            values = halves.swapaxes(1, 2).reshape(values.shape)
        _, _, number, inner = [*stem.split(".", 3), "", ""][:4]
        new = _NAMES[stem] if stem in _NAMES else f"blk.{number}.{_NAMES[inner]}"
        arrays[f"{new}.weight"] = (kind if values.ndim > 1 else 0, values)
    figures = {
        "general.architecture": "llama",
        "llama.block_count": config["num_hidden_layers"],
        "llama.context_length": config["max_position_embeddings"],
        "llama.embedding_length": config["hidden_size"],
        "llama.feed_forward_length": config["intermediate_size"],
        "llama.attention.head_count": heads["q"],
        "llama.attention.head_count_kv": heads["k"],
        "llama.rope.freq_base": 10_000.0,
        "llama.attention.layer_norm_rms_epsilon": config["rms_norm_eps"],
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": tokens(),
        "tokenizer.ggml.merges": _MERGES,
        "tokenizer.ggml.bos_token_id": BOS,
    }
    return gguf_bytes(figures, arrays), figures, arrays


def write_wheel(folder, content):
    """A wheel with a GGUF file in it, which depends on something that nobody has; and what must be in it."""
    name = "tiny_part-1.0.dist-info"
    files = {
        "tiny_part/tiny.gguf": content,
        f"{name}/METADATA": b"Metadata-Version: 2.1\nName: tiny-part\nVersion: 1.0\nRequires-Dist: nobody-has-this\n",
        f"{name}/WHEEL": b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{name}/RECORD": b"",
    }
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "tiny_part-1.0-py3-none-any.whl"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as wheel:
        for member, data in files.items():
            wheel.writestr(member, data)
    sha256 = hashlib.sha256(content).hexdigest()
    return file, Installable("tiny", "tiny-part==1.0", "tiny_part/tiny.gguf", len(content), sha256)
