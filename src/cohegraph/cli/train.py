"""``cohegraph train``: a model from graded documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cohegraph.cli import INTERRUPTED
from cohegraph.cli.options import (
    LABEL,
    TEXT,
    Changes,
    Device,
    GroupColumn,
    IdColumn,
    SkipEmpty,
    SkipUnlabelled,
    StackName,
    TextColumn,
    Threads,
    set_threads,
)
from cohegraph.cli.output import complain, console, plain, say
from cohegraph.corpora.columns import Columns
from cohegraph.corpora.corpus import Corpus
from cohegraph.corpora.own import collected
from cohegraph.corpora.stream import Documents
from cohegraph.errors import CohegraphError
from cohegraph.presets import PRESETS, preset
from cohegraph.settings import parse_change

if TYPE_CHECKING:
    from cohegraph.features import Features
    from cohegraph.features.store import StoredCorpus
    from cohegraph.labels import EncodedLabels
    from cohegraph.model.validation import Validation
    from cohegraph.settings import Settings

_METHOD, _STACK = "gcn", "compact"


def train(
    corpus: Annotated[
        Path,
        typer.Argument(
            help="Graded documents, one a row: CSV, TSV, JSONL or Parquet; or a folder of 'cohegraph featurize'."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The folder to write the model to.")],
    system: Annotated[str, typer.Option(help="What to train; 'cohegraph systems' lists all systems.")] = _METHOD,
    text_column: TextColumn = TEXT,
    label_column: Annotated[str, typer.Option(help="The column with the level.")] = LABEL,
    group_column: GroupColumn = None,
    levels: Annotated[
        str | None, typer.Option(help="The levels from lowest to highest, with commas between: poor,fair,good")
    ] = None,
    folds: Annotated[
        int, typer.Option(min=0, help="Folds of the cross-validation that tells how good the model is; 0 for none.")
    ] = 5,
    preset_name: Annotated[
        str | None,
        typer.Option(
            "--preset",
            help=f"Named settings, by default 'default', or those of the features: {', '.join(PRESETS)}.",
        ),
    ] = None,
    stack: StackName = _STACK,
    changes: Changes = None,
    skip_unlabelled: SkipUnlabelled = False,
    skip_empty: SkipEmpty = False,
    keep_neighbours: Annotated[
        bool,
        typer.Option(
            "--keep-neighbours",
            help="Keep ids, levels and patterns of the documents: explanations then name those that connect alike.",
        ),
    ] = False,
    keep_texts: Annotated[
        bool, typer.Option("--keep-texts", help="Keep their texts too: whoever has the model can read them.")
    ] = False,
    id_column: IdColumn = None,
    workers: Annotated[
        int, typer.Option(min=1, max=1024, help="Processes that train together, on a folder of 'cohegraph featurize'.")
    ] = 1,
    device: Device = "auto",
    threads: Threads = None,
) -> None:
    """Train a model on graded documents and save it.

    The documents are read once; cross-validation shows what accuracy to expect on new ones; the saved model is then
    trained on all of them. The folder appears only when the model is complete. Of a folder of 'cohegraph featurize',
    however large, vectors stay on disk, and a training that was stopped goes on where it was.
    """
    from cohegraph.features.store import is_store
    from cohegraph.labels import encode_labels
    from cohegraph.model.coherence_model import CoherenceModel
    from cohegraph.model.persistence import check_target
    from cohegraph.model.validation import check_folds, validated_fit
    from cohegraph.scale.checkpoints import only_trainer, remove_checkpoints
    from cohegraph.scale.team import run_together
    from cohegraph.scale.training import fit_in_chunks
    from cohegraph.systems.changes import apply_changes
    from cohegraph.systems.registry import system_named
    from cohegraph.systems.system import TrainsInChunks

    wanted = dict(parse_change(change) for change in changes or [])
    order = [level.strip() for level in levels.split(",")] if levels else None
    of_store = is_store(corpus)
    in_chunks = of_store and issubclass(system_named(system), TrainsInChunks)
    if workers > 1 and not in_chunks:
        raise CohegraphError(
            f"Several workers cannot train the system '{system}' on {corpus}: leave out --workers, or train "
            f"'{_METHOD}' on a folder of 'cohegraph featurize'.",
            code="workers-without-chunks",
        )
    names = (text_column, label_column, group_column, id_column)
    columns = Columns(*names, skip_empty=skip_empty, skip_unlabelled=skip_unlabelled)
    graded: Corpus | StoredCorpus
    documents: Features | list[str]
    groups: Sequence[str] | None
    if of_store:
        graded = _of_store(corpus, columns, keep_texts)
        documents, groups, settings = graded.features, graded.known_groups, _settings_for(graded, preset_name, stack)
    else:
        settings = preset(preset_name or "default", stack)
        graded = _of_table(corpus, columns, order)
        documents, groups = list(graded.texts), graded.groups
    target = check_target(out)
    settings, hyper_parameters = apply_changes(system, settings, wanted)
    model = CoherenceModel(system, settings, order, device, hyper_parameters or None)
    encoded = encode_labels(graded.labels, order)
    if folds:
        check_folds(encoded.values, groups, folds)
    set_threads(threads)
    unfinished = target.with_name(f"{target.name}.unfinished")
    try:
        # What is wrong with the features, or with the pretrained parts, is said before anything else.
        if of_store:
            model.featurize(documents)
        else:
            model.featurizer.load(model.needs)
        _say_levels(encoded)
        features = model.featurize(documents, show_progress=True)
        labels = encoded.values
        with only_trainer(unfinished) if in_chunks else nullcontext():
            if in_chunks:
                model, validation = run_together(
                    workers, fit_in_chunks, model, features, labels, groups, folds, unfinished, graded.fingerprint
                )
            else:
                validation = validated_fit(model, features, labels, groups, folds)
            if keep_neighbours or keep_texts:
                texts = graded.texts if keep_texts and isinstance(graded, Corpus) else None
                model.keep_neighbours(features, labels, ids=graded.ids, texts=texts)
            model.save(out)
            if in_chunks:
                remove_checkpoints(unfinished)
    except KeyboardInterrupt:
        kept = f"; the same command goes on from {unfinished}" if in_chunks and unfinished.is_dir() else ""
        complain(f"Interrupted: nothing was written to {out}{kept}.")
        raise typer.Exit(INTERRUPTED) from None
    _tell(validation, out)


def _of_table(place: Path, columns: Columns, levels: list[str] | None) -> Corpus:
    documents = Documents([str(place)], columns)
    corpus = collected(documents, place.stem, levels)
    for remark in documents.remarks:
        say(remark)
    return corpus


def _of_store(folder: Path, columns: Columns, keep_texts: bool) -> StoredCorpus:
    """The labelled documents of a store; an error where options are given that concern texts."""
    from cohegraph.features.store import FeatureStore

    if keep_texts:
        raise CohegraphError(f"{folder} holds features and no texts: train without --keep-texts.")
    if columns != Columns(TEXT, LABEL, skip_unlabelled=columns.skip_unlabelled):
        raise CohegraphError(f"{folder} holds features: name columns when they are made, with 'cohegraph featurize'.")
    return FeatureStore(folder).labelled(skip_unlabelled=columns.skip_unlabelled, show_progress=True)


def _settings_for(stored: StoredCorpus, preset_name: str | None, stack: str) -> Settings:
    """The settings of the features; of a preset, what concerns training, and an error where features would differ."""
    from cohegraph.model.checks import check_same_settings

    made_with = stored.features.settings
    if made_with is None:
        raise AssertionError("stored features know their settings")
    if preset_name is None and stack == _STACK:
        return made_with
    named = preset(preset_name or "default", stack)
    check_same_settings(named.of_features(), made_with.of_features())
    return named


def _say_levels(encoded: EncodedLabels) -> None:
    counts = Counter(encoded.values.tolist())
    shares = ", ".join(f"{level}: {counts[level]}" for level in encoded.levels)
    say(f"{len(encoded.values)} documents ({shares}).")
    if not encoded.ordered:
        say("The order of these levels is not known: name them from lowest to highest with --levels.")


def _tell(validation: Validation | None, out: Path) -> None:
    if validation:
        figures = validation.figures
        console().print(
            *plain(
                f"Accuracy in {figures['folds']}-fold cross-validation: {100 * figures['accuracy']:.1f} % "
                f"(± {100 * figures['std']:.1f}). "
                f"Always the most frequent level: {100 * figures['majority']:.1f} %."
            )
        )
        if figures["accuracy"] <= figures["majority"]:
            hint = "" if figures["grouped"] else ", or --group-column if texts come in groups"
            say(f"That is no better than guessing: more documents may help{hint}.")
    console().print(*plain(f"The model is in {out}. Use it with: cohegraph assess FILE.txt --model {out}"))
