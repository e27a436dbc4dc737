"""External pillar ``nodegroups``: the names of the node groups (option ``nodegroups``) that a minion is in.

.. code-block:: yaml

    ext_pillar:
      - nodegroups:
          pillar_name: nodegroups
"""

from __future__ import annotations

from statecore.model.context import Context
from statecore.model.errors import CommandError, TargetError
from statecore.targeting.match import Subject, matches


def ext_pillar(
    ctx: Context, minion_id: str, pillar: dict[str, object], pillar_name: str | None = None
) -> dict[str, object]:
    """Return the list of the minion's node groups below one key.

    pillar_name
        the key of pillar; nodegroups by default

    Raises CommandError for a node group whose target cannot be understood.
    """
    groups = ctx.opts.get("nodegroups") or {}
    subject = Subject(minion_id, ctx.grains, pillar)
    found = []
    for name in groups:
        try:
            if matches(str(name), "nodegroup", subject, nodegroups=groups):
                found.append(str(name))
        except TargetError as error:
            raise CommandError(f"nodegroup '{name}': {error}") from error
    return {pillar_name or "nodegroups": found}
