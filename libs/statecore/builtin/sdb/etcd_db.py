"""SDB driver ``etcd``: keys of etcd. The settings of a profile are those of ``statecore.sources.etcd``: ``etcd.host``,
``etcd.port``, ``etcd.require_v2`` and more.
"""

from __future__ import annotations

from collections.abc import Mapping

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.sources.etcd import EtcdClient

VIRTUAL = "etcd"
ALIASES = {"set": "set_"}


def get(ctx: Context, key: str, profile: Mapping[str, object] | None = None) -> object:
    """Return the value of a key of etcd; None if there is no such key. Raise CommandError if the server does not
    answer.
    """
    return EtcdClient.of(profile or {}, ctx.host).get(key)


def set_(ctx: Context, key: str, value: object, profile: Mapping[str, object] | None = None) -> object:
    """Store a value, as text, under a key of etcd. Return the key's value afterwards. Raise CommandError if the server
    does not answer.
    """
    client = EtcdClient.of(profile or {}, ctx.host)
    client.set(key, str(value))
    return client.get(key)


def delete(ctx: Context, key: str, profile: Mapping[str, object] | None = None) -> bool | None:
    """Delete a key of etcd. Return True; None if there is no such key; False if the server does not answer."""
    try:
        return EtcdClient.of(profile or {}, ctx.host).delete(key)
    except CommandError:
        return False
