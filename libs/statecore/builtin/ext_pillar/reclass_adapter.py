"""External pillar ``reclass``: the parameters of a node in the inventory of reclass.

.. code-block:: yaml

    ext_pillar:
      - reclass:
          storage_type: yaml_fs
          inventory_base_uri: /srv/inventory

The extra ``saltern-statecore[reclass]`` brings reclass.
"""

from __future__ import annotations

from statecore.model.context import Context
from statecore.system import reclass_inventory

VIRTUAL = "reclass"


def ext_pillar(ctx: Context, minion_id: str, pillar: dict[str, object], **kwargs: object) -> dict[str, object]:
    """Return the parameters of the node that is called as the minion.

    kwargs
        settings of reclass: storage_type, inventory_base_uri (default: the first directory of the saltenv base),
        nodes_uri, classes_uri, class_mappings, propagate_pillar_data_to_reclass and others

    Raises CommandError for a faulty inventory and for unknown settings.
    """
    return reclass_inventory.pillar_of(ctx.opts, minion_id, pillar, kwargs)
