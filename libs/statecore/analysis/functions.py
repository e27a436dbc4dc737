"""State functions and their arguments, held against what there is. Pure; what functions take comes from who asks.

What is told is what the engine would say when the state's turn came: the same rules sort the arguments (``engine.arguments``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from statecore.analysis.finding import Remark
from statecore.engine.arguments import bind
from statecore.loader.arguments import Parameters


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a state function."""

    #: None: it exists but cannot be looked at here.
    parameters: Parameters | None = None
    #: False: nothing has this name; ``nearest`` may.
    exists: bool = True
    nearest: str = ""
    #: Why a user's module of this name cannot be used.
    reason: str = ""


#: "file.managed" -> what is known of it.
Lookup = Callable[[str], Known]


def remarks(low: Mapping[str, Any], lookup: Lookup, *, whole: bool = True) -> Iterator[Remark]:
    """Unknown function, unknown arguments, missing arguments of one chunk. ``whole``: nothing can bring more arguments."""
    full = f"{low['state']}.{low['fun']}"
    state_keys = (str(low["__id__"]), str(low["state"]))
    known = lookup(full)
    if not known.exists:
        text = f"there is no state function '{full}'" + (f": {known.reason}" if known.reason else "")
        hint = f"the nearest is '{known.nearest}'" if known.nearest else ""
        yield Remark("unknown-function", text, low, state_keys, hint)
        return
    if known.parameters is None:
        return
    arguments = bind(low, known.parameters)
    for name, near in (arguments.unknown or {}).items():
        text = f"'{name}' is not an argument of {full}"
        yield Remark("unknown-argument", text, low, (*state_keys, name), f"the nearest is '{near}'" if near else "")
    if whole:
        for name in arguments.missing:
            yield Remark("missing-argument", f"{full} needs the argument '{name}'", low, state_keys)
