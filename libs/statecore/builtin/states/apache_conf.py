"""Salt's ``apache_conf`` states: configuration files of Apache on Debian."""

from __future__ import annotations

from statecore.model.context import Context
from statecore.model.types import Plan
from statecore.system.apache_switches import plan_of


def enabled(ctx: Context, name: str) -> Plan:
    """Enable the conf ``name`` of Apache.

    name
        name of the conf, as for the program a2enconf
    """
    return plan_of(ctx, "conf", "conf", name, wanted=True)


def disabled(ctx: Context, name: str) -> Plan:
    """Disable the conf ``name`` of Apache.

    name
        name of the conf, as for the program a2disconf
    """
    return plan_of(ctx, "conf", "conf", name, wanted=False)
