"""RSA keys, signatures, Salt's own signature primitive, fingerprints and derived key strings."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from hypothesis import given
from hypothesis import strategies as st

from saltwire import keys
from saltwire.errors import OwnFault, PeerFault, SignatureError
from saltwire.keys import (
    ENC_ALGOS,
    SIG_ALGOS,
    PrivateKey,
    PublicKey,
    clean_pem,
    derive_key_string,
    fingerprint_of,
    generate_key_string,
)

# ----------------------------------------------------------------------------------------------------------------------- PEM


def spki(key: Any) -> bytes:
    public: bytes = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return public


def test_the_algorithms_of_the_protocol() -> None:
    assert set(ENC_ALGOS) == {"OAEP-SHA1", "OAEP-SHA224"}
    assert set(SIG_ALGOS) == {"PKCS1v15-SHA1", "PKCS1v15-SHA224"}


def test_pems_are_salts(minion_key: PrivateKey) -> None:
    assert minion_key.to_pem().startswith(b"-----BEGIN RSA PRIVATE KEY-----\n")
    assert minion_key.public.pem.startswith("-----BEGIN PUBLIC KEY-----\n")
    assert minion_key.public.pem.endswith("\n-----END PUBLIC KEY-----")
    assert PrivateKey.from_pem(minion_key.to_pem()).public.pem == minion_key.public.pem


@pytest.mark.parametrize(
    "change",
    [
        lambda pem: pem,
        lambda pem: pem + "\n",
        lambda pem: f"\n \n{pem}\n\n",
        lambda pem: pem.replace("\n", "\r\n"),
        lambda pem: pem.replace("PUBLIC KEY", "RSA PUBLIC KEY"),
        lambda pem: pem.encode(),
    ],
    ids=["as is", "newline", "space around", "CRLF", "old header", "bytes"],
)
def test_forms_of_one_key(minion_key: PrivateKey, change: Any) -> None:
    assert PublicKey.from_pem(change(minion_key.public.pem)).pem == minion_key.public.pem


def test_clean_pems_are_compared() -> None:
    assert clean_pem("\r\n a\r\nb\rc\n\n") == "a\nb\nc"


BAD_PUBLIC: dict[str, str | bytes] = {
    "empty": "",
    "no PEM": "hello",
    "no UTF-8": b"\xff\xfe",
    "surrogate": "\udcff",
    "NUL": "\0",
    "header alone": "-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----",
    "junk inside": "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----",
    "elliptic": spki(ec.generate_private_key(ec.SECP256R1())),
    "edwards": spki(ed25519.Ed25519PrivateKey.generate()),
    "certificate": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
}


@pytest.mark.parametrize("pem", BAD_PUBLIC.values(), ids=BAD_PUBLIC.keys())
def test_what_is_no_public_key_is_the_peers_fault(pem: str | bytes) -> None:
    with pytest.raises(PeerFault):
        PublicKey.from_pem(pem)


def test_a_private_key_is_no_public_key(minion_key: PrivateKey) -> None:
    with pytest.raises(PeerFault):
        PublicKey.from_pem(minion_key.to_pem())


def test_a_cut_public_key_is_the_peers_fault(minion_key: PrivateKey) -> None:
    lines = minion_key.public.pem.splitlines()
    for count in range(len(lines) - 1):
        with pytest.raises(PeerFault):
            PublicKey.from_pem("\n".join(lines[: count + 1]))
        with pytest.raises(PeerFault):
            PublicKey.from_pem("\n".join([*lines[:count], *lines[count + 1 :]]))


@given(st.binary(max_size=120))
def test_any_bytes_in_a_pem_are_the_peers_fault(body: bytes) -> None:
    for pem in (body, b"-----BEGIN PUBLIC KEY-----\n" + base64.b64encode(body) + b"\n-----END PUBLIC KEY-----\n"):
        with pytest.raises(PeerFault):
            PublicKey.from_pem(pem)


BAD_PRIVATE = {
    "empty": b"",
    "no PEM": b"hello",
    "header alone": b"-----BEGIN RSA PRIVATE KEY-----\n-----END RSA PRIVATE KEY-----",
    "elliptic": ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ),
}


@pytest.mark.parametrize("pem", BAD_PRIVATE.values(), ids=BAD_PRIVATE.keys())
def test_what_is_no_private_key_is_our_own_fault(pem: bytes) -> None:
    with pytest.raises(OwnFault):
        PrivateKey.from_pem(pem)


def test_a_private_key_with_a_passphrase_is_our_own_fault(minion_key: PrivateKey) -> None:
    key = serialization.load_pem_private_key(minion_key.to_pem(), None)
    sealed = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"x")
    )
    with pytest.raises(OwnFault):
        PrivateKey.from_pem(sealed)


# ------------------------------------------------------------------------------------------------------------ RSA operations


@pytest.mark.parametrize("algo", SIG_ALGOS)
def test_signatures(minion_key: PrivateKey, other_key: PrivateKey, algo: str) -> None:
    signature = minion_key.sign(b"data", algo)
    minion_key.public.verify(b"data", signature, algo)
    bad = [
        (minion_key, b"datA", signature),
        (other_key, b"data", signature),
        (minion_key, b"data", b""),
        (minion_key, b"data", b"x"),
        (minion_key, b"data", signature[:-1]),
        (minion_key, b"data", signature + b"\0"),
        (minion_key, b"data", b"\xff" * 256),
        (minion_key, b"data", b"\0" * 256),
        (minion_key, b"data", bytes([signature[0] ^ 1]) + signature[1:]),
    ]
    for key, data, wrong in bad:
        with pytest.raises(SignatureError):
            key.public.verify(data, wrong, algo)
    for another in set(SIG_ALGOS) - {algo}:
        with pytest.raises(SignatureError):
            minion_key.public.verify(b"data", signature, another)


@pytest.mark.parametrize("algo", ENC_ALGOS)
def test_encryption(minion_key: PrivateKey, other_key: PrivateKey, algo: str) -> None:
    sealed = minion_key.public.encrypt(b"secret", algo)
    assert minion_key.decrypt(sealed, algo) == b"secret"
    for key, wrong in ((other_key, sealed), (minion_key, b""), (minion_key, sealed[:-1]), (minion_key, b"\xff" * 256)):
        with pytest.raises(PeerFault):
            key.decrypt(wrong, algo)
    for another in set(ENC_ALGOS) - {algo}:
        with pytest.raises(PeerFault):
            minion_key.decrypt(sealed, another)


def test_algorithms_that_are_not_there_are_our_own_fault(minion_key: PrivateKey) -> None:
    for call in (
        lambda: minion_key.sign(b"", "MD5"),
        lambda: minion_key.public.verify(b"", b"", "MD5"),
        lambda: minion_key.public.encrypt(b"", "ROT13"),
        lambda: minion_key.decrypt(b"", "ROT13"),
    ):
        with pytest.raises(OwnFault, match="there is no"):
            call()


def test_a_key_too_small_for_a_key_string_is_its_owners_fault(small_key: PrivateKey) -> None:
    # 1024 bits hold 86 bytes under SHA1 and 70 under SHA224; a key string has 76.
    key_string = generate_key_string().encode()
    assert small_key.decrypt(small_key.public.encrypt(key_string, "OAEP-SHA1"), "OAEP-SHA1") == key_string
    with pytest.raises(PeerFault, match="too small"):
        small_key.public.encrypt(key_string, "OAEP-SHA224")


# ---------------------------------------------------------------------------------------------------------------------- X9.31


@pytest.mark.parametrize("length", [0, 1, 4, 64, 200, 253, 254])
def test_x931_wraps_every_length(minion_key: PrivateKey, length: int) -> None:
    message = bytes(range(1, 256))[:length]
    signature = minion_key.x931_sign(message)
    assert len(signature) == 256
    assert signature == minion_key.x931_sign(message)
    assert minion_key.public.x931_recover(signature) == message


def int_modulus(key: PrivateKey) -> int:
    public = serialization.load_pem_public_key(key.public.pem.encode())
    assert isinstance(public, rsa.RSAPublicKey)
    return public.public_numbers().n


def test_x931_blocks_are_those_of_the_protocol(minion_key: PrivateKey) -> None:
    """The block is built here by hand, with the formula of docs/protocol.md#x931."""
    n = int_modulus(minion_key)
    for message, block in (
        (b"salt", b"\x6b" + b"\xbb" * 249 + b"\xba" + b"salt" + b"\xcc"),
        (b"m" * 253, b"\x6b\xba" + b"m" * 253 + b"\xcc"),
        (b"m" * 254, b"\x6a" + b"m" * 254 + b"\xcc"),
    ):
        signature = int.from_bytes(minion_key.x931_sign(message), "big")
        assert signature <= n // 2
        plain = pow(signature, 65537, n)
        assert int.from_bytes(block, "big") in (plain, n - plain)


