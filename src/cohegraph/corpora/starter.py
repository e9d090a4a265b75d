"""The small graded corpus that is part of this package."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

FOLDER = Path(str(files("cohegraph"))) / "data" / "starter"
CORPUS = FOLDER / "corpus.jsonl"
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


def hold_out_topics(texts: Sequence[StarterText], every: int = 5) -> tuple[list[StarterText], list[StarterText]]:
    """All versions of every fifth topic apart from the rest."""
    held_out = set(sorted({one.topic for one in texts})[every - 1 :: every])
    rest = [one for one in texts if one.topic not in held_out]
    return rest, [one for one in texts if one.topic in held_out]
