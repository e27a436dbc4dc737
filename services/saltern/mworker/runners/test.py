"""Runner ``test``: functions for trying out runners."""

from __future__ import annotations

import time
from collections.abc import Mapping

from saltern.kit.config.master import shown
from saltern.mworker.runners.runner import RunnerFault, RunnerTools, seconds
from saltwire import tags

#: Seconds between the events of ``stream``, and their number.
_BEAT, _BEATS = 0.1, 99

_NAMES: Mapping[str, str] = {
    "us": "foo bar baz qux quux quuz corge grault garply waldo fred plugh xyzzy thud",
    "uk": "wibble wobble wubble flob",
}


def arg(tools: RunnerTools, *args: object, **kwargs: object) -> dict[str, object]:
    """Return the arguments: {"args": [...], "kwargs": {...}}, without names that begin with two underscores."""
    return {"args": list(args), "kwargs": {name: value for name, value in kwargs.items() if not name.startswith("__")}}


def raw_arg(tools: RunnerTools, *args: object, **kwargs: object) -> dict[str, object]:
    """Return all arguments: {"args": [...], "kwargs": {...}}, including names that begin with two underscores."""
    return {"args": list(args), "kwargs": kwargs}


def sleep(tools: RunnerTools, s_time: float = 10) -> bool:
    """Wait ``s_time`` seconds and return True."""
    time.sleep(seconds(s_time, "s_time"))
    return True


def stream(tools: RunnerTools) -> bool:
    """Fire an event ``salt/run/<jid>/progress`` each tenth of a second for ten seconds, and return True."""
    for number in range(1, _BEATS + 1):
        tools.sender.fire(f"salt/run/{tools.jid}/progress", {"message": f"Runner is {number}% done"})
        time.sleep(_BEAT)
    return True


def metasyntactic(tools: RunnerTools, locality: str = "us") -> list[str] | None:
    """Return placeholder names (foo, bar, ...) as used in ``us`` or ``uk``; None for another locality."""
    return _NAMES[locality].split() if locality in _NAMES else None


def stdout_print(tools: RunnerTools) -> str:
    """Report "foo" as progress, where Salt's function prints it, and return "bar"."""
    tools.sender.fire(f"{tags.run(tools.jid)}/progress", {"message": "foo"})
    return "bar"


def get_opts(tools: RunnerTools) -> dict[str, object]:
    """Return the master's options, without the password of Redis."""
    return _options(tools)


def error(tools: RunnerTools, name: str | None = None, message: str = "") -> dict[str, object]:
    """Fail with the error text ``name: message``; without ``name`` return {} (Salt's ``error.error``)."""
    if name is not None:
        raise RunnerFault(f"{name}: {message}" if message else str(name))
    return {}


def config_get(tools: RunnerTools, key: str, default: object = "", delimiter: str = ":") -> object:
    """Return an option of the master; colons lead into maps: ``file_roots:base`` (Salt's ``config.get``)."""
    found: object = _options(tools)
    for part in str(key).split(delimiter):
        if not isinstance(found, dict) or part not in found:
            return default
        found = found[part]
    return found


def _options(tools: RunnerTools) -> dict[str, object]:
    # A runner's return is stored in the job cache and shown to every operator who may read jobs.
    return shown(tools.options)
