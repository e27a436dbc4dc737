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

import logging
import string
from collections.abc import Iterator, Mapping

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
) -> dict[str, object]:
    """Return the fields of secrets. A secret that does not exist, or that the server does not let the master read, has none.

    conf
        ``path=`` and the path of the secrets. ``{minion}`` is the minion's id, ``{pillar[KEY]}`` a value of the pillar so
        far; a list stands for several paths
    nesting_key
        key of pillar for the fields; without it they stand at the top
    merge_strategy, merge_lists
        how several secrets are merged, instead of by pillar_source_merging_strategy and pillar_merge_lists

    Raises CommandError if the server does not answer, or ``conf`` names no path.
    """
    pattern = next((word.removeprefix("path=") for word in conf.split() if word.startswith("path=")), "")
    if not pattern:
        raise CommandError(f"'{conf}' names no path: write `vault: path=secret/salt`")
    option = ctx.opts.get("vault")
    client = VaultClient.of(option if isinstance(option, Mapping) else {}, ctx.host)
    strategy = merge_strategy or str(ctx.opts.get("pillar_source_merging_strategy") or "smart")
    lists = bool(ctx.opts.get("pillar_merge_lists")) if merge_lists is None else merge_lists
    found: dict[str, object] = {}
    for path in _paths(pattern, {"minion": minion_id, "pillar": pillar}):
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


def _paths(pattern: str, values: Mapping[str, object]) -> Iterator[str]:
    """Yield the paths that a path pattern of the configuration stands for: one, or one for each item of a value that
    is a list. If a value is missing, log a warning and yield none.
    """
    formatter = string.Formatter()
    try:
        for _, name, _, _ in formatter.parse(pattern):
            value = formatter.get_field(name, (), values)[0] if name else None
            if isinstance(value, list):
                for item in value:
                    yield from _paths(pattern.replace(f"{{{name}}}", str(item)), values)
                return
        yield pattern.format(**values)
    except (KeyError, IndexError, AttributeError, TypeError) as error:
        log.warning("the external pillar vault: the path %s names a value that is not there: %s", pattern, error)
    except ValueError as error:
        raise CommandError(f"the path '{pattern}' is malformed: {error}") from error
