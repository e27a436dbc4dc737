"""Salt's ``cmd`` states: commands and scripts.

The effects of a command are unknown before it ran, so a plan only names it.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping

from statecore.loader.arguments import names_of
from statecore.model.context import Context
from statecore.model.errors import StatecoreError, StateFailure
from statecore.model.types import Outcome, Plan, Step

#: Public name -> function: ``cmd.watch`` is another name of ``cmd.wait``.
ALIASES = {"wait": "wait", "watch": "wait"}


def run(
    ctx: Context,
    name: str,
    creates: object = None,
    cwd: str | None = None,
    root: str | None = None,
    runas: str | None = None,
    password: str | None = None,
    shell: str | None = None,
    env: object = None,
    prepend_path: str | None = None,
    stateful: object = False,
    output_loglevel: str = "debug",
    hide_output: bool = False,
    timeout: float | None = None,
    ignore_timeout: bool = False,
    use_vt: bool = False,
    success_retcodes: object = None,
    success_stdout: object = None,
    success_stderr: object = None,
    umask: object = None,
    bg: bool = False,
    clean_env: bool = False,
    ignore_retcode: bool = False,
    group: str | None = None,
    stdin: str | None = None,
    rstrip: bool = True,
    python_shell: bool = True,
) -> Plan:
    """Run a command on the host. ``onlyif``, ``unless`` and ``creates`` define when it is not necessary.

    creates
        path or list of paths: do not run the command if all of them exist
    cwd, runas, group, env, clean_env, umask, shell
        working directory, user, group, environment variables, empty environment, umask and shell of the command
    root
        run in a chroot of this directory
    stateful
        True: the last line of output tells whether something changed: JSON, or ``changed=yes comment='...'``. A list
        with
        ``test_name``: this command is run in test mode.
    timeout, ignore_timeout
        seconds after which the command is killed; True: a timeout is no failure
    success_retcodes, success_stdout, success_stderr
        lists of return codes, or outputs, that also count as success
    bg
        True: do not wait for the command
    """
    shell = shell or ctx.grains.get("shell")
    given = _given(locals(), ("creates", "root", "stateful", "ignore_timeout"))
    refused = _refused(env)
    if refused:
        return Plan.failed(refused)
    there = _created(ctx, creates)
    if there:
        return Plan.unchanged(there)

    def call(command: str) -> Outcome:
        function, arguments = ("cmd.run_chroot", (root, command)) if root else ("cmd.run_all", (command,))
        result = _called(ctx, cwd, function, arguments, given)
        return _judge(result, f'Command "{command}" run', _is_stateful(stateful), ignore_timeout=ignore_timeout)

    trial = (
        stateful[0].get("test_name")
        if isinstance(stateful, list) and stateful and isinstance(stateful[0], Mapping)
        else None
    )
    if ctx.test and trial:
        # test_name is run in test mode only; its outcome is the plan.
        return _predicted(call(trial), f"run {name}")
    return Plan.change(
        f'Command "{name}" would have been executed',
        (Step(f"run {name}", lambda: call(name)),),
        {} if _is_stateful(stateful) else {"cmd": name},
    )


def wait(ctx: Context, name: str, **arguments: object) -> Plan:
    """Run the command only if a watched state changed; otherwise do nothing."""
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
    env: object = None,
    stateful: object = False,
    umask: object = None,
    timeout: float | None = None,
    use_vt: bool = False,
    output_loglevel: str = "debug",
    hide_output: bool = False,
    defaults: Mapping[str, object] | None = None,
    context: Mapping[str, object] | None = None,
    success_retcodes: object = None,
    success_stdout: object = None,
    success_stderr: object = None,
    creates: object = None,
    args: object = None,
    group: str | None = None,
    ignore_retcode: bool = False,
    saltenv: str | None = None,
) -> Plan:
    """Fetch a script from the state tree and run it on the host.

    source
        URL or path of the script; default: the first word of ``name``
    args
        arguments of the script; default: the words of ``name`` after the first
    template, context, defaults
        renderer of the script and values for it

    All other arguments are as in ``cmd.run``.
    """
    shell = shell or ctx.grains.get("shell")
    given = _given(locals(), ("source", "creates", "stateful", "args"))
    refused = _refused(env)
    if refused:
        return Plan.failed(refused)
    there = _created(ctx, creates)
    if there:
        return Plan.unchanged(there)
    address = source if source is not None else name
    words = args if args else name.partition(" ")[2]

    def work() -> Outcome:
        result = _called(ctx, cwd, "cmd.script", (address, words), given)
        if result.get("cache_error"):
            why = f"Unable to cache script {address} from saltenv '{saltenv or ctx.saltenv}'"
            return Outcome(why, result, ok=False)
        return _judge(result, f"Command '{name}' run", _is_stateful(stateful))

    return Plan.change(f"Command '{name}' would have been executed", (Step(f"run the script {address}", work),))


def wait_script(ctx: Context, name: str, **arguments: object) -> Plan:
    """Run the script only if a watched state changed; otherwise do nothing."""
    return Plan.unchanged("")


#: Function -> arguments that its ``**arguments`` takes.
OPTIONS: Mapping[str, frozenset[str]] = {
    "wait": names_of(run),
    "watch": names_of(run),
    "wait_script": names_of(script),
}

#: Value of ``changed`` in a stateful command's output -> whether it changed something.
_ANSWERS: Mapping[str, bool] = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}

#: Declared function -> function that ``watch`` runs.
_ON_CHANGE: Mapping[str, Callable[..., Plan]] = {
    "wait": run,
    "run": run,
    "watch": run,
    "script": script,
    "wait_script": script,
}


def mod_watch(ctx: Context, name: str, sfun: str = "run", **arguments: object) -> Plan:
    """Run the command or script of a ``cmd`` state, because a watched state changed."""
    function = _ON_CHANGE.get(sfun)
    if function is None:
        return Plan.failed(f"cmd.{sfun} does not work with the watch requisite, please use cmd.wait or cmd.wait_script")
    known = names_of(function)
    return function(ctx, name, **{key: value for key, value in arguments.items() if key in known})


# ----------------------------------------------------------------------------------------------------------------------- parts


def _given(local: Mapping[str, object], own: tuple[str, ...]) -> dict[str, object]:
    """Map of the arguments of a ``cmd`` state to pass to the execution module ``cmd``: those that have a value.

    ``own``: names of arguments that only the state uses.
    """
    kept = {key: value for key, value in local.items() if key not in ("ctx", "name", *own)}
    return {
        key: value for key, value in kept.items() if value not in (None, False) or key in ("rstrip", "python_shell")
    }


def _refused(env: object) -> str:
    if env is not None and not isinstance(env, list | dict):
        return "Invalidly-formatted 'env' parameter. See documentation."
    return ""


def _is_stateful(stateful: object) -> bool:
    """Return True if the argument ``stateful`` says that the command reports its changes in its last line. As in Salt,
    only True and non-empty lists count.
    """
    return stateful is True or (isinstance(stateful, list) and bool(stateful))


def _created(ctx: Context, creates: object) -> str:
    paths = creates if isinstance(creates, list) else [creates] if creates else []
    if paths and all(ctx.host.path(str(path)).exists() for path in paths):
        return f"{paths[0]} exists" if len(paths) == 1 else "All files in creates exist"
    return ""


def _called(
    ctx: Context, cwd: str | None, function: str, arguments: tuple[object, ...], given: Mapping[str, object]
) -> Mapping[str, object]:
    if cwd and not ctx.host.path(cwd).is_dir():
        raise StateFailure(f'Desired working directory "{cwd}" is not available')
    try:
        result: Mapping[str, object] = ctx.call(function, *arguments, **given)
    except StatecoreError as error:
        raise StateFailure(str(error)) from error
    return result


def _judge(
    result: Mapping[str, object], comment: str, stateful_output: bool, *, ignore_timeout: bool = False
) -> Outcome:
    if ignore_timeout and result["retcode"] == 1 and "Timed out after" in str(result["stdout"]):
        result = {**result, "retcode": 0}
    ok = not result["retcode"]
    return _stateful_outcome(result, ok) if stateful_output else Outcome(comment, result, ok)


def _predicted(outcome: Outcome, what: str) -> Plan:
    if not outcome.ok:
        return Plan.failed(outcome.comment, outcome.changes)
    if not outcome.changes:
        return Plan.unchanged(outcome.comment)
    return Plan.change(outcome.comment, (Step(what, lambda: outcome),), outcome.changes)


def _stateful_outcome(result: Mapping[str, object], ok: bool) -> Outcome:
    """Return the comment, changes and success of a command with the argument ``stateful``, read from its output: JSON,
    or ``key=value ...`` in the last line. Without output nothing changed; output of another form is a failure.
    """
    text = str(result["stdout"])
    if not text:
        return Outcome(str(result["stderr"]), ok=ok)
    rest, report = "", _json(text)
    if report is None:
        rest, _, last = text.rstrip().rpartition("\n")
        report = _pairs(last)
        if report is None:
            why = "Failed parsing script output! Stdout must be JSON or a line of name=value pairs."
            return Outcome(why, result, ok=False)
    elif not isinstance(report, dict):
        return Outcome("script JSON output must be a JSON object (e.g., {})!", ok=False)
    comment = str(report.pop("comment", ""))
    answer = str(report.get("changed", "no")).lower()
    if answer not in _ANSWERS:
        return Outcome(f"Failed parsing boolean value: {report['changed']}", ok=False)
    # Output before the last line stays in stdout; the last line's values become changes.
    return Outcome(comment, {**result, **report, "stdout": rest} if _ANSWERS[answer] else {}, ok)


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _pairs(line: str) -> dict[str, object] | None:
    try:
        pairs = [word.split("=") for word in shlex.split(line)]
    except ValueError:
        return None
    return {pair[0]: pair[1] for pair in pairs} if all(len(pair) == 2 for pair in pairs) else None
