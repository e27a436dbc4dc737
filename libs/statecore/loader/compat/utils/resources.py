"""``salt.utils.resources`` for users' modules: the pillar key under which Salt 3008 declares resources, things that a minion
manages beside its host.
"""

from __future__ import annotations

from collections.abc import Mapping

_KEY = "resources"


def resource_pillar_key(opts: Mapping[str, object]) -> str:
    """Return the pillar key under which resources are declared: the option ``resource_pillar_key``."""
    return str(opts.get("resource_pillar_key") or _KEY)


def pillar_resources_tree(opts: Mapping[str, object]) -> dict[str, object]:
    """Return the resources that the minion's pillar declares, as {type: declaration}; {} if it declares none."""
    pillar = opts.get("pillar")
    found = pillar.get(resource_pillar_key(opts)) if isinstance(pillar, Mapping) else None
    return dict(found) if isinstance(found, Mapping) else {}


def bare_resource_ids_from_decl(decl: object) -> list[str]:
    """Return the resource ids in a declaration {type: ids}, where ``ids`` is a list or a map with ``resource_ids``; []
    for other values.
    """
    if not isinstance(decl, Mapping):
        return []
    lists = (ids.get("resource_ids", ids) if isinstance(ids, Mapping) else ids for ids in decl.values())
    return [str(each) for ids in lists if isinstance(ids, list | tuple | Mapping) for each in ids]
