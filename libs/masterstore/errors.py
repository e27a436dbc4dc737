"""Exceptions of masterstore: Redis does not answer, its data is malformed, data is too large, a JID is taken."""

from __future__ import annotations


class StoreError(Exception):
    """Base class of the exceptions that operations on the master's data in Redis raise."""


class TooLarge(Exception):
    """Raised when a minion's data is larger than allowed. Nothing of it was stored. The message has the size and the limit.

    It is no StoreError, because repeating the operation does not help.
    """


class StoreUnavailable(StoreError):
    """Raised when Redis does not answer or cannot write. The operation may be repeated; no part of it was done."""


class StoreCorrupt(StoreError):
    """Raised when a Redis key contains data that this version of the program did not write. ``key`` names it."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(f"the key {key} in Redis cannot be read: {why}")
        self.key = key
        self.why = why


class JidTaken(StoreError):
    """Raised when a job cannot be published because another job already has its JID."""
