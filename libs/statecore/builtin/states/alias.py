"""Salt's ``alias`` states: mail aliases, by default in /etc/aliases (the option ``aliases.file``).

root:
  alias.present:
    - target: admin@example.com
"""

from __future__ import annotations

from statecore.model.context import Context
from statecore.model.types import Outcome, Plan, Step


def present(ctx: Context, name: str, target: str | list[str]) -> Plan:
    """Set the target of the mail alias ``name``; a missing alias is added. Nothing happens if it has this target.

    target
        an address, or a list of addresses
    """
    if ctx.call("aliases.has_target", name, target):
        return Plan.unchanged(f"Alias {name} already present")

    def work() -> Outcome:
        ctx.call("aliases.set_target", name, target)
        return Outcome(f"Set email alias {name} -> {target}", {"alias": name})

    return Plan.change(f"Alias {name} -> {target} is set to be added", [Step(f"set the alias {name}", work)])


def absent(ctx: Context, name: str) -> Plan:
    """Remove the mail alias ``name``. Nothing happens if there is no such alias."""
    if not ctx.call("aliases.get_target", name):
        return Plan.unchanged(f"Alias {name} already absent")

    def work() -> Outcome:
        ctx.call("aliases.rm_alias", name)
        return Outcome(f"Removed alias {name}", {"alias": name})

    return Plan.change(f"Alias {name} is set to be removed", [Step(f"remove the alias {name}", work)])
