"""Module ``reclass`` of the option ``master_tops``: the applications of a node in the inventory of reclass are its SLS
names.

.. code-block:: yaml

    master_tops:
      reclass:
        storage_type: yaml_fs
        inventory_base_uri: /srv/inventory

The extra ``saltern-statecore[reclass]`` brings reclass.
"""

from __future__ import annotations

from collections.abc import Mapping

from statecore.model.context import Context
from statecore.system import reclass_inventory

VIRTUAL = "reclass"


def top(ctx: Context, **kwargs: object) -> dict[str, list[str]]:
    """Return ``{saltenv: [SLS name, ...]}`` of one minion. Raises CommandError for a faulty inventory."""
    opts = kwargs["opts"]
    minion_id = opts.get("id") if isinstance(opts, Mapping) else None
    settings = (ctx.opts.get("master_tops") or {}).get("reclass") or {}
    return reclass_inventory.top_of(ctx.opts, str(minion_id), settings) if minion_id else {}
