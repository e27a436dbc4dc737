"""Salt's ``apache_conf`` states: configuration files of Apache on Debian."""

from __future__ import annotations

from statecore.model.context import Context
from statecore.model.types import Plan
from statecore.system.apache_switches import plan_of


def enabled(ctx: Context, name: str) -> Plan:
    """Enable the configuration file ``name`` of Apache (in conf-available). Nothing happens if it is enabled; the state
    fails if a2enconf does not enable it.

    name
        name of the conf, as for the program a2enconf
    """
    return plan_of(ctx, "conf", "conf", name, wanted=True)


def disabled(ctx: Context, name: str) -> Plan:
    """Disable the configuration file ``name`` of Apache. Nothing happens if it is disabled; the state fails if
    a2disconf does not disable it.

    name
        name of the conf, as for the program a2disconf
    """
    return plan_of(ctx, "conf", "conf", name, wanted=False)
