"""Sign-in of a minion (command ``_auth``): the master's decision and replies, and the minion's request and its outcome.

Master: ``parse_sign_in`` reads the request, ``decide`` looks up the decision in VERDICTS, ``refusal_reply`` and
``success_reply`` return the bytes to send. Minion: ``SignIn.request`` returns the bytes to send, the same for each
retry; ``SignIn.feed`` turns the master's reply into an outcome.

Source: docs/protocol.md#sign-in
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from saltwire.crypticle import Crypticle, is_nonce
from saltwire.envelope import DEFAULT_ENC_ALGO, DEFAULT_SIG_ALGO, clear_request
from saltwire.errors import OwnFault, PeerFault, SignatureError, shown
from saltwire.ids import is_minion_id
from saltwire.keys import (
    ENC_ALGOS,
    SIG_ALGOS,
    MasterPublicKeys,
    PrivateKey,
    PublicKey,
    fingerprint_of,
    generate_key_string,
)
from saltwire.messages import SignInLoad, SignInRefusal, SignInReply
from saltwire.pack import octets, packb, text, unpackb

#: Field of the sign-in reply that only Saltern's masters send, and its value: the number of Saltern's own minion commands that the
#: master knows. 1: ``_missed`` and ``_job_signs``. Stock minions ignore the field.
OWN_FIELD: Final = "saltern"
OWN_COMMANDS: Final = 1

#: Field of the sign-in request in which our minions name the master's key that they know.
KNOWN_FIELD: Final = "master"

#: Field of the sign-in reply with all keys of a master whose key is replaced.
KEYS_FIELD: Final = "master_keys"

#: A key string in base64, 56 bytes: the form of the token that minions ask the master to decrypt.
_KEY_STRING = re.compile(rb"[A-Za-z0-9+/]{75}=")

# ---------------------------------------------------------------------------------------------------------- the master's end


class KeyState(Enum):
    """State of a minion's key on the master. NONE: the master has no key for this id."""

    ACCEPTED = "accepted"
    PENDING = "pending"
    REJECTED = "rejected"
    DENIED = "denied"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The master's decision about a minion's sign-in.

    It says in which state the key is stored, what the reply contains (``ret``), and the ``act`` of the event.
    """

    #: State under which the offered key is stored; None: the store stays unchanged.
    store: KeyState | None
    #: ``ret`` of the reply: True pending, False refused, "full" too many minions; None accepted.
    ret: bool | str | None
    #: ``act`` of the salt/auth event.
    act: str

    @property
    def accepted(self) -> bool:
        """True if the master accepts the minion."""
        return self.ret is None


_ACCEPT = Verdict(None, None, "accept")
_ACCEPT_NEW = Verdict(KeyState.ACCEPTED, None, "accept")
_PEND = Verdict(None, True, "pend")
_PEND_NEW = Verdict(KeyState.PENDING, True, "pend")
_REJECT = Verdict(None, False, "reject")
_REJECT_NEW = Verdict(KeyState.REJECTED, False, "reject")
_DENY = Verdict(KeyState.DENIED, False, "denied")
FULL = Verdict(None, "full", "full")
UNREADABLE_KEY = Verdict(None, False, "error")

#: Rows of (key state, same key, auto accept, auto reject, decision); None matches both. The first matching row counts.
#: Source: docs/protocol.md#sign-in-decisions
VERDICTS: tuple[tuple[KeyState, bool | None, bool | None, bool | None, Verdict], ...] = (
    (KeyState.REJECTED, None, None, None, _REJECT),
    (KeyState.ACCEPTED, False, None, None, _DENY),
    (KeyState.ACCEPTED, True, None, None, _ACCEPT),
    (KeyState.NONE, None, None, True, _REJECT_NEW),
    (KeyState.NONE, None, True, False, _ACCEPT_NEW),
    (KeyState.NONE, None, False, False, _PEND_NEW),
    (KeyState.PENDING, None, None, True, _REJECT_NEW),
    (KeyState.PENDING, False, None, False, _DENY),
    (KeyState.PENDING, True, True, False, _ACCEPT_NEW),
    (KeyState.PENDING, True, False, False, _PEND),
    # Only a denied key is left, for example because the accepted one was deleted: the id is treated as a new one.
    (KeyState.DENIED, None, None, True, _REJECT_NEW),
    (KeyState.DENIED, None, True, False, _ACCEPT_NEW),
    (KeyState.DENIED, None, False, False, _PEND_NEW),
)


def decide(
    state: KeyState, *, same_pem: bool, auto_accept: bool, auto_reject: bool, open_mode: bool, full: bool
) -> Verdict:
    """Return the master's decision about the sign-in of a minion with a valid id.

    ``same_pem``: the offered key equals the stored one. ``auto_accept``, ``auto_reject``: an autosign or autoreject
    list names the id. ``full``: the master has ``max_minions`` minions.
    """
    if full:
        return FULL
    if open_mode:
        return _ACCEPT if state is KeyState.ACCEPTED and same_pem else _ACCEPT_NEW
    facts = (same_pem, auto_accept, auto_reject)
    for row_state, *wanted, verdict in VERDICTS:
        if row_state is state and all(want is None or want is fact for want, fact in zip(wanted, facts, strict=True)):
            return verdict
    raise AssertionError(f"VERDICTS has no row for {state} and {facts}")


@dataclass(frozen=True, slots=True)
class SignInRequest:
    """A minion's sign-in request (command ``_auth``) as the master has parsed it."""

    id: str
    #: The minion's public key, PEM as ``PublicKey.pem`` writes it: nothing else that was sent with the key. Empty if ``public`` is
    #: None.
    pub: str
    nonce: str | None
    token: bytes | None
    enc_algo: str
    sig_algo: str
    version: int
    autosign_grains: Mapping[str, object]
    #: The minion's public key; None if it cannot be read.
    public: PublicKey | None
    #: Why the public key cannot be read.
    unreadable: str = ""
    #: Fingerprint of the master's key that the minion knows; "" if it knows none; None if it does not say.
    master: str | None = None
    #: Whether a minion of ours sent the request.
    own: bool = False