def test_x931_signatures_of_one_message_are_made_once(monkeypatch: pytest.MonkeyPatch, small_key: PrivateKey) -> None:
    # They take forty milliseconds with 2048 bits, and a fleet that comes back signs in all at once (docs/protocol.md#traps).
    made: list[int] = []

    def counted(base: int, exponent: int, modulus: int) -> int:
        made.append(base)
        return pow(base, exponent, modulus)

    monkeypatch.setattr(keys, "pow", counted, raising=False)
    fresh = PrivateKey.from_pem(small_key.to_pem())
    signatures = [fresh.x931_sign(message) for message in (b"one", b"one", b"two", b"two", b"one")]
    assert len(made) == 3
    assert signatures[0] == signatures[1] == signatures[4] != signatures[2] == signatures[3]


def test_x931_takes_no_message_that_does_not_fit(minion_key: PrivateKey) -> None:
    with pytest.raises(OwnFault, match="does not fit"):
        minion_key.x931_sign(b"m" * 255)


def test_x931_signatures_of_others_do_not_recover(minion_key: PrivateKey, other_key: PrivateKey) -> None:
    good = minion_key.x931_sign(b"salt")
    wrong = [b"", b"salt", good[:-1], good + b"\0", b"\0" * 256, b"\0" * 255 + b"\1", b"\xff" * 256]
    wrong += [bytes(good[:i] + bytes([good[i] ^ 1]) + good[i + 1 :]) for i in range(0, 256, 17)]
    for signature in wrong:
        with pytest.raises(SignatureError):
            minion_key.public.x931_recover(signature)
    with pytest.raises(SignatureError):
        other_key.public.x931_recover(good)


