"""What a ready-made model is."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

_DATA = Path(str(files("cohegraph"))) / "data" / "models"


@dataclass(frozen=True)
class ReadyModel:
    """A model that comes with the package, in the folder ``data/models/NAME``.

    Args:
        name: What it is called.
        about: What it is, in a line.
        rebuild: Trains it again and writes it to its folder.
    """

    name: str
    about: str
    rebuild: Callable[[Path], None]

    @property
    def folder(self) -> Path:
        """Where it is."""
        return _DATA / self.name
