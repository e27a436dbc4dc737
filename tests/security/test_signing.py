"""Attacks that make the master sign or decrypt chosen bytes, and forged publications that minions must refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from saltwire import envelope, handshake
from saltwire.crypticle import Crypticle, SerialGate
from saltwire.envelope import ClientSession, Envelope
from saltwire.errors import PeerFault
from saltwire.handshake import SignIn, parse_sign_in, refusal_reply, success_reply
from saltwire.keys import PrivateKey, PublicKey, generate_key_string
from saltwire.pack import octets, packb, unpackb
from saltwire.pillar_transfer import seal_pillar
from saltwire.publication import open_job, seal_job

AES, SESSION = generate_key_string(), generate_key_string()
ALGO = "PKCS1v15-SHA1"
JOB = {"tgt": "*", "tgt_type": "glob", "jid": "20260101000000000000", "fun": "cmd.run", "arg": ["id"], "ret": ""}


def nonce_that_forges(before: bytes) -> bytes:
    """Return a nonce that turns a signed reply into a valid ciphertext of JOB, encrypted with the publication key.

    ``before``: the bytes of the signed reply in front of the nonce.
    """
    # The first 16 bytes are the IV: the start of the reply and one chosen byte.
    crypticle = Crypticle(AES)
    start = before.ljust(16, b"\0")
    whole = crypticle.encrypt(b"pickle::" + packb({**JOB, "serial": 2**62}), iv=start[:16])
    return whole[len(before) :]


def signed_header(length: int) -> bytes:
    """Return the bytes of the signed reply to a pending minion in front of a nonce of ``length`` bytes (old msgpack, raw 16)."""
    return packb({"ret": True, "nonce": b""})[:-1] + b"\xda" + length.to_bytes(2, "big")


def forging_nonce() -> bytes:
    length = len(nonce_that_forges(signed_header(0)))
    return nonce_that_forges(signed_header(length))


def stock_reply(master: PrivateKey, nonce: object) -> dict[str, Any]:
    """Return a publication made of a reply by a stock master, which signs any nonce without reading it."""
    load = packb({"ret": True, "nonce": nonce})
    return {"enc": "aes", "load": load, "sig_algo": ALGO, "sig": master.sign(load, ALGO)}


#: Attack -> the nonce in the minion's request.
NONCES: dict[str, Callable[[], object]] = {
    "a ciphertext of a job": forging_nonce,
    "a ciphertext of a job in a list": lambda: [forging_nonce()],
    "a map": lambda: {"pub_key": "x"},
    "empty": lambda: "",
    "31 characters": lambda: "a" * 31,
    "33 characters": lambda: "a" * 33,
    "32 bytes that are no text": lambda: b"\xff" * 32,
    "32 characters that are not hexadecimal": lambda: "g" * 32,
    "31 characters and a line end": lambda: "a" * 31 + "\n",
    "32 characters and a line end": lambda: "a" * 32 + "\n",
    "32 digits of another alphabet": lambda: "\u0661" * 32,
    "32 digits of two bytes in 32 bytes": lambda: "\u0661" * 16,
    "an integer": lambda: 10**15,
    "true": lambda: True,
}


@pytest.mark.parametrize("attack", NONCES)
@pytest.mark.parametrize("version", [2, 3])
def test_a_sign_in_gets_no_signature_of_a_chosen_nonce(attack: str, version: int, minion_key: PrivateKey) -> None:
    load = {**_sign_in_load(minion_key), "nonce": NONCES[attack]()}
    received = envelope.parse_request(envelope.clear_request(load, version=version)).load
    assert isinstance(received, dict)
    with pytest.raises(PeerFault) as refused:
        parse_sign_in(received, version=version)
    assert refused.value.reply == packb("bad load")


def test_a_sign_in_without_a_nonce_gets_no_signature(minion_key: PrivateKey) -> None:
    load = _sign_in_load(minion_key)
    del load["nonce"]
    with pytest.raises(PeerFault, match="nonce"):
        parse_sign_in(load, version=3)


@pytest.mark.parametrize("attack", NONCES)
@pytest.mark.parametrize("version", [2, 3])
def test_a_request_gets_no_reply_with_a_chosen_nonce(attack: str, version: int, minion_key: PrivateKey) -> None:
    """The nonce of ``_pillar`` is signed, that of other commands is encrypted in front of the reply."""
    key = Crypticle(SESSION)
    load = {"cmd": "_pillar", "id": "web1", "nonce": NONCES[attack](), "ts": 1, "tok": minion_key.x931_sign(b"salt")}
    sent = Envelope("aes", key.dumps(load), version, "web1", "OAEP-SHA1", ALGO)
    with pytest.raises(PeerFault) as refused:
        envelope.open_request(
            sent,
            session_keys=lambda _: [key],
            shared_keys=[key],
            public_pem_of=lambda _: minion_key.public.pem,
            now=1,
            minimum_version=2,
        )
    assert refused.value.reply == packb("bad load")


@pytest.mark.parametrize("attack", [name for name in NONCES if isinstance(NONCES[name](), str)])
def test_a_pillar_is_not_signed_with_a_chosen_nonce(
    attack: str, master_key: PrivateKey, minion_key: PrivateKey
) -> None:
    with pytest.raises(PeerFault):
        seal_pillar(
            {},
            minion_pub=minion_key.public,
            master_key=master_key,
            nonce=str(NONCES[attack]()),
            enc_algo="OAEP-SHA1",
            sig_algo=ALGO,
        )


@pytest.mark.ordinary
def test_a_forged_publication_of_an_unread_nonce_would_run(master_key: PrivateKey) -> None:
    """The attack of the table is a real one: without its check for a packed map a minion takes it for a job."""
    forged = stock_reply(master_key, forging_nonce())
    master_key.public.verify(forged["load"], forged["sig"], ALGO)
    assert Crypticle(AES).loads(forged["load"]) == {**JOB, "serial": 2**62}


@pytest.mark.parametrize("size", [0, 300, 70_000], ids=["short", "longer than a byte", "longer than two bytes"])
def test_a_minion_refuses_a_publication_that_its_master_signed_unread(size: int, master_key: PrivateKey) -> None:
    """A stock master signs any nonce; a minion of ours does not take the result for a publication."""
    forged = stock_reply(master_key, forging_nonce() if not size else b"\xff" * size)
    with pytest.raises(PeerFault):
        open_job(packb(forged), Crypticle(AES), gate=SerialGate(), master_pub=master_key.public, verify=True)


@pytest.mark.parametrize("kind", ["refusal", "success", "pillar"])
def test_no_other_signed_message_is_a_publication(kind: str, master_key: PrivateKey, minion_key: PrivateKey) -> None:
    load = _signed_messages(master_key, minion_key)[kind]
    payload = packb({"enc": "aes", "load": load, "sig_algo": ALGO, "sig": master_key.sign(load, ALGO)})
    with pytest.raises(PeerFault):
        open_job(payload, Crypticle(AES), gate=SerialGate(), master_pub=master_key.public, verify=True)
    # The last 32 bytes of a publication are an HMAC, which is not hexadecimal by chance.
    assert bytes.fromhex(load[-32:].decode())


@pytest.mark.parametrize("kind", ["publication", "pillar"])
def test_no_other_signed_message_is_a_reply_to_a_sign_in(
    kind: str, master_key: PrivateKey, minion_key: PrivateKey
) -> None:
    sign_in = SignIn("web1", minion_key, master_key.public)
    if kind == "publication":
        outer: Any = unpackb(seal_job(JOB, Crypticle(AES), master_key, ALGO, 1))
        load = octets(outer["load"]) or b""
    else:
        load = _signed_messages(master_key, minion_key, _nonce_of(sign_in))["pillar"]
    reply = packb({"enc": "clear", "load": load, "sig": master_key.sign(load, ALGO)})
    assert sign_in.feed(reply).outcome in (handshake.Outcome.BAD,)


@pytest.mark.ordinary
def test_real_publications_pass(master_key: PrivateKey) -> None:
    """A thousand: one in sixteen begins with a byte that begins a map, too."""
    crypticle, gate = Crypticle(AES), SerialGate()
    for serial in range(1, 1001):
        payload = seal_job(JOB, crypticle, _Unsigned(master_key), ALGO, serial)  # type: ignore[arg-type]
        assert open_job(payload, crypticle, gate=gate, master_pub=_Unsigned(master_key), verify=True)  # type: ignore[arg-type]


class _Unsigned:
    """Replacement for a key whose signature is always ``signed``, to save time."""

    def __init__(self, key: PrivateKey) -> None:
        self.key = key

    def sign(self, data: bytes, algo: str) -> bytes:
        return b"signed"

    def verify(self, data: bytes, signature: bytes, algo: str) -> None:
        assert signature == b"signed"


#: What a minion might have the master decrypt for it -> the plaintext.
TOKENS: dict[str, bytes] = {
    "a session key and more": generate_key_string().encode() + b"!",
    "a private text": b"the password is hunter2",
    "nothing": b"",
    "bytes": bytes(range(76)),
    "a line end behind a key string": generate_key_string().encode() + b"\n",
}


@pytest.mark.parametrize("attack", TOKENS)
def test_the_master_decrypts_nothing_but_tokens(attack: str, master_key: PrivateKey, minion_key: PrivateKey) -> None:
    stolen = master_key.public.encrypt(TOKENS[attack], "OAEP-SHA1")
    request = parse_sign_in({**_sign_in_load(minion_key), "token": stolen}, version=3)
    outer: Any = unpackb(_success(request, minion_key.public, master_key))
    load: Any = unpackb(octets(outer["load"]) or b"")
    assert "token" not in load


@pytest.mark.ordinary
def test_a_token_of_a_stock_minion_is_answered(master_key: PrivateKey, minion_key: PrivateKey) -> None:
    sign_in = SignIn("web1", minion_key, master_key.public)
    received: Any = envelope.parse_request(sign_in.request()).load
    reply = _success(parse_sign_in(received, version=3), minion_key.public, master_key)
    assert sign_in.feed(reply).outcome is handshake.Outcome.ACCEPTED


@pytest.mark.parametrize("length", [10, 100_000])
def test_a_wrong_id_is_shown_shortened(length: int, minion_key: PrivateKey) -> None:
    """A refusal repeats the wrong id: at most a hundred characters of it."""
    key = Crypticle(SESSION)
    load = {"cmd": "x", "id": ["a" * length] * 3}
    sent = Envelope("aes", key.dumps(load), 3, "web1", "OAEP-SHA1", ALGO)
    with pytest.raises(PeerFault) as refused:
        envelope.open_request(
            sent, session_keys=lambda _: [key], shared_keys=(), public_pem_of=lambda _: minion_key.public.pem, now=1
        )
    assert len(refused.value.reply or b"") < 200


@pytest.mark.ordinary
def test_what_stock_minions_send_is_accepted(minion_key: PrivateKey) -> None:
    """``uuid.uuid4().hex`` in 3006, 3007 and 3008; some other clients write capital letters."""
    for nonce in ("0123456789abcdef0123456789abcdef", "0123456789ABCDEF0123456789ABCDEF"):
        assert parse_sign_in({**_sign_in_load(minion_key), "nonce": nonce}, version=3).nonce == nonce


def _sign_in_load(minion_key: PrivateKey) -> dict[str, Any]:
    received = envelope.parse_request(SignIn("web1", minion_key, None).request()).load
    assert isinstance(received, dict)
    return received


def _nonce_of(sign_in: SignIn) -> str:
    received: Any = envelope.parse_request(sign_in.request()).load
    return str(received["nonce"])


def _success(request: handshake.SignInRequest, public: PublicKey, master_key: PrivateKey) -> bytes:
    return success_reply(
        request, public, master_key=master_key, aes_key_string=AES, session_key_string=SESSION, publish_port=4505
    )


def _signed_messages(master_key: PrivateKey, minion_key: PrivateKey, nonce: str = "a" * 32) -> dict[str, bytes]:
    """Return {kind of message: bytes that the master signs}."""
    request = parse_sign_in({**_sign_in_load(minion_key), "nonce": nonce}, version=3)
    found = {}
    for kind, reply in (
        ("refusal", refusal_reply(request, True, master_key=master_key)),
        ("success", _success(request, minion_key.public, master_key)),
    ):
        outer: Any = unpackb(reply)
        found[kind] = octets(outer["load"]) or b""
    sealed: Any = unpackb(
        seal_pillar(
            {"a": 1},
            minion_pub=minion_key.public,
            master_key=master_key,
            nonce=nonce,
            enc_algo="OAEP-SHA1",
            sig_algo=ALGO,
        )
    )
    key = minion_key.decrypt(octets(sealed["key"]) or b"", "OAEP-SHA1").decode()
    found["pillar"] = octets(Crypticle(key).loads(octets(sealed["pillar"]) or b"")["data"]) or b""
    return found


@pytest.mark.ordinary
def test_a_session_seals_with_a_nonce_that_is_accepted(minion_key: PrivateKey) -> None:
    session = ClientSession("web1", Crypticle(SESSION), minion_key)
    payload, nonce = session.seal({"cmd": "_mine_get"}, 1)
    opened = envelope.open_request(
        envelope.parse_request(payload),
        session_keys=lambda _: [Crypticle(SESSION)],
        shared_keys=(),
        public_pem_of=lambda _: minion_key.public.pem,
        now=1,
    )
    assert opened.nonce == nonce
