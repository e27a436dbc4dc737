"""The symmetric layer against its vector, against every changed byte, and against real Salt."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from saltwire.crypticle import Crypticle, SerialGate
from saltwire.errors import AuthenticationError, NonceError, OwnFault, PeerFault
from saltwire.keys import generate_key_string
from saltwire.pack import packb

# docs/protocol.md#crypticle: key bytes 00..37, IV 64..73.
KEY = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc="
IV = bytes(range(0x64, 0x74))
NONCE = "0123456789abcdef0123456789abcdef"
VALUE = {"cmd": "ping", "n": None}
SEALED = bytes.fromhex(
    "6465666768696a6b6c6d6e6f70717273fdaede0ac0aa250e9fec5993c3274a55037d3d327045b88879217af0cb60a77c244905e19fd1672f"
    "324906ef4f37b9e33bb917f56e32bedb573075f4016a22eb49ed34ce507b2986f95d9d6f7d83520c80163721d7f2b25a16a8379f21c4aef7"
)


@pytest.fixture
def crypticle() -> Crypticle:
    return Crypticle(KEY)


def test_the_vector(crypticle: Crypticle) -> None:
    assert crypticle.dumps(VALUE, NONCE, iv=IV) == SEALED
    assert crypticle.loads(SEALED, NONCE) == VALUE
    assert crypticle.key_string == KEY


@pytest.mark.parametrize("size", [65_000, *range(65_536 - 20, 65_536 + 20), 262_144, 1_048_576, 1_048_591])
@pytest.mark.parametrize("nonce", [None, NONCE])
def test_a_large_message_is_encrypted_as_a_small_one(crypticle: Crypticle, size: int, nonce: str | None) -> None:
    value = {"data": bytes(size), "dest": b"large.bin"}
    sealed = crypticle.dumps(value, nonce, iv=IV)
    assert sealed == crypticle.encrypt(b"pickle::" + (nonce or "").encode() + packb(value), iv=IV)
    assert crypticle.loads(sealed, nonce, raw=True) == value


def test_every_changed_byte_is_noticed(crypticle: Crypticle) -> None:
    for place in range(len(SEALED)):
        for flip in (0x01, 0x80, 0xFF):
            tampered = bytearray(SEALED)
            tampered[place] ^= flip
            with pytest.raises(AuthenticationError):
                crypticle.loads(bytes(tampered), NONCE)


def test_every_cut_is_noticed(crypticle: Crypticle) -> None:
    for length in range(len(SEALED)):
        with pytest.raises(AuthenticationError):
            crypticle.loads(SEALED[:length], NONCE)
        with pytest.raises(AuthenticationError):
            crypticle.loads(SEALED[length + 1 :], NONCE)


@pytest.mark.parametrize("data", [b"bad load", b"", b"x" * 48, b"x" * 64, SEALED + b"x", SEALED + b"x" * 16])
def test_what_is_no_ciphertext_asks_for_a_new_sign_in(crypticle: Crypticle, data: bytes) -> None:
    with pytest.raises(AuthenticationError):
        crypticle.loads(data)


def test_another_key_does_not_open_it() -> None:
    with pytest.raises(AuthenticationError):
        Crypticle(generate_key_string()).loads(SEALED, NONCE)


@pytest.mark.parametrize("nonce", ["f" * 32, NONCE.upper(), NONCE[:-1] + "0"])
def test_another_nonce(crypticle: Crypticle, nonce: str) -> None:
    with pytest.raises(NonceError):
        crypticle.loads(SEALED, nonce)


def test_an_answer_without_a_nonce_where_one_is_due(crypticle: Crypticle) -> None:
    with pytest.raises(NonceError):
        crypticle.loads(crypticle.dumps(VALUE), NONCE)
    with pytest.raises(NonceError):
        crypticle.loads(crypticle.dumps("x"), NONCE)


def test_a_nonce_where_none_is_due(crypticle: Crypticle) -> None:
    # The nonce is then read as the message: "0" is the number 48, and more follows it.
    with pytest.raises(PeerFault):
        crypticle.loads(SEALED)


def test_each_message_has_a_start_of_its_own(crypticle: Crypticle) -> None:
    assert crypticle.dumps(VALUE)[:16] != crypticle.dumps(VALUE)[:16]


@pytest.mark.parametrize("length", range(33))
def test_padding_of_every_length(crypticle: Crypticle, length: int) -> None:
    sealed = crypticle.encrypt(b"p" * length)
    # There is always padding: a whole block of it where the plaintext fills its own.
    assert len(sealed) == 16 + (length // 16 + 1) * 16 + 32
    assert crypticle.decrypt(sealed) == b"p" * length


def sealed_by_hand(padded: bytes) -> bytes:
    """What a peer that holds the key may send, however it pads."""
    key = base64.b64decode(KEY)
    encryptor = Cipher(algorithms.AES(key[:24]), modes.CBC(IV)).encryptor()
    body = IV + encryptor.update(padded) + encryptor.finalize()
    return body + hmac.digest(key[24:], body, hashlib.sha256)


@pytest.mark.parametrize(
    "padded",
    [
        b"not of Salt's   ",
        b"\x10" * 16,
        b"x" * 15 + b"\x00",
        b"x" * 15 + b"\x11",
        b"x" * 15 + b"\xff",
        b"x" * 15 + b"\x01",
    ],
    ids=["foreign", "nothing but padding", "padding 0", "padding 17", "padding 255", "short"],
)
def test_a_sealed_message_that_is_none_of_salts_is_empty(crypticle: Crypticle, padded: bytes) -> None:
    assert crypticle.loads(sealed_by_hand(padded)) == {}
    assert crypticle.loads(sealed_by_hand(padded), NONCE) == {}


def test_a_sealed_message_without_a_value(crypticle: Crypticle) -> None:
    with pytest.raises(PeerFault):
        crypticle.loads(crypticle.encrypt(b"pickle::"))
    with pytest.raises(PeerFault):
        crypticle.loads(crypticle.encrypt(b"pickle::" + NONCE.encode()), NONCE)
    with pytest.raises(PeerFault):
        crypticle.loads(crypticle.encrypt(b"pickle::" + packb(1) + packb(2)))


@pytest.mark.parametrize("raw", [False, True])
def test_raw_values(crypticle: Crypticle, raw: bool) -> None:
    opened = crypticle.loads(crypticle.dumps({"data": b"text"}), raw=raw)
    assert opened == {"data": b"text" if raw else "text"}


BAD_KEYS = {
    "empty": "",
    "one byte short": base64.b64encode(b"x" * 55).decode(),
    "one byte long": base64.b64encode(b"x" * 57).decode(),
    "no base64": "!" * 76,
    "no ASCII": "ä" * 76,
    "bad padding": KEY[:-1],
}


@pytest.mark.parametrize("key", BAD_KEYS.values(), ids=BAD_KEYS.keys())
def test_what_is_no_key_string(key: str) -> None:
    with pytest.raises(OwnFault, match="key string"):
        Crypticle(key)


@given(st.binary(max_size=200), st.sampled_from([None, NONCE]))
def test_any_bytes_are_refused(data: bytes, nonce: str | None) -> None:
    with pytest.raises(AuthenticationError):
        Crypticle(KEY).loads(data, nonce)


@given(st.binary(max_size=100), st.sampled_from([None, NONCE]), st.booleans())
def test_any_plaintext_gives_a_value_or_the_peers_fault(plain: bytes, nonce: str | None, prefixed: bool) -> None:
    crypticle = Crypticle(KEY)
    head = b"pickle::" + (nonce or "").encode() if prefixed else b""
    try:
        crypticle.loads(crypticle.encrypt(head + plain), nonce)
    except PeerFault:
        return


# ------------------------------------------------------------------------------------------------------------------- serials


def test_serials_must_rise() -> None:
    gate = SerialGate()
    admitted = [serial for serial in (1, 2, 2, 1, 5, 4, 6, 2**63) if gate.admits({"serial": serial})]
    assert admitted == [1, 2, 5, 6, 2**63]


def test_a_serial_is_taken_out() -> None:
    message = {"serial": 1, "fun": "test.ping"}
    assert SerialGate().admits(message)
    assert message == {"fun": "test.ping"}


@pytest.mark.parametrize("serial", [0, -1, None, "7", b"7", 1.5, [1]])
def test_serials_that_never_pass(serial: object) -> None:
    gate = SerialGate()
    assert not gate.admits({"serial": serial})
    assert gate.admits({"serial": 1})


@pytest.mark.parametrize("value", [{}, {"fun": 1}, None, [], "serial", 5])
def test_what_has_no_serial_passes(value: object) -> None:
    gate = SerialGate()
    assert gate.admits(value)
    assert gate.admits(value)


# -------------------------------------------------------------------------------------------------------------------- oracle

_SALT = """
import base64, json, sys, salt.crypt
job = json.load(sys.stdin)
crypticle = salt.crypt.Crypticle({}, job["key"])
read = [crypticle.loads(base64.b64decode(blob), nonce=nonce) for blob, nonce in job["blobs"]]
values = [{"a": [1, "\\u00e4", None]}, "", None, b"\\xff\\xfe", {"n": 2 ** 64}]
sealed = [base64.b64encode(crypticle.dumps(value, nonce=nonce)).decode() for value in values for nonce in (None, job["nonce"])]
try:
    crypticle.loads(base64.b64decode(job["tampered"]))
    refused = "opened"
