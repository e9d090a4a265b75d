"""Options that several subcommands share."""

import os
from typing import Annotated

import typer

from cohegraph.models import DEFAULT, READY
from cohegraph.presets import STACKS

Device = Annotated[str, typer.Option(help="Where the encoder runs: auto, cpu, cuda or mps.")]
Threads = Annotated[
    int | None,
    typer.Option(min=1, max=1024, help="Processor threads to use; by default OMP_NUM_THREADS, or all cores up to 8."),
]
ModelName = Annotated[
    str | None,
    typer.Option(
        "--model", help=f"A model's folder, or a ready-made model: {', '.join(READY)}. The default is {DEFAULT}."
    ),
]
ParserPlace = Annotated[str | None, typer.Option(help="Where the model's parser is on this machine.")]
VectorsPlace = Annotated[str | None, typer.Option(help="Where the model's word vectors are on this machine.")]
EncoderPlace = Annotated[str | None, typer.Option(help="Where the model's encoder is on this machine.")]
GroupColumn = Annotated[
    str | None, typer.Option(help="A column (prompt, topic, author) whose groups are never split between folds.")
]
IdColumn = Annotated[
    str | None, typer.Option(help="The column with the documents' ids; by default the numbers of the rows.")
]
StackName = Annotated[str, typer.Option("--stack", help=f"Pretrained parts: {', '.join(STACKS)}.")]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change a setting, such as subgraphs.k=5, or a hyper-parameter; may be repeated."),
]
SkipEmpty = Annotated[bool, typer.Option("--skip-empty", help="Leave out documents without any text.")]
SkipUnlabelled = Annotated[bool, typer.Option("--skip-unlabelled", help="Leave out rows without a level.")]
TextColumn = Annotated[str, typer.Option(help="The column with the text, where the file is a table.")]

# The names of columns unless others are given.
TEXT, LABEL = "text", "label"
_MOST_THREADS = 8


def set_threads(threads: int | None) -> None:
    """Use so many threads for the encoder and for training, and one for the many small products beside them."""
    import torch
    from threadpoolctl import threadpool_limits

    from cohegraph.scale.processes import cores

    if threads is not None or "OMP_NUM_THREADS" not in os.environ:  # which torch has obeyed already
        torch.set_num_threads(threads or min(cores(), _MOST_THREADS))
    threadpool_limits(1, user_api="blas")
