"""Functions that the template filters have already, lent to the compatibility package when somebody asks for one.

What they need (the template engine) is loaded then: custom grains that import ``salt.utils.data`` must not pay for it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def lend(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """A module's ``__getattr__``: Salt's name -> ``file.function`` of ``statecore.render.filters``. Raises AttributeError."""

    def attribute(name: str) -> Any:
        if name not in names:
            shown = module.replace("statecore.loader.compat", "salt")
            raise AttributeError(
                name
                if name.startswith("__")
                else f"'{shown}.{name}' is not part of the compatibility package for Salt modules"
            )
        file, _, function = names[name].partition(".")
        return getattr(importlib.import_module(f"statecore.render.filters.{file}"), function)

    return attribute
