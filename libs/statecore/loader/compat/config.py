"""``salt.config``: the options of the minion that the module runs in. Files of a configuration are read by the minion alone."""

from __future__ import annotations

from typing import Any

from statecore.loader.dunders import ModuleOpts
from statecore.loader.entered import context_of


def minion_config(path: Any = None, *_: Any, **__: Any) -> dict[str, Any]:
    """The options of the running minion, wherever its files are."""
    return ModuleOpts(context_of("salt.config.minion_config"))


def get_id(opts: Any = None, *_: Any, **__: Any) -> tuple[str, bool]:
    """The minion's id, and whether it is an address (it was given)."""
    return str(context_of("salt.config.get_id").opts["id"]), False
