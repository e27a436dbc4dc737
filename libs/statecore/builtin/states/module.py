"""Salt's ``module`` states: execution functions as states.

New style: a list of functions with their arguments::

    restart:
      module.run:
        - service.restart:
          - name: nginx
        - test.ping:

Old style: one function in ``name``, with its arguments beside it. Arguments with names of the state's own are
prefixed: ``m_name``.
"""

from __future__ import annotations

from collections.abc import Mapping

from statecore.model.context import Context
from statecore.model.errors import NotAvailable, StatecoreError
from statecore.model.types import Outcome, Plan, Step

ALIASES = {"wait": "wait", "watch": "wait"}

#: Arguments of the state that are not passed to an old-style function.
_OWN = ("name", "sfun", "returner")

#: Old style: argument name in the state -> argument name of the function.
_PREFIXED: Mapping[str, str] = {f"m_{name}": name for name in ("name", "names", "fun", "state", "saltenv")}


def run(ctx: Context, **kwargs: object) -> Plan:
    """Call execution functions in order.

    The state fails if one returns False, or a map with ``result: False`` or a ``retcode`` other than 0.
    """
    if kwargs.get("returner"):
        return Plan.failed("not supported: returner; the function's return is in the changes")
    named = [key for key in kwargs if key not in _OWN]
    if named and all("." in key for key in named):
        return _functions(ctx, {key: kwargs[key] for key in named})
    if "name" not in kwargs or ("." not in str(kwargs["name"]) and not named):
        return Plan.failed("No function provided.")
    return _legacy(ctx, str(kwargs["name"]), {key: kwargs[key] for key in named})


def wait(ctx: Context, name: str, **kwargs: object) -> Plan:
    """Call the execution functions only if a watched state changed; otherwise do nothing."""
    return Plan.unchanged("")


def mod_watch(ctx: Context, **kwargs: object) -> Plan:
    """Call the execution functions of a ``module`` state, because a watched state changed."""
    return run(ctx, **kwargs)


def _functions(ctx: Context, wanted: Mapping[str, object]) -> Plan:
    missing = [name for name in map(_plain, wanted) if not ctx.may(name) or name not in ctx.functions]
    if missing:
        reasons = "".join(_why_not(ctx, name) for name in missing)
        return Plan.failed(f"Unavailable function{'s' * (len(missing) > 1)}: {', '.join(missing)}.{reasons}")
    if wrong := [
        f"'{key}' failed: {why}" for key, listed in wanted.items() if (why := _argument_error(ctx, key, listed))
    ]:
        return Plan.failed(", ".join(wrong))
    names = ", ".join(map(_plain, wanted))
    would = f"Function{'s' * (len(wanted) > 1)} {names} to be executed."
    return Plan.change(would, [Step(f"call {names}", lambda: _call_all(ctx, wanted))])


def _why_not(ctx: Context, name: str) -> str:
    """Return a line with the reason why an execution function is unavailable; "" if no reason is known."""
    if not ctx.may(name):
        return "\nReason: whitelist_modules does not name its module"
    try:
        _ = ctx.functions[name]
    except NotAvailable as missing:
        return f"\nReason: {missing}" if missing.reason else ""
    return ""


def _plain(key: str) -> str:
    """Return the name of the execution function in a key: in ``test.echo:second``, the text after the colon only makes
    the key unique.
    """
    return key.partition(":")[0]


def _call_all(ctx: Context, wanted: Mapping[str, object]) -> Outcome:
    """Call all execution functions of a ``module.run`` state, even after one failed. Return an Outcome (comment,
    changes, success), which is failed if one of them failed.
    """
    failures: list[str] = []
    successes: list[str] = []
    changes: dict[str, object] = {}
    for key, listed in wanted.items():
        positional, keywords = _split(listed)
        try:
            returned = ctx.call(_plain(key), *positional, **keywords)
        except (StatecoreError, TypeError) as error:
            failures.append(f"'{key}' failed: {error}")
            continue
        comment = returned.get("comment") if isinstance(returned, dict) else None
        if not _succeeded(returned):
            failures.append(
                f"'{key}' failed: {comment or '(error message N/A)'}"
                if isinstance(returned, dict)
                else f"'{key}': {returned}"
            )
        else:
            successes.append(f"{key}: {(comment or 'Success') if isinstance(returned, dict) else returned}")
            changes[key] = returned
    return Outcome(comment=", ".join([*failures, *successes]), changes=changes, ok=not failures)