except salt.crypt.AuthenticationError:
    refused = "AuthenticationError"
print(json.dumps({"read": [repr(value) for value in read], "sealed": sealed, "refused": refused,
                  "generated": salt.crypt.Crypticle.generate_key_string()}))
"""


@pytest.mark.oracle
def test_salt_opens_what_we_seal_and_we_what_salt_seals(oracle: Any) -> None:
    key, ours = generate_key_string(), [VALUE, {"a": "x" * 40}, "text", [1, 2.5, True]]
    crypticle = Crypticle(key)
    tampered = bytearray(crypticle.dumps(VALUE))
    tampered[20] ^= 1
    question = {
        "key": key,
        "nonce": NONCE,
        "blobs": [
            (base64.b64encode(crypticle.dumps(value, nonce)).decode(), nonce)
            for value in ours
            for nonce in (None, NONCE)
        ],
        "tampered": base64.b64encode(tampered).decode(),
    }
    answer = json.loads(oracle.run("python", "-c", _SALT, stdin=json.dumps(question)))
    assert answer["read"] == [repr(value) for value in ours for _ in (None, NONCE)]
    assert answer["refused"] == "AuthenticationError"
    theirs = [{"a": [1, "ä", None]}, "", None, b"\xff\xfe", {"n": str(2**64)}]
    expected = [(value, nonce) for value in theirs for nonce in (None, NONCE)]
    for blob, (value, nonce) in zip(answer["sealed"], expected, strict=True):
        assert crypticle.loads(base64.b64decode(blob), nonce) == value
    Crypticle(answer["generated"])


def test_a_key_string_of_our_own() -> None:
    made = {generate_key_string() for _ in range(20)}
    assert len(made) == 20
    assert {len(key) for key in made} == {76}
    assert all(Crypticle(key).loads(Crypticle(key).dumps(os.getpid())) == os.getpid() for key in made)
