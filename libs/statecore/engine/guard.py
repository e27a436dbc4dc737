"""Guards: the state arguments onlyif, unless, creates and check_cmd. They decide whether a state is called.

A text item is a command, run by ``cmd.retcode`` in a shell on the managed host. A map item with ``fun`` calls that
execution function. The comments are Salt's.

Source: docs/state-system.md#guards
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from statecore.engine.slots import resolve
from statecore.model.context import Context
from statecore.model.errors import CallFailed, CommandError
from statecore.model.types import Low

#: State arguments that also apply to the commands of its guards.
_COMMAND_OPTIONS = ("cwd", "root", "runas", "env", "prepend_path", "umask", "timeout", "success_retcodes", "shell")


class GuardVerdict(NamedTuple):
    """Joined result of the guards (onlyif, unless, creates) of one state: whether to skip the state, and the comment."""

    #: True: the state is not called, because it is in the desired condition or does not apply.
    skip: bool
    comment: str = ""


class _Answer(NamedTuple):
    skip: bool
    comment: str


def guards(low: Low, ctx: Context) -> GuardVerdict | None:
    """Evaluate the guards (onlyif, unless, creates) of a state and return their joined verdict; None without guards.

    Raises NotAvailable for an unknown ``fun``.
    """
    answers = [ask(low, ctx) for key, ask in GUARDS.items() if key in low]
    if not answers:
        return None
    return GuardVerdict(
        skip=any(answer.skip for answer in answers), comment="\n".join(answer.comment for answer in answers)
    )


def excluded(low: Low, ctx: Context) -> bool:
    """Return True if the option ``global_state_conditions`` excludes the state on this minion.

    The option maps a state ("pkg.installed"), a state module or "*" to compound targets. The state is excluded if the
    option names it and no target matches the minion.
    """
    conditions = ctx.opts.get("global_state_conditions")
    if not conditions or not isinstance(conditions, Mapping):
        return False
    names = ("*", low["state"], f"{low['state']}.{low['fun']}")
    asked = [str(target) for name, targets in conditions.items() if name in names for target in _listed(targets)]
    return bool(asked) and not any(ctx.call("match.compound", target) for target in asked)


def check_cmd(low: Low, ctx: Context) -> tuple[bool, str]:
    """Run the commands of a state's argument ``check_cmd``. Return (True if all exit with 0, comment)."""
    for command in _listed(low["check_cmd"]):
        if _retcode(str(command), ctx, _host_shell(ctx), unreachable=100) != 0:
            return False, "check_cmd determined the state failed"
    return True, "check_cmd determined the state succeeded"


def _onlyif(low: Low, ctx: Context) -> _Answer:
    """Return (skip, comment) for the guard ``onlyif``: the state is skipped unless every item succeeds."""
    answer = _Answer(skip=False, comment="")
    for item in _listed(low["onlyif"]):
        if not isinstance(item, str | dict):
            return _Answer(skip=False, comment="onlyif execution failed, bad type passed")
        if isinstance(item, dict) and "fun" not in item:
            return _Answer(skip=False, comment=f"no `fun` argument in onlyif: {item}")
        if not _holds(item, low, ctx, unreachable=100):
            return _Answer(skip=True, comment="onlyif condition is false")
        answer = _Answer(skip=False, comment="onlyif condition is true")
    return answer


def _unless(low: Low, ctx: Context) -> _Answer:
    """Return (skip, comment) for the guard ``unless``: the state is skipped if every item succeeds."""
    answer = _Answer(skip=False, comment="")
    for item in _listed(low["unless"]):
        if not isinstance(item, str | dict):
            answer = _Answer(skip=False, comment="unless condition is false, bad type passed")
            continue
        if isinstance(item, dict) and "fun" not in item:
            return _Answer(skip=False, comment=f"no `fun` argument in unless: {item}")
        # A command that cannot be started counts as successful, so the state is skipped, as in Salt.
        if not _holds(item, low, ctx, unreachable=0):
            return _Answer(skip=False, comment="unless condition is false")
        answer = _Answer(skip=True, comment="unless condition is true")
    return answer


def _creates(low: Low, ctx: Context) -> _Answer:
    """Return (skip, comment) for the guard ``creates``: the state is skipped if all listed files exist."""
    paths = _listed(low["creates"])
    if paths and all(_exists(str(path), ctx) for path in paths):
        comment = f"{low['creates']} exists" if isinstance(low["creates"], str) else "All files in creates exist"
        return _Answer(skip=True, comment=comment)
    return _Answer(skip=False, comment="Creates files not found")


#: Key of the chunk -> its guard, in order of evaluation.
GUARDS: Mapping[str, Callable[[Low, Context], _Answer]] = {"onlyif": _onlyif, "unless": _unless, "creates": _creates}


def _holds(item: str | dict[str, object], low: Low, ctx: Context, *, unreachable: int) -> bool:
    if isinstance(item, str):
        return _retcode(item, ctx, _command_options(low, ctx), unreachable=unreachable) == 0
    return _function_holds(item, ctx)


def _function_holds(item: dict[str, object], ctx: Context) -> bool:

    keywords = {key: value for key, value in item.items() if key not in ("fun", "args", "get_return")}
    arguments = item.get("args") or []
    if not isinstance(arguments, Iterable):
        raise TypeError(f"'args' of a guard must be a list, not {arguments!r}")
    positional, keywords = resolve(list(arguments), keywords, ctx)
    before = ctx.scratch.pop("retcode", 0)
    try:
        result = ctx.asked(str(item["fun"]), *positional, **keywords)
    except CallFailed:
        # Where Salt's function returns a value, it also sets a retcode, and a guard looks at that first.
        result, ctx.scratch["retcode"] = None, 1
    retcode = ctx.scratch.pop("retcode", 0)
    if before:
        ctx.scratch["retcode"] = before
    if retcode:
        return False
    if item.get("get_return"):
        for key in str(item["get_return"]).split(":"):
            result = result.get(key) if isinstance(result, Mapping) else None
    return bool(result)


def _retcode(command: str, ctx: Context, options: Mapping[str, object], *, unreachable: int) -> int:
    before = ctx.scratch.get("retcode")
    try:
        code = ctx.asked("cmd.retcode", command, ignore_retcode=True, python_shell=True, **options)
    except CommandError:
        return unreachable
    finally:
        # The exit code of a guard's command must not become the exit code of the job.
        if before is None:
            ctx.scratch.pop("retcode", None)
        else:
            ctx.scratch["retcode"] = before
    return int(code)


def _command_options(low: Low, ctx: Context) -> dict[str, object]:
    excluded = _listed(low.get("cmd_opts_exclude", []))
    options = {key: low[key] for key in _COMMAND_OPTIONS if low.get(key) is not None and key not in excluded}
    return {**_host_shell(ctx), **options}


def _host_shell(ctx: Context) -> dict[str, object]:
    """Return {"shell": path} with the grain ``shell``, in which Salt runs the commands of guards; {} without the grain."""
    return {"shell": ctx.grains["shell"]} if ctx.grains.get("shell") else {}


def _exists(path: str, ctx: Context) -> bool:
    return ctx.host.path(path).exists()


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]