def parse_sign_in(load: Mapping[str, object], *, version: int, own: bool = False) -> SignInRequest:
    """Return a minion's sign-in request, given the load of the command ``_auth``. ``own``: a minion of Saltern sent it.

    Raises PeerFault, with the unsigned answer to send, for a request that cannot get a signed reply.
    """
    enc_algo = text(load.get("enc_algo")) or DEFAULT_ENC_ALGO
    sig_algo = text(load.get("sig_algo")) or DEFAULT_SIG_ALGO
    if sig_algo not in SIG_ALGOS:
        raise PeerFault(
            f"signing algorithm {shown(sig_algo)}", packb({"enc": "clear", "load": {"ret": "bad sig algo"}})
        )
    if enc_algo not in ENC_ALGOS:
        raise PeerFault(
            f"encryption algorithm {shown(enc_algo)}", packb({"enc": "clear", "load": {"ret": "bad enc algo"}})
        )
    minion, pub, grains = load.get("id"), load.get("pub"), load.get("autosign_grains")
    nonce = load.get("nonce")
    if not is_nonce(nonce) and (version >= 2 or nonce is not None):
        raise PeerFault("a sign-in whose nonce is not 32 hexadecimal characters", packb("bad load"))
    # A key that is bytes is not UTF-8 and therefore no PEM.
    if not is_minion_id(minion) or not isinstance(pub, str):
        raise PeerFault("a sign-in without a valid id and a key", packb("bad load"))
    try:
        public, unreadable = PublicKey.from_pem(pub), ""
    except PeerFault as error:
        # The refusal is signed.
        public, unreadable = None, str(error)
    return SignInRequest(
        id=str(minion),
        pub="" if public is None else public.pem,
        nonce=nonce if is_nonce(nonce) else None,
        token=octets(load.get("token")),
        enc_algo=enc_algo,
        sig_algo=sig_algo,
        version=version,
        autosign_grains=grains if isinstance(grains, dict) else {},
        public=public,
        unreadable=unreadable,
        master=text(load.get(KNOWN_FIELD)),
        own=own,
    )


