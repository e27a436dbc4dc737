"""Salt's ``keyboard`` states: keyboard layouts of the console and of X.

us:
  keyboard.system
"""

from __future__ import annotations

from statecore.model.context import Context
from statecore.model.types import Outcome, Plan, Step


def system(ctx: Context, name: str) -> Plan:
    """Set the keyboard layout of the console to ``name``. Nothing happens if it is set; the state fails if it cannot be
    set.
    """
    return _set(ctx, name, "sys", "System", "system")


def xorg(ctx: Context, name: str) -> Plan:
    """Set the keyboard layout of X to ``name``. Nothing happens if it is set; the state fails if it cannot be set."""
    return _set(ctx, name, "x", "XOrg", "XOrg")


def _set(ctx: Context, name: str, which: str, title: str, word: str) -> Plan:
    if ctx.call(f"keyboard.get_{which}") == name:
        return Plan.unchanged(f"{title} layout {name} already set")

    def work() -> Outcome:
        if not ctx.call(f"keyboard.set_{which}", name):
            return Outcome(f"Failed to set {word} keyboard layout", ok=False)
        return Outcome(f"Set {word} keyboard layout {name}", {"layout": name})

    return Plan.change(f"{title} layout {name} needs to be set", [Step(f"set the {word} layout {name}", work)])
