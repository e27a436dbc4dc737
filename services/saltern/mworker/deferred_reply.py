"""An answer that takes longer than a worker has time for: it is made in a process of its own, and the worker goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


def _nothing(how: str) -> None:
    """Nobody else waits for it."""


@dataclass(frozen=True, slots=True)
class DeferredReply:
    """What a command answers later."""

    #: Makes the value. None: another process answers this request already.
    work: Callable[[], Any] | None
    #: The value where no process can be started, or it ends without one.
    refused: Any
    #: Told why the work came to nothing.
    lost: Callable[[str], None] = _nothing


@dataclass(frozen=True, slots=True)
class SealedDeferredReply:
    """The same as bytes, for who moves them. ``work`` and ``refused`` are the sealed answer."""

    work: Callable[[], bytes] | None
    refused: bytes
    lost: Callable[[str], None] = _nothing
    #: The minion that asked.
    requester: str = ""
