"""``cohegraph featurize``: the features of a corpus, in a folder that training takes."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cohegraph.cli import INTERRUPTED
from cohegraph.cli.options import LABEL, Changes, Device, GroupColumn, IdColumn, SkipEmpty, StackName, TextColumn
from cohegraph.cli.output import complain, console, counted, plain, say
from cohegraph.errors import CohegraphError
from cohegraph.presets import PRESETS, preset
from cohegraph.settings import parse_change

if TYPE_CHECKING:
    from cohegraph.scale.featurizing import Source
    from cohegraph.settings import Settings


_PRESET, _STACK = "default", "compact"


class Engine(StrEnum):
    """Who computes features."""

    LOCAL = "local"
    RAY = "ray"


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
    preset_name: Annotated[str, typer.Option("--preset", help=f"Named settings: {', '.join(PRESETS)}.")] = _PRESET,
    stack: StackName = _STACK,
    model: Annotated[
        str | None,
        typer.Option(
            help="A model, by its name or folder, whose settings to take, so that it can assess the features."
        ),
    ] = None,
    changes: Changes = None,
    skip_empty: SkipEmpty = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Let the corpus replace another one whose features are in the folder.")
    ] = False,
    workers: Annotated[
        int | None, typer.Option(min=1, max=4096, help="Processes that compute; by default one a core.")
    ] = None,
    engine: Annotated[
        Engine, typer.Option(help="Who computes: processes of this machine, or Ray, on this machine or a cluster.")
    ] = Engine.LOCAL,
    address: Annotated[
        str | None, typer.Option(help="The address of a Ray cluster; by default a Ray is started here.")
    ] = None,
    shard: Annotated[
        int,
        typer.Option(
            min=1, max=1_000_000, help="Documents in a file: so many at most are computed again after a stop."
        ),
    ] = 512,
    device: Device = "auto",
) -> None:
    """Compute the features of a corpus once, for `cohegraph train`.

    Whatever the folder holds already is not computed again: run the same command after an interruption, or after
    documents were added. The files are the same whatever the number of workers, and whoever computed them.
    """
    settings = _settings(preset_name, stack, model, changes)
    if address and engine is not Engine.RAY:
        raise CohegraphError("--address is that of a Ray cluster: add --engine ray.", code="address-without-ray")
    from cohegraph.corpora.columns import Columns
    from cohegraph.corpora.stream import Documents
    from cohegraph.features import Featurizer
    from cohegraph.features.store import check_target, is_store
    from cohegraph.scale.engine import LocalEngine
    from cohegraph.scale.featurizing import LocalSource, featurize
    from cohegraph.scale.processes import cores

    names = (text_column, label_column or LABEL, group_column, id_column)
    columns = Columns(*names, optional_label=label_column is None, skip_empty=skip_empty)
    check_target(out)
    featurizer = Featurizer(settings, device=device)
    source: Source
    if engine is Engine.RAY:
        from cohegraph.scale.ray_source import RaySource

        source = ray = RaySource(corpus, columns, featurizer, address=address, workers=workers)
        remarks = ray.remarks
    else:
        documents = Documents(corpus, columns)
        documents.check()
        processes = min(workers or cores(), len(documents))
        source = LocalSource(documents.usable(), len(documents), LocalEngine(featurizer, processes))
        remarks = documents.remarks
    for remark in remarks:
        say(remark)
    featurizer.load()
    try:
        done = featurize(source, featurizer, out, shard=shard, replace=replace, show_progress=True)
    except KeyboardInterrupt:
        kept = f"what is done is kept in {out}; the same command goes on with the rest"
        complain(f"Interrupted: {kept if is_store(out) else 'nothing was written yet'}.")
        raise typer.Exit(INTERRUPTED) from None
    if done.damaged:
        say(f"{done.damaged} damaged file{'s were' if done.damaged > 1 else ' was'} found and made anew.")
    console().print(
        *plain(
            f"The features of {counted(done.documents, 'document')} are in {out}, {done.computed} computed now. "
            f"Train with: cohegraph train {out} --out MODEL"
        )
    )


def _settings(preset_name: str, stack: str, model: str | None, changes: list[str] | None) -> Settings:
    if model is None:
        return preset(preset_name, stack).replaced(dict(parse_change(change) for change in changes or []))
    if changes or (preset_name, stack) != (_PRESET, _STACK):
        raise CohegraphError(
            "The settings are those of --model: leave out --preset, --stack and --set.", code="two-settings"
        )
    from cohegraph.models import load

    return load(model).settings_
