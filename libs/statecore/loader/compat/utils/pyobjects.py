"""``salt.utils.pyobjects`` for users' code: the objects of the renderer ``pyobjects``, by which an SLS in Python
declares states.

``Registry`` is that of the SLS that this thread renders now. States that are declared while no SLS is rendered are
ignored.
"""

from __future__ import annotations

from typing import Any

from statecore.render.pyobjects import REQUISITES as REQUISITES
from statecore.render.pyobjects import DuplicateState as DuplicateState
from statecore.render.pyobjects import InvalidFunction as InvalidFunction
from statecore.render.pyobjects import Map as Map
from statecore.render.pyobjects import MapMeta as MapMeta
from statecore.render.pyobjects import SaltObject as SaltObject
from statecore.render.pyobjects import State as State
from statecore.render.pyobjects import StateException as StateException
from statecore.render.pyobjects import StateExtend as StateExtend
from statecore.render.pyobjects import StateFactory as StateFactory
from statecore.render.pyobjects import StateRequisite as StateRequisite
from statecore.render.pyobjects import rendering


class _CurrentRegistry:
    """Has the attributes of the Registry (declared states) of the SLS that this thread renders with ``pyobjects``."""

    def __getattr__(self, name: str) -> Any:
        return getattr(rendering().registry, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(rendering().registry, name, value)


Registry = _CurrentRegistry()