def _split(listed: object) -> tuple[list[object], dict[str, object]]:
    """Return (positional arguments, keyword arguments) of a function in ``module.run``: maps of the list are keyword
    arguments, other items are positional.
    """
    if isinstance(listed, dict):
        return [], listed
    positional: list[object] = []
    keywords: dict[str, object] = {}
    for item in listed if isinstance(listed, list) else [] if listed is None else [listed]:
        if isinstance(item, dict):
            keywords.update(item)
        else:
            positional.append(item)
    return positional, keywords


def _argument_error(ctx: Context, key: str, listed: object) -> str:
    """Return the reason why the arguments do not fit the execution function; "" if they fit, or the signature is
    unknown.
    """
    spec = ctx.catalog.argspec(_plain(key))
    if spec is None:
        return ""
    takes = list(spec.get("args") or [])
    positional, keywords = _split(listed)
    required = takes[: len(takes) - len(spec.get("defaults") or [])]
    missing = [argument for argument in required[len(positional) :] if argument not in keywords]
    if missing:
        return f"Missing arguments: {', '.join(missing)}"
    unknown = sorted(str(argument) for argument in keywords if argument not in takes)
    if unknown and not spec.get("kwargs"):
        return f"{_plain(key)} takes no argument {', '.join(unknown)}"
    if len(positional) > len(takes) and not spec.get("varargs"):
        few = f"{len(takes)} positional argument{'' if len(takes) == 1 else 's'}"
        least = f"from {len(required)} to " if len(required) < len(takes) else ""
        given = f"{len(positional)} {'was' if len(positional) == 1 else 'were'} given"
        return f"{_plain(key).rpartition('.')[2]}() takes {least}{few} but {given}"
    return ""


def _legacy(ctx: Context, name: str, arguments: Mapping[str, object]) -> Plan:
    if not ctx.may(name) or name not in ctx.functions:
        return Plan.failed(f"Module function {name} is not available{_why_not(ctx, name)}")
    spec = ctx.catalog.argspec(name) or {"kwargs": True}
    takes = spec.get("args") or []
    given = {_PREFIXED.get(key, key): value for key, value in arguments.items()}
    positional = given.pop("args", None) if "args" not in takes else None
    if positional is not None and not isinstance(positional, list):
        return Plan.failed("'args' must be a list.")
    if "kwargs" in given and "kwargs" not in takes:
        more = given.pop("kwargs")
        if not isinstance(more, dict):
            return Plan.failed("'kwargs' must be a dict.")
        given.update(more)
    required = takes[: len(takes) - len(spec.get("defaults") or [])]
    missing = [argument for argument in required[len(positional or []) :] if argument not in given]
    if missing:
        shown = " ".join(f"m_{argument}" if f"m_{argument}" in _PREFIXED else argument for argument in missing)
        return Plan.failed(f"The following arguments are missing: {shown}")
    unknown = sorted(argument for argument in given if argument not in takes)
    if unknown and not spec.get("kwargs"):
        return Plan.failed(f"Module function {name} takes no argument {', '.join(unknown)}")
    step = Step(f"call {name}", lambda: _call_legacy(ctx, name, positional or [], given))
    return Plan.change(f"Module function {name} is set to execute", [step])


def _call_legacy(ctx: Context, name: str, positional: list[object], keywords: Mapping[str, object]) -> Outcome:
    try:
        returned = ctx.call(name, *positional, **keywords)
    except Exception as error:  # noqa: BLE001 - any function of any module; what it raises is the result to report
        return Outcome(comment=f"Module function {name} threw an exception. Exception: {error}", ok=False)
    return Outcome(comment=f"Module function {name} executed", changes={"ret": returned}, ok=_succeeded(returned))


def _succeeded(returned: object) -> bool:
    if isinstance(returned, bool):
        return returned
    if isinstance(returned, dict):
        return all(
            not (key == "result" and value is False)
            and not (key == "retcode" and value != 0)
            and not (isinstance(value, dict) and not _succeeded(value))
            for key, value in returned.items()
        )
    return True
