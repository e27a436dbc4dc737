"""Generate private keys, sign, and encode keys, X.509 certificates with their chains, signing requests and revocation
lists.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, padding, rsa
from cryptography.hazmat.primitives.serialization import pkcs7, pkcs12

from statecore.model.errors import CommandError, InvocationError
from statecore.system.certificates.loading import PrivateKey, PublicKey

#: Encodings of certificates, of private keys, and of requests and revocation lists.
CERTIFICATES: tuple[str, ...] = ("der", "pem", "pkcs7_der", "pkcs7_pem", "pkcs12")
KEYS: tuple[str, ...] = ("der", "pem", "pkcs12")
OTHERS: tuple[str, ...] = ("der", "pem")

#: Encodings that produce text.
TEXT: frozenset[str] = frozenset({"pem", "pkcs7_pem"})

DIGESTS: tuple[str, ...] = (
    "sha1",
    "sha224",
    "sha256",
    "sha384",
    "sha512",
    "sha512_224",
    "sha512_256",
    "sha3_224",
    "sha3_256",
    "sha3_384",
    "sha3_512",
)

#: Algorithm -> possible key sizes in bits, default first. Empty for an algorithm with a fixed size.
SIZES: Mapping[str, tuple[int, ...]] = {"rsa": (2048, 3072, 4096), "ec": (256, 384, 521), "ed25519": (), "ed448": ()}

_CURVES: Mapping[int, Callable[[], ec.EllipticCurve]] = {256: ec.SECP256R1, 384: ec.SECP384R1, 521: ec.SECP521R1}

_KINDS: Mapping[str, tuple[type, ...]] = {
    "rsa": (rsa.RSAPrivateKey, rsa.RSAPublicKey),
    "ec": (ec.EllipticCurvePrivateKey, ec.EllipticCurvePublicKey),
    "ed25519": (ed25519.Ed25519PrivateKey, ed25519.Ed25519PublicKey),
    "ed448": (ed448.Ed448PrivateKey, ed448.Ed448PublicKey),
}


_Signed = TypeVar("_Signed", covariant=True)


def need_encoding(encoding: object, known: Sequence[str]) -> None:
    """Raise CommandError if the encoding of a key or certificate is not one of ``known``."""
    if encoding not in known:
        raise CommandError(f"Invalid value '{encoding}' for encoding. Valid: {', '.join(known)}")


def need_digest(digest: object) -> str:
    """Return the name of the digest for a signature in lower case. Raises CommandError if the digest is unknown."""
    if str(digest).lower() not in DIGESTS:
        raise CommandError(f"Invalid value '{digest}' for digest. Valid: {', '.join(DIGESTS)}")
    return str(digest).lower()


def need_size(algo: object, keysize: int | None) -> int | None:
    """Return the size in bits of a private key to generate; None if the algorithm has a fixed size. Raises
    InvocationError for an unknown algorithm or size.
    """
    if not isinstance(algo, str) or algo not in SIZES:
        raise InvocationError(
            f"Invalid algorithm specified for generating private key: {algo}. Valid: {', '.join(SIZES)}"
        )
    if not SIZES[algo]:
        if keysize:
            raise InvocationError(f"keysize is an invalid parameter for {algo}")
        return None
    size = keysize or SIZES[algo][0]
    if size not in SIZES[algo]:
        raise InvocationError(
            "RSA key size must be either 2048, 3072 or 4096 bits."
            if algo == "rsa"
            else "EC key size must be either 256, 384, 521 bits."
        )
    return int(size)


def make_key(algo: str, keysize: int | None) -> PrivateKey:
    """Return a new random private key of the algorithm ``algo`` with ``keysize`` bits (None: the default size).

    Raises InvocationError for an unknown algorithm or size.
    """
    size = need_size(algo, keysize)
    if algo == "rsa":
        return rsa.generate_private_key(public_exponent=65537, key_size=size or 2048)
    if algo == "ec":
        return ec.generate_private_key(_CURVES[size or 256]())
    return ed25519.Ed25519PrivateKey.generate() if algo == "ed25519" else ed448.Ed448PrivateKey.generate()


def key_type(key: object) -> str:
    """Return the algorithm of a private or public key: rsa, ec, ed25519 or ed448."""
    return next(name for name, kinds in _KINDS.items() if isinstance(key, kinds))


def key_size(key: object) -> int | None:
    """Return the size in bits of a private or public key; None if its algorithm has a fixed size."""
    size: int | None = getattr(key, "key_size", None)
    return size


def same_key(one: PublicKey, other: PublicKey) -> bool:
    """Return True if two public keys are equal."""
    return public_pem(one) == public_pem(other)


class Encodable(Protocol):
    """Interface of a public key of the library cryptography, of any algorithm."""

    def public_bytes(self, encoding: serialization.Encoding, format: serialization.PublicFormat, /) -> bytes:
        """Return the public key as bytes in this encoding and format."""
        ...


def public_pem(key: Encodable) -> str:
    """Return a public key as PEM text."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_bytes(serialization.Encoding.PEM, form).decode()


def public_der(key: PublicKey) -> bytes:
    """Return a public key in the binary encoding DER."""
    return key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def hash_for(key: PrivateKey, digest: str) -> hashes.SHA256 | None:
    """Return the hash object with which a private key signs; None for Ed25519 and Ed448, which have their own hash.

    Raises CommandError for an unknown digest.
    """
    if isinstance(key, ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey):
        return None
    found: hashes.SHA256 = getattr(hashes, need_digest(digest).upper())()
    return found


