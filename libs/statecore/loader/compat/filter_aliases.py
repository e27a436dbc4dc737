"""Functions of the template filters that the compatibility package also provides under Salt's names, imported on first use.

The filters import the template engine. Custom grains that import only ``salt.utils.data`` do not load it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping


def filter_getattr(module: str, names: Mapping[str, str]) -> Callable[[str], object]:
    """Return a module's ``__getattr__`` for ``names``, a map of Salt's name to ``file.function`` of ``statecore.render.filters``.

    The returned function raises AttributeError for other names.
    """

    def attribute(name: str) -> object:
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
