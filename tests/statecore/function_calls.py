"""Calls of execution functions, ours and Salt's, one after the other, and what each returned or raised."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from statecore.model.errors import CommandError, InvocationError
from tests.conftest import Oracle

#: ("module.function", positional arguments, keyword arguments), or ("$", a shell command, {}).
Call: TypeAlias = tuple[str, Any, Mapping[str, Any]]

_SALT = Path(__file__).with_name("salt_function_calls.py")


def ours(call: Callable[..., Any], calls: Sequence[Call]) -> list[list[Any]]:
    """Return for each call ["return", value] or ["raise", Salt's name of the exception, message]."""
    told: list[list[Any]] = []
    for name, args, kwargs in calls:
        if name == "$":
            told.append(
                ["return", subprocess.run(["/bin/sh", "-ec", args], capture_output=True, check=False).returncode]
            )
            continue
        try:
            told.append(["return", json.loads(json.dumps(call(name, *args, **kwargs), default=str))])
        except InvocationError as error:
            told.append(["raise", "SaltInvocationError", str(error)])
        except CommandError as error:
            told.append(["raise", "CommandExecutionError", str(error)])
    return told


def salts(oracle: Oracle, cachedir: Path, calls: Sequence[Call], **minion: Any) -> list[list[Any]]:
    """Return the same of real Salt. ``minion``: ``opts``, ``grains``, ``pillar``."""
    cachedir.mkdir(exist_ok=True)
    asked = {"cachedir": str(cachedir), "calls": calls, **minion}
    told: list[list[Any]] = json.loads(oracle.run("python", str(_SALT), stdin=json.dumps(asked)))
    return told
