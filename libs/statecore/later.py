"""The stages of a state run, loaded when one of them is first used: ``test.ping`` needs no template engine and no compiler.

from statecore import later

later.SlsTree(...)
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from statecore.engine.call import finish as finish
    from statecore.master_data import Wanted as Wanted
    from statecore.master_data import as_data as as_data
    from statecore.master_data import pillar_of as pillar_of
    from statecore.master_data import tops_of as tops_of
    from statecore.render import RENDERERS as RENDERERS
    from statecore.render import SlsTree as SlsTree
    from statecore.state_runs import Stage as Stage
    from statecore.state_runs import StateRuns as StateRuns
    from statecore.state_runs.localconfig import read_localconfig as read_localconfig

_HOMES = {
    "RENDERERS": "statecore.render",
    "SlsTree": "statecore.render",
    "Stage": "statecore.state_runs",
    "StateRuns": "statecore.state_runs",
    "Wanted": "statecore.master_data",
    "as_data": "statecore.master_data",
    "finish": "statecore.engine.call",
    "pillar_of": "statecore.master_data",
    "tops_of": "statecore.master_data",
    "read_localconfig": "statecore.state_runs.localconfig",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'statecore.later' has no attribute '{name}'")
    value = globals()[name] = getattr(importlib.import_module(_HOMES[name]), name)
    return value


def load() -> None:
    """All of it at once: for a process whose children are to share it."""
    for home in _HOMES.values():
        importlib.import_module(home)


class Deferred:
    """Stands for an object until it is used; then it is made, once."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._made: Any = None

    def __getattr__(self, name: str) -> Any:
        if self._made is None:
            self._made = self._make()
        return getattr(self._made, name)
