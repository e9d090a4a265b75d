"""The subcommands and options of the command."""

from typing import Annotated

import typer
from typer import Option

from cohegraph.cli import (
    assess,
    cache,
    corrupt,
    demo,
    doctor,
    experiment,
    explain,
    featurize,
    parts,
    serve,
    systems,
    train,
    train_reader,
)
from cohegraph.version import __version__

app = typer.Typer(
    name="cohegraph",
    help="Measures how coherent an English document is, from how its sentences connect.",
    epilog="Start with: cohegraph assess FILE.txt",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(assess.assess)
app.command()(explain.explain)
app.command()(serve.serve)
app.command()(train.train)
app.command("featurize")(featurize.command)
app.command()(experiment.experiment)
app.command()(systems.systems)
app.command(epilog=corrupt.EPILOG)(corrupt.corrupt)
app.command()(train_reader.train_reader)
app.add_typer(cache.app, name="cache")
app.add_typer(parts.app, name="parts")
app.command()(demo.demo)
app.command()(doctor.doctor)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"cohegraph {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, Option("--version", help="Print the version and stop.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass
