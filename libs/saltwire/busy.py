"""What a master that is full answers at once: ask again later. An answer of ours; Salt has none like it.

It goes to who said that it understands it, by a mark in the clear part of the request; a stock minion takes an answer that is not
sealed for lost keys, signs in anew, and gives a return up after three of them, while without one it just asks again
(salt/channel/client.py, _crypted_transfer). Nobody vouches for this answer: it can make a minion wait, for a minute, and no more.
"""

from __future__ import annotations

from saltwire.errors import PeerFault
from saltwire.pack import packb, unpackb

#: Key of the envelope; its value is true.
PATIENT = "patient"

_AFTER = "retry_after"

#: Longest pause that an answer can ask for, seconds.
_LONGEST = 60.0

#: No such answer is longer, and nothing longer is looked into.
_BYTES = 64


class Busy(Exception):
    """The master is full."""

    def __init__(self, retry_after: float) -> None:
        """``retry_after``: seconds to wait at least."""
        super().__init__(f"the master is busy and says to ask again after {retry_after:g} s")
        self.retry_after = retry_after


def busy_answer(retry_after: float) -> bytes:
    """The answer; ``retry_after`` in seconds."""
    return packb({_AFTER: retry_after})


def check_busy(answer: bytes) -> None:
    """Raises Busy for such an answer; all others are somebody else's to read."""
    if len(answer) > _BYTES:
        return
    try:
        said = unpackb(answer)
    except PeerFault:
        return
    if isinstance(said, dict) and isinstance(said.get(_AFTER), int | float):
        raise Busy(_bounded(said[_AFTER]))


def _bounded(seconds: float) -> float:
    # Not a number is not between, either.
    return float(seconds) if 0 <= seconds <= _LONGEST else _LONGEST
