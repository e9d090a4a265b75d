"""What the benchmarks share: threads set on purpose, times of repeated runs, and one line a result."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from threadpoolctl import threadpool_limits

from cohegraph.corpora.starter import starter_corpus

HANNA = Path(__file__).parents[2] / "shared" / "data" / "hanna" / "stories.jsonl"


def set_threads(threads: int) -> None:
    torch.set_num_threads(threads)
    threadpool_limits(threads, user_api="blas")


def seconds(run: Callable[[], object], repeats: int = 5) -> float:
    """The median of repeated runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def report(what: str, ratio: float, limit: str, detail: str) -> None:
    print(f"{what}: {ratio:,.2f}x  (asked for: {limit})  {detail}", flush=True)


def stories(number: int) -> tuple[list[str], str]:
    """So many stories of HANNA, or texts of similar length made of the starter corpus, and what they are."""
    if HANNA.is_file():
        return [json.loads(line)["text"] for line in HANNA.read_text("utf-8").splitlines()][:number], "HANNA stories"
    corpus = [one.text for one in starter_corpus()]
    return [f"{corpus[i % 90]} {corpus[(i * 7 + 1) % 90]}" for i in range(number)], "pairs of starter texts"
