"""Errors of saltwire: PeerFault is raised for wrong data that the remote side sent, OwnFault for wrong data that the
caller of saltwire passed. Any other exception is a bug.
"""

from __future__ import annotations

import reprlib

#: Characters of a peer's value that an error message shows.
_SHOWN = 100

_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = _SHOWN


def shown(value: object) -> str:
    """Return a value of a peer for an error message: at most 103 characters, without control characters."""
    text = _REPR.repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


class PeerFault(Exception):
    """Raised when the remote side sent a message that the protocol does not allow. ``reply`` is the packed answer to send, or
    None for no answer.
    """

    def __init__(self, why: str, reply: bytes | None = None) -> None:
        super().__init__(why)
        self.reply = reply


class AuthenticationError(PeerFault):
    """Raised when a MAC does not match: the key is wrong, or the bytes are not a ciphertext. A minion signs in again and repeats
    the request once.
    """


class NonceError(PeerFault):
    """Raised when a reply belongs to another request: its nonce differs from the request's nonce."""


class SignatureError(PeerFault):
    """Raised when the signature of a message was not made by the expected key."""


class OwnFault(Exception):
    """Raised when the caller of saltwire passed data that cannot be used, for example a broken key file or an unknown
    algorithm.
    """