def choose_master_key(request: SignInRequest, master_keys: Sequence[PrivateKey]) -> PrivateKey:
    """Return the master's private key that signs the answer to a sign-in: the key that the minion knows.

    ``master_keys``: the newest key, then the older one while the key is replaced. Saltern's minions name the
    fingerprint of the key that they know. A stock minion's token is encrypted to that key; a stock minion without a
    token knows none and gets the newest key. Source: docs/protocol.md#replaced-master-key
    """
    newest, *others = master_keys
    if not others:
        return newest
    if request.master is not None:
        return next((key for key in master_keys if key.public.fingerprint() == request.master), newest)
    if request.token is not None:
        return next((key for key in master_keys if _token_of(request, key) is not None), newest)
    # A minion of ours that is older than the field knows a key, if it was here before.
    return others[-1] if request.own else newest


def refusal_reply(request: SignInRequest, ret: bool | str | None, *, master_key: PrivateKey) -> bytes:
    """Return the master's signed reply to the sign-in of a minion that is pending or refused. ``ret``: the reply's
    only content, from ``Verdict.ret``.
    """
    return _signed({"ret": ret}, request, master_key)


def success_reply(
    request: SignInRequest,
    public: PublicKey,
    *,
    master_key: PrivateKey,
    aes_key_string: str,
    session_key_string: str,
    publish_port: int,
    pub_sig: str | None = None,
    master_pems: Sequence[str] = (),
) -> bytes:
    """Return the master's signed reply to the sign-in of an accepted minion.

    It holds the publication key and the minion's session key, both encrypted to the minion's key ``public``.
    ``master_pems``: the master's public keys, the newest first; they are sent only if there are two. Raises PeerFault
    if ``public`` is too small to encrypt the keys. Source: docs/protocol.md#sign-in-reply
    """
    digest = hashlib.sha256(aes_key_string.encode()).hexdigest()
    reply: SignInReply = {
        "enc": "pub",
        "pub_key": master_key.public.pem,
        "publish_port": publish_port,
        OWN_FIELD: OWN_COMMANDS,
        "aes": public.encrypt(aes_key_string.encode(), request.enc_algo),
        "session": public.encrypt(session_key_string.encode(), request.enc_algo),
        "sig": master_key.x931_sign(digest.encode()),
    }
    if pub_sig is not None:
        reply["pub_sig"] = pub_sig
    if len(master_pems) > 1:
        reply["master_keys"] = list(master_pems)
    # A token that was encrypted to another master's key gets no answer; the minion notices the missing field.
    token = _token_of(request, master_key)
    if token is not None:
        reply["token"] = public.encrypt(token, request.enc_algo)
    return _signed(reply, request, master_key)


def _token_of(request: SignInRequest, master_key: PrivateKey) -> bytes | None:
    """Return the decrypted token of a sign-in. None if the sign-in has no token, or if the token is not a key string
    encrypted to ``master_key``.
    """
    if request.token is not None:
        with contextlib.suppress(PeerFault):
            token = master_key.decrypt(request.token, request.enc_algo)
            return token if _KEY_STRING.fullmatch(token) else None
    return None


def _signed(reply: SignInReply | SignInRefusal, request: SignInRequest, master_key: PrivateKey) -> bytes:
    if request.version < 2:
        # Unsigned, so the nonce needs no check.
        return packb(reply if "enc" in reply else {"enc": "clear", "load": reply})
    if not is_nonce(request.nonce):
        raise PeerFault("a sign-in without a nonce gets no signed reply", packb("bad load"))
    # The nonce is the last field: no reply then ends with an HMAC, as each publication does.
    load = packb(reply | {"nonce": request.nonce})
    return packb({"enc": "clear", "load": load, "sig": master_key.sign(load, request.sig_algo)})


# ---------------------------------------------------------------------------------------------------------- the minion's end


