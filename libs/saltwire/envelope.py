"""Requests to port 4506: envelope, message version, nonce, token, and the master's checks in Salt's order.

``ClientSession`` is a minion's side: it encrypts requests and decrypts replies. ``open_request`` and ``seal_reply`` are
the master's side. A refused request raises PeerFault, whose ``reply`` is the answer to send.

Source: docs/protocol.md#request-envelope
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field

from saltwire.busy import PATIENT, check_busy
from saltwire.crypticle import NONCE_CHARS, Crypticle, is_nonce
from saltwire.errors import AuthenticationError, PeerFault, SignatureError, shown
from saltwire.ids import is_minion_id
from saltwire.keys import ENC_ALGOS, SIG_ALGOS, PrivateKey, PublicKey
from saltwire.pack import MAX_CLEAR_BYTES, MAX_VALUES, octets, packb, text, unpackb

#: Message version of current minions and masters; larger numbers are treated as this one.
VERSION = 3

DEFAULT_ENC_ALGO = "OAEP-SHA1"
DEFAULT_SIG_ALGO = "PKCS1v15-SHA1"

#: Most values in the envelope of a larger request; an encrypted one has 15, its ciphertext is one of them.
_MAX_ENVELOPE_VALUES = 64

#: Seconds since 1970 above which a sender's time counts as none.
_LATEST = 1 << 40

#: Message inside a minion's X9.31 token.
_TOKEN = b"salt"

#: Answer to a request that the master cannot decrypt; the minion signs in again.
BAD_LOAD = packb("bad load")


@dataclass(frozen=True, slots=True)
class Envelope:
    """The outer map of a request to port 4506: encryption, version and minion id, with defaults filled in."""

    enc: str
    #: With enc "clear" the inner map, with enc "aes" its ciphertext.
    load: object
    version: int
    id: str
    enc_algo: str
    sig_algo: str
    #: Whether a minion of ours sent it; only they say that they understand the busy reply.
    own: bool = False


@dataclass(frozen=True, slots=True)
class OpenedRequest:
    """A decrypted and checked request of a minion. Its ``load`` no longer contains nonce, token and time."""

    load: dict[str, object]
    id: str
    nonce: str | None
    version: int
    key: Crypticle
    enc_algo: str
    sig_algo: str
    #: The sender's time in seconds since 1970; None where the message has none, as in version 2.
    sent: int | None = None
    #: Whether the sender has proved its id. False only in version 2 without a token: all minions share that key.
    proved: bool = True


def parse_request(payload: bytes) -> Envelope:
    """Return the outer map of a request's bytes. Raises PeerFault, with the answer to send, if it is malformed."""
    try:
        outer = unpackb(payload, most=MAX_CLEAR_BYTES if len(payload) <= MAX_CLEAR_BYTES else _MAX_ENVELOPE_VALUES)
    except PeerFault as fault:
        raise PeerFault(str(fault), BAD_LOAD) from fault
    if not isinstance(outer, dict) or "enc" not in outer or "load" not in outer:
        raise PeerFault("an envelope needs enc and load", BAD_LOAD)
    if len(payload) > MAX_CLEAR_BYTES and outer["enc"] != "aes":
        raise PeerFault(f"a clear request of {len(payload)} bytes; {MAX_CLEAR_BYTES} are allowed", BAD_LOAD)
    enc = outer["enc"]
    if enc not in ("clear", "aes"):
        raise PeerFault(f"there is no encryption {shown(enc)}", BAD_LOAD)
    return Envelope(
        enc=enc,
        load=outer["load"],
        version=_version(outer.get("version")),
        id=text(outer.get("id")) or "",
        enc_algo=text(outer.get("enc_algo")) or DEFAULT_ENC_ALGO,
        sig_algo=text(outer.get("sig_algo")) or DEFAULT_SIG_ALGO,
        own=outer.get(PATIENT) is True,
    )


def clear_request(load: Mapping[str, object], *, version: int = VERSION, patient: bool = False) -> bytes:
    """Return the packed bytes of an unencrypted request. ``patient``: the sender understands the busy reply
    (``saltwire.busy``).
    """
    return packb({"enc": "clear", "load": dict(load), "version": version} | ({PATIENT: True} if patient else {}))


