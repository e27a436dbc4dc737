"""External pillar ``saltclass``: the pillars of a minion's classes, see ``statecore.pillar.saltclass``.

.. code-block:: yaml

    ext_pillar:
      - saltclass:
          - path: /srv/saltclass
"""

from __future__ import annotations

from collections.abc import Mapping

from statecore.model.context import Context
from statecore.pillar.saltclass import DEFAULT_PATH, node_of


def ext_pillar(
    ctx: Context, minion_id: str, pillar: dict[str, object], *args: object, path: str = DEFAULT_PATH
) -> dict[str, object]:
    """Return the merged pillars of a minion's classes and node, and about them ``__saltclass__``: states, classes,
    environment, nodename.

    args
        a map with ``path``
    path
        directory with ``nodes`` and ``classes``

    Raises CommandError for a file that cannot be read.
    """
    named = [str(each["path"]) for each in args if isinstance(each, Mapping) and "path" in each]
    place = named[-1] if named else path
    node = node_of(place, minion_id, pillar, opts=ctx.opts, grains=ctx.grains, functions=ctx.functions)
    return node.as_pillar(minion_id)
