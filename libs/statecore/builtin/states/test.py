"""Salt's ``test`` states: they change nothing, and serve to test requisites, output and order of a state tree.

In test mode their comments are those of Salt ("If we weren't testing ..."). Their steps do nothing.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from statecore.model.context import Context
from statecore.model.errors import InvocationError
from statecore.model.types import Outcome, Plan, Step

_PRETENDED: Mapping[str, object] = {"testing": {"old": "Unchanged", "new": "Something pretended to change"}}

_TYPES: Mapping[str, type] = {
    "boolean": bool,
    "integer": int,
    "string": str,
    "listing": list,
    "dictionary": dict,
}


def _pretend(comment: str, *, ok: bool = True) -> Step:
    return Step("pretend to change something", lambda: Outcome(comment=comment, changes=_PRETENDED, ok=ok))


def nop(ctx: Context, name: str, **kwargs: object) -> Plan:
    """Do nothing and succeed, with any arguments. Useful as a target of requisites and ``use``."""
    return Plan.unchanged("Success!")


def succeed_without_changes(ctx: Context, name: str, comment: str = "Success!", **kwargs: object) -> Plan:
    """Let the state succeed without changes, with ``comment``."""
    return Plan.unchanged(comment)


def fail_without_changes(ctx: Context, name: str, comment: str = "Failure!", **kwargs: object) -> Plan:
    """Fail the state without changes, with ``comment``. It fails in test mode too."""
    return Plan.failed("If we weren't testing, this would be a failure!" if ctx.test else comment)


def succeed_with_changes(ctx: Context, name: str, comment: str = "Success!", **kwargs: object) -> Plan:
    """Report a change and let the state succeed, with ``comment``."""
    return Plan.change("If we weren't testing, this would be successful with changes", [_pretend(comment)], _PRETENDED)


def fail_with_changes(ctx: Context, name: str, comment: str = "Failure!", **kwargs: object) -> Plan:
    """Report a change and fail the state, with ``comment``."""
    return Plan.change(
        "If we weren't testing, this would be failed with changes", [_pretend(comment, ok=False)], _PRETENDED
    )


def configurable_test_state(
    ctx: Context,
    name: str,
    changes: bool | str = True,
    result: bool | str = True,
    comment: str = "",
    warnings: str | list[str] | None = None,
    allow_test_mode_failure: bool = False,
) -> dict[str, object]:
    """Return the given result, changes and comment.

    ``changes`` and ``result`` are True, False or "Random"; ``warnings`` is a string or a list of strings. In test
    mode the result is None
    (True if ``changes`` is False), unless ``allow_test_mode_failure`` is True and ``result`` is False. Raises
    InvocationError for other
    values. Returns a map in place of a plan, because its result is arbitrary.
    """
    changed = _choice("changes", changes)
    succeeded = _choice("result", result)
    entry: dict[str, object] = {
        "name": name,
        "changes": dict(_PRETENDED) if changed else {},
        "result": succeeded,
        "comment": comment,
    }
    if warnings is not None:
        if not isinstance(warnings, str | list):
            raise InvocationError(
                "You have specified the state option 'warnings' with invalid arguments. It must be a string or a list"
                f" of strings, not {type(warnings).__name__}"
            )
        entry["warnings"] = [warnings] if isinstance(warnings, str) else warnings
    if ctx.test:
        if not (allow_test_mode_failure and result is False):
            entry["result"] = True if changes is False else None
        entry["comment"] = comment or "This is a test"
    return entry


def _choice(option: str, value: bool | str) -> bool:
    if isinstance(value, bool):
        return value
    if str(value).lower() == "random":
        return random.choice((True, False))
    raise InvocationError(
        f"You have specified the state option '{option}' with invalid arguments."
        f" It must be either True, False, or 'Random', not {value!r}"
    )


def show_notification(ctx: Context, name: str, text: str | None = None, **kwargs: object) -> Plan:
    """Succeed with ``text`` as comment. Raises InvocationError without text."""
    if not text:
        raise InvocationError("Missing required argument text.")
    return Plan.unchanged(str(text))


def mod_watch(ctx: Context, name: str, sfun: str | None = None, **kwargs: object) -> dict[str, object]:
    """Report which watched states changed, in the state's changes. ``result``, ``comment`` and ``changes``
    replace the reported ones.
    """
    changed = [f"{low['state']}: {low['__id__']}" for low in ctx.low.get("__changed__", ())]
    return {
        "name": name,
        "result": kwargs.get("result", True),
        "comment": kwargs.get("comment", "Watch statement fired."),
        "changes": kwargs.get("changes", {"Requisites with changes": changed}),
    }


def check_pillar(
    ctx: Context,
    name: str,
    present: str | list[str] | None = None,
    boolean: str | list[str] | None = None,
    integer: str | list[str] | None = None,
    string: str | list[str] | None = None,
    listing: str | list[str] | None = None,
    dictionary: str | list[str] | None = None,
    verbose: bool = False,
) -> Plan:
    """Fail unless the pillar contains all keys of ``present``, and each key of ``boolean``, ``integer``, ... with a
    value of this type.

    Keys are paths separated by colons. ``verbose``: also list the keys that passed.
    """
    asked = {"boolean": boolean, "integer": integer, "string": string, "listing": listing, "dictionary": dictionary}
    if not (present or any(asked.values())):
        raise InvocationError("Missing required argument text.")
    wanted: list[tuple[str, type | None]] = [(key, None) for key in _listed(present)]
    for kind, keys in asked.items():
        wanted += [(key, _TYPES[kind]) for key in _listed(keys)]
    comments: list[str] = []
    passed: list[str] = []
    for key, expected in wanted:
        value = ctx.call("pillar.get", key, None)
        if value is None:
            comments.append(f'Pillar key "{key}" is missing.')
        elif expected is not None and not isinstance(value, expected):
            comments.append(f'Pillar key "{key}" is not {expected}.')
        else:
            passed.append(f"- {key} ({expected})")
    notes = ["Those keys passed the check:", *passed] if verbose and passed else []
    text = "".join(f"{line}\n" for line in [*comments, *notes])
    return Plan.failed(text) if comments else Plan.unchanged(text)


def _listed(keys: str | list[str] | None) -> list[str]:
    if keys is None:
        return []
    return [keys] if isinstance(keys, str) else list(keys)