class Outcome(Enum):
    """Reaction of a minion to the reply to its sign-in: accepted, pending, rejected, full, bad reply, or wrong master key.

    Source: docs/protocol.md#sign-in-reactions
    """

    ACCEPTED = "accepted"
    #: Wait and sign in again.
    PENDING = "pending"
    #: End, or wait for a long time.
    REJECTED = "rejected"
    #: The master has enough minions: wait and sign in again.
    FULL = "full"
    #: The reply is malformed or not authentic: wait and sign in again.
    BAD = "bad"
    #: The master's key differs from the pinned key: an operator has to decide.
    WRONG_MASTER = "wrong master"


@dataclass(frozen=True, slots=True)
class Credentials:
    """The result of an accepted sign-in: key strings of publications and requests, publish port, the master's public key."""

    #: Key string that decrypts publications.
    aes: str
    #: Key string of requests; None: a master of message version 2, whose minions use ``aes`` for requests.
    session: str | None
    publish_port: int
    #: The master's public key, PEM in the form of ``clean_pem``; while it is replaced also the one before
    #: (``MasterPublicKeys.pem``).
    master_pub: str
    #: Number of Saltern's own minion commands that the master knows (OWN_COMMANDS); 0: a stock Salt master.
    own: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """Outcome of a minion's sign-in, with ``credentials`` if it is accepted and with ``reason`` otherwise."""

    outcome: Outcome
    reason: str = ""
    credentials: Credentials | None = None


#: Map of ``ret`` in a signed refusal to the outcome.
_REFUSALS: Mapping[object, Answer] = {
    True: Answer(Outcome.PENDING, "the key waits for acceptance"),
    False: Answer(Outcome.REJECTED, "the master rejected the key, or has another one for this id"),
    "full": Answer(Outcome.FULL, "the master has as many minions as it may"),
}


