"""Jinja filters that the package ``salt`` of users' modules also has as functions, under Salt's names. They are
imported on first use.

The filters import the template engine. Custom grains that import only ``salt.utils.data`` do not load it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping


def filter_getattr(module: str, names: Mapping[str, str]) -> Callable[[str], object]:
    """Return a function ``__getattr__`` for a module of the package ``salt``, which makes Jinja filters attributes of
    the module.

    ``names`` maps Salt's name to ``file.function`` of ``statecore.render.filters``. The returned function raises
    AttributeError for other names.
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
