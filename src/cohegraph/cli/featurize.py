"""``cohegraph featurize``: the features of a corpus, in a folder that training takes."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from cohegraph.cli import options
from cohegraph.cli.output import counted, interruptible, say, show
from cohegraph.errors import CohegraphError
from cohegraph.presets import PRESETS, preset
from cohegraph.settings import Settings

_PRESET, _STACK = "default", "compact"
Engine = StrEnum("Engine", ["local", "ray"])


def command(
    corpus: Annotated[list[str], Argument(help="Tables (CSV, TSV, JSONL, Parquet), text files, or folders of either.")],
    out: Annotated[Path, Option(help="The folder to write the features to, or to bring up to date.")],
    text_column: options.TextColumn = "text",
    label_column: Annotated[str | None, Option(help="The column with the level; by default 'label', if any.")] = None,
    group_column: options.GroupColumn = None,
    id_column: options.IdColumn = None,
    preset_name: Annotated[str, Option("--preset", help=f"Named settings: {', '.join(PRESETS)}.")] = _PRESET,
    stack: options.StackName = _STACK,
    model: Annotated[str | None, Option(help="Use the settings of this model, which can then assess them.")] = None,
    changes: options.Changes = None,
    skip_empty: options.SkipEmpty = False,
    replace: Annotated[bool, Option("--replace", help="Replace the features of another corpus in the folder.")] = False,
    workers: Annotated[int | None, Option(min=1, max=4096, help="Processes; by default one per core.")] = None,
    engine: Annotated[Engine, Option(help="Compute in processes of this machine, or with Ray.")] = Engine.local,
    address: Annotated[str | None, Option(help="A Ray cluster; by default a local Ray is started.")] = None,
    shard: Annotated[
        int, Option(min=1, max=1_000_000, help="Documents per file: the most to redo after a stop.")
    ] = 512,
    device: options.Device = "auto",
) -> None:
    """Compute the features of a corpus once, for `cohegraph train`.

    Whatever the folder holds already is not computed again: run the same command after an interruption, or after
    documents were added. The files are the same whatever the number of workers, and whoever computed them.
    """
    settings = _settings(preset_name, stack, model, changes)
    if address and engine is not Engine.ray:
        raise CohegraphError("--address is that of a Ray cluster: add --engine ray.", code="address-without-ray")
    from cohegraph.corpora.columns import Columns
    from cohegraph.corpora.stream import Documents
    from cohegraph.features import Featurizer
    from cohegraph.features.store import check_target, is_store
    from cohegraph.scale.engine import LocalEngine
    from cohegraph.scale.featurizing import LocalSource, Source, featurize
    from cohegraph.scale.processes import cores

    names = (text_column, label_column or options.LABEL, group_column, id_column)
    columns = Columns(*names, optional_label=label_column is None, skip_empty=skip_empty)
    check_target(out)
    featurizer = Featurizer(settings, device=device)
    source: Source
    if engine is Engine.ray:
        from cohegraph.scale.ray_source import RaySource

        source = ray = RaySource(corpus, columns, featurizer, address=address, workers=workers)
        remarks = ray.remarks
    else:
        documents = Documents(corpus, columns)
        documents.check()
        processes = min(workers or cores(), len(documents))
        source = LocalSource(documents.usable(), len(documents), LocalEngine(featurizer, processes))
        remarks = documents.remarks
    say(*remarks)
    featurizer.load()
    kept = f"what is done is kept in {out}; run the same command again to resume"
    with interruptible(lambda: kept if is_store(out) else "nothing was written yet"):
        done = featurize(source, featurizer, out, shard=shard, replace=replace, show_progress=True)
    if done.damaged:
        say(f"{done.damaged} damaged file{'s were' if done.damaged > 1 else ' was'} found and computed again.")
    show(
        f"The features of {counted(done.documents, 'document')} are in {out}, {done.computed} computed now. "
        f"Train with: cohegraph train {out} --out MODEL"
    )


def _settings(preset_name: str, stack: str, model: str | None, changes: list[str] | None) -> Settings:
    if model is None:
        return preset(preset_name, stack).replaced(options.parsed(changes))
    if changes or (preset_name, stack) != (_PRESET, _STACK):
        raise CohegraphError("Use --model without --preset, --stack and --set.", code="two-settings")
    from cohegraph.models import load

    return load(model).settings_