@given(st.binary(min_size=250, max_size=258))
def test_x931_any_signature_recovers_or_is_refused(small_public: PublicKey, signature: bytes) -> None:
    for data in (signature, signature[:128]):
        try:
            small_public.x931_recover(data)
        except SignatureError:
            continue


@pytest.fixture(scope="session")
def small_public(small_key: PrivateKey) -> PublicKey:
    return small_key.public


# --------------------------------------------------------------------------------------------- fingerprints and derived keys


def test_fingerprints() -> None:
    pem = "-----BEGIN PUBLIC KEY-----\nAAA\n\nBBB\n-----END PUBLIC KEY-----\n"
    plain = hashlib.sha256(b"AAA\nBBB\n").hexdigest()
    assert fingerprint_of(pem) == ":".join(plain[i : i + 2] for i in range(0, 64, 2))
    assert fingerprint_of(pem, "md5") == ":".join(
        hashlib.md5(b"AAA\nBBB\n", usedforsecurity=False).hexdigest()[i : i + 2] for i in range(0, 32, 2)
    )


@pytest.mark.parametrize("name", ["", "none", "shake_128"])
def test_digests_that_are_not_there_are_our_own_fault(minion_key: PrivateKey, name: str) -> None:
    with pytest.raises(OwnFault, match="digest"):
        minion_key.public.fingerprint(name)