class _Builder(Protocol[_Signed]):
    def sign(self, private_key: PrivateKey, algorithm: hashes.SHA256 | None) -> _Signed: ...


def signed(builder: _Builder[_Signed], key: PrivateKey, digest: str) -> _Signed:
    """Sign the certificate, request or revocation list that a builder of the library cryptography describes, and return
    it. Raises CommandError if the digest cannot be used.
    """
    try:
        return builder.sign(key, hash_for(key, digest))
    except (UnsupportedAlgorithm, ValueError, TypeError) as error:
        raise CommandError(f"it cannot be signed with {digest}: {error}") from error


def is_signed_by(certificate: x509.Certificate, key: PublicKey) -> bool:
    """Return True if the certificate's signature was made by the private key that belongs to the public ``key``."""
    data, signature, used = (
        certificate.tbs_certificate_bytes,
        certificate.signature,
        certificate.signature_hash_algorithm,
    )
    try:
        if isinstance(key, rsa.RSAPublicKey):
            form = certificate.signature_algorithm_parameters
            if used is None or not isinstance(form, padding.PSS | padding.PKCS1v15):
                return False
            key.verify(signature, data, form, used)
        elif isinstance(key, ec.EllipticCurvePublicKey):
            if used is None:
                return False
            key.verify(signature, data, ec.ECDSA(used))
        else:
            key.verify(signature, data)
    except InvalidSignature:
        return False
    return True


def encoded_key(key: PrivateKey, encoding: str, passphrase: str | None, compatible: bool = False) -> bytes:
    """Return a private key as bytes in the encoding pem, der or pkcs12, encrypted if there is a ``passphrase``.

    With ``compatible``, PKCS#12 is encrypted so that old systems can read it. Raise CommandError for any other
    encoding.
    """
    need_encoding(encoding, KEYS)
    if encoding == "pkcs12":
        cipher = _bundle_cipher(passphrase, compatible)
        return pkcs12.serialize_key_and_certificates(None, key, None, None, cipher)
    form = serialization.Encoding.PEM if encoding == "pem" else serialization.Encoding.DER
    plain = serialization.NoEncryption()
    locked = serialization.BestAvailableEncryption(passphrase.encode()) if passphrase else plain
    return key.private_bytes(form, serialization.PrivateFormat.PKCS8, locked)


def encoded_certificate(
    certificate: x509.Certificate,
    encoding: str,
    chain: Sequence[x509.Certificate] = (),
    key: PrivateKey | None = None,
    passphrase: str | None = None,
    compatible: bool = False,
    friendly_name: str | None = None,
) -> bytes:
    """Return an X.509 certificate with its chain as bytes in the given encoding; in PKCS#12 also with its private key.

    Raise CommandError for an unknown encoding, InvocationError for a chain or key that the encoding cannot hold, and
    for PKCS#12 without the certificate's key.
    """
    need_certificate_encoding(encoding, bool(chain))
    if encoding != "pkcs12" and key is not None:
        raise InvocationError("Embedding private keys is only supported for pkcs12 encoding")
    if encoding == "pkcs12":
        if key is None:
            raise InvocationError("Creating a PKCS12-encoded certificate without embedded private key is unsupported")
        name = friendly_name.encode() if friendly_name else None
        cipher = _bundle_cipher(passphrase, compatible)
        try:
            return pkcs12.serialize_key_and_certificates(name, key, certificate, list(chain), cipher)
        except ValueError as error:
            raise InvocationError(f"the private key does not belong to the certificate: {error}") from error
    form = serialization.Encoding.PEM if encoding in TEXT else serialization.Encoding.DER
    if encoding.startswith("pkcs7"):
        return pkcs7.serialize_certificates([certificate, *chain], form)
    return b"\n".join(each.public_bytes(form) for each in (certificate, *chain))


def need_certificate_encoding(encoding: object, chain: bool) -> None:
    """Raise CommandError if the encoding of a certificate is unknown, InvocationError if it is DER and the certificate
    has a chain.
    """
    need_encoding(encoding, CERTIFICATES)
    if encoding == "der" and chain:
        raise InvocationError("Cannot encode a certificate chain in DER")


def encoded(found: x509.CertificateSigningRequest | x509.CertificateRevocationList, encoding: str) -> bytes:
    """Return a signing request or revocation list as bytes in the encoding pem or der. Raise CommandError for any other
    encoding.
    """
    need_encoding(encoding, OTHERS)
    return found.public_bytes(serialization.Encoding.PEM if encoding == "pem" else serialization.Encoding.DER)


def _bundle_cipher(passphrase: str | None, compatible: bool) -> serialization.KeySerializationEncryption:
    if not passphrase:
        return serialization.NoEncryption()
    if not compatible:
        return serialization.BestAvailableEncryption(passphrase.encode())
    with warnings.catch_warnings():
        # cryptography warns about old algorithms. The caller asked for them.
        warnings.simplefilter("ignore")
        return (
            serialization.PrivateFormat.PKCS12.encryption_builder()
            .kdf_rounds(50000)
            .key_cert_algorithm(pkcs12.PBES.PBESv1SHA1And3KeyTripleDESCBC)
            .hmac_hash(hashes.SHA1())
            .build(passphrase.encode())
        )
