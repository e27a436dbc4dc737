"""What can go wrong with the master's memory."""

from __future__ import annotations


class StoreError(Exception):
    """Base of all errors of the store."""


class StoreUnavailable(StoreError):
    """Redis does not answer, or cannot write. The call may be tried again; nothing was half done."""


class StoreCorrupt(StoreError):
    """A key holds what this version did not write."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(f"the key {key} in Redis cannot be read: {why}")
        self.key = key
        self.why = why


class JidTaken(StoreError):
    """Another job has this JID."""
