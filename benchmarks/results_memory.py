"""Memory and time that resuming ``cohegraph assess --out`` takes before the first new document is assessed.

    python benchmarks/results_memory.py [--documents 1000000]

Writes a file of made-up results, opens it as a resumed run does and looks up every document. Takes two minutes and
0.6 GB of disk for a million documents.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from cohegraph.assessment import Assessment
from cohegraph.corpora.stream import Entry
from cohegraph.scale.engine import batches
from cohegraph.scale.results_file import results_file
from cohegraph.scale.scoring import Scored

MODEL = {"model": "made-up", "model_sha256": "0" * 64}
COUNTED = ("sentences", "cut_sentences", "nouns", "unknown_nouns", "links", "subgraphs", "tokens", "cut_tokens")
RESULT = Assessment(
    "high", 77.6, {"low": 0.1234567890, "medium": 0.2, "high": 0.6765432110}, dict.fromkeys(COUNTED, 12), ()
)


def documents(number: int) -> Iterator[Entry]:
    return (Entry(f"essays/part-0001.jsonl:{row}", f"Text {row}.", id=f"essay-{row}") for row in range(1, number + 1))


def resident() -> float:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text("utf-8").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=1_000_000)
    number = parser.parse_args().documents
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "results.jsonl"
        with results_file(file, MODEL) as opened:
            for some in batches(documents(number), 10_000):
                opened.append([Scored(entry, RESULT) for entry in some])
        before, start = resident(), time.perf_counter()
        with results_file(file, MODEL) as opened:
            read, held = time.perf_counter() - start, resident() - before
            left = sum(1 for _ in opened.missing(documents(number), print))
            looked_up = time.perf_counter() - start - read
    print(
        f"{number} documents: {held / number:.0f} bytes each, {held / 1e6:.0f} MB; reading the file takes {read:.0f} "
        f"s, looking up all documents {looked_up:.0f} s; {left} are left to assess."
    )


if __name__ == "__main__":
    main()
