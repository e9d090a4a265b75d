"""The models that come with cohegraph, by name, and all others by their folder.

A new ready-made model is a file in this package, which says how it is trained, and a line in `READY`.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from cohegraph.errors import CohegraphError
from cohegraph.models.starter import STARTER

if TYPE_CHECKING:
    from cohegraph.model.coherence_model import CoherenceModel

READY = {model.name: model for model in (STARTER,)}
DEFAULT = STARTER.name


def load(
    model: str | Path | None = None,
    *,
    parser: str | None = None,
    vectors: str | None = None,
    encoder: str | None = None,
    reader: str | None = None,
    heads: str | None = None,
    device: str = "auto",
) -> "CoherenceModel":
    """Load a model.

    Args:
        model: The name of a ready-made model, or the folder of any other; by default the model that comes with
            cohegraph. Write ``./NAME`` for a folder that has the name of a ready-made model.
        parser: Where the parser is on this machine, where that differs from the machine of the training.
        vectors: Likewise the word vectors.
        encoder: Likewise the encoder.
        reader: Likewise the reader.
        heads: Likewise the folder of the reader's heads.
        device: Where the encoder runs: `auto`, `cpu`, `cuda` or `mps`.
    """
    folder = folder_of(model)
    # Imports torch, which takes seconds: a wrong name should not have to wait for that.
    from cohegraph.model.coherence_model import CoherenceModel

    places = {"parser": parser, "vectors": vectors, "encoder": encoder, "reader": reader, "heads": heads}
    return CoherenceModel.load(folder, **places, device=device)


def folder_of(model: str | Path | None = None) -> Path:
    """The folder of a model by its name or folder, which must be there; by default the model that comes with us."""
    if model is None or (isinstance(model, str) and model in READY):
        return READY[model or DEFAULT].folder
    folder = Path(model)
    if not folder.is_dir():
        raise CohegraphError(
            f"There is no model '{model}': name a model's folder or one of {', '.join(READY)}, or train one with "
            "'cohegraph train CORPUS --out FOLDER'.",
            code="no-model",
        )
    return folder
