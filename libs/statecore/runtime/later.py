"""The stages of a state run, loaded when one of them is first used: ``test.ping`` needs no template engine and no compiler.

from statecore import later

later.SlsTree(...)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from statecore.model.lazy import loaded

if TYPE_CHECKING:
    from statecore.engine.call import finish as finish
    from statecore.render import RENDERERS as RENDERERS
    from statecore.render import SlsTree as SlsTree
    from statecore.render.jinja.engine import Engine as Engine
    from statecore.render.kept_yaml import KeptYaml as KeptYaml
    from statecore.runtime.master_data import MinionDataRequest as MinionDataRequest
    from statecore.runtime.master_data import as_data as as_data
    from statecore.runtime.master_data import pillar_of as pillar_of
    from statecore.runtime.master_data import tops_of as tops_of
    from statecore.runtime.return_delivery import deliver as deliver
    from statecore.runtime.state_runs import RunContext as RunContext
    from statecore.runtime.state_runs import StateRuns as StateRuns
    from statecore.runtime.state_runs.localconfig import read_localconfig as read_localconfig
    from statecore.sources.fileserver.masterless import OwnFetches as OwnFetches

_HOMES = {
    "Engine": "statecore.render.jinja.engine",
    "KeptYaml": "statecore.render.kept_yaml",
    "OwnFetches": "statecore.sources.fileserver.masterless",
    "RENDERERS": "statecore.render",
    "SlsTree": "statecore.render",
    "RunContext": "statecore.runtime.state_runs",
    "StateRuns": "statecore.runtime.state_runs",
    "MinionDataRequest": "statecore.runtime.master_data",
    "as_data": "statecore.runtime.master_data",
    "deliver": "statecore.runtime.return_delivery",
    "finish": "statecore.engine.call",
    "pillar_of": "statecore.runtime.master_data",
    "tops_of": "statecore.runtime.master_data",
    "read_localconfig": "statecore.runtime.state_runs.localconfig",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'statecore.runtime.later' has no attribute '{name}'")
    value = globals()[name] = loaded(_HOMES[name], name)
    return value


def load() -> None:
    """All of it at once: for a process whose children are to share it."""
    for name, home in _HOMES.items():
        loaded(home, name)
