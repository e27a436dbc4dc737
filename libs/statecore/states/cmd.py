"""Commands as states (Salt's ``cmd`` state). What a command would change is not known before it ran: a plan only names it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from statecore.context import Context
from statecore.errors import CommandError
from statecore.types import Outcome, Plan, Step


def run(
    ctx: Context,
    name: str,
    creates: Any = None,
    cwd: str | None = None,
    root: str | None = None,
    runas: str | None = None,
    password: str | None = None,
    shell: str | None = None,
    env: Any = None,
    prepend_path: str | None = None,
    stateful: Any = False,
    output_loglevel: str = "debug",
    hide_output: bool = False,
    timeout: float | None = None,
    ignore_timeout: bool = False,
    use_vt: bool = False,
    success_retcodes: Any = None,
    success_stdout: Any = None,
    success_stderr: Any = None,
    umask: Any = None,
    bg: bool = False,
    clean_env: bool = False,
    ignore_retcode: bool = False,
    args: Any = None,
    group: str | None = None,
    stdin: str | None = None,
    rstrip: bool = True,
    python_shell: bool = True,
) -> Plan:
    """Runs a command each time. ``onlyif``, ``unless`` and ``creates`` say when it need not.

    stateful
        the command tells by its last line whether it changed something: JSON, or ``changed=yes comment='...'``
    """
    given = _given(locals(), ("creates", "root", "stateful", "ignore_timeout", "args"))
    refused = _refused(stateful, env, root, use_vt, password)
    if refused:
        return Plan.failed(refused)
    there = _created(ctx, creates)
    if there:
        return Plan.unchanged(there)
    command = _with_arguments(name, args)

    def work() -> Outcome:
        return _judge(
            ctx.call("cmd.run_all", command, **given), command, stateful, ignore_timeout=ignore_timeout, bg=bg
        )

    return Plan.change(
        f'Command "{name}" would have been executed', (Step(f"run {name}", work),), {"cmd": name} if stateful else {}
    )


def wait(ctx: Context, name: str, **arguments: Any) -> Plan:
    """Does nothing by itself; runs the command when something that it watches changed."""
    return Plan.unchanged("")


def script(
    ctx: Context,
    name: str,
    source: str | None = None,
    template: str | None = None,
    cwd: str | None = None,
    runas: str | None = None,
    password: str | None = None,
    shell: str | None = None,
    env: Any = None,
    stateful: Any = False,
    umask: Any = None,
    timeout: float | None = None,
    use_vt: bool = False,
    output_loglevel: str = "debug",
    hide_output: bool = False,
    defaults: Mapping[str, Any] | None = None,
    context: Mapping[str, Any] | None = None,
    success_retcodes: Any = None,
    success_stdout: Any = None,
    success_stderr: Any = None,
    creates: Any = None,
    args: Any = None,
    group: str | None = None,
    ignore_retcode: bool = False,
    saltenv: str | None = None,
) -> Plan:
    """Fetches a script and runs it. ``name`` may carry arguments behind the script's address when ``source`` is not given."""
    given = _given(locals(), ("source", "creates", "stateful", "args"))
    refused = _refused(stateful, env, None, use_vt, password)
    if refused:
        return Plan.failed(refused)
    there = _created(ctx, creates)
    if there:
        return Plan.unchanged(there)
    address, words = (source, args) if source else _address(name, args)

    def work() -> Outcome:
        result = ctx.call("cmd.script", address, args=words, **given)
        if result.get("cache_error"):
            return Outcome(f"Unable to cache script {address} from saltenv '{saltenv or ctx.saltenv}'", ok=False)
        return _judge(result, name, stateful, ignore_timeout=False, bg=False)

    return Plan.change(f"Command '{name}' would have been executed", (Step(f"run the script {address}", work),))


def wait_script(ctx: Context, name: str, **arguments: Any) -> Plan:
    """Does nothing by itself; runs the script when something that it watches changed."""
    return Plan.unchanged("")


#: What a watch makes of each function.
_ON_CHANGE: Mapping[str, Callable[..., Plan]] = {
    "wait": run,
    "run": run,
    "watch": run,
    "script": script,
    "wait_script": script,
}


