"""Salt's ``apache_site`` states: sites of Apache on Debian."""

from __future__ import annotations

from statecore.model.context import Context
from statecore.model.types import Plan
from statecore.system.apache_switches import plan_of


def enabled(ctx: Context, name: str) -> Plan:
    """Enable the site ``name`` of Apache. Nothing happens if it is enabled; the state fails if a2ensite does not enable
    it.

    name
        name of the site, as for the program a2ensite
    """
    return plan_of(ctx, "site", "site", name, wanted=True)


def disabled(ctx: Context, name: str) -> Plan:
    """Disable the site ``name`` of Apache. Nothing happens if it is disabled; the state fails if a2dissite does not
    disable it.

    name
        name of the site, as for the program a2dissite
    """
    return plan_of(ctx, "site", "site", name, wanted=False)
