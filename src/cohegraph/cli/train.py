"""``cohegraph train``: a model from graded documents."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from cohegraph.labels import as_labels
from cohegraph.presets import PRESETS, preset
from cohegraph.settings import parse_change

if TYPE_CHECKING:
    from cohegraph.features import Features
    from cohegraph.features.store import FeatureStore, StoredCorpus
    from cohegraph.model.coherence_model import CoherenceModel
    from cohegraph.model.validation import Validation
    from cohegraph.settings import Settings

_METHOD, _STACK = "gcn", "compact"
_OF_RATINGS = ("rating", "ranking")


class Objective(StrEnum):
    """What can be learnt."""

    LEVELS = "levels"
    ORDINAL = "ordinal"
    RATING = "rating"
    RANKING = "ranking"


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
    label_column: Annotated[str, typer.Option(help="The column with the level or rating.")] = LABEL,
    objective: Annotated[
        Objective | None,
        typer.Option(
            help="What to learn: levels (the default), levels in an order, ratings, or a ranking within the groups of "
            "--group-column. Ratings run from 0 to 1 unless --set objective.range=[1,5] says otherwise."
        ),
    ] = None,
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

    The documents are read once; cross-validation shows what to expect on new ones; the saved model is then
    trained on all of them. The folder appears only when the model is complete. Of a folder of 'cohegraph featurize',
    however large, vectors stay on disk, and a training that was stopped resumes when the same command is run again.
    """
    wanted = dict(parse_change(change) for change in changes or [])
    if objective is not None:
        wanted["objective.kind"] = objective.value
    order = [level.strip() for level in levels.split(",")] if levels else None
    names = (text_column, label_column, group_column, id_column)
    columns = Columns(*names, skip_empty=skip_empty, skip_unlabelled=skip_unlabelled)
    store = _store(corpus, columns, keep_texts)
    if store is None:
        graded: Corpus | StoredCorpus = _read(corpus, columns, order, rated=wanted.get("objective.kind") in _OF_RATINGS)
        settings = preset(preset_name or "default", stack)
    else:
        settings = _settings_of_store(store, preset_name, stack, wanted)
        graded = store.labelled(skip_unlabelled=skip_unlabelled, show_progress=True)
    # Only now: importing torch takes seconds, and a wrong file name should not have to wait for that.
    from cohegraph.model.persistence import check_target
    from cohegraph.systems.registry import system_named
    from cohegraph.systems.system import TrainsInChunks

    model = _new_model(system, settings, wanted, order, device)
    # A ranking compares documents with each other, wherever they lie: it is trained in memory.
    is_ranking = model.resolved_settings.objective.kind == "ranking"
    in_chunks = store is not None and issubclass(system_named(system), TrainsInChunks) and not is_ranking
    if workers > 1 and not in_chunks:
        raise CohegraphError(
            f"Several workers cannot train the system '{system}' on {corpus}{' to rank' if is_ranking else ''}: leave "
            f"out --workers, or train '{_METHOD}' on a folder of 'cohegraph featurize', with another objective than "
            "ranking.",
            code="workers-without-chunks",
        )
    target = check_target(out)
    summary = _checked_labels(model, graded, folds)
    set_threads(threads)
    unfinished = target.with_name(f"{target.name}.unfinished")
    try:
        features = _features(model, graded, summary)
        if not in_chunks:
            features = features.in_memory()
        with _only_trainer(unfinished, in_chunks):
            model, validation = _trained(model, features, graded, folds, workers, unfinished if in_chunks else None)
            if keep_neighbours or keep_texts:
                texts = graded.texts if keep_texts and isinstance(graded, Corpus) else None
                model.keep_neighbours(features, graded.labels, ids=graded.ids, texts=texts)
            model.save(out)
            if in_chunks:
                _remove_checkpoints(unfinished)
    except KeyboardInterrupt:
        kept = f"; run the same command again to resume from {unfinished}" if unfinished.is_dir() else ""
        complain(f"Interrupted: nothing was written to {out}{kept}.")
        raise typer.Exit(INTERRUPTED) from None
    _tell(validation, out)


def _read(corpus: Path, columns: Columns, levels: list[str] | None, *, rated: bool) -> Corpus:
    """The labelled documents of a table."""
    documents = Documents([str(corpus)], columns)
    found = collected(documents, corpus.stem, levels, rated=rated)
    for remark in documents.remarks:
        say(remark)
    return found