def check_version(envelope: Envelope, minimum: int) -> None:
    """Raise PeerFault if the message version of a request (encrypted or not) is less than ``minimum``."""
    if envelope.version < minimum:
        raise PeerFault(f"version {envelope.version} is older than {minimum}", BAD_LOAD)


def open_request(
    envelope: Envelope,
    *,
    session_keys: Callable[[str], Sequence[Crypticle]],
    shared_keys: Sequence[Crypticle],
    public_pem_of: Callable[[str], str | None],
    now: float,
    ttl: int = 0,
    minimum_version: int = VERSION,
    tok_cache: MutableMapping[str, tuple[str, bytes]] | None = None,
) -> OpenedRequest:
    """Decrypt a request and check its version, id, nonce, age and token, in Salt's order.

    ``session_keys`` maps a minion id to the session keys of the current and the previous epoch; ``shared_keys`` are the
    publication keys that version 2 minions use. ``public_pem_of`` returns the PEM of a minion's accepted public key.
    ``ttl`` is the largest age of a request in seconds (0: any). ``tok_cache`` maps a minion id to the last (PEM, token)
    that passed; the caller limits its size. Raises PeerFault with the answer to send.

    Source: docs/protocol.md#request-envelope
    """
    check_version(envelope, minimum_version)
    if envelope.enc_algo not in ENC_ALGOS or envelope.sig_algo not in SIG_ALGOS:
        raise PeerFault("an algorithm that is not known here", BAD_LOAD)
    modern = envelope.version >= VERSION
    if modern and not is_minion_id(envelope.id):
        raise PeerFault(f"{shown(envelope.id)} is no minion id", BAD_LOAD)
    key, load = _decrypt(envelope, session_keys(envelope.id) if modern else shared_keys)
    if not isinstance(load, dict):
        raise PeerFault("the load must be a map", packb("payload and load must be a dict"))
    _check_id(load.get("id"))
    nonce = load.pop("nonce", None)
    if nonce is not None and not is_nonce(nonce):
        raise PeerFault("a nonce is 32 hexadecimal characters", BAD_LOAD)
    sent = _check_modern(envelope, load, now, ttl) if modern else None
    proved = _check_token(load, public_pem_of, tok_cache, mandatory=modern)
    if "cmd" not in load:
        raise PeerFault("a request without cmd", packb("Some exception handling minion payload"))
    sender = envelope.id if modern else str(load.get("id") or "")
    return OpenedRequest(load, sender, nonce, envelope.version, key, envelope.enc_algo, envelope.sig_algo, sent, proved)


def seal_reply(opened: OpenedRequest, value: object) -> bytes:
    """Return the reply to a request: ``value`` encrypted under the request's key, with the request's nonce if its
    message version is 2 or higher.
    """
    return packb(opened.key.dumps(value, opened.nonce if opened.version >= 2 else None))


#: Characters of an answer without encryption that an error shows.
_SHOWN = 1000


