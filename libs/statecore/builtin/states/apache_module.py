"""Salt's ``apache_module`` states: modules of Apache on Debian."""

from __future__ import annotations

from statecore.model.context import Context
from statecore.model.types import Plan
from statecore.system.apache_switches import plan_of


def enabled(ctx: Context, name: str) -> Plan:
    """Enable the module ``name`` of Apache. Nothing happens if it is enabled; the state fails if a2enmod does not
    enable it.

    name
        name of the module, as for the program a2enmod
    """
    return plan_of(ctx, "mod", "module", name, wanted=True)


def disabled(ctx: Context, name: str) -> Plan:
    """Disable the module ``name`` of Apache. Nothing happens if it is disabled; the state fails if a2dismod does not
    disable it.

    name
        name of the module, as for the program a2dismod
    """
    return plan_of(ctx, "mod", "module", name, wanted=False)
