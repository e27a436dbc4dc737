"""Module ``saltclass`` of the option ``master_tops``: the states of a minion's classes, see ``statecore.pillar.saltclass``.

.. code-block:: yaml

    master_tops:
      saltclass:
        path: /srv/saltclass
"""

from __future__ import annotations

from collections.abc import Mapping

from statecore.model.context import Context
from statecore.pillar.saltclass import DEFAULT_PATH, node_of


def top(ctx: Context, **kwargs: object) -> dict[str, list[str]]:
    """Return ``{saltenv: [SLS name, ...]}`` of one minion; the saltenv is base if no class and no node names one.

    Raises CommandError for a file that cannot be read.
    """
    opts, grains = kwargs["opts"], kwargs.get("grains")
    minion_id = opts.get("id") if isinstance(opts, Mapping) else None
    if not isinstance(opts, Mapping) or not minion_id:
        return {}
    settings = (ctx.opts.get("master_tops") or {}).get("saltclass") or {}
    known = grains if isinstance(grains, Mapping) else {}
    node = node_of(str(settings.get("path") or DEFAULT_PATH), str(minion_id), {}, opts=opts, grains=known, functions={})
    return {node.environment or "base": node.states}
