"""``cohegraph doctor``: what is installed, which pretrained parts are found, and whether they are the originals."""

import platform
from functools import partial
from importlib.metadata import PackageNotFoundError, version

import typer

from cohegraph.cli import BAD_INPUT
from cohegraph.cli.output import console, new_table, plain, show
from cohegraph.cli.parts import packaged_states, reader_states, state_of
from cohegraph.files import cache_folder
from cohegraph.models import READY, load
from cohegraph.models.ready_model import ReadyModel
from cohegraph.text.packaged import INSTALL
from cohegraph.version import __version__

_LIBRARIES = ("torch", "transformers", "tokenizers", "spacy", "numpy", "scipy", "scikit-learn", "pyarrow", "stanza")


def doctor() -> None:
    """Check the installation: libraries, pretrained parts and the model that comes with cohegraph."""
    import torch

    table = new_table("what", "state", "where")
    table.add_row(*plain("cohegraph", __version__, ""))
    table.add_row(*plain("Python", platform.python_version(), platform.platform()))
    for library in _LIBRARIES:
        table.add_row(*plain(library, _version(library), ""))
    accelerator = "CUDA" if torch.cuda.is_available() else "MPS" if torch.backends.mps.is_available() else "none"
    table.add_row(*plain("accelerator", accelerator, f"{torch.get_num_threads()} threads on the CPU"))
    states = packaged_states()
    states += [state_of(f"model '{one.name}'", one.folder, partial(_loaded, one)) for one in READY.values()]
    readers = reader_states()
    for name, state, where, _ in [*states, *readers]:
        table.add_row(*plain(name, state, where))
    table.add_row(*plain("cache", "", cache_folder()))
    console().print(table)
    if not all(is_well for *_, is_well in states):
        show("Something that the default needs is missing or damaged: install the extra [models] again.")
        raise typer.Exit(BAD_INPUT)
    show("Everything that the default needs is here and verified.")
    if not all(is_well for *_, is_well in readers):
        show(f"The reader is damaged: run: {INSTALL}")
        raise typer.Exit(BAD_INPUT)


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "not installed (optional)"


def _loaded(model: ReadyModel) -> str:
    return f"found, levels {', '.join(map(str, load(model.folder).levels_))}"
