"""How coherent a document is, from how its sentences connect."""

from cohegraph.errors import CohegraphError
from cohegraph.settings import Settings
from cohegraph.version import __version__

__all__ = ["CohegraphError", "CoherenceModel", "Settings", "SystemModel", "__version__", "load_model", "new_model"]


def __getattr__(name: str) -> object:
    # Importing a model imports torch, which takes seconds; settings and errors do not need it.
    if name == "CoherenceModel":
        from cohegraph.model.coherence_model import CoherenceModel

        return CoherenceModel
    if name in ("SystemModel", "load_model", "new_model"):
        from cohegraph.systems import system_model

        return getattr(system_model, name)
    raise AttributeError(f"module 'cohegraph' has no attribute '{name}'")
