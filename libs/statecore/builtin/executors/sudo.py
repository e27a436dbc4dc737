"""Executor sudo: run the function in a ``salt-call`` process as the user of the option ``sudo_user``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from statecore.model.context import Context
from statecore.model.errors import CommandError


def available(ctx: Context) -> str | None:
    """Return None if the executor ``sudo`` can be used: the option ``sudo_user`` is set and the host has sudo. Else
    return a sentence with the reason.
    """
    if not ctx.opts.get("sudo_user"):
        return "the option sudo_user names no user"
    return None if ctx.host.which("sudo") else "the host has no program sudo"


def execute(
    ctx: Context,
    data: Mapping[str, object],
    func: Callable[..., object],
    args: Sequence[object],
    kwargs: Mapping[str, object],
) -> object:
    """Run the execution function in a ``salt-call`` process and return its result. The exit code of ``salt-call``
    becomes the job's. Raises CommandError if its output is not a return.
    """
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
        raise CommandError(f"salt-call under sudo printed no return: {done['stderr'] or done['stdout']}") from error
    ctx.scratch["retcode"] = answer.get("retcode", done["retcode"])
    return answer.get("return")


def _word(value: object) -> str:
    """Return an argument of the execution function as text that salt-call's command line parses to the same value."""
    return value if isinstance(value, str) else json.dumps(value)
