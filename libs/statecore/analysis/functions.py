"""Check a low chunk's state function and arguments against the loaded state modules. Pure; the caller looks up the
signatures.

The arguments are sorted by the engine's own rules (``engine.arguments``), so a finding predicts the engine's error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from statecore.analysis.finding import Remark
from statecore.engine.arguments import bind
from statecore.engine.unknown_arguments import danger
from statecore.loader.arguments import Parameters
from statecore.loader.ignored_arguments import ignores_unknown
from statecore.model.types import Low


@dataclass(frozen=True, slots=True)
class Known:
    """Result of looking up one state function: whether it exists, its parameters, else the reason and the most similar name."""

    #: None: the function exists, but its signature cannot be read on this host.
    parameters: Parameters | None = None
    #: False: no function has this name. ``nearest`` is the most similar existing name, or "".
    exists: bool = True
    nearest: str = ""
    #: Why a user's module of this name cannot be used; "" if there is none.
    reason: str = ""


#: Looks up a state function by its full name, such as "file.managed".
Lookup = Callable[[str], Known]


def remarks(low: Low, lookup: Lookup, *, whole: bool = True) -> Iterator[Remark]:
    """Yield a remark for an unknown function, for each unknown argument and for each missing argument of the low chunk
    ``low``.

    Missing arguments are reported only if ``whole`` is true: the chunk is compiled, so no extend or ``use`` can still
    add any.
    """
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
        if ignores_unknown(full):
            text += f" and would be ignored{danger(full, name, near)}"
        yield Remark("unknown-argument", text, low, (*state_keys, name), f"the nearest is '{near}'" if near else "")
    if whole:
        for name in arguments.missing:
            yield Remark("missing-argument", f"{full} needs the argument '{name}'", low, state_keys)
