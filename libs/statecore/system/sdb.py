"""URIs of Salt's SDB, ``sdb://PROFILE/KEY``: finds the profile, and asks its driver.

A profile is a map with the key ``driver``, under its name in the minion's options or in its pillar. Drivers are modules
of the kind ``sdb``, such as ``yaml`` or a user's ``_sdb/mine.py``.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import NamedTuple

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError

PREFIX = "sdb://"

#: Characters of the values that ``get_or_set_hash`` makes.
HASH_CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789!@#$%^&*(-_=+)"


class Entry(NamedTuple):
    """One value of an SDB: the profile's settings, and the key that its driver looks up."""

    profile: Mapping[str, object]
    key: str


def is_uri(value: object) -> bool:
    """Return whether a value is text that begins with ``sdb://``."""
    return isinstance(value, str) and value.startswith(PREFIX)


def entry_of(ctx: Context, uri: object) -> Entry | str:
    """Return the Entry (profile and key) that an ``sdb://`` URI names; if it names none, Salt's error message as text."""
    if not isinstance(uri, str) or not uri.startswith(PREFIX):
        return 'SDB uri must start with "sdb://"'
    name, _, key = uri.removeprefix(PREFIX).partition("/")
    if not key:
        return "SDB uri must have a profile name as a first part of the uri before the /"
    profile = ctx.opts.get(name) or ctx.pillar.get(name)
    if not isinstance(profile, Mapping) or "driver" not in profile:
        return f'SDB profile "{name}" wasnt found in the minion configuration'
    return Entry(profile, key)


def get(ctx: Context, uri: object, strict: bool = False) -> object:
    """Return the value at an ``sdb://`` URI; the URI itself if it names no profile. With ``strict``, raise
    InvocationError instead.

    Raise CommandError if the profile's driver is unknown, or fails.
    """
    entry = entry_of(ctx, uri)
    if isinstance(entry, Entry):
        return _ask(ctx, entry, "get")
    if strict:
        raise InvocationError(entry)
    return uri


def set_value(ctx: Context, uri: object, value: object) -> object:
    """Store a value at an ``sdb://`` URI. Return the result of the profile's driver; False if the URI names no
    profile.

    Raise CommandError if the driver fails, or cannot store values.
    """
    entry = entry_of(ctx, uri)
    return _ask(ctx, entry, "set", value) if isinstance(entry, Entry) else False


def delete(ctx: Context, uri: object) -> object:
    """Delete the value at an ``sdb://`` URI. Return the result of the profile's driver; False if the URI names no
    profile.

    Raise CommandError if the driver fails, or cannot delete values.
    """
    entry = entry_of(ctx, uri)
    return _ask(ctx, entry, "delete") if isinstance(entry, Entry) else False


def get_or_set_hash(ctx: Context, uri: object, length: int, chars: str) -> object:
    """Return the value at an ``sdb://`` URI. If there is none, store a random text of ``length`` characters out of
    ``chars`` and return it.

    Return False for a text that is not such a URI.
    """
    if not is_uri(uri):
        return False
    value = get(ctx, uri)
    made = "".join(secrets.choice(chars) for _ in range(length))
    if value is None:
        set_value(ctx, uri, made)
    return value or made


def _ask(ctx: Context, entry: Entry, verb: str, *values: object) -> object:
    driver = str(entry.profile["driver"])
    table = ctx.tables["sdb"]
    if f"{driver}.get" in table and f"{driver}.{verb}" not in table:
        raise CommandError(f"the SDB driver {driver} cannot {verb} values")
    # A missing driver raises NotAvailable, which says why it cannot be used.
    return table[f"{driver}.{verb}"](entry.key, *values, profile=entry.profile)