class SignIn:
    """A minion's side of one sign-in. Its request may be sent any number of times."""

    def __init__(
        self,
        minion_id: str,
        private_key: PrivateKey,
        master_pub: PublicKey | MasterPublicKeys | None,
        *,
        enc_algo: str = DEFAULT_ENC_ALGO,
        sig_algo: str = DEFAULT_SIG_ALGO,
        master_finger: str = "",
        hash_type: str = "sha256",
        open_mode: bool = False,
        autosign_grains: Mapping[str, object] | None = None,
        token: bool = True,
    ) -> None:
        """Build the sign-in request of a minion.

        ``master_pub``: the master's pinned key, or keys, None at the first contact. ``master_finger``: fingerprint that
        the master's key must have; empty accepts any key. ``token``: ask a known master to decrypt a token, as stock
        minions do; the signed nonce proves the same, and without a token the master saves one of two RSA operations.

        Raises OwnFault for an unknown algorithm, PeerFault for a master key that is too small for the token.
        """
        for algo, known in ((enc_algo, ENC_ALGOS), (sig_algo, SIG_ALGOS)):
            if algo not in known:
                raise OwnFault(f"there is no algorithm '{algo}'; there are {', '.join(known)}")
        if master_finger:
            private_key.public.fingerprint(hash_type)
        self._private = private_key
        self._master = MasterPublicKeys([master_pub]) if isinstance(master_pub, PublicKey) else master_pub
        self._enc, self._sig = enc_algo, sig_algo
        self._finger, self._hash_type, self._open_mode = master_finger, hash_type, open_mode
        self._nonce = os.urandom(16).hex()
        newest = None if self._master is None else self._master.newest
        self._token = generate_key_string().encode() if token and newest is not None else None
        load: SignInLoad = {
            "cmd": "_auth",
            "id": minion_id,
            "nonce": self._nonce,
            "enc_algo": enc_algo,
            "sig_algo": sig_algo,
            "pub": private_key.public.pem,
            "master": "" if newest is None else newest.fingerprint(),
        }
        if newest is not None and self._token is not None:
            load["token"] = newest.encrypt(self._token, enc_algo)
        if autosign_grains:
            load["autosign_grains"] = dict(autosign_grains)
        self._request = clear_request(load, patient=True)

    def request(self) -> bytes:
        """Return the packed sign-in request to send to the master."""
        return self._request

    def feed(self, reply: bytes) -> Answer:
        """Return the Answer (outcome, and credentials or reason) for the master's reply to the sign-in.

        Never raises: a reply that cannot be read has the outcome BAD.
        """
        try:
            return self._feed(reply)
        except PeerFault as fault:
            return Answer(Outcome.BAD, str(fault))

    def _feed(self, reply: bytes) -> Answer:
        outer = unpackb(reply)
        if not isinstance(outer, dict) or "load" not in outer:
            return Answer(Outcome.BAD, f"the master answered {shown(outer)}")
        packed, signature = octets(outer["load"]), octets(outer.get("sig"))
        if packed is None or signature is None:
            unsigned = outer["load"].get("ret") if isinstance(outer["load"], dict) else outer["load"]
            return Answer(Outcome.BAD, f"an unsigned answer: {shown(unsigned)}")
        load = unpackb(packed)
        if not isinstance(load, dict) or load.get("nonce") != self._nonce:
            return Answer(Outcome.BAD, "the answer's nonce is not the request's")
        if "pub_key" in load:
            return self._welcome(load, packed, signature)
        if self._master is not None and not self._open_mode:
            self._master.verify(packed, signature, self._sig)
        ret = load.get("ret")
        if not isinstance(ret, str | bool | int | None):
            return _UNKNOWN
        return _REFUSALS.get(ret, Answer(Outcome.BAD, f"the master answered {shown(ret)}"))

    def _welcome(self, load: Mapping[str, object], packed: bytes, signature: bytes) -> Answer:
        master = PublicKey.from_pem(text(load["pub_key"]) or "")
        if self._master is not None and not self._open_mode and master.pem not in self._master.pems:
            return Answer(Outcome.WRONG_MASTER, "the master's key has changed: it is not the one stored here")
        master.verify(packed, signature, self._sig)
        # Whoever has the key that this minion trusts may name the key that follows it.
        trusted = [pem for pem in _master_pems(load, master) if self._fits_finger(pem)]
        if not trusted:
            return Answer(Outcome.WRONG_MASTER, "the master's key has another fingerprint than master_finger")
        aes = self._key_string(load, "aes")
        digest = hashlib.sha256(aes.encode()).hexdigest().encode()
        if master.x931_recover(octets(load.get("sig")) or b"") != digest:
            raise SignatureError("the key of publications was not signed by the master")
        asked = self._token is not None and not self._open_mode
        if asked and self._unwrap(load, "token").encode() != self._token:
            return Answer(Outcome.BAD, "the master could not decrypt our token")
        port = load.get("publish_port")
        session = self._key_string(load, "session") if "session" in load else None
        own = load.get(OWN_FIELD)
        return Answer(
            Outcome.ACCEPTED,
            credentials=Credentials(aes, session, _number(port), "\n".join(trusted), _number(own)),
        )

    def _fits_finger(self, pem: str) -> bool:
        return not self._finger or fingerprint_of(pem, self._hash_type) == self._finger

    def _key_string(self, load: Mapping[str, object], name: str) -> str:
        try:
            return Crypticle(self._unwrap(load, name)).key_string
        except OwnFault as error:
            raise PeerFault(f"the answer's {name} is no key string") from error

    def _unwrap(self, load: Mapping[str, object], name: str) -> str:
        sealed = octets(load.get(name))
        if sealed is None:
            raise PeerFault(f"the answer has no {name}")
        try:
            return self._private.decrypt(sealed, self._enc).decode("ascii")
        except UnicodeDecodeError as error:
            raise PeerFault(f"the answer's {name} is no key string") from error


_UNKNOWN = Answer(Outcome.BAD, "the master's answer is not one of the protocol's")


def _master_pems(load: Mapping[str, object], answering: PublicKey) -> tuple[str, ...]:
    """Return the PEMs of the master's keys from a reply to a sign-in, the newest first. A reply without such a list
    gives only the PEM of the key that signed it.

    Raises PeerFault for malformed keys, or if the key that signed the reply is not among them.
    """
    given = load.get(KEYS_FIELD)
    if given is None:
        return (answering.pem,)
    pems = [text(pem) or "" for pem in given] if isinstance(given, list) else []
    found = MasterPublicKeys.from_pem("\n".join(pems)).pems
    if answering.pem not in found:
        raise PeerFault("the answer names keys of the master, and is signed by another one")
    return found


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
