"""How fast the packaged reader reads, against transformers' forward pass of the same weights in float32.

    python benchmarks/reading.py [--stories 60] [--threads 2]

Both read the same stories with the same number of threads and give the loss of every token. End to end a story is
parsed, linked by nouns and by the reader, encoded, read, and judged by the heads. Memory is the most that this process
had, measured before transformers is imported. The cold start is the time from the start of a fresh process until it has
done all that to one story.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys

import numpy as np
import torch
from common import report, seconds, set_threads, stories

from cohegraph.features import Featurizer
from cohegraph.settings import Settings
from cohegraph.text.llama_files import open_checkpoint
from cohegraph.text.llama_shape import LlamaShape
from cohegraph.text.packaged import INSTALLABLE_READERS
from cohegraph.text.readers import DEFAULT_READER, source_of_part

SETTINGS = {"reader.source": DEFAULT_READER, "links.linkers": "nouns,reading", "links.combine": "side-by-side"}
ONE_STORY = """
import json, sys
from cohegraph.features import Featurizer
from cohegraph.settings import Settings
story, changes = json.load(sys.stdin)
Featurizer(Settings().replaced(changes)).featurize([story])
"""


def cold_start(story: str, threads: int) -> float:
    """Seconds until a fresh process has the features of a story."""
    content, environment = json.dumps([story, SETTINGS]), os.environ | {"OMP_NUM_THREADS": str(threads)}
    command = [sys.executable, "-c", ONE_STORY]
    return seconds(lambda: subprocess.run(command, input=content, text=True, env=environment, check=True), repeats=3)


def by_transformers(shape: LlamaShape, weights: dict[str, torch.Tensor]) -> torch.nn.Module:
    """The same model in transformers."""
    from transformers import LlamaConfig, LlamaForCausalLM

    names = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads")
    names += ("head_dim", "vocab_size", "max_position_embeddings", "rms_norm_eps")
    figures = {name: getattr(shape, name) for name in names}
    config = LlamaConfig(**figures, rope_parameters={"rope_type": "default", "rope_theta": shape.rope_theta})
    config.tie_word_embeddings = "head" not in weights
    found = {"model.embed_tokens.weight": weights["embed"], "model.norm.weight": weights["norm"]}
    found["lm_head.weight"] = weights.get("head", weights["embed"])
    for number in range(shape.num_hidden_layers):
        own, place = f"layers.{number}.", f"model.layers.{number}."
        found[f"{place}input_layernorm.weight"] = weights[f"{own}attend_norm"]
        found[f"{place}post_attention_layernorm.weight"] = weights[f"{own}feed_norm"]
        queries = shape.num_attention_heads * shape.head_dim
        for name, one in zip("qkv", weights[f"{own}attend"].split([queries, shape.keys, shape.keys]), strict=True):
            found[f"{place}self_attn.{name}_proj.weight"] = one
        found[f"{place}self_attn.o_proj.weight"] = weights[f"{own}attended"]
        for name, one in zip(("gate", "up"), weights[f"{own}widen"].chunk(2), strict=True):
            found[f"{place}mlp.{name}_proj.weight"] = one
        found[f"{place}mlp.down_proj.weight"] = weights[f"{own}narrow"]
    model = LlamaForCausalLM(config)
    model.load_state_dict(found)
    return model.eval()


def main() -> None:
    """Print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stories", type=int, default=60)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    set_threads(options.threads)
    texts, what = stories(options.stories + 4)
    cold = cold_start(texts[0], options.threads)
    featurizer = Featurizer(Settings().replaced(SETTINGS))
    featurizer.featurize(texts[-4:])
    whole = seconds(lambda: featurizer.featurize(texts[:-4]), repeats=1)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    documents = list(featurizer.parser.parse(texts))
    reader = featurizer.reader
    reading = min(seconds(lambda: reader.read(documents[:-4]), repeats=1) for _ in range(2))
    tokens = [[reader._bos, *reader._tokens(document)[0].tolist()] for document in documents[:-4]]
    number = sum(map(len, tokens))

    checkpoint = open_checkpoint(source_of_part(INSTALLABLE_READERS[DEFAULT_READER]).path)
    model = by_transformers(checkpoint.shape, checkpoint.weights())

    def losses(ids: list[int]) -> np.ndarray:
        with torch.inference_mode():
            logits = model(torch.tensor([ids])).logits[0, :-1]
            return torch.nn.functional.cross_entropy(logits, torch.tensor(ids[1:]), reduction="none").numpy()

    losses(tokens[0])
    theirs = min(seconds(lambda: [losses(ids) for ids in tokens], repeats=1) for _ in range(2))
    exact = np.concatenate([losses(ids) for ids in tokens[:20]])
    ours = np.concatenate([reader._network.read(ids).losses[1:].numpy() for ids in tokens[:20]])
    print(f"{options.stories} {what}, {number / options.stories:.0f} tokens each, {options.threads} threads")
    print(f"mean loss: {exact.mean():.4f} in float32, {ours.mean():.4f} here ({ours.mean() / exact.mean() - 1:+.2%})")
    speeds = f"{number / reading:,.0f} against {number / theirs:,.0f} tokens a second"
    report("reading, against transformers in float32", theirs / reading, "at least 3x", speeds)
    rate = options.stories / whole
    report("stories a second end to end, against four", rate / 4, "at least 1x", f"{rate:.2f} stories a second")
    report("one story within six seconds of a cold start", 6 / cold, "at least 1x", f"{cold:.1f} seconds")
    print(f"most memory end to end: {memory:,.0f} MB (asked for: under 1,200)")


if __name__ == "__main__":
    main()
