"""What scikit-learn asks of an estimator, so that `clone`, `cross_val_score` and `GridSearchCV` work.

Its base classes are not inherited: importing them takes most of a second, and whoever scores texts needs nothing else
of scikit-learn.
"""

import inspect
from collections.abc import Mapping
from copy import copy
from typing import Any, Self


class Estimator:
    """An estimator whose parameters are the arguments of its constructor, kept under their names."""

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self, **params: Any) -> Self:
        """Change parameters; all of them, or none where one is not valid."""
        changed = copy(self)
        changed._take_params(params)
        self.__dict__.update(changed.__dict__)
        return self

    def _take_params(self, params: dict[str, Any]) -> None:
        names = self._parameter_names()
        for name, value in params.items():
            if name not in names:
                raise ValueError(f"Invalid parameter '{name}' of {type(self).__name__}: it has {', '.join(names)}.")
            setattr(self, name, value)

    def __repr__(self) -> str:
        params = ", ".join(f"{name}={value!r}" for name, value in self.get_params(deep=False).items())
        return f"{type(self).__name__}({params})"


def single_params(prefix: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Values with dotted names as parameters of their own, in scikit-learn's way: ``settings__subgraphs__k``."""
    return {f"{prefix}__{name.replace('.', '__')}": value for name, value in values.items()}


def taken_params(prefix: str, params: dict[str, Any]) -> dict[str, Any]:
    """Take what `single_params` would have named out of parameters, with dotted names."""
    names = [name for name in params if name.startswith(f"{prefix}__")]
    return {name.removeprefix(f"{prefix}__").replace("__", "."): params.pop(name) for name in names}
