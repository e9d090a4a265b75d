"""What the benchmarks share: threads set on purpose, times of repeated runs, and one line a result."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch
from threadpoolctl import threadpool_limits


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
