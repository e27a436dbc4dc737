"""Salt's state system as a library: SLS, grains and pillar in; results out.

    from statecore import local_runtime

    runtime = local_runtime({"id": "web1", "file_roots": {"base": ["srv/salt"]}, "pillar_roots": {"base": []}})
    returned = runtime.call("state.apply", ["web"], {"test": True})

``Runtime`` also takes other implementations of the interfaces in ``statecore.model.ports``: a master's file server, an
event bus, a mounted host. The stages are ``statecore.render``, ``statecore.compile`` and ``statecore.engine``; each is
importable by itself. Each is imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from statecore.host.host import Host
    from statecore.model.errors import SlsError, StatecoreError
    from statecore.model.types import Outcome, Plan, Step
    from statecore.runtime.calls import Returned
    from statecore.runtime.runtime import Runtime, gather_grains, local_runtime

__all__ = [
    "Host",
    "Outcome",
    "Plan",
    "Returned",
    "Runtime",
    "SlsError",
    "StatecoreError",
    "Step",
    "gather_grains",
    "local_runtime",
]

_HOMES = {
    "Host": "statecore.host.host",
    "Outcome": "statecore.model.types",
    "Plan": "statecore.model.types",
    "Returned": "statecore.runtime.calls",
    "Runtime": "statecore.runtime.runtime",
    "SlsError": "statecore.model.errors",
    "StatecoreError": "statecore.model.errors",
    "Step": "statecore.model.types",
    "gather_grains": "statecore.runtime.runtime",
    "local_runtime": "statecore.runtime.runtime",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'statecore' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOMES[name]), name)