def mod_watch(ctx: Context, name: str, sfun: str = "run", **arguments: Any) -> Plan:
    """Something watched has changed: the command, or the script, runs."""
    function = _ON_CHANGE.get(sfun)
    if function is None:
        return Plan.failed(f"cmd.{sfun} does not work with the watch requisite, please use cmd.wait or cmd.wait_script")
    arguments.pop("watch", None)
    return function(ctx, name, **arguments)


# ----------------------------------------------------------------------------------------------------------------------- parts


def _given(local: Mapping[str, Any], own: tuple[str, ...]) -> dict[str, Any]:
    """The arguments to hand on to the execution module: those that were set."""
    kept = {key: value for key, value in local.items() if key not in ("ctx", "name", *own)}
    return {
        key: value for key, value in kept.items() if value not in (None, False) or key in ("rstrip", "python_shell")
    }


def _refused(stateful: Any, env: Any, root: str | None, use_vt: bool, password: str | None) -> str:
    if not isinstance(stateful, bool | list):
        return "Option 'stateful' must be True, False or a list"
    if env is not None and not isinstance(env, list | dict):
        return "Invalidly-formatted 'env' parameter. See documentation."
    if root:
        return "not supported: root; the managed host's root is option host_root"
    if use_vt or password:
        return f"not supported: {'use_vt' if use_vt else 'password (it is for Windows hosts)'}"
    return ""


def _created(ctx: Context, creates: Any) -> str:
    paths = creates if isinstance(creates, list) else [creates] if creates else []
    if paths and all(ctx.host.path(str(path)).exists() for path in paths):
        return f"{paths[0]} exists" if len(paths) == 1 else "All files in creates exist"
    return ""


def _with_arguments(name: str, args: Any) -> str:
    words = args if isinstance(args, list) else [args] if args else []
    return " ".join([name, *(shlex.quote(str(word)) for word in words)])


def _address(name: str, args: Any) -> tuple[str, Any]:
    source, _, rest = name.partition(" ")
    return source, args if args else rest


def _judge(result: Mapping[str, Any], name: str, stateful: Any, *, ignore_timeout: bool, bg: bool) -> Outcome:
    timed_out = "Timed out after" in str(result.get("stdout", "")) and result["retcode"] == 124
    if timed_out and ignore_timeout:
        return Outcome(f'Command "{name}" run', {"pid": result["pid"], "retcode": 0, "stdout": "", "stderr": ""})
    if stateful:
        return _reinterpreted(result, name, stateful)
    changes = {key: result[key] for key in ("pid", "retcode", "stdout", "stderr")}
    if timed_out:
        return Outcome(str(result["stdout"]).splitlines()[-1], changes, ok=False)
    return Outcome(f'Command "{name}" run', {} if bg else changes, ok=result["retcode"] == 0)


def _reinterpreted(result: Mapping[str, Any], name: str, stateful: Any) -> Outcome:
    """A stateful command says by its last line whether it changed something."""
    lines = str(result.get("stdout", "")).rstrip().splitlines()
    told = _told(lines[-1]) if lines else {}
    changed = str(told.pop("changed", "no")).lower() in ("true", "yes", "1")
    comment = str(told.pop("comment", f'Command "{name}" run'))
    ok = result["retcode"] == 0
    if isinstance(stateful, list) and len(stateful) > 0 and isinstance(stateful[0], Mapping):
        ok = ok or bool(stateful[0].get("ignore_retcode"))
    changes = {**told, **{key: result[key] for key in ("pid", "retcode", "stdout", "stderr")}} if changed else {}
    return Outcome(comment, changes, ok=ok)


def _told(line: str) -> dict[str, Any]:
    try:
        data = json.loads(line)
        return data if isinstance(data, dict) else {}
    except ValueError:
        pass
    try:
        pairs = [word.partition("=") for word in shlex.split(line)]
    except ValueError as error:
        raise CommandError(
            f"the last line of a stateful command must be JSON or key=value: {line!r}: {error}"
        ) from error
    return {key: value for key, separator, value in pairs if separator}
