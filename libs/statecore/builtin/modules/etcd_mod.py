"""Keys of etcd: Salt's ``etcd`` execution module.

``profile`` names a map of settings in the minion's configuration or in pillar: ``etcd.host``, ``etcd.port``,
``etcd.username``, ``etcd.password``, ``etcd.ca``, ``etcd.client_cert``, ``etcd.client_key``, ``etcd.require_v2`` (True: version
2 of the interface) and ``etcd.encode_values``. Without a profile the same names are options of the minion. Each function
also takes ``host``, ``port``, ``username``, ``password``, ``ca``, ``client_cert`` and ``client_key``.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.sources.etcd import EtcdClient, settings_of

log = logging.getLogger(__name__)

VIRTUAL = "etcd"
ALIASES = {"set": "set_"}

#: Arguments of each function that replace settings of the profile.
_GIVEN = ("host", "port", "username", "password", "ca", "client_cert", "client_key", "encode_values", "require_v2")


def get(ctx: Context, key: str, recurse: bool = False, profile: str | None = None, **kwargs: object) -> object:
    """Return the value of a key, None if there is none or the server does not answer.

    recurse
        True: return the keys below it as nested maps

    CLI Example:

        salt '*' etcd.get /app/port profile=my_etcd
    """
    try:
        client = _client(ctx, profile, kwargs)
        return client.tree(key) if recurse else client.get(key)
    except CommandError as error:
        log.error("etcd.get %s: %s", key, error)
        return None


def set_(
    ctx: Context,
    key: str,
    value: object,
    profile: str | None = None,
    ttl: int | None = None,
    directory: bool = False,
    **kwargs: object,
) -> object:
    """Write a key. Return its new value, None if it cannot be written or the server does not answer.

    ttl
        seconds after which the key expires
    directory
        True: make a directory instead, and return True (version 2 only; with version 3 CommandError is raised)

    CLI Example:

        salt '*' etcd.set /app/port 8080 profile=my_etcd
    """
    client = _client(ctx, profile, kwargs)
    if directory:
        return client.make_directory(key, ttl)
    try:
        return client.set(key, value, ttl)
    except CommandError as error:
        log.error("etcd.set %s: %s", key, error)
        return None


def update(
    ctx: Context, fields: Mapping[str, object], path: str = "", profile: str | None = None, **kwargs: object
) -> dict[str, object] | None:
    """Write nested maps of keys below ``path``. Return a map of each full key to its new value, None on failure.

    CLI Example:

        salt '*' etcd.update "{'app': {'port': 8080}}" path=/site profile=my_etcd
    """
    if not isinstance(fields, Mapping):
        log.error("etcd.update: fields must be a map, not %r", fields)
        return None
    try:
        return _client(ctx, profile, kwargs).update(fields, path)
    except CommandError as error:
        log.error("etcd.update: %s", error)
        return None


def watch(
    ctx: Context,
    key: str,
    recurse: bool = False,
    profile: str | None = None,
    timeout: float = 0,
    index: int | None = None,
    **kwargs: object,
) -> dict[str, object] | None:
    """Wait for a change of a key. Return a map with ``key``, ``value``, ``changed``, ``mIndex`` (its revision) and ``dir``;
    {} if the server does not answer; None if version 3 saw no change.

    recurse
        True: also wait for changes of keys below it
    timeout
        seconds to wait; 0: a minute
    index
        also report a change since this revision

    CLI Example:

        salt '*' etcd.watch /app/port timeout=10 profile=my_etcd
    """
    try:
        change = _client(ctx, profile, kwargs).watch(key, recurse, float(timeout or 0), index)
    except CommandError as error:
        log.error("etcd.watch %s: %s", key, error)
        return {}
    return None if change is None else change.shown()


def ls(ctx: Context, path: str = "/", profile: str | None = None, **kwargs: object) -> dict[str, object] | None:
    """Return ``{path: {key: value}}`` of the keys directly below a path; a directory's name ends in ``/`` and its value
    is {}. Return {} for a missing path, None if the server does not answer.

    CLI Example:

        salt '*' etcd.ls /app profile=my_etcd
    """
    try:
        return _client(ctx, profile, kwargs).ls(path)
    except CommandError as error:
        log.error("etcd.ls %s: %s", path, error)
        return None


def rm(ctx: Context, key: str, recurse: bool = False, profile: str | None = None, **kwargs: object) -> bool | None:
    """Delete a key. Return True, None if there is no such key or it cannot be deleted.

    recurse
        True: also delete the keys below it

    CLI Example:

        salt '*' etcd.rm /app recurse=True profile=my_etcd
    """
    try:
        return _client(ctx, profile, kwargs).delete(key, recurse)
    except CommandError as error:
        log.error("etcd.rm %s: %s", key, error)
        return None


def tree(ctx: Context, path: str = "/", profile: str | None = None, **kwargs: object) -> dict[str, object] | None:
    """Return all keys below a path as nested maps, None if there is no such path or the server does not answer.

    CLI Example:

        salt '*' etcd.tree /app profile=my_etcd
    """
    try:
        return _client(ctx, profile, kwargs).tree(path)
    except CommandError as error:
        log.error("etcd.tree %s: %s", path, error)
        return None


def _client(ctx: Context, profile: str | None, kwargs: Mapping[str, object]) -> EtcdClient:
    given = {name: kwargs[name] for name in _GIVEN if name in kwargs}
    return EtcdClient.of(settings_of(ctx.opts, ctx.pillar, profile, given), ctx.host)
