"""Values of stores of secrets, by URIs ``sdb://PROFILE/KEY``: Salt's ``sdb`` execution module.

A profile is a map in the minion's configuration or in pillar, with the key ``driver``: env, yaml, json, sqlite3, rest,
vault, redis, etcd, or a user's own module in ``_sdb``.
"""

from __future__ import annotations

from statecore.model.context import Context
from statecore.system import sdb

ALIASES = {"set": "set_"}


def get(ctx: Context, uri: object, strict: bool = False) -> object:
    """Return the value at an ``sdb://`` URI. A value that is no such URI, or whose profile is unknown, is returned
    unchanged.

    strict
        True: raise InvocationError for such a value

    CLI Example:

        salt '*' sdb.get sdb://secrets/db/password
    """
    return sdb.get(ctx, uri, strict)


def set_(ctx: Context, uri: object, value: object) -> object:
    """Store a value at an ``sdb://`` URI. Return the result of the profile's driver, False if the URI names no
    profile.

    CLI Example:

        salt '*' sdb.set sdb://secrets/token abc
    """
    return sdb.set_value(ctx, uri, value)


def delete(ctx: Context, uri: object) -> object:
    """Delete the value at an ``sdb://`` URI. Return the result of the profile's driver, False if the URI names no
    profile.

    CLI Example:

        salt '*' sdb.delete sdb://secrets/token
    """
    return sdb.delete(ctx, uri)


def get_or_set_hash(ctx: Context, uri: object, length: int = 8, chars: str = sdb.HASH_CHARACTERS) -> object:
    """Return the value at an ``sdb://`` URI. If there is none, store a random text there and return it. Return False
    for a text that is no such URI.

    length
        number of characters of the random text
    chars
        characters to choose from

    CLI Example:

        salt '*' sdb.get_or_set_hash sdb://secrets/ann 20
    """
    return sdb.get_or_set_hash(ctx, uri, int(length), chars)