@dataclass
class ClientSession:
    """A minion's encryption of requests and decryption of replies, from one sign-in to the next."""

    minion_id: str
    #: The minion's session key; in version 2 the publication key that all minions share.
    key: Crypticle
    private_key: PrivateKey
    enc_algo: str = DEFAULT_ENC_ALGO
    sig_algo: str = DEFAULT_SIG_ALGO
    version: int = VERSION
    _token: bytes = field(init=False)

    def __post_init__(self) -> None:
        self._token = self.private_key.x931_sign(_TOKEN)

    def seal(self, load: Mapping[str, object], now: float) -> tuple[bytes, str]:
        """Return (packed encrypted request, nonce that its reply must carry). ``now`` is in seconds since 1970."""
        nonce = os.urandom(NONCE_CHARS // 2).hex()
        inner = {**load, "nonce": nonce}
        if self.version < VERSION:
            # Masters of version 2 fail on unknown fields, for example ts: docs/protocol.md#version-differences
            inner |= {"tok": self._token} if "tok" in load else {}
            return packb({"enc": "aes", "load": self.key.dumps(inner), "version": self.version}), nonce
        inner |= {"ts": int(now), "tok": self._token, "id": self.minion_id}
        outer = {
            "enc": "aes",
            "load": self.key.dumps(inner),
            "version": self.version,
            "id": self.minion_id,
            "enc_algo": self.enc_algo,
            "sig_algo": self.sig_algo,
            # Salt's masters ignore fields that they do not know.
            PATIENT: True,
        }
        return packb(outer), nonce

    def open(self, reply: bytes, nonce: str, *, raw: bool = False) -> object:
        """Decrypt the master's reply to a request and return its value.

        Raises AuthenticationError if the reply is not encrypted under this session's key (for example ``bad load``: the
        caller signs in again and repeats the request once), NonceError for the reply to another request, Busy if the
        master is overloaded.
        """
        check_busy(reply)
        sealed = octets(unpackb(reply))
        if sealed is None:
            raise AuthenticationError(f"the master answered {shown(unpackb(reply))}")
        try:
            return self.key.loads(sealed, nonce, raw=raw)
        except AuthenticationError as error:
            # A ciphertext is ASCII once in 2**200 at the least; a text may be long, as one with the names of three Sentinels is.
            if not sealed.isascii():
                raise
            raise AuthenticationError(f"the master answered {sealed[:_SHOWN].decode()!r}") from error


def _version(value: object) -> int:
    if not isinstance(value, str | bytes | int | float):
        return 0
    try:
        return min(int(value), VERSION)
    except (ValueError, OverflowError):
        return 0


def _decrypt(envelope: Envelope, keys: Sequence[Crypticle]) -> tuple[Crypticle, object]:
    sealed = octets(envelope.load)
    if envelope.enc != "aes" or sealed is None:
        raise PeerFault("not an encrypted request", BAD_LOAD)
    for key in keys:
        try:
            return key, key.loads(sealed, most=MAX_VALUES)
        except AuthenticationError:
            continue
        except PeerFault as fault:
            raise PeerFault(str(fault), BAD_LOAD) from fault
    raise PeerFault("no key opens the request", BAD_LOAD)


def _check_id(value: object) -> None:
    if value is None:
        return
    if not isinstance(value, str):
        raise PeerFault("an id that is no text", packb(f"bad load: id {shown(value)} is not a string"))
    if "\0" in value:
        raise PeerFault("an id with a null byte", packb("bad load: id contains a null byte"))
    if not is_minion_id(value):
        raise PeerFault(f"{shown(value)} is no minion id", BAD_LOAD)


def _check_modern(envelope: Envelope, load: dict[str, object], now: float, ttl: int) -> int | None:
    """Check age and id of a message of version 3. Raise PeerFault if it is older than ``ttl`` seconds or its id is not
    the envelope's.

    Return the sender's time in seconds since 1970; None if it is no valid number.
    """
    sent = load.pop("ts", None)
    if ttl > 0 and (not isinstance(sent, int) or now - sent > ttl):
        raise PeerFault("the request is too old", BAD_LOAD)
    if load.get("id") != envelope.id:
        raise PeerFault("the load's id is not the envelope's", BAD_LOAD)
    return sent if isinstance(sent, int) and 0 < sent < _LATEST else None


def _check_token(
    load: dict[str, object],
    public_pem_of: Callable[[str], str | None],
    cache: MutableMapping[str, tuple[str, bytes]] | None,
    *,
    mandatory: bool,
) -> bool:

    token, sender = octets(load.pop("tok", None)), load.get("id")
    if not mandatory and (token is None or sender is None):
        return False
    name = str(sender)
    pem = public_pem_of(name)
    if not pem or token is None:
        raise PeerFault("no token, or no accepted key to check it with", BAD_LOAD)
    # To read a key takes longer than to decrypt a request.
    if cache is not None and cache.get(name) == (pem, token):
        return True
    try:
        recovered = PublicKey.from_pem(pem).x931_recover(token)
    except SignatureError as error:
        raise PeerFault("a wrong token", BAD_LOAD) from error
    if recovered != _TOKEN:
        raise PeerFault("a wrong token", BAD_LOAD)
    if cache is not None:
        cache[name] = (pem, token)
    return True
