"""Salt's ``environ`` state: sets environment variables of the minion's process."""

from __future__ import annotations

from statecore.model.context import Context
from statecore.model.types import Outcome, Plan, Step


def setenv(
    ctx: Context,
    name: str,
    value: object,
    false_unsets: bool = False,
    clear_all: bool = False,
    update_minion: bool = False,
    permanent: object = False,
) -> Plan:
    """Set environment variables of the minion's process.

    value
        text; False: set to empty text; a map of several variables, then ``name`` is only a label
    false_unsets
        True: a value of False removes the variable
    clear_all
        True: empty, or with ``false_unsets`` remove, all other variables
    update_minion
        True: also set the variables in the minion process
    permanent
        accepted, without effect: it is for Windows
    """
    if not isinstance(value, str | dict) and value is not False:
        return Plan.failed("Environ value must be string, dict or False")
    wanted = value if isinstance(value, dict) else {name: value}
    if wrong := [key for key, val in wanted.items() if val is not False and not isinstance(val, str)]:
        return Plan.failed(f"Environ value must be string, dict or False: {', '.join(map(str, wrong))}")
    now = ctx.call("environ.items")
    none = None if false_unsets else ""
    changes = {key: none for key in now if key not in wanted} if clear_all else {}
    for key, val in wanted.items():
        new = none if val is False else val
        if now.get(key) != new and not (new == "" and val is not False and key not in now):
            changes[key] = new
    if not changes:
        tense = "are" if ctx.test else "were"
        return Plan.unchanged(f"Environ values {tense} already set with the correct values")

    def work() -> Outcome:
        done = ctx.call("environ.setenv", wanted, false_unsets, clear_all, update_minion)
        if not done:
            return Outcome("Failed to set environ variables", ok=False)
        return Outcome("Environ values were set", done)

    return Plan.change("Environ values will be changed", [Step("set environment variables", work)], changes)