def _new_model(
    system: str, settings: Settings, changes: dict[str, Any], levels: list[str] | None, device: str
) -> CoherenceModel:
    from cohegraph.model.coherence_model import CoherenceModel
    from cohegraph.systems.changes import apply_changes

    settings, hyper_parameters = apply_changes(system, settings, changes)
    return CoherenceModel(system, settings, levels, device, hyper_parameters or None)


def _checked_labels(model: CoherenceModel, graded: Corpus | StoredCorpus, folds: int) -> str:
    """What there is to learn from, in a sentence; an error where it cannot be learnt, or not be split into folds."""
    from cohegraph.model.answers import Answers
    from cohegraph.model.validation import fold_splits

    settings, groups = model.resolved_settings.objective, graded.known_groups
    answers = Answers.of(graded.labels, groups, model.levels, settings)
    if folds:
        fold_splits(answers, groups, folds)
    number, ratings = len(answers.targets), 100 * answers.targets.values
    if not settings.is_of_levels:
        return f"{number} documents, rated {ratings.mean():.0f} of 100 on average (± {ratings.std():.0f})."
    counts = answers.counted(answers.targets)
    order = "" if answers.ordered else " The order of these levels is not known: name it with --levels."
    return f"{number} documents ({', '.join(f'{level}: {counts[str(level)]}' for level in answers.levels)}).{order}"


def _features(model: CoherenceModel, graded: Corpus | StoredCorpus, summary: str) -> Features:
    """The features of the documents; what is wrong with them, or with the pretrained parts, is noticed first."""
    if isinstance(graded, Corpus):
        model.featurizer.load(model.needs)
        say(summary)
        return model.featurize(graded.texts, show_progress=True)
    features = model.featurize(graded.features)
    say(summary)
    return features


def _trained(
    model: CoherenceModel,
    features: Features,
    graded: Corpus | StoredCorpus,
    folds: int,
    workers: int,
    checkpoints: Path | None,
) -> tuple[CoherenceModel, Validation | None]:
    """The trained model and what cross-validation found; with a place for checkpoints, in chunks."""
    from cohegraph.model.validation import validated_fit
    from cohegraph.scale.team import run_together
    from cohegraph.scale.training import fit_in_chunks

    labels, groups = as_labels(graded.labels), graded.known_groups
    if checkpoints is None:
        return model, validated_fit(model, features, labels, groups, folds)
    return run_together(workers, fit_in_chunks, model, features, labels, groups, folds, checkpoints, graded.fingerprint)


def _only_trainer(folder: Path, in_chunks: bool) -> AbstractContextManager[None]:
    from cohegraph.files import alone_in

    return alone_in(folder) if in_chunks else nullcontext()


def _remove_checkpoints(folder: Path) -> None:
    from cohegraph.scale.checkpoints import remove_checkpoints

    remove_checkpoints(folder)


def _store(folder: Path, columns: Columns, keep_texts: bool) -> FeatureStore | None:
    """The store in a folder, if there is one; an error where options are given that concern texts."""
    if not folder.is_dir():
        return None
    from cohegraph.features.store import FeatureStore, is_store

    if not is_store(folder):
        return None
    if keep_texts:
        raise CohegraphError(f"{folder} holds features and no texts: train without --keep-texts.", code="no-texts")
    if columns != Columns(TEXT, LABEL, skip_unlabelled=columns.skip_unlabelled):
        raise CohegraphError(
            f"{folder} holds features: name columns when they are made, with 'cohegraph featurize'.",
            code="columns-of-features",
        )
    return FeatureStore(folder)


def _settings_of_store(store: FeatureStore, preset_name: str | None, stack: str, changes: dict[str, Any]) -> Settings:
    """The settings that features were made with, or named ones that differ only in what concerns training."""
    from cohegraph.model.checks import check_same_settings

    made_with = store.settings.of_features()
    is_named = preset_name is not None or stack != _STACK
    settings = preset(preset_name or "default", stack) if is_named else store.settings
    wanted = settings.replaced({name: value for name, value in changes.items() if name in made_with})
    check_same_settings(wanted.of_features(), made_with)
    return settings


def _tell(validation: Validation | None, out: Path) -> None:
    from cohegraph.model.card import validation_in_words

    if validation:
        figures = validation.figures
        found = validation_in_words(figures)
        console().print(*plain(f"{figures['folds']}-fold cross-validation: {found}"))
        reached, chance = figures.get("accuracy", figures.get("ordered_pairs")), figures.get("majority", 0.5)
        if reached <= chance:
            hint = "" if figures["grouped"] else ", or --group-column if texts come in groups"
            say(f"That is no better than guessing: more documents may help{hint}.")
    console().print(*plain(f"The model is in {out}. Use it with: cohegraph assess FILE.txt --model {out}"))
