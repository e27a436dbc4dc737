"""The function runs in a ``salt-call`` of its own, as the user that the option ``sudo_user`` names."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import CommandError


def available(ctx: Context) -> str | None:
    """Why not: no user is named, or the host has no sudo."""
    if not ctx.opts.get("sudo_user"):
        return "the option sudo_user names no user"
    return None if ctx.host.which("sudo") else "the host has no program sudo"


def execute(
    ctx: Context, data: Mapping[str, Any], func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """What the function returned there; its exit code is the job's. Raises CommandError for an answer that is none."""
    config = ctx.opts.get("conf_file")
    command = ["sudo", "-u", str(ctx.opts["sudo_user"]), "salt-call", "--out", "json", "--metadata"]
    command += ["-c", str(config).rpartition("/")[0]] if config else []
    command += ["--", str(data["fun"]), *(_word(arg) for arg in args)]
    command += [f"{name}={_word(value)}" for name, value in kwargs.items() if not name.startswith("__")]
    done = ctx.call("cmd.run_all", command, python_shell=False)
    if done["retcode"] and not done["stdout"]:
        ctx.scratch["retcode"] = done["retcode"]
        return done["stderr"]
    try:
        answer = json.loads(done["stdout"])["local"]
    except (ValueError, KeyError, TypeError) as error:
        raise CommandError(f"salt-call under sudo gave no answer: {done['stderr'] or done['stdout']}") from error
    ctx.scratch["retcode"] = answer.get("retcode", done["retcode"])
    return answer.get("return")


def _word(value: Any) -> str:
    """An argument as the command line reads it back."""
    return value if isinstance(value, str) else json.dumps(value)
