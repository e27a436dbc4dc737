"""External pillar ``vault``: secrets of HashiCorp Vault or OpenBao, of the engine kv.

.. code-block:: yaml

    vault:
      url: https://vault.example:8200
      auth: {method: approle, role_id: ..., secret_id: ...}

    ext_pillar:
      - vault: path=secret/salt
      - vault: path=secret/minions/{minion}
      - vault:
          conf: path=secret/roles/{pillar[roles]}
          nesting_key: secrets

The option ``vault`` says where the server is and how to log in (see ``statecore.sources.vault``).
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator, Mapping

from statecore.model import substitution
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.values import merge
from statecore.sources.vault import Refused, VaultClient

log = logging.getLogger(__name__)


def ext_pillar(
    ctx: Context,
    minion_id: str,
    pillar: dict[str, object],
    conf: str,
    nesting_key: str | None = None,
    merge_strategy: str | None = None,
    merge_lists: bool | None = None,
    slashes: bool = False,
) -> dict[str, object]:
    """Return the fields of secrets. A secret that does not exist, or that the server does not let the master read, has none.

    conf
        ``path=`` and the path of the secrets. ``{minion}`` is the minion's id, ``{pillar[KEY]}`` a value of the pillar so
        far, ``{grains[KEY]}`` a grain; a list stands for several paths. Each value is one name of the path
    nesting_key
        key of pillar for the fields; without it they stand at the top
    merge_strategy, merge_lists
        how several secrets are merged, instead of by pillar_source_merging_strategy and pillar_merge_lists
    slashes
        True: values of pillar may be paths of several names, such as ``apps/web``

    Raises CommandError if the server does not answer, ``conf`` names no path, or a value is not a name.
    """
    pattern = next((word.removeprefix("path=") for word in conf.split() if word.startswith("path=")), "")
    if not pattern:
        raise CommandError(f"'{conf}' names no path: write `vault: path=secret/salt`")
    option = ctx.opts.get("vault")
    client = VaultClient.of(option if isinstance(option, Mapping) else {}, ctx.host)
    strategy = merge_strategy or str(ctx.opts.get("pillar_source_merging_strategy") or "smart")
    lists = bool(ctx.opts.get("pillar_merge_lists")) if merge_lists is None else merge_lists
    found: dict[str, object] = {}
    for path in _paths(pattern, {"minion": minion_id, "pillar": pillar, "grains": ctx.grains}, slashes=slashes):
        found = merge(found, _secret(client, path), strategy, lists=lists)
    return {nesting_key: found} if nesting_key else found


def _secret(client: VaultClient, path: str) -> dict[str, object]:
    try:
        fields, _ = client.read(path)
    except Refused as error:
        if error.status not in (403, 404):
            raise
        # As in Salt: paths by minion exist for some minions only.
        log.warning("the external pillar vault has no secret for a minion: %s", error)
        return {}
    return fields or {}


def _paths(pattern: str, values: Mapping[str, object], *, slashes: bool) -> Iterator[str]:
    """Yield the paths that a path pattern of the configuration stands for: one, or one for each combination of the items of
    values that are lists. If a value is missing, log a warning and yield none.
    """
    try:
        fields = list(dict.fromkeys(substitution.fields_of(pattern)))
        found = {field: substitution.value_of(field, values) for field in fields}
    except substitution.MissingValue as missing:
        log.warning("the external pillar vault: the path %s names a value that is not there: %s", pattern, missing)
        return
    choices = [value if isinstance(value, list) else [value] for value in found.values()]
    for chosen in itertools.product(*choices):
        texts = {
            # Only the master's own data may name more than one segment, and only if the operator says so.
            field: substitution.path_value(value, field, slashes=slashes and field.startswith("pillar["))
            for field, value in zip(fields, chosen, strict=True)
        }
        yield substitution.filled(pattern, texts.__getitem__)
