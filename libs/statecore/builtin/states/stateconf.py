"""States of the renderer ``stateconf``: they hold the configuration of an SLS, and mark its start and its goal.

.. code-block:: yaml

    #!stateconf
    .params:
      stateconf.set:
        - port: 8080
    # --- end of state config ---
    .web:
      file.managed:
        - name: /etc/web.conf
        - contents: port {{ params.port }}
"""

from __future__ import annotations

from statecore.model.context import Context
from statecore.model.types import Plan

ALIASES = {"set": "set_"}


def set_(ctx: Context, name: str, **kwargs: object) -> Plan:
    """Hold configuration for the template of an SLS. Nothing is changed.

    name
        ID of the configuration, such as ``web::params``
    kwargs
        values, which the template reads as ``params.port``
    """
    return Plan.unchanged("")


def context(ctx: Context, name: str, **kwargs: object) -> Plan:
    """Hold configuration for the template of an SLS, as ``set`` does. Nothing is changed.

    name
        ID of the configuration
    kwargs
        values
    """
    return Plan.unchanged("")
