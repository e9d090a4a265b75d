"""Llama models in files: a folder as transformers writes it, or a GGUF file. No code of a model's author is run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from cohegraph.errors import DamagedFileError
from cohegraph.text.gguf import GGUFFile

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from torch import Tensor

    from cohegraph.text.llama_shape import LlamaShape

CONFIG, TOKENIZER, WEIGHTS = "config.json", "tokenizer.json", "model.safetensors"
INDEX = f"{WEIGHTS}.index.json"
_FLOATS = ("F64", "F32", "F16", "BF16")
# What GGUF calls the figures of a Llama, and the weights of one of its layers.
_FIGURES = {
    "hidden_size": "llama.embedding_length",
    "intermediate_size": "llama.feed_forward_length",
    "num_hidden_layers": "llama.block_count",
    "num_attention_heads": "llama.attention.head_count",
    "num_key_value_heads": "llama.attention.head_count_kv",
    "head_dim": "llama.attention.key_length",
    "max_position_embeddings": "llama.context_length",
    "rms_norm_eps": "llama.attention.layer_norm_rms_epsilon",
    "rope_theta": "llama.rope.freq_base",
    "bos_token_id": "tokenizer.ggml.bos_token_id",
}
_ARRAYS = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}
_OUTER_ARRAYS = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
# Ways to split a text before it becomes tokens, and whether digits stand alone in them.
_SPLITS = {"smollm": True, "gpt-2": False}


class UnfitError(ValueError):
    """Why a model cannot serve as a reader, in words for people and as a code."""

    def __init__(self, why: str, code: str) -> None:
        super().__init__(why)
        self.code = code


@dataclass(frozen=True)
class Checkpoint:
    """A Llama model in files: its figures, its tokenizer, and what loads its weights as `LlamaNetwork` takes them."""

    shape: LlamaShape
    tokenizer: Tokenizer
    weights: Callable[[], dict[str, Tensor]]


def open_checkpoint(path: Path) -> Checkpoint:
    """The model in a folder or a GGUF file, whose names and shapes are checked before any weight is loaded.

    Raises UnfitError where it cannot serve as a reader, and DamagedFileError where a file is not whole.
    """
    found = _of_folder(path) if path.is_dir() else _of_gguf(path)
    if max(found.tokenizer.get_vocab().values(), default=0) >= found.shape.vocab_size:
        raise UnfitError("the tokenizer knows tokens that the network does not", "unknown-tokens")
    return found


def _shape(config: Mapping[str, Any]) -> LlamaShape:
    from cohegraph.text.llama_shape import LlamaShape

    kind = config.get("model_type")
    if kind != "llama":
        raise UnfitError(f"its model_type is {kind!r}, and only Llama models are read", "not-llama")
    try:
        return LlamaShape.of(config)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise UnfitError(str(error), "bad-config") from None


def _check(shape: LlamaShape, found: Mapping[str, tuple[int, ...]], *, head: bool) -> list[str]:
    """The names of all weights of a model, which are there and have the right shapes."""
    from cohegraph.text.llama_shape import checkpoint_shapes

    names = []
    for name, expected in checkpoint_shapes(shape, head=head):
        if name not in found:
            raise UnfitError(f"weights are missing, such as {name}", "missing-weights")
        if found[name] != expected:
            raise UnfitError(f"{name} has the shape {found[name]} instead of {expected}", "wrong-shape")
        names.append(name)
    return names


def _of_folder(folder: Path) -> Checkpoint:
    from safetensors import SafetensorError, safe_open

    from cohegraph.text.llama_shape import float_weights

    for name in (CONFIG, TOKENIZER):
        if not (folder / name).is_file():
            raise UnfitError(f"the folder has no {name}", "no-tokenizer" if name == TOKENIZER else "no-config")
    config = read_json(folder / CONFIG)
    shape = _shape(config)
    shapes, places = dict[str, tuple[int, ...]](), dict[str, Path]()
    for file in _weight_files(folder):
        try:
            with safe_open(file, framework="pt") as content:
                for name in content.keys():  # noqa: SIM118 (it is no dictionary)
                    one = content.get_slice(name)
                    if one.get_dtype() in _FLOATS:  # weights that are quantised are missing
                        shapes[name], places[name] = tuple(one.get_shape()), file
        except (SafetensorError, OSError) as error:
            raise DamagedFileError(f"{file} cannot be read ({error}): download it again.") from None
    names = _check(shape, shapes, head=not config.get("tie_word_embeddings", False))
    known = {*names, "lm_head.weight"}
    if foreign := sorted(name for name in shapes if name not in known and not name.endswith("inv_freq")):
        raise UnfitError(f"it has weights that its config.json does not name, such as {foreign[0]}", "foreign-weights")

    def weights() -> dict[str, Tensor]:
        found: dict[str, Tensor] = {}
        for file in sorted(set(places.values())):
            with safe_open(file, framework="pt") as content:
                found |= {name: content.get_tensor(name) for name in names if places[name] == file}
        return float_weights(shape, found)

    return Checkpoint(shape, read_tokenizer(folder / TOKENIZER), weights)


def _weight_files(folder: Path) -> list[Path]:
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    if not (folder / INDEX).is_file():
        raise UnfitError(f"the folder has no {WEIGHTS}; files of other formats are not read", "no-weights")
    parts = read_json(folder / INDEX).get("weight_map")
    if not isinstance(parts, dict) or not all(isinstance(part, str) for part in parts.values()):
        raise DamagedFileError(f"{folder / INDEX} does not say where the weights are: download it again.")
    files = sorted(set(parts.values()))
    for file in files:
        if Path(file).name != file or not (folder / file).is_file():
            raise UnfitError(f"the folder lacks the file {file}, which {INDEX} names", "missing-file")
    return [folder / file for file in files]


def _of_gguf(file: Path) -> Checkpoint:
    content = GGUFFile(file)
    figures = content.figures
    kind = figures.get("general.architecture")
    config = {ours: figures[theirs] for ours, theirs in _FIGURES.items() if theirs in figures} | {"model_type": kind}
    scaling = figures.get("llama.rope.scaling.type", "none")
    tokens = figures.get("tokenizer.ggml.tokens")
    config |= {
        "rope_parameters": {"rope_type": "default" if scaling == "none" else scaling},
        "vocab_size": len(tokens) if isinstance(tokens, list) else None,
    }
    shape = _shape(config)
    if figures.get("llama.rope.dimension_count", shape.head_dim) != shape.head_dim:
        raise UnfitError("only a part of its heads is turned by rotary positions", "bad-config")
    renamed = {_name_in_transformers(name): name for name in content.shapes}
    shapes = {ours: content.shapes[theirs] for ours, theirs in renamed.items()}
    names = _check(shape, shapes, head="lm_head.weight" in shapes)
    if foreign := sorted(set(renamed) - set(names)):
        raise UnfitError(f"it has weights that are not those of a Llama, such as {foreign[0]}", "not-llama")

    def array(name: str) -> Tensor:
        import torch

        found = content.array(renamed[name])
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            # The two halves of a head, which are turned together, stand side by side in GGUF.
            pairs = found.reshape(-1, shape.head_dim // 2, 2, shape.hidden_size)
            found = pairs.swapaxes(1, 2).reshape(found.shape)
        return torch.from_numpy(np.require(found, requirements=["C", "W"]))

    def weights() -> dict[str, Tensor]:
        from cohegraph.text.llama_shape import float_weights

        return float_weights(shape, {name: array(name) for name in names})

    return Checkpoint(shape, _tokenizer_of_gguf(figures), weights)


def _name_in_transformers(name: str) -> str:
    """The name that transformers gives to an array; one that it does not know keeps its own."""
    match name.split("."):
        case [outer, "weight"] if outer in _OUTER_ARRAYS:
            return f"{_OUTER_ARRAYS[outer]}.weight"
        case ["blk", number, inner, "weight"] if inner in _ARRAYS:
            return f"model.layers.{number}.{_ARRAYS[inner]}.weight"
    return f"{name} (GGUF)"


def _tokenizer_of_gguf(figures: Mapping[str, Any]) -> Tokenizer:
    """A byte-level BPE from its vocabulary and merges; names of special tokens in a text are ordinary characters."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    kind, split = figures.get("tokenizer.ggml.model"), figures.get("tokenizer.ggml.pre")
    if kind != "gpt2" or split not in _SPLITS:
        raise UnfitError(f"tokenizers such as its own ({kind}, {split}) are read from tokenizer.json", "no-tokenizer")
    tokens, merges = figures["tokenizer.ggml.tokens"], figures.get("tokenizer.ggml.merges")
    pairs = [merge.split(" ") for merge in merges] if _are_strings(merges) else None
    if not _are_strings(tokens) or len(set(tokens)) < len(tokens) or not pairs or any(len(pair) != 2 for pair in pairs):
        raise UnfitError("its tokenizer is not whole", "bad-tokenizer")
    try:
        tokenizer = Tokenizer(
            models.BPE(
                vocab={token: number for number, token in enumerate(tokens)},
                merges=[(first, second) for first, second in pairs],
            )
        )
    except Exception as error:  # the library has no errors of its own
        raise UnfitError(f"its tokenizer is not whole: {error}", "bad-tokenizer") from None
    splits: list[Any] = [pre_tokenizers.Digits(individual_digits=True)] if _SPLITS[split] else []
    splits.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(splits)
    return tokenizer


def _are_strings(values: Any) -> TypeGuard[list[str]]:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def read_tokenizer(file: Path) -> Tokenizer:
    """The tokenizer in ``tokenizer.json``."""
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_str(file.read_text("utf-8"))
    except Exception as error:  # the library has no errors of its own
        raise DamagedFileError(f"{file} is not a tokenizer ({error}): download it again.") from None


def read_json(file: Path) -> dict[str, Any]:
    """The JSON object in a file."""
    try:
        found = json.loads(file.read_text("utf-8"))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise DamagedFileError(f"{file} does not hold a JSON object: download it again.")
    return found
