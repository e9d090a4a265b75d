"""Documents a second of the whole `compact` pipeline, on two cores: as it was, as it is, and with XLNet-base's size.

    python benchmarks/throughput.py [--documents 320] [--rounds 2]

"As it was": one process with two threads, all of spaCy's components but the dependency parser and the entity
recogniser, and the encoder as transformers runs it. "As it is": two worker processes with one thread each, with floats
and with whole numbers in the encoder. The encoder of XLNet-base's size has random weights, which take the same time,
and the same two workers; it reads a tenth of the documents. Round by round all read the same stories of HANNA, and the
fastest round of each counts. Rates are those of workers at work: loading the parts is not counted.

Takes ``../shared/data/hanna/stories.jsonl`` where it is, and else texts made of the starter corpus.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from common import report, set_threads, stories
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast, XLNetConfig, XLNetModel

from cohegraph.features import Featurizer
from cohegraph.presets import preset
from cohegraph.scale.engine import BATCH, LocalEngine, Request, batches
from cohegraph.settings import Settings
from cohegraph.text.packaged import PACKAGED_ENCODERS, PACKAGED_PARSERS

CORES, WARM_UP = 2, 4 * BATCH
COMPACT = preset()


def as_it_was() -> Settings:
    """The same files by their places: as any others, they go through the whole of spaCy and through transformers."""
    parser, encoder = PACKAGED_PARSERS["en_core_web_sm"], PACKAGED_ENCODERS["all-MiniLM-L6-v2"]
    places = {"parser.model": str(parser.path), "encoder.source": str(encoder.path)}
    return COMPACT.replaced({**places, "encoder.precision": "float32"})


def of_the_size_of_xlnet(folder: Path) -> Settings:
    """XLNet-base with random weights, and MiniLM's tokens in its words' places."""
    tokens = Tokenizer.from_file(str(PACKAGED_ENCODERS["all-MiniLM-L6-v2"].path / "tokenizer.json"))
    tokens.no_truncation()
    tokens.no_padding()
    PreTrainedTokenizerFast(tokenizer_object=tokens, pad_token="[PAD]", unk_token="[UNK]").save_pretrained(folder)
    config = XLNetConfig(vocab_size=32_000, d_model=768, n_layer=12, n_head=12, d_inner=3_072)
    XLNetModel(config).save_pretrained(folder)
    return COMPACT.replaced({"encoder.source": str(folder), "encoder.precision": "float32"})


def rate_alone(settings: Settings, texts: Sequence[str]) -> float:
    """Documents a second of one process with two threads."""
    set_threads(CORES)
    featurizer = Featurizer(settings)
    featurizer.featurize(texts[:WARM_UP])
    start = time.perf_counter()
    featurizer.featurize(texts)
    return len(texts) / (time.perf_counter() - start)


def rate_together(settings: Settings, texts: Sequence[str]) -> float:
    """Documents a second of two workers, from the moment on when both are at work."""
    some = [*texts[:WARM_UP], *texts]
    requests = (Request.of((), batch) for batch in batches(some))
    arrived, times = 0, []
    for request, _ in LocalEngine(Featurizer(settings), CORES).computed(requests):
        arrived += len(request.texts)
        if arrived >= min(WARM_UP, len(texts)):
            times.append((arrived, time.perf_counter()))
    (first, start), *_, (last, end) = times
    return (last - first) / (end - start)


def main() -> None:
    options = _options()
    texts, name = stories(options.documents)
    with tempfile.TemporaryDirectory() as folder:
        runs: dict[str, Callable[[], float]] = {
            "as it was": lambda: rate_alone(as_it_was(), texts),
            "float32": lambda: rate_together(COMPACT.replaced({"encoder.precision": "float32"}), texts),
            "int8": lambda: rate_together(COMPACT.replaced({"encoder.precision": "int8"}), texts),
            "XLNet": lambda: rate_together(of_the_size_of_xlnet(Path(folder)), texts[: max(96, len(texts) // 10)]),
        }
        rates = dict.fromkeys(runs, 0.0)
        for number in range(options.rounds):
            for run, rate in runs.items():
                found = rate()
                rates[run] = max(rates[run], found)
                print(f"round {number + 1}, {run}: {found:.1f} documents a second", flush=True)
    detail = f"{{:.1f}} against {{:.1f}} documents a second, {len(texts)} {name}"
    for precision in ("float32", "int8"):
        for other, limit in (("as it was", "at least 2x"), ("XLNet", "at least 12x")):
            report(
                f"the pipeline with {precision} against {other}",
                rates[precision] / rates[other],
                limit,
                detail.format(rates[precision], rates[other]),
            )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=320)
    parser.add_argument("--rounds", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    main()
