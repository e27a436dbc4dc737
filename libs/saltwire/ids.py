"""Minion ids, parsed at the door (protocol section 3.4)."""

from __future__ import annotations

from typing import NewType

from saltwire.errors import PeerFault
from saltwire.pack import packb

MinionId = NewType("MinionId", str)

#: Longest id in UTF-8: it becomes a file name.
_MAX_BYTES = 255

#: Separators of paths, and what makes a name a glob or a list: whoever accepts the key "*" by name would accept every key.
_REFUSED = frozenset("/\\\0*?[],\n\r")


def is_minion_id(value: object) -> bool:
    """A non-empty name that stays inside the directory it is joined to, and that means only itself where targets are read."""
    if not isinstance(value, str) or not value or value in (".", ".."):
        return False
    try:
        if len(value.encode()) > _MAX_BYTES:
            return False
    except UnicodeEncodeError:
        # Bytes that were no UTF-8: nothing could be stored or derived under such a name.
        return False
    return not _REFUSED & set(value)


def minion_id(value: object) -> MinionId:
    """The id, or PeerFault with Salt's answer."""
    if not is_minion_id(value):
        raise PeerFault(f"{value!r} is no minion id", packb("bad load"))
    return MinionId(str(value))
