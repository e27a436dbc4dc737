"""What a run stands on, put together before anything is rendered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from statecore import engine
from statecore.loader import Loader
from statecore.model.context import Context
from statecore.model.named_tuple import NamedTuple
from statecore.render import SlsTree


class RunContext(NamedTuple):
    """Everything one run stands on."""

    ctx: Context
    tree: SlsTree
    opts: Mapping[str, Any]


class RunParts(NamedTuple):
    """The parts of a run that has not begun, for who looks at them one by one (``statecore.analysis.inspection``)."""

    stage: RunContext
    loader: Loader
    options: engine.EngineOptions
    #: saltenv -> SLS references of the top file and the master's tops. Raises SlsError.
    top: Callable[[], dict[str, list[str]]]
    #: Fetches users' modules of these environments, as a run does.
    fetch_modules: Callable[[Sequence[str]], object]
