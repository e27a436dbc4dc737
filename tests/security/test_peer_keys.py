"""Public keys that peers choose: each is raised to its exponent for every signature, and session keys are encrypted to it."""

from __future__ import annotations

import base64
import time

import pytest
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519
from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from saltwire.errors import PeerFault
from saltwire.keys import PrivateKey, PublicKey
from saltwire.pack import packb, unpackb
from tests.services.mworker.conftest import Worker

#: Odd, so that it can be a modulus; nobody has to know its factors.
MODULUS_2048 = 2**2047 + 1
PRIVATE = PrivateKey.generate(2048)


def pem_of(key: PublicKeyTypes) -> str:
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def der(tag: int, content: bytes) -> bytes:
    size = len(content).to_bytes((len(content).bit_length() + 7) // 8, "big")
    length = size if len(content) < 128 else bytes([0x80 | len(size)]) + size
    return bytes([tag]) + length + content


def integer(number: int) -> bytes:
    return der(2, number.to_bytes(number.bit_length() // 8 + 1, "big"))


def rsa_pem(exponent: int, modulus: int) -> str:
    """Return the PEM of an RSA public key with any exponent and modulus, also one that the cryptography package would refuse."""
    algorithm = der(0x30, bytes.fromhex("06092a864886f70d0101010500"))
    inner = der(0x30, integer(modulus) + integer(exponent))
    whole = base64.encodebytes(der(0x30, algorithm + der(3, b"\0" + inner))).decode()
    return f"-----BEGIN PUBLIC KEY-----\n{whole}-----END PUBLIC KEY-----\n"


#: Attack -> key that a minion offers at its sign-in.
KEYS: dict[str, str] = {
    "1023 bits": rsa_pem(65537, 2**1022 + 1),
    "1024 bits": rsa_pem(65537, 2**1023 + 1),
    "2047 bits": rsa_pem(65537, 2**2046 + 1),
    "16385 bits": rsa_pem(65537, 2**16384 + 1),
    "80000 bits": rsa_pem(65537, 2**79_999 + 1),
    "exponent 0": rsa_pem(0, MODULUS_2048),
    "exponent 1": rsa_pem(1, MODULUS_2048),
    "exponent 2": rsa_pem(2, MODULUS_2048),
    "an even exponent": rsa_pem(65536, MODULUS_2048),
    "exponent 2^32 + 1": rsa_pem(2**32 + 1, MODULUS_2048),
    "exponent 2^64 + 13": rsa_pem(2**64 + 13, MODULUS_2048),
    "exponent 2^2000 + 1": rsa_pem(2**2000 + 1, MODULUS_2048),
    "an exponent above the modulus": rsa_pem(2**2050 + 1, MODULUS_2048),
    "a negative modulus": rsa_pem(65537, MODULUS_2048).replace("MII", "MIH", 1),
    "an elliptic curve": pem_of(ec.generate_private_key(ec.SECP256R1()).public_key()),
    "Ed25519": pem_of(ed25519.Ed25519PrivateKey.generate().public_key()),
    "DSA": pem_of(dsa.generate_private_key(1024).public_key()),
    "a private key": PRIVATE.to_pem().decode(),
    "a certificate's header": PRIVATE.public.pem.replace("PUBLIC KEY", "CERTIFICATE"),
}


@pytest.mark.redis
@pytest.mark.parametrize("attack", KEYS)
def test_a_key_that_is_weak_or_slow_is_refused(attack: str, worker: Worker) -> None:
    load = {"cmd": "_auth", "id": "web1", "pub": KEYS[attack], "nonce": "0" * 32, "enc_algo": "OAEP-SHA1"}
    before = time.process_time()
    answer = worker.handler.answer(b"minion", "", packb({"enc": "clear", "load": load, "version": 3}))
    assert time.process_time() - before < 1
    outer = unpackb(answer)
    if isinstance(outer, dict):
        signed = unpackb(outer["load"])
        assert signed["ret"] is False
        assert "aes" not in signed
    assert worker.store.minion_keys.all() == {"accepted": [], "pending": [], "rejected": [], "denied": []}


@pytest.mark.parametrize("exponent", [3, 65537, 2**32 - 1])
@pytest.mark.parametrize("bits", [2048, 4096, 16384])
def test_usual_keys_are_read(exponent: int, bits: int) -> None:
    key = PublicKey.from_pem(rsa_pem(exponent, 2 ** (bits - 1) + 1))
    assert PublicKey.from_pem(key.pem).pem == key.pem


@pytest.mark.parametrize(
    ("pem", "words"),
    [
        (KEYS["1024 bits"], "an RSA key of 1024 bits; 2048 to 16384 are allowed"),
        (KEYS["exponent 2^2000 + 1"], "exponent of 2001 bits; odd ones from 3 to 2\\^32 are allowed"),
        (KEYS["Ed25519"], "no RSA key"),
    ],
)
def test_the_error_says_what_is_allowed(pem: str, words: str) -> None:
    with pytest.raises(PeerFault, match=words):
        PublicKey.from_pem(pem)
