"""``salt.utils.sdb`` for users' modules: values of ``sdb://PROFILE/KEY``."""

from __future__ import annotations

from collections.abc import Mapping

from statecore.loader.current_context import context_of
from statecore.system import sdb as _sdb


def sdb_get(uri: object, opts: Mapping[str, object], utils: object = None, strict: bool = False) -> object:
    """Return the value at an ``sdb://`` URI, or the URI itself if it names no profile; with ``strict``, raise
    InvocationError instead.

    Profiles are those of the minion; ``opts`` and ``utils`` are not used. Raise CommandError if the profile's driver
    fails.
    """
    return _sdb.get(context_of("salt.utils.sdb.sdb_get"), uri, strict)


def sdb_set(uri: object, value: object, opts: Mapping[str, object], utils: object = None) -> object:
    """Store a value at an ``sdb://`` URI. Return the result of the profile's driver (often True); False if the URI
    names no profile.
    """
    return _sdb.set_value(context_of("salt.utils.sdb.sdb_set"), uri, value)


def sdb_delete(uri: object, opts: Mapping[str, object], utils: object = None) -> object:
    """Delete the value at an ``sdb://`` URI. Return the result of the profile's driver (often True); False if the URI
    names no profile.
    """
    return _sdb.delete(context_of("salt.utils.sdb.sdb_delete"), uri)
