"""The Grammarly Corpus of Discourse Coherence (Lai and Tetreault, 2018), as its owners give it out on request.

A folder with ``Clinton_train.csv``, ``Clinton_test.csv`` and likewise for Enron, Yahoo and Yelp. The domains are the
sections; ``labelA`` (experts) or ``labelM`` (other raters) is 1, 2 or 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from cohegraph.corpora.corpus import LEVELS, Corpus, check_sections, check_sizes, incomplete, rows_with, text_of
from cohegraph.errors import CohegraphError

DOMAINS = ("Yahoo", "Clinton", "Enron", "Yelp")
_SIZES = {"train": 1_000, "test": 200}
_LEVELS = dict(zip("123", LEVELS, strict=True))


def read_gcdc(
    folder: Path,
    *,
    label: Literal["labelA", "labelM"] = "labelA",
    partial: bool = False,
    sections: Sequence[str] | None = None,
) -> Corpus:
    """The domains wanted, or all four; of a partial corpus those whose files are in the folder."""
    domains = DOMAINS if sections is None else [domain for domain in DOMAINS if domain in sections]
    check_sections(sections or (), DOMAINS, "GCDC")
    if not folder.is_dir():
        raise CohegraphError(
            f"GCDC is a folder with Clinton_train.csv and seven files more, and {folder} is none.", code="missing-file"
        )
    expected = {(domain, split): folder / f"{domain}_{split}.csv" for domain in domains for split in _SIZES}
    present = {key: file for key, file in expected.items() if file.exists()}
    missing = [file.name for key, file in expected.items() if key not in present]
    whole = {domain for domain in domains if all((domain, split) in present for split in _SIZES)}
    lacks = f"{folder} lacks {', '.join(missing)} of GCDC"
    if not whole:
        raise CohegraphError(f"{lacks}: is it the right folder?", code="missing-file")
    if missing and not partial:
        raise incomplete(f"{lacks} (--sections names those to use)")
    documents: list[tuple[str, str, str, str, bool]] = []
    sizes: dict[str, int] = {}
    for (domain, split), file in present.items():
        if domain not in whole:
            continue
        columns = {"id": ("text_id",), "text": ("text",), "label": (label,)}
        rows = rows_with(file, columns, "GCDC")
        sizes[file.name] = len(rows)
        for number, row in enumerate(rows, start=1):
            name = f"{domain}/{split}/{row['id']}"
            level = _LEVELS.get(str(row["label"]).strip().removesuffix(".0"))
            if level is None:
                raise CohegraphError(
                    f"{file}: row {number} has the {label} '{row['label']}', not 1, 2 or 3.", code="unknown-level"
                )
            documents.append((name, text_of(row, file, f"row {number}"), level, domain, split == "test"))
    check_sizes(
        sizes,
        {f"{domain}_{split}.csv": (size,) for domain in domains for split, size in _SIZES.items()},
        "GCDC",
        partial=partial,
    )
    ids, texts, labels, sections, test = zip(*documents, strict=True)
    return Corpus("GCDC", ids, texts, labels, LEVELS, sections, test=test)
