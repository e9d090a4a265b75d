"""``cohegraph train``: a model from graded documents."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from cohegraph.cli import options
from cohegraph.cli.output import interruptible, say, show
from cohegraph.corpora.columns import Columns
from cohegraph.corpora.corpus import Corpus
from cohegraph.corpora.own import collected
from cohegraph.corpora.stream import Documents
from cohegraph.errors import CohegraphError
from cohegraph.labels import as_labels
from cohegraph.presets import PRESETS, preset
from cohegraph.systems import check_names

if TYPE_CHECKING:
    from cohegraph.features import Features
    from cohegraph.features.store import FeatureStore, StoredCorpus
    from cohegraph.model.coherence_model import CoherenceModel
    from cohegraph.model.validation import Validation
    from cohegraph.settings import ObjectiveSettings, Settings

_METHOD, _STACK = "gcn", "compact"
Objective = StrEnum("Objective", ["levels", "ordinal", "rating", "ranking"])


def train(
    corpus: Annotated[
        Path, Argument(help="A graded table (CSV, TSV, JSONL, Parquet), or a folder of 'cohegraph featurize'.")
    ],
    out: Annotated[Path, Option(help="The folder to write the model to.")],
    system: Annotated[str, Option(help="What to train; 'cohegraph systems' lists all systems.")] = _METHOD,
    text_column: options.TextColumn = options.TEXT,
    label_column: Annotated[str, Option(help="The column with the level or rating.")] = options.LABEL,
    objective: Annotated[
        Objective | None,
        Option(
            help="What to learn: levels (the default), levels in an order, ratings, or a ranking within the groups of "
            "--group-column. Ratings run from 0 to 1 unless --set objective.range=[1,5] says otherwise."
        ),
    ] = None,
    group_column: options.GroupColumn = None,
    levels: Annotated[str | None, Option(help="The levels from lowest to highest: poor,fair,good")] = None,
    folds: Annotated[int, Option(min=0, help="Folds of the cross-validation; 0 for none.")] = 5,
    preset_name: Annotated[
        str | None,
        Option("--preset", help=f"Named settings; by default those of the features, or default: {', '.join(PRESETS)}."),
    ] = None,
    stack: options.StackName = _STACK,
    changes: options.Changes = None,
    skip_unlabelled: options.SkipUnlabelled = False,
    skip_empty: options.SkipEmpty = False,
    keep_neighbours: Annotated[
        bool, Option("--keep-neighbours", help="Keep ids, levels and patterns, to name similar documents.")
    ] = False,
    keep_texts: Annotated[
        bool, Option("--keep-texts", help="Keep texts too: they can be read from the model.")
    ] = False,
    id_column: options.IdColumn = None,
    workers: Annotated[int, Option(min=1, max=1024, help="Processes that train together on a folder of features.")] = 1,
    device: options.Device = "auto",
    threads: options.Threads = None,
) -> None:
    """Train a model on graded documents and save it.

    The documents are read once; cross-validation shows what to expect on new ones; the saved model is then
    trained on all of them. The folder appears only when the model is complete. With a folder of 'cohegraph
    featurize', however large, vectors stay on disk, and a training that was stopped resumes when the same command is
    run again.
    """
    wanted = options.parsed(changes)
    if objective is not None and wanted.setdefault("objective.kind", objective.value) != objective.value:
        contradiction = "--objective and --set objective.kind contradict each other: give one."
        raise CohegraphError(contradiction, code="two-objectives")
    order, names = options.listed(levels) or None, (text_column, label_column, group_column, id_column)
    columns = Columns(*names, skip_empty=skip_empty, skip_unlabelled=skip_unlabelled)
    check_names(system, wanted)
    # All that can be checked is checked before torch is imported, which takes seconds.
    store = _store(corpus, columns, keep_texts)
    if store is None:
        rated = wanted.get("objective.kind") in ("rating", "ranking")
        graded: Corpus | StoredCorpus = _read(corpus, columns, order, rated=rated)
        settings = preset(preset_name or "default", stack)
    else:
        settings = _settings_of_store(store, preset_name, stack, wanted)
        graded = store.labelled(skip_unlabelled=skip_unlabelled, show_progress=True)
    from cohegraph.model.persistence import check_target

    changed = settings.replaced({name: value for name, value in wanted.items() if "." in name})
    from cohegraph.graph.links import linker_named

    for name in changed.links.linkers:
        linker_named(name)  # raises where there is no such linker
    summary = _checked_labels(graded, order, changed.objective, folds)
    target = check_target(out)
    model, in_chunks = _new_model(system, settings, wanted, order, device, graded)
    if workers > 1 and not in_chunks:
        remedy = f"leave out --workers, or train '{_METHOD}' on a folder of 'cohegraph featurize', not to rank"
        message = f"Several workers cannot train the system '{system}' on {corpus}: {remedy}."
        raise CohegraphError(message, code="workers-without-chunks")
    options.set_threads(threads)
    unfinished = target.with_name(f"{target.name}.unfinished")

    def state() -> str:
        kept = f"; run the same command again to resume from {unfinished}" if unfinished.is_dir() else ""
        return f"nothing was written to {out}{kept}"

    from cohegraph.files import alone_in
    from cohegraph.scale.checkpoints import remove_checkpoints

    with interruptible(state):
        features = _features(model, graded, summary)
        if not in_chunks:
            features = features.in_memory()
        with alone_in(unfinished) if in_chunks else nullcontext():
            model, validation = _trained(model, features, graded, folds, workers, unfinished if in_chunks else None)
            if keep_neighbours or keep_texts:
                texts = graded.texts if keep_texts and isinstance(graded, Corpus) else None
                model.keep_neighbours(features, graded.labels, ids=graded.ids, texts=texts)
            model.save(out)
            if in_chunks:
                remove_checkpoints(unfinished)
    _report(validation, out)


def _read(corpus: Path, columns: Columns, levels: list[str] | None, *, rated: bool) -> Corpus:
    """The labelled documents of a table."""
    documents = Documents([str(corpus)], columns)
    found = collected(documents, corpus.stem, levels, rated=rated)
    say(*documents.remarks)
    return found


def _store(folder: Path, columns: Columns, keep_texts: bool) -> FeatureStore | None:
    """The store in a folder, if there is one; an error where options are given that concern texts."""
    if not folder.is_dir():
        return None
    from cohegraph.features.store import FeatureStore, is_store

    if not is_store(folder):
        return None
    if keep_texts:
        raise CohegraphError(f"{folder} holds features and no texts: train without --keep-texts.", code="no-texts")
    if columns != Columns(options.TEXT, options.LABEL, skip_unlabelled=columns.skip_unlabelled):
        remedy = "name columns when they are made, with 'cohegraph featurize'"
        raise CohegraphError(f"{folder} holds features: {remedy}.", code="columns-of-features")
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


def _checked_labels(
    graded: Corpus | StoredCorpus, order: list[str] | None, objective: ObjectiveSettings, folds: int
) -> str:
    """What there is to learn from, in a sentence; an error where it cannot be learnt, or not be split into folds."""
    from cohegraph.model.label_checks import checked_labels, fold_splits

    groups = graded.known_groups
    found = checked_labels(graded.labels, groups, order, objective)
    if folds:
        fold_splits(found.values if objective.is_of_levels else None, len(found.values), groups, folds)
    if objective.kind == "ranking":
        return f"{len(found.values)} documents in {len(set(groups or ()))} groups."
    if not objective.is_of_levels:
        ratings = 100 * found.values
        return f"{len(ratings)} documents, rated {ratings.mean():.0f} of 100 on average (± {ratings.std():.0f})."
    counts = Counter(found.values.tolist())
    unordered = "" if found.ordered else " The order of these levels is not known: name it with --levels."
    return f"{len(graded.labels)} documents ({', '.join(f'{one}: {counts[one]}' for one in found.levels)}).{unordered}"


def _new_model(
    system: str,
    settings: Settings,
    changes: dict[str, Any],
    levels: list[str] | None,
    device: str,
    graded: Corpus | StoredCorpus,
) -> tuple[CoherenceModel, bool]:
    """The model to train, and whether it is trained in chunks."""
    from cohegraph.model.coherence_model import CoherenceModel
    from cohegraph.systems.changes import apply_changes
    from cohegraph.systems.system import TrainsInChunks

    settings, hyper_parameters = apply_changes(system, settings, changes)
    model = CoherenceModel(system, settings, levels, device, hyper_parameters or None)
    # A ranking compares documents with each other, wherever they lie: it is trained in memory.
    is_ranking = model.resolved_settings.objective.kind == "ranking"
    return model, not (isinstance(graded, Corpus) or is_ranking) and isinstance(model.resolved_system, TrainsInChunks)


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


def _report(validation: Validation | None, out: Path) -> None:
    from cohegraph.model.card import validation_in_words

    if validation:
        figures = validation.figures
        show(f"{figures['folds']}-fold cross-validation: {validation_in_words(figures)}")
        reached, chance = figures.get("accuracy", figures.get("ordered_pairs")), figures.get("majority", 0.5)
        if reached <= chance:
            say("That is no better than guessing: more documents may help.")
    show(f"The model is in {out}. Use it with: cohegraph assess FILE.txt --model {out}")
