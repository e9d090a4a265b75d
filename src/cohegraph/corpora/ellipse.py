"""ELLIPSE: essays by English learners (Crossley et al., 2023), the official CSV or JSON Lines with the same fields.

Scores run from 1 to 5 in halves. The level is low up to 2.5, medium at 3, high from 3.5 on. Prompts are the groups or,
where ``by_prompt`` is asked for, the sections.
"""

from pathlib import Path
from typing import Literal

from cohegraph.corpora.corpus import LEVELS, Corpus, Labelled, incomplete, official_rows

_LOWEST_MEDIUM, _LOWEST_HIGH = 2.75, 3.25
# The whole corpus has 6,482 essays, its halves for training and testing 3,911 and 2,571.
_PUBLISHED = (6_482, 3_911, 2_571)
# The JSON Lines form may also hold the essays to the eight largest prompts of the testing half.
_EIGHT_PROMPTS = 1_084


def read_ellipse(
    file: Path, *, score: Literal["cohesion", "overall"] = "cohesion", by_prompt: bool = False, partial: bool = False
) -> Corpus:
    """All essays, graded by one of the scores."""
    columns = {"id": ("text_id_kaggle", "text_id", "id"), "text": ("full_text", "text"), "prompt": ("prompt",)}
    rows = official_rows(file, {**columns, "score": (score,)}, "ELLIPSE")
    json_lines = file.suffix.lower() in (".jsonl", ".ndjson")
    if len(rows) not in (*_PUBLISHED, *((_EIGHT_PROMPTS,) if json_lines else ())) and not partial:
        selection = ", 1,084 to its eight largest prompts" if json_lines else ""
        published = f"6,482 (3,911 for training, 2,571 for testing{selection})"
        raise incomplete(f"{file} has {len(rows):,} essays, and ELLIPSE has {published}")
    documents = []
    for row in rows:
        value, prompt = row.number("score", 1, 5), str(row["prompt"])
        level = LEVELS[(value > _LOWEST_MEDIUM) + (value > _LOWEST_HIGH)]
        section = prompt if by_prompt else "all"
        documents.append(Labelled(str(row["id"]), row.text(), level, section, prompt, score=value))
    return Corpus.of(f"ELLIPSE {score}", sorted(documents, key=lambda document: document.section))
