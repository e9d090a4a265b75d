"""The small graded corpus that is part of this package, and the model trained on it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

FOLDER = Path(str(files("cohegraph"))) / "data" / "starter"
CORPUS = FOLDER / "corpus.jsonl"
MODEL = FOLDER / "model"
LEVELS = ("low", "medium", "high")


@dataclass(frozen=True)
class StarterText:
    """One of the three versions of a topic."""

    id: str
    topic: str
    title: str
    level: str
    text: str


def starter_corpus() -> list[StarterText]:
    """All 90 texts: 30 topics, each well connected (high), drifting (medium) and disjointed (low)."""
    return [StarterText(**json.loads(line)) for line in CORPUS.read_text("utf-8").splitlines()]
