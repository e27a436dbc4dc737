"""Two kinds of fault: the peer's and our own. Anything else that escapes this package is a bug of ours."""

from __future__ import annotations


class PeerFault(Exception):
    """The remote sent what the protocol does not allow. ``reply`` is the packed answer it should get, if it gets one."""

    def __init__(self, why: str, reply: bytes | None = None) -> None:
        super().__init__(why)
        self.reply = reply


class AuthenticationError(PeerFault):
    """A MAC that does not fit: wrong key, or no ciphertext at all. A minion signs in again and retries once (section 4.5)."""


class NonceError(PeerFault):
    """An answer to another question: its nonce is not the request's."""


class SignatureError(PeerFault):
    """A signature that its key did not make."""


class OwnFault(Exception):
    """This side was asked for what it cannot do: a broken key file, an unknown algorithm."""
