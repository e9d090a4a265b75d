"""``cohegraph featurize``: the features of a corpus, in a folder that training takes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cohegraph.cli import INTERRUPTED
from cohegraph.cli.options import Changes, Device, GroupColumn, IdColumn, StackName, TextColumn
from cohegraph.cli.output import complain, console, plain, say
from cohegraph.corpora.stream import Documents
from cohegraph.errors import CohegraphError
from cohegraph.labels import is_missing_label
from cohegraph.presets import PRESETS, preset
from cohegraph.settings import parse_change
from cohegraph.text.document import well_formed

if TYPE_CHECKING:
    from cohegraph.scale.featurizing import GivenDocument

_LABEL = "label"


def command(
    corpus: Annotated[
        list[str], typer.Argument(help="Tables (CSV, TSV, JSONL, Parquet), text files, or folders of either.")
    ],
    out: Annotated[Path, typer.Option(help="The folder to write the features to, or to bring up to date.")],
    text_column: TextColumn = "text",
    label_column: Annotated[
        str | None, typer.Option(help="The column with the level; by default 'label', where there is one.")
    ] = None,
    group_column: GroupColumn = None,
    id_column: IdColumn = None,
    preset_name: Annotated[str, typer.Option("--preset", help=f"Named settings: {', '.join(PRESETS)}.")] = "default",
    stack: StackName = "compact",
    changes: Changes = None,
    workers: Annotated[
        int | None, typer.Option(min=1, max=1024, help="Processes that compute; by default one a core.")
    ] = None,
    device: Device = "auto",
) -> None:
    """Compute the features of a corpus once, for `cohegraph train`.

    Whatever the folder holds already is not computed again: run the same command after an interruption, or after
    documents were added. The files are the same whatever the number of workers.
    """
    settings = preset(preset_name, stack).replaced(dict(parse_change(change) for change in changes or []))
    required = [column for column in (label_column, group_column, id_column) if column]
    documents = Documents(corpus, text_column, required, () if label_column else (_LABEL,))
    if documents.problems:
        raise CohegraphError(documents.problems[0])
    from cohegraph.features import Featurizer
    from cohegraph.scale.engine import LocalEngine
    from cohegraph.scale.feature_store import check_target
    from cohegraph.scale.featurizing import LocalSource, featurize
    from cohegraph.scale.processes import cores

    check_target(out)
    featurizer = Featurizer(settings, device=device)
    featurizer.load()
    given = _given(documents, label_column or _LABEL, group_column, id_column)
    source = LocalSource(given, len(documents), LocalEngine(featurizer, min(workers or cores(), len(documents))))
    try:
        done = featurize(source, featurizer, out, show_progress=True)
    except KeyboardInterrupt:
        complain(f"Interrupted: what is done is kept in {out}; the same command goes on with the rest.")
        raise typer.Exit(INTERRUPTED) from None
    if done.damaged:
        say(f"{done.damaged} damaged file{'s were' if done.damaged > 1 else ' was'} found and made anew.")
    console().print(
        *plain(
            f"The features of {done.documents} documents are in {out}, {done.computed} of them computed now. "
            f"Train with: cohegraph train {out} --out MODEL"
        )
    )


def _given(
    documents: Documents, label_column: str, group_column: str | None, id_column: str | None
) -> Iterator[GivenDocument]:
    from cohegraph.scale.featurizing import GivenDocument

    for entry in documents:
        if entry.problem:
            raise CohegraphError(f"{entry.problem} Mend or remove it, and run the same command again.")
        label, group, name = (
            entry.fields.get(column) for column in (label_column, group_column or "", id_column or "")
        )
        yield GivenDocument(
            entry.text,
            well_formed(str(name)) if id_column else None,
            None if is_missing_label(label) else well_formed(label) if isinstance(label, str) else label,
            well_formed(str(group)) if group_column else None,
        )
