"""``cohegraph corrupt``: corrupted versions of coherent texts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from cohegraph.cli import options
from cohegraph.cli.output import counted, interruptible, say, show
from cohegraph.corpora.corruptions import KINDS, DonorPool, Piece, chosen, is_similar, versions_of
from cohegraph.corpora.prose import collect_prose, prose_columns, prose_documents, sample
from cohegraph.errors import CohegraphError
from cohegraph.files import check_writable, new_file
from cohegraph.progress import track
from cohegraph.reading.pieces import parsed_pieces, similar_sentences

_DONORS = "Donors, as in join:source: work (another part of the same work), source (another work of the same source), "
_DONORS += "elsewhere (another source), similar (the most similar sentences of other texts; needs the encoder)."
EPILOG = "\n\n".join(
    ["Kinds:", *(f"{', '.join(kind.names)}: {kind.about}." for kind in KINDS.values()), _DONORS],
)


def corrupt(
    prose: Annotated[list[str], Argument(help="Tables (CSV, TSV, JSONL, Parquet), text files, or folders of either.")],
    out: Annotated[Path, Option(help="The JSON Lines file to write, one pair of texts per line.")],
    kinds: Annotated[
        str | None, Option(help="Kinds, such as shuffle,join or insert:similar; by default all without 'similar'.")
    ] = None,
    versions: Annotated[
        int | None, Option(min=1, max=1000, help="Pairs per text, of kinds drawn at random; by default one of each.")
    ] = None,
    seed: Annotated[int, Option(help="The seed of all random choices.")] = 0,
    limit: Annotated[
        int | None, Option(min=1, help="Use only this many texts, chosen at random; by default all.")
    ] = None,
    force: Annotated[bool, Option("--force", help="Overwrite an existing file.")] = False,
    text_column: options.TextColumn = "text",
    id_column: options.ProseIdColumn = None,
    source_column: options.SourceColumn = None,
    work_column: options.WorkColumn = None,
) -> None:
    """Write corrupted versions of coherent texts, with the places of the damage.

    Each line has the original and the corrupted text, which agree in the number of sentences and nearly in length, and
    the broken boundaries of the corrupted one. The same texts and options give the same bytes.
    """
    names = chosen(options.listed(kinds))
    if not names:
        raise CohegraphError("--kinds names no kind: leave it out for all of them.", code="unknown-kind")
    documents = prose_documents(prose, prose_columns(text_column, id_column, work_column, source_column))
    if documents.are_read_from(out):
        raise CohegraphError(f"{out} is one of the texts: name another file for the pairs.", code="out-is-input")
    if out.is_dir():
        raise CohegraphError(f"{out} is a folder: name a file for the pairs.", code="is-a-folder")
    if out.exists() and not (out.is_file() and not out.is_symlink()):
        raise CohegraphError(f"{out} is not a regular file: name another file for the pairs.", code="is-special")
    if out.exists() and not force:
        raise CohegraphError(f"{out} exists: replace it with --force, or name another file.", code="exists")
    if not out.parent.is_dir():
        raise CohegraphError(f"There is no folder {out.parent}: make it first.", code="cannot-write")
    check_writable(out.parent)
    texts = collect_prose(documents)
    say(*documents.remarks)
    texts = texts if limit is None else sample(texts, limit, seed)
    with interruptible(lambda: "nothing was written"):
        pieces = list(parsed_pieces(texts))
        pool = DonorPool(pieces)
        if any(map(is_similar, names)):
            from cohegraph.text.encoder import TransformerEncoder

            pool.similar = similar_sentences(pool, TransformerEncoder(device="cpu"), seed)
        made, lacking = _write(out, pieces, pool, names, versions, seed)
    summary = f"{counted(made.total(), 'pair')} from {counted(len(pieces), 'text')} in {out}: {_listed(made, names)}"
    too_short = (
        f"; not possible, because a text is too short or has no donor, name or connective: {_listed(lacking, names)}"
        if lacking
        else ""
    )
    show(f"{summary}{too_short}.")


def _listed(numbers: Counter[str], names: Sequence[str]) -> str:
    return ", ".join(f"{name} {numbers[name]}" for name in names if numbers[name])


def _write(
    out: Path, pieces: Sequence[Piece], pool: DonorPool, names: Sequence[str], versions: int | None, seed: int
) -> tuple[Counter[str], Counter[str]]:
    """The number of pairs of each kind, and of texts of which none could be made."""
    made, lacking = Counter[str](), Counter[str]()
    with new_file(out) as stream:
        for piece in track(pieces, "corrupting", len(pieces)):
            for name, found in versions_of(piece, names, pool, versions=versions, seed=seed):
                if found is None:
                    lacking[name] += 1
                else:
                    made[name] += 1
                    stream.write(json.dumps(found.to_dict(), ensure_ascii=False).encode("utf-8", "replace") + b"\n")
        if not made:
            raise CohegraphError("No text is long enough, or suitable, for any of these kinds.", code="too-short")
    return made, lacking
