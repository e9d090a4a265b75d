"""What the benchmarks share: threads set on purpose, times of repeated runs, one line a result, and texts."""

from __future__ import annotations

import gzip
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from threadpoolctl import threadpool_limits

from cohegraph.corpora.starter import starter_corpus

DATA = Path(__file__).parents[2] / "shared" / "data"
HANNA = DATA / "hanna" / "stories.jsonl"
PROSE = DATA / "prose"


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


def dev_prose(folder: Path = PROSE) -> dict[str, list[dict[str, str]]]:
    """The dev pieces of well-formed prose by genre; a piece has "id", "source", "genre" and "text"."""
    files = sorted(folder.glob("*.jsonl.gz"))
    if not files:
        sys.exit(f"There is no prose (*.jsonl.gz) in {folder}: name the folder that has it with --prose.")
    pieces: dict[str, list[dict[str, str]]] = {}
    for file in files:
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            for piece in map(json.loads, lines):
                if piece["split"] == "dev":
                    pieces.setdefault(piece["genre"], []).append(piece)
    return pieces
