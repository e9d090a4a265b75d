"""How coherent a document is, from how its sentences connect."""

from typing import TYPE_CHECKING, Any

from cohegraph.errors import CohegraphError
from cohegraph.models import load
from cohegraph.settings import Settings
from cohegraph.version import __version__

if TYPE_CHECKING:
    from cohegraph.model.coherence_model import CoherenceModel

__all__ = ["CohegraphError", "CoherenceModel", "Settings", "__version__", "load"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        # Importing the model imports torch, which takes seconds; settings and errors do not need it.
        if name == "CoherenceModel":
            from cohegraph.model.coherence_model import CoherenceModel

            return CoherenceModel
        raise AttributeError(f"module 'cohegraph' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
