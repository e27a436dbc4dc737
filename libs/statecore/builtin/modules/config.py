"""Values of the minion's configuration, grains, pillar and the master's configuration: Salt's ``config`` execution
module.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from fnmatch import filter as matching

from statecore.model.context import Context
from statecore.model.values import DELIMITER, traverse
from statecore.model.values import merge as merged
from statecore.system import sdb

#: Values that modules and formulas expect if no configuration sets them.
DEFAULTS: Mapping[str, object] = {
    "hosts.file": "/etc/hosts",
    "aliases.file": "/etc/aliases",
    "test.foo": "unconfigured",
    "mongo.db": "salt",
    "mongo.host": "salt",
    "mongo.password": "",
    "mongo.port": 27017,
    "mongo.user": "",
    "redis.db": "0",
    "redis.host": "salt",
    "redis.port": 6379,
    "ldap.uri": "",
    "ldap.server": "localhost",
    "ldap.port": "389",
    "ldap.tls": False,
    "ldap.no_verify": False,
    "ldap.anonymous": True,
    "ldap.scope": 2,
    "ldap.attrs": None,
    "ldap.binddn": "",
    "ldap.bindpw": "",
    "ca.cert_base_path": "/etc/pki",
    "virt": {"tunnel": False, "images": "/srv/salt-images"},
    "docker.exec_driver": "docker-exec",
    "docker.compare_container_networks": {
        "static": ["Aliases", "Links", "IPAMConfig"],
        "automatic": ["IPAddress", "Gateway", "GlobalIPv6Address", "IPv6Gateway"],
    },
}

_ABSENT = object()


def get(
    ctx: Context,
    key: str,
    default: object = "",
    delimiter: str = DELIMITER,
    merge: str | None = None,
    omit_opts: bool = False,
    omit_pillar: bool = False,
    omit_master: bool = False,
    omit_grains: bool = False,
) -> object:
    """Return the value at a path such as ``pkg:apache``, ``default`` if there is none. The minion's options are
    searched first, then its grains, its pillar, the master's options and the built-in defaults. The value of a
    ``sdb://PROFILE/KEY`` is looked up.

    merge
        "recurse" or "overwrite": return the merged values of all these sources; an earlier source has precedence
    omit_opts, omit_grains, omit_pillar, omit_master
        True: do not search this source

    CLI Example:

        salt '*' config.get pkg:apache
    """
    omitted = {"opts": omit_opts, "grains": omit_grains, "pillar": omit_pillar, "master": omit_master}
    layers = _layers(ctx, omitted)
    if merge is None:
        for layer in layers:
            found = traverse(layer, key, _ABSENT, delimiter)
            if found is not _ABSENT:
                return sdb.get(ctx, found) if sdb.is_uri(found) else found
        return default
    united: object = {}
    for layer in reversed(layers):
        united = merged(united, layer, merge if merge == "overwrite" else "recurse")
    found = traverse(united, key, default, delimiter)
    return sdb.get(ctx, found) if sdb.is_uri(found) else found


def option(
    ctx: Context,
    value: str,
    default: object = None,
    omit_opts: bool = False,
    omit_grains: bool = False,
    omit_pillar: bool = False,
    omit_master: bool = False,
    omit_all: bool = False,
    wildcard: bool = False,
) -> object:
    """Return the value of a name, which is not split into a path; ``default`` if there is none, or "" without a
    default. The sources are searched in the order of ``config.get``.

    wildcard
        True: ``value`` is a glob; return a map of name to value of all names that match
    omit_all
        True: search only the built-in defaults
    """
    omitted = {
        "opts": omit_opts or omit_all,
        "grains": omit_grains or omit_all,
        "pillar": omit_pillar or omit_all,
        "master": omit_master or omit_all,
    }
    layers = _layers(ctx, omitted)
    if wildcard:
        found: dict[str, object] = {}
        for layer in reversed(layers):
            found.update({key: layer[key] for key in matching(layer, value)})
        return found or (default if default is not None else {})
    for layer in layers:
        if value in layer:
            return layer[value]
    return "" if default is None else default


def merge(
    ctx: Context,
    value: str,
    default: object = "",
    omit_opts: bool = False,
    omit_master: bool = False,
    omit_pillar: bool = False,
) -> object:
    """Return the values of an option from the minion's options, pillar and the master's options, combined; ``default``
    if none has it. Lists are joined. Maps are merged, where the minion's keys win. If the first value is text, only
    that text is returned.
    """
    omitted = {"opts": omit_opts, "grains": True, "master": omit_master, "pillar": omit_pillar}
    result: object = None
    for layer in _layers(ctx, omitted):
        found = layer.get(value)
        if found is None:
            continue
        if result is None:
            result = copy.deepcopy(found)
            if isinstance(result, str):
                return result
        elif isinstance(result, dict) and isinstance(found, Mapping):
            result = {**found, **result}
        elif isinstance(result, list) and isinstance(found, list):
            result = [*result, *found]
    return default if result is None else result


def items(ctx: Context) -> dict[str, object]:
    """Return a map of all options of this minion to their values."""
    return dict(ctx.opts)


def backup_mode(ctx: Context, backup: str = "") -> str:
    """Return the argument ``backup``; if it is empty, the minion's option ``backup_mode``."""
    return backup or str(option(ctx, "backup_mode"))


def manage_mode(ctx: Context, mode: str | int | None) -> str | None:
    """Return a file mode as octal text with at least four digits, such as "0644". Return None for None."""
    if mode is None:
        return None
    text = str(mode).strip('"').strip("'").lstrip("0Oo")
    return f"{text or '0':>04}"


def _layers(ctx: Context, omitted: Mapping[str, bool]) -> list[Mapping[str, object]]:
    """Return the maps that ``config.get`` searches, first the one with precedence: options, grains, pillar, the
    master's options, defaults. ``omitted`` maps opts, grains, pillar and master to True if that map is to be left out.
    """
    master = ctx.pillar.get("master", {})
    sources: dict[str, Mapping[str, object]] = {
        "opts": ctx.opts,
        "grains": ctx.grains,
        "pillar": ctx.pillar,
        "master": master if isinstance(master, Mapping) else {},
    }
    return [*(layer for name, layer in sources.items() if not omitted.get(name)), DEFAULTS]
