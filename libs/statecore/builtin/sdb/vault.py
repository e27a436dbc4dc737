"""SDB driver ``vault``: secrets of HashiCorp Vault or OpenBao.

``sdb://PROFILE/secret/app/password`` is the field ``password`` of the secret ``secret/app``; so is
``sdb://PROFILE/secret/app?password``. The profile, or the option ``vault``, says where the server is and how to log in (see
``statecore.sources.vault``).
"""

from __future__ import annotations

from collections.abc import Mapping

from statecore.model.context import Context
from statecore.sources.vault import VaultClient

ALIASES = {"set": "set_"}


def get(ctx: Context, key: str, profile: Mapping[str, object] | None = None) -> object:
    """Return the value of one field of a secret; None if there is no such secret or field. Raise CommandError if the
    server refuses.

    In an engine that keeps versions (kv version 2), a missing field returns all fields as a map, and a missing secret
    is looked up with the field as the last part of its path, as in Salt.
    """
    path, field = _parts(key)
    client = _client(ctx, profile)
    secret, versioned = client.read(path)
    if secret is None and versioned:
        secret, _ = client.read(f"{path}/{field}")
    if secret is None:
        return None
    return secret.get(field, secret if versioned else None)


def set_(ctx: Context, key: str, value: object, profile: Mapping[str, object] | None = None) -> bool:
    """Write a secret that has only this one field and return True; its other fields are lost. Raise CommandError if the
    server refuses.
    """
    path, field = _parts(key)
    _client(ctx, profile).write(path, {field: value})
    return True


def _parts(key: str) -> tuple[str, str]:
    path, separator, field = key.partition("?") if "?" in key else key.rpartition("/")
    return (path, field) if separator else ("", key)


def _client(ctx: Context, profile: Mapping[str, object] | None) -> VaultClient:
    option = ctx.opts.get("vault")
    return VaultClient.of({**(option if isinstance(option, Mapping) else {}), **(profile or {})}, ctx.host)
