"""The Grammarly Corpus of Discourse Coherence (Lai and Tetreault, 2018), as its owners give it out on request.

A folder with ``Clinton_train.csv``, ``Clinton_test.csv`` and likewise for Enron, Yahoo and Yelp. The domains are the
sections; ``labelA`` (experts) or ``labelM`` (other raters) is 1, 2 or 3.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from cohegraph.corpora.corpus import LEVELS, Corpus, Labelled, check_sections, check_sizes, incomplete, official_rows
from cohegraph.errors import CohegraphError

_DOMAINS = ("Yahoo", "Clinton", "Enron", "Yelp")
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
    check_sections(sections or (), _DOMAINS, "GCDC")
    if not folder.is_dir():
        raise CohegraphError(f"{folder} is not a folder with the eight files of GCDC.", code="missing-file")
    domains = [domain for domain in _DOMAINS if sections is None or domain in sections]
    files = {domain: {split: folder / f"{domain}_{split}.csv" for split in _SIZES} for domain in domains}
    missing = [file.name for splits in files.values() for file in splits.values() if not file.exists()]
    whole = {domain: splits for domain, splits in files.items() if all(file.exists() for file in splits.values())}
    lacks = f"{folder} lacks {', '.join(missing)} of GCDC"
    if not whole:
        raise CohegraphError(f"{lacks}: is it the right folder?", code="missing-file")
    if missing and not partial:
        raise incomplete(f"{lacks} (--sections names those to use)")
    documents, sizes, published = [], {}, {}
    for domain, split, file in [(domain, *item) for domain, splits in whole.items() for item in splits.items()]:
        rows = official_rows(file, {"id": ("text_id",), "text": ("text",), "label": (label,)}, "GCDC")
        sizes[file.name], published[file.name] = len(rows), (_SIZES[split],)
        for row in rows:
            level = _LEVELS.get(str(row["label"]).strip().removesuffix(".0"))
            if level is None:
                message = f"{row.place} has the {label} '{row['label']}', not 1, 2 or 3."
                raise CohegraphError(message, code="unknown-level")
            name = f"{domain}/{split}/{row['id']}"
            documents.append(Labelled(name, row.text(), level, domain, test=split == "test"))
    check_sizes("GCDC", sizes, published, partial)
    return Corpus.of("GCDC", documents)
