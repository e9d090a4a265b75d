"""The command: a thin skin. Each subcommand parses its arguments, calls the package and prints."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from cohegraph.cli import assess, demo, doctor, train
from cohegraph.cli.output import complain
from cohegraph.errors import CohegraphError
from cohegraph.version import __version__

BAD_INPUT = 2

app = typer.Typer(
    name="cohegraph",
    help="Tells how coherent an English document is, from how its sentences connect.",
    epilog="Start with: cohegraph assess FILE.txt",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(assess.assess)
app.command()(train.train)
app.command()(demo.demo)
app.command()(doctor.doctor)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"cohegraph {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command; bad input ends with one sentence and exit code 2."""
    try:
        app()
    except CohegraphError as error:
        complain(str(error))
        sys.exit(BAD_INPUT)
    except BrokenPipeError:
        # The reader has seen enough; closing quietly is what other commands do.
        sys.stderr.close()
        sys.exit(0)
