"""The "busy" reply: an overloaded master tells the sender at once to repeat the request later.

This reply belongs to Saltern; Salt has none. The master sends it only to senders whose request contains the clear field
``patient``. A stock minion would take an unencrypted reply for lost keys, sign in again, and drop a return after three
such replies; without any reply a stock minion just repeats its request (Salt: salt/channel/client.py,
_crypted_transfer).

The reply is not authenticated. A forged one can only delay a minion, by at most a minute.
"""

from __future__ import annotations

from saltwire.errors import PeerFault
from saltwire.pack import packb, unpackb

#: Clear field of a request envelope: true if the sender understands the busy reply.
PATIENT = "patient"

_AFTER = "retry_after"

#: Longest pause that a busy reply can cause, seconds.
_LONGEST = 60.0

#: Longer messages are not unpacked: a busy reply has fewer bytes.
_BYTES = 64


class Busy(Exception):
    """Raised when the master replied that it is overloaded: repeat the request after ``retry_after`` seconds."""

    def __init__(self, retry_after: float) -> None:
        """Create the exception. ``retry_after``: least number of seconds to wait before the next attempt."""
        super().__init__(f"the master is busy; repeat the request after {retry_after:g} s")
        self.retry_after = retry_after


def busy_answer(retry_after: float) -> bytes:
    """Return the packed reply of an overloaded master: repeat the request after ``retry_after`` seconds."""
    return packb({_AFTER: retry_after})


def check_busy(answer: bytes) -> None:
    """Raise Busy if the bytes of a reply say that the master is overloaded."""
    if len(answer) > _BYTES:
        return
    try:
        reply = unpackb(answer)
    except PeerFault:
        return
    if isinstance(reply, dict) and isinstance(reply.get(_AFTER), int | float):
        raise Busy(_bounded(reply[_AFTER]))


def _bounded(seconds: float) -> float:
    # NaN fails the comparison, too, and becomes the longest pause.
    return float(seconds) if 0 <= seconds <= _LONGEST else _LONGEST
