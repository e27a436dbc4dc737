"""Deferred replies: an answer that takes long is computed in a child process, while the worker goes on with other
requests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


def _nothing(how: str) -> None:
    """Default of the field ``lost``: ignore the reason why a child process failed."""


@dataclass(frozen=True, slots=True)
class DeferredReply:
    """Returned by a command's handler in place of a value: a child process computes the value and sends it later."""

    #: Computes the value. None: another child process answers this request already.
    work: Callable[[], object] | None
    #: Value to answer if the child process cannot be started or ends without a value.
    refused: object
    #: Called with the reason if the child process fails.
    lost: Callable[[str], None] = _nothing
    #: Who asked, for the limit of child processes of one sender; empty: the minion's id.
    requester: str = ""


@dataclass(frozen=True, slots=True)
class SealedDeferredReply:
    """A DeferredReply whose value is the bytes of the reply, ready to be sent: encrypted for a minion, packed for an
    operator.

    ``work`` returns these bytes; ``refused`` are the bytes of the reply that is sent if the child process fails.
    """

    work: Callable[[], bytes] | None
    refused: bytes
    lost: Callable[[str], None] = _nothing
    #: Id of the minion that sent the request, or who signs in.
    requester: str = ""
