"""``cohegraph train``: a model from graded documents."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from cohegraph.cli import INTERRUPTED
from cohegraph.cli.options import Device, TextColumn, Threads, set_threads
from cohegraph.cli.output import complain, console, plain, say
from cohegraph.corpora.tables import read_graded
from cohegraph.presets import PRESETS, STACKS, preset
from cohegraph.settings import parse_change


def train(
    corpus: Annotated[Path, typer.Argument(help="Graded documents, one a row: CSV, TSV, JSONL or Parquet.")],
    out: Annotated[Path, typer.Option(help="The folder to write the model to.")],
    system: Annotated[str, typer.Option(help="What to train; 'cohegraph systems' lists all systems.")] = "gcn",
    text_column: TextColumn = "text",
    label_column: Annotated[str, typer.Option(help="The column with the level.")] = "label",
    group_column: Annotated[
        str | None, typer.Option(help="A column (prompt, topic, author) whose groups are never split between folds.")
    ] = None,
    levels: Annotated[
        str | None, typer.Option(help="The levels from lowest to highest, with commas between: poor,fair,good")
    ] = None,
    folds: Annotated[
        int, typer.Option(min=0, help="Folds of the cross-validation that tells how good the model is; 0 for none.")
    ] = 5,
    preset_name: Annotated[str, typer.Option("--preset", help=f"Named settings: {', '.join(PRESETS)}.")] = "default",
    stack: Annotated[str, typer.Option(help=f"Pretrained parts: {', '.join(STACKS)}.")] = "compact",
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change a setting, such as subgraphs.k=5, or a hyper-parameter; may be repeated."),
    ] = None,
    skip_unlabelled: Annotated[bool, typer.Option("--skip-unlabelled", help="Leave out rows without a level.")] = False,
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
    id_column: Annotated[
        str | None, typer.Option(help="The column with the ids to keep; by default the numbers of the rows.")
    ] = None,
    device: Device = "auto",
    threads: Threads = None,
) -> None:
    """Train a model on graded documents and save it.

    The documents are read once; cross-validation shows what accuracy to expect on new ones; the saved model is then
    trained on all of them. The folder appears only when the model is complete.
    """
    settings = preset(preset_name, stack)
    wanted = dict(parse_change(change) for change in changes or [])
    documents = read_graded(
        corpus,
        text_column=text_column,
        label_column=label_column,
        group_column=group_column,
        id_column=id_column,
        skip_unlabelled=skip_unlabelled,
    )
    from cohegraph.labels import encode_labels
    from cohegraph.model.persistence import check_target
    from cohegraph.model.validation import check_folds, cross_validate
    from cohegraph.systems.system_model import new_model

    check_target(out)
    order = [level.strip() for level in levels.split(",")] if levels else None
    model = new_model(system, settings, wanted, levels=order, device=device)
    encoded = encode_labels(documents.labels, order)
    labels = encoded.values
    if folds:
        check_folds(labels, documents.groups, folds)
    set_threads(threads)
    model.featurizer.load(model.needs)
    counts = Counter(labels.tolist())
    shares = ", ".join(f"{level}: {counts[level]}" for level in encoded.levels)
    say(f"{len(labels)} documents ({shares}).")
    if not encoded.ordered:
        say("The order of these levels is not known: name them from lowest to highest with --levels.")
    try:
        features = model.featurize(documents.texts, show_progress=True)
        validation = cross_validate(model, features, labels, documents.groups, folds) if folds else None
        model.fit(features, labels)
        if validation:
            model.use_validation(validation)
        if keep_neighbours or keep_texts:
            model.keep_neighbours(features, labels, ids=documents.ids, texts=documents.texts if keep_texts else None)
        model.save(out)
    except KeyboardInterrupt:
        complain(f"Interrupted: nothing was written to {out}.")
        raise typer.Exit(INTERRUPTED) from None
    if validation:
        figures = validation.figures
        console().print(
            *plain(
                f"Accuracy in {folds}-fold cross-validation: {100 * figures['accuracy']:.1f} % "
                f"(± {100 * figures['std']:.1f}). "
                f"Always the most frequent level: {100 * figures['majority']:.1f} %."
            )
        )
        if figures["accuracy"] <= figures["majority"]:
            say("That is no better than guessing: more documents may help, or --group-column if texts come in groups.")
    console().print(*plain(f"The model is in {out}. Use it with: cohegraph assess FILE.txt --model {out}"))
