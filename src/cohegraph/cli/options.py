"""Options that several subcommands share."""

import os
import re
import sys
from typing import Annotated, Any

from typer import Option

from cohegraph.corpora.stream import STANDARD_INPUT
from cohegraph.errors import CohegraphError
from cohegraph.models import DEFAULT, READY
from cohegraph.presets import STACKS
from cohegraph.settings import parse_change

_DEVICE = re.compile(r"auto|cpu|mps|cuda(:\d+)?")


def _check_device(name: str) -> str:
    """Refuse what no machine has at once; whether this machine has it, only torch knows."""
    if not _DEVICE.fullmatch(name):
        raise CohegraphError(f"There is no device '{name}': choose auto, cpu, cuda or mps.", code="no-device")
    return name


Device = Annotated[str, Option(help="Where the encoder runs: auto, cpu, cuda or mps.", callback=_check_device)]
Threads = Annotated[
    int | None, Option(min=1, max=1024, help="CPU threads; by default OMP_NUM_THREADS, or all cores up to 8.")
]
ModelName = Annotated[
    str | None,
    Option("--model", help=f"A model's folder, or a ready-made model ({', '.join(READY)}); the default is {DEFAULT}."),
]
ParserPlace = Annotated[str | None, Option(help="Where the model's parser is on this machine.")]
VectorsPlace = Annotated[str | None, Option(help="Where the model's word vectors are on this machine.")]
EncoderPlace = Annotated[str | None, Option(help="Where the model's encoder is on this machine.")]
ReaderPlace = Annotated[str | None, Option(help="Where the model's reader is on this machine.")]
HeadsPlace = Annotated[str | None, Option(help="The folder of the heads of the model's reader.")]
GroupColumn = Annotated[str | None, Option(help="A column (prompt, author) whose groups folds never split.")]
IdColumn = Annotated[str | None, Option(help="The column with the documents' ids; by default the numbers of the rows.")]
StackName = Annotated[str, Option("--stack", help=f"Pretrained parts: {', '.join(STACKS)}.")]
Changes = Annotated[
    list[str] | None, Option("--set", help="Change a setting (subgraphs.k=5) or hyper-parameter; repeatable.")
]
SkipEmpty = Annotated[bool, Option("--skip-empty", help="Leave out documents without any text.")]
SkipUnlabelled = Annotated[bool, Option("--skip-unlabelled", help="Leave out rows without a level.")]
TextColumn = Annotated[str, Option(help="The column with the text, where the file is a table.")]
ProseIdColumn = Annotated[str | None, Option(help="The column with the ids; by default 'id', if any.")]
SourceColumn = Annotated[
    str | None, Option(help="The column with the sources; by default 'source', or the ids up to their first slash.")
]
WorkColumn = Annotated[
    str | None, Option(help="The column with the works; by default 'work', or the ids up to their last slash.")
]

# The names of columns unless others are given.
TEXT, LABEL = "text", "label"
_MOST_THREADS = 8


def listed(text: str | None) -> list[str] | None:
    """The parts of an option that takes several values, separated by commas."""
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def parsed(changes: list[str] | None) -> dict[str, Any]:
    """The values of ``--set NAME=VALUE`` and options like it, by name."""
    return dict(parse_change(change) for change in changes or [])


def standard_input(command: str) -> str:
    """The name of standard input, for a command without a file; an error where it is a terminal."""
    if sys.stdin.isatty():
        raise CohegraphError(f"Name a file, or - for standard input: cohegraph {command} FILE.txt", code="no-input")
    return STANDARD_INPUT


def set_threads(threads: int | None) -> None:
    """Use so many threads for the encoder and for training, and one for the many small products beside them."""
    import torch
    from threadpoolctl import threadpool_limits

    from cohegraph.scale.processes import cores

    if threads is not None or "OMP_NUM_THREADS" not in os.environ:  # which torch has obeyed already
        torch.set_num_threads(threads or min(cores(), _MOST_THREADS))
    threadpool_limits(1, user_api="blas")
