"""Returner ``syslog``: sends returns as JSON to the syslog of the host.

Settings: ``syslog.level`` (default LOG_INFO), ``syslog.facility`` (LOG_USER), ``syslog.tag`` (at most 32 characters; default
the program's name), ``syslog.options`` (a list of LOG_PID, LOG_CONS, LOG_NDELAY, LOG_NOWAIT and LOG_PERROR). Many syslog
servers cut long messages.
"""

from __future__ import annotations

import os
import socket
import sys
import syslog
import time
from collections.abc import Mapping
from pathlib import Path

from statecore.host.rooted_path import located
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.system.return_json import as_json
from statecore.system.returner_settings import settings_of

_DEFAULTS: Mapping[str, object] = {"level": "LOG_INFO", "facility": "LOG_USER", "options": [], "tag": None}

_LONGEST_TAG = 32

#: Seconds to wait for a syslog that does not read.
_TIMEOUT = 10.0


def returner(ctx: Context, ret: Mapping[str, object]) -> None:
    """Send one minion's return of a job as JSON to the syslog of the host. Raises CommandError for a wrong setting,
    and if the host has no syslog.
    """
    settings = settings_of(ctx.functions["config.option"], "syslog", ret, _DEFAULTS)
    priority = _number("level", settings["level"]) | _number("facility", settings["facility"])
    given = settings["options"]
    options = [_number("options", name) for name in (given if isinstance(given, list) else [given])]
    tag = Path(sys.argv[0]).name or "salt" if settings["tag"] is None else settings["tag"]
    if not isinstance(tag, str) or len(tag) > _LONGEST_TAG:
        raise CommandError(f"syslog.tag: {tag!r} is not a text of at most {_LONGEST_TAG} characters")
    pid = f"[{os.getpid()}]" if syslog.LOG_PID in options else ""
    text = f"{tag}{pid}: {as_json(ret)}"
    if syslog.LOG_PERROR in options:
        sys.stderr.write(f"{text}\n")
    stamp = time.strftime("%b %e %H:%M:%S")
    _send(ctx, f"<{priority}>{stamp} {text}".encode())


def _send(ctx: Context, message: bytes) -> None:
    try:
        with located(ctx.host.path("/dev/log"), follow=True) as (name, way):
            place = name if way is None else f"/proc/self/fd/{way}/{name}"
            for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
                with socket.socket(socket.AF_UNIX, kind) as sender:
                    sender.settimeout(_TIMEOUT)
                    try:
                        sender.connect(place)
                    except OSError:
                        if kind == socket.SOCK_DGRAM:
                            # Some syslog servers listen on a stream.
                            continue
                        raise
                    sender.sendall(message if kind == socket.SOCK_DGRAM else message + b"\0")
                    return
    except OSError as error:
        raise CommandError(f"syslog: /dev/log of the host: {error.strerror or error}") from error


def _number(setting: str, name: object) -> int:
    number = getattr(syslog, str(name), None)
    if not isinstance(number, int) or not str(name).startswith("LOG_"):
        raise CommandError(f"syslog.{setting}: syslog has no {name}")
    return number
