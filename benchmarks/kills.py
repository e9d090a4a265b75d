"""``kill -9`` at random moments of featurizing, training and assessing; each is resumed, and its output compared.

    python benchmarks/kills.py [--kills 10] [--documents 300] [--seed 0] [--only featurize train assess]

Prints how many of the resumed runs gave byte by byte what an undisturbed run gives, and how much of the work was left
to do when they were resumed. Takes some ten minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from cohegraph.corpora.starter import starter_corpus

COMMAND = [sys.executable, "-m", "cohegraph.cli"]


def corpus(folder: Path, documents: int) -> Path:
    """Starter texts with a sentence of their own each, so that no two are the same."""
    file = folder / "corpus.jsonl"
    texts = list(starter_corpus())
    with file.open("w", encoding="utf-8") as stream:
        for number in range(documents):
            one = texts[number % len(texts)]
            row = {"text": f"{one.text} This is text number {number}.", "label": one.label}
            stream.write(json.dumps(row) + "\n")
    return file


def content(place: Path) -> dict[str, bytes]:
    """All files of a folder, or one file, but for locks."""
    files = [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.is_file())
    return {str(file.relative_to(place)): file.read_bytes() for file in files if not file.name.startswith(".")}


def remove(place: Path) -> None:
    for path in (place, place.with_name(f"{place.name}.unfinished")):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def run(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def killed_after(command: list[str], seconds: float) -> bool:
    """Whether the command was still at work when it was killed, with all its processes."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        # The first process alone: those that it has started must end by themselves.
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        return True
    return False


def disturbed(name: str, command: Callable[[Path], list[str]], folder: Path, kills: int) -> None:
    # Of the same name: a model is called after its folder.
    undisturbed, target = folder / "undisturbed" / name, folder / "resumed" / name
    for place in (undisturbed, target):
        place.parent.mkdir(exist_ok=True)
    takes = run(command(undisturbed))
    expected, same, took = content(undisturbed), 0, []
    while len(took) < kills:
        remove(target)
        # One that has ended before is no kill: it is tried again.
        if killed_after(command(target), random.uniform(0.1, 1.0) * takes):
            took.append(run(command(target)))
            same += content(target) == expected
    print(
        f"{name}: {same} of {kills} runs that were killed at work and resumed give the same output byte by byte. "
        f"Undisturbed it takes {takes:.0f} s; resumed, {min(took):.0f} to {max(took):.0f} s.",
        flush=True,
    )
    if same < kills:
        sys.exit(f"{name}: a resumed run gave something else")


def main() -> None:
    options = _options()
    random.seed(options.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        texts = str(corpus(folder, options.documents))
        store = folder / "store"
        small = ["--set", "training.epochs=2500"]
        commands: dict[str, Callable[[Path], list[str]]] = {
            "featurize": lambda out: [*COMMAND, "featurize", texts, "--out", str(out), "--shard", "32"],
            "train": lambda out: [*COMMAND, "train", str(store), "--out", str(out), "--folds", "2", *small],
            "assess": lambda out: [*COMMAND, "assess", texts, "--out", str(out)],
        }
        run(commands["featurize"](store))
        for one in options.only:
            disturbed(one, commands[one], folder, options.kills)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--documents", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", default=["featurize", "train", "assess"])
    return parser.parse_args()


if __name__ == "__main__":
    main()
