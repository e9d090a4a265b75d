"""``cohegraph demo``: the whole way, on the corpus inside the package."""

from pathlib import Path
from typing import Annotated

from typer import Option

from cohegraph.cli.options import Threads, set_threads
from cohegraph.cli.output import add_assessment, assessment_table, console, interruptible, say, show
from cohegraph.corpora.starter import hold_out_topics, starter_corpus


def demo(
    out: Annotated[Path, Option(help="The folder to write the model to.")] = Path("demo-model"),
    threads: Threads = None,
) -> None:
    """Train on the small corpus that comes with cohegraph, judge topics that were held out, and save the model."""
    from cohegraph.model.persistence import check_target
    from cohegraph.models.starter import NOTE, untrained

    check_target(out)
    set_threads(threads)
    training, held_out = hold_out_topics(starter_corpus())
    topics = len(set(held_out.groups or ()))
    say(f"Training on {len(training)} texts; {topics} topics ({len(held_out)} texts) are held out.")
    with interruptible(lambda: f"nothing was written to {out}"):
        model = untrained().fit(training.texts, training.labels)
        results = model.assess(held_out.texts)
        model.save(out, name="demo", note=NOTE)
    table = assessment_table(model.levels_with_probabilities, with_gold=True)
    right = 0
    for name, level, result in zip(held_out.ids, held_out.labels, results, strict=True):
        add_assessment(table, name, result, gold=level)
        right += level == result.level
    console().print(table)
    show(f"{right} of {len(held_out)} held-out texts have the level they were made with.")
    show(f"The model is in {out}. {NOTE}", style="dim")
