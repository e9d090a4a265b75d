"""The experiments that come with cohegraph."""

from importlib.resources import files
from pathlib import Path

READY = Path(str(files("cohegraph"))) / "data" / "experiments"


def ready_experiments() -> dict[str, Path]:
    """Their files, by name."""
    return {file.stem: file for file in sorted(READY.glob("*.toml"))}
