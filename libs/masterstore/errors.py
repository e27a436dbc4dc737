"""Errors of the store."""

from __future__ import annotations


class StoreError(Exception):
    """Base class of all errors of the store."""


class StoreUnavailable(StoreError):
    """Redis does not answer or cannot write. The call may be repeated; it was not done in part."""


class StoreCorrupt(StoreError):
    """A key contains data that this version of the program did not write."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(f"the key {key} in Redis cannot be read: {why}")
        self.key = key
        self.why = why


class JidTaken(StoreError):
    """Another job already has this JID."""
