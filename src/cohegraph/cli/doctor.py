"""``cohegraph doctor``: what is installed, which pretrained parts are found, and whether they are the originals."""

import platform
from importlib.metadata import PackageNotFoundError, version

import typer

from cohegraph.cli import BAD_INPUT
from cohegraph.cli.output import console, new_table, plain, show
from cohegraph.errors import CohegraphError
from cohegraph.files import cache_folder
from cohegraph.models import READY
from cohegraph.models.ready_model import ReadyModel
from cohegraph.text.packaged import ALL_PACKAGED, Packaged
from cohegraph.version import __version__

_LIBRARIES = ("torch", "transformers", "tokenizers", "spacy", "numpy", "scipy", "scikit-learn", "pyarrow")
_OPTIONAL = ("stanza",)


def doctor() -> None:
    """Check the installation: libraries, pretrained parts and the model that comes with cohegraph."""
    import torch

    table = new_table("what", "state", "where")
    table.add_row(*plain("cohegraph", __version__, ""))
    table.add_row(*plain("Python", platform.python_version(), platform.platform()))
    for library in _LIBRARIES:
        table.add_row(*plain(library, version(library), ""))
    for library in _OPTIONAL:
        table.add_row(*plain(library, _version_if_any(library) or "not installed (optional)", ""))
    accelerator = "CUDA" if torch.cuda.is_available() else "MPS" if torch.backends.mps.is_available() else "none"
    table.add_row(*plain("accelerator", accelerator, f"{torch.get_num_threads()} threads on the CPU"))
    states = [_state_of_part(part) for part in ALL_PACKAGED.values()]
    states += [_state_of_model(model) for model in READY.values()]
    for name, state, where, _ in states:
        table.add_row(*plain(name, state, where))
    table.add_row(*plain("cache", "", cache_folder()))
    console().print(table)
    if all(is_well for *_, is_well in states):
        show("Everything that the default needs is here and verified.")
        return
    show("Something that the default needs is missing or damaged: install the extra [models] again.")
    raise typer.Exit(BAD_INPUT)


def _version_if_any(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None


def _state_of_part(part: Packaged) -> tuple[str, str, str, bool]:
    folder = part.location()
    if folder is None:
        return part.name, f"missing: {part.distribution}", "", False
    try:
        part.verify()
    except CohegraphError as error:
        return part.name, str(error), str(folder), False
    return part.name, "found, SHA-256 verified", str(folder), True


def _state_of_model(model: ReadyModel) -> tuple[str, str, str, bool]:
    from cohegraph.model.coherence_model import CoherenceModel

    name = f"model '{model.name}'"
    try:
        found = CoherenceModel.load(model.folder)
    except CohegraphError as error:
        return name, str(error), str(model.folder), False
    return name, f"found, levels {', '.join(map(str, found.levels_))}", str(model.folder), True