BASE: dict[str, Any] = {"secret": b"s" * 32, "purpose": "session", "epoch": 1, "minion_id": "a", "fingerprint": "f"}

#: What must not give the same key as BASE.
DIFFERENT: dict[str, dict[str, Any]] = {
    "secret": {"secret": b"t" * 32},
    "purpose": {"purpose": "aes"},
    "epoch": {"epoch": 2},
    "minion": {"minion_id": "b"},
    "fingerprint": {"fingerprint": "g"},
    "moved boundary": {"minion_id": "af", "fingerprint": ""},
    "moved boundary, other way": {"minion_id": "", "fingerprint": "af"},
    "epoch into minion": {"epoch": 11, "minion_id": ""},
}


def test_derived_keys_are_the_same_everywhere() -> None:
    key = derive_key_string(**BASE)
    assert key == derive_key_string(**BASE)
    # Pinned: workers of two releases must agree while one replaces the other.
    assert key == "Tzfvhx9S9LtXcECk90TzEyYdAXFUuyU9H8xmMypPvc88L6M0pMoWheyqMhQDpsqjBNpgRHyQYDw="
    assert len(base64.b64decode(key)) == 56


@pytest.mark.parametrize("change", DIFFERENT.values(), ids=DIFFERENT.keys())
def test_derived_keys_differ(change: dict[str, Any]) -> None:
    assert derive_key_string(**{**BASE, **change}) != derive_key_string(**BASE)


# -------------------------------------------------------------------------------------------------------------------- oracle

_SALT = """
import base64, json, sys, tempfile, pathlib, salt.crypt, salt.utils.crypt
job = json.load(sys.stdin)
b64 = lambda data: base64.b64encode(data).decode()
raw = lambda text: base64.b64decode(text)
private = salt.crypt.PrivateKey(job["private"].encode())
public = salt.crypt.PublicKeyString(job["public"])
path = pathlib.Path(tempfile.mkdtemp()) / "key.pub"
path.write_text(job["public"])
print(json.dumps({
    "verified": {algo: public.verify(b"data", raw(sig), algo) for algo, sig in job["signed"].items()},
    "decrypted": {algo: b64(private.decrypt(raw(sealed), algo)) for algo, sealed in job["sealed"].items()},
    "recovered": b64(public.decrypt(raw(job["x931"]))),
    "signed": {algo: b64(private.sign(b"data", algo)) for algo in job["signed"]},
    "sealed": {algo: b64(public.encrypt(b"secret", algo)) for algo in job["sealed"]},
    "x931": b64(private.encrypt(b"salt")),
    "finger": salt.utils.crypt.pem_finger(str(path), sum_type="sha256"),
}))
"""


@pytest.mark.oracle
def test_salt_and_we_understand_each_others_keys(oracle: Any, minion_key: PrivateKey) -> None:
    def b64(data: bytes) -> str:
        return base64.b64encode(data).decode()

    question = {
        "private": minion_key.to_pem().decode(),
        "public": minion_key.public.pem,
        "signed": {algo: b64(minion_key.sign(b"data", algo)) for algo in SIG_ALGOS},
        "sealed": {algo: b64(minion_key.public.encrypt(b"secret", algo)) for algo in ENC_ALGOS},
        "x931": b64(minion_key.x931_sign(b"salt")),
    }
    answer = json.loads(oracle.run("python", "-c", _SALT, stdin=json.dumps(question)))
    assert answer["verified"] == dict.fromkeys(SIG_ALGOS, True)
    assert answer["decrypted"] == dict.fromkeys(ENC_ALGOS, b64(b"secret"))
    assert answer["recovered"] == b64(b"salt")
    assert answer["x931"] == question["x931"]
    assert answer["signed"] == question["signed"]
    assert answer["finger"] == minion_key.public.fingerprint()
    for algo, sealed in answer["sealed"].items():
        assert minion_key.decrypt(base64.b64decode(sealed), algo) == b"secret"
