"""Validation of minion ids, for every place where an id arrives from outside. Source: docs/protocol.md#minion-ids"""

from __future__ import annotations

from typing import NewType

from saltwire.errors import PeerFault, shown
from saltwire.pack import packb

MinionId = NewType("MinionId", str)

#: Longest id, bytes of UTF-8: ids become file names.
_MAX_BYTES = 255

#: Path separators, and characters of globs and lists: an operator who accepts a key named "*" would accept all keys.
_REFUSED = frozenset("/\\\0*?[],\n\r")


def is_minion_id(value: object) -> bool:
    """Return whether ``value`` is a valid minion id: a text that is usable as a file name, that no target type reads
    as a pattern or list, and that a terminal shows as it is (no control characters, none that change the direction).
    """
    if not isinstance(value, str) or not value or value in (".", "..") or not value.isprintable():
        return False
    try:
        if len(value.encode()) > _MAX_BYTES:
            return False
    except UnicodeEncodeError:
        # The id contains bytes that are not UTF-8; no key can be stored or derived for it.
        return False
    return not _REFUSED & set(value)


def minion_id(value: object) -> MinionId:
    """Return ``value`` as a MinionId. Raises PeerFault, with Salt's answer ``bad load``, if it is not a valid id."""
    if not is_minion_id(value):
        raise PeerFault(f"{shown(value)} is no minion id", packb("bad load"))
    return MinionId(str(value))
