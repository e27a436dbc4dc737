"""Runners for those who try out runners."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from saltern.kit.config.master import shown
from saltern.mworker.runners.runner import RunnerFault, RunnerTools, seconds
from saltwire import tags

#: Seconds between the events of ``stream``, and how many there are.
_BEAT, _BEATS = 0.1, 99

_NAMES: Mapping[str, str] = {
    "us": "foo bar baz qux quux quuz corge grault garply waldo fred plugh xyzzy thud",
    "uk": "wibble wobble wubble flob",
}


def arg(tools: RunnerTools, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """What it was called with: {"args": [...], "kwargs": {...}}, without names that begin with two underscores."""
    return {"args": list(args), "kwargs": {name: value for name, value in kwargs.items() if not name.startswith("__")}}


def raw_arg(tools: RunnerTools, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """What it was called with, all of it."""
    return {"args": list(args), "kwargs": kwargs}


def sleep(tools: RunnerTools, s_time: float = 10) -> bool:
    """True after so many seconds."""
    time.sleep(seconds(s_time, "s_time"))
    return True


def stream(tools: RunnerTools) -> bool:
    """True after ten seconds with an event ``salt/run/<jid>/progress`` each tenth of one."""
    for number in range(1, _BEATS + 1):
        tools.sender.fire(f"salt/run/{tools.jid}/progress", {"message": f"Runner is {number}% done"})
        time.sleep(_BEAT)
    return True


def metasyntactic(tools: RunnerTools, locality: str = "us") -> list[str] | None:
    """Names that stand for nothing, as they are used in ``us`` or ``uk``; None for other places."""
    return _NAMES[locality].split() if locality in _NAMES else None


def stdout_print(tools: RunnerTools) -> str:
    """Tells "foo" as its progress, where Salt's prints it, and returns "bar"."""
    tools.sender.fire(f"{tags.run(tools.jid)}/progress", {"message": "foo"})
    return "bar"


def get_opts(tools: RunnerTools) -> dict[str, Any]:
    """The master's options; the password of the store is left out."""
    return _options(tools)


def error(tools: RunnerTools, name: str | None = None, message: str = "") -> dict[str, Any]:
    """Fails with this message; {} without a name (Salt's ``error.error``)."""
    if name is not None:
        raise RunnerFault(f"{name}: {message}" if message else str(name))
    return {}


def config_get(tools: RunnerTools, key: str, default: Any = "", delimiter: str = ":") -> Any:
    """An option of the master, and what is below it: ``file_roots:base`` (Salt's ``config.get``)."""
    found: Any = _options(tools)
    for part in str(key).split(delimiter):
        if not isinstance(found, dict) or part not in found:
            return default
        found = found[part]
    return found


def _options(tools: RunnerTools) -> dict[str, Any]:
    # What a runner returns is kept in the job cache, and shown to whoever may ask for jobs.
    return shown(tools.options)
