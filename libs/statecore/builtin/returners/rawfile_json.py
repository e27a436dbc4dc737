"""Returner ``rawfile_json``: appends returns and events to a file of the host, each as one line of JSON.

Setting: ``rawfile_json.filename`` (default ``/var/log/salt/events``).
"""

from __future__ import annotations

import fcntl
from collections.abc import Mapping, Sequence

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.system.return_json import as_json
from statecore.system.returner_settings import settings_of

_DEFAULTS: Mapping[str, object] = {"filename": "/var/log/salt/events"}


def returner(ctx: Context, ret: Mapping[str, object]) -> None:
    """Append one minion's return of a job, as a line of JSON, to the file of the setting ``rawfile_json.filename``.
    Raises CommandError if the file cannot be written.
    """
    _append(ctx, [ret], ret)


def event_return(ctx: Context, events: Sequence[Mapping[str, object]]) -> None:
    """Append events of the master, each as a line of JSON with ``tag`` and ``data``, to the file of the setting
    ``rawfile_json.filename``. Raises CommandError if the file cannot be written.
    """
    if events:
        _append(ctx, events, None)


def _append(ctx: Context, values: Sequence[object], ret: Mapping[str, object] | None) -> None:
    name = str(settings_of(ctx.functions["config.option"], "rawfile_json", ret, _DEFAULTS)["filename"])
    lines = "".join(f"{as_json(value)}\n" for value in values)
    try:
        with ctx.host.path(name).open("ab") as file:
            # Several processes append to the file: the lines of one must not stand inside those of another.
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(lines.encode())
    except OSError as error:
        raise CommandError(f"rawfile_json.filename: {name}: {error.strerror}") from error
