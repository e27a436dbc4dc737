"""Signatures of texts and files by RSA, ECDSA, Ed25519 and Ed448 keys: Salt's ``asymmetric`` execution module.

RSA signatures use PSS padding. Keys are files of the host, or PEM, DER or base64 data as ``x509`` reads them. The extra
``saltern-statecore[certificates]`` brings the library cryptography.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import logging
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils

from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.errors import CommandError, HostError, InvocationError
from statecore.system.certificates import loading, references

_LOG = logging.getLogger(__name__)

_DEFAULT_DIGEST = "sha256"

_SCHEME = re.compile(r"^(\w+)://")

#: Bytes of a file that are read at once.
_BLOCK = 1024 * 1024

#: Longer texts are no paths (PATH_MAX).
_LONGEST_PATH = 4096


class _Subject:
    """The data that is signed: bytes, or a file of the host. Digests of a file are computed once."""

    def __init__(self, content: bytes | Path) -> None:
        self._content = content
        self._digests: dict[str, bytes] = {}

    def whole(self) -> bytes:
        """Return all bytes."""
        return self._content.read_bytes() if isinstance(self._content, Path) else self._content

    def digest(self, name: str) -> bytes:
        """Return the digest by the algorithm ``name``."""
        if name not in self._digests:
            made = hashlib.new(name)
            for block in self._blocks():
                made.update(block)
            self._digests[name] = made.digest()
        return self._digests[name]

    def _blocks(self) -> Iterator[bytes]:
        if isinstance(self._content, bytes):
            yield self._content
            return
        with self._content.open("rb") as file:
            while block := file.read(_BLOCK):
                yield block


def sign(
    ctx: Context,
    privkey: object,
    passphrase: str | None = None,
    text: str | bytes | None = None,
    filename: str | None = None,
    digest: str | None = None,
    raw: bool | None = None,
    path: str | None = None,
) -> str | bytes:
    """Sign a text or a file of the host. Return the signature in base64; with ``path`` the sentence that says where it
    was written. Raise InvocationError without a text and a file, CommandError for a file that cannot be read.

    privkey
        the private key, or the path of its file
    passphrase
        passphrase of the key
    text, filename
        what to sign: a text, or the path of a file
    digest
        name of the hash algorithm for RSA and ECDSA; default: sha256
    raw
        True: return bytes instead of base64; with ``path`` this is the default
    path
        file of the host to which the signature is written

    CLI Example:

        salt '*' asymmetric.sign /root/my_privkey.pem text='I like you'
        salt '*' asymmetric.sign /root/my_privkey.pem filename=/data/to/be/signed
    """
    if text is None and not filename:
        raise InvocationError("Either `text` or `filename` is required")
    subject = _subject(ctx, text, filename)
    key = loading.key(references.content(ctx.host, privkey), passphrase).key
    if isinstance(key, rsa.RSAPrivateKey):
        algorithm = _algorithm(digest)
        signature = key.sign(
            subject.digest(algorithm.name), _pss(algorithm, padding.PSS.MAX_LENGTH), utils.Prehashed(algorithm)
        )
    elif isinstance(key, ec.EllipticCurvePrivateKey):
        algorithm = _algorithm(digest)
        signature = key.sign(subject.digest(algorithm.name), ec.ECDSA(utils.Prehashed(algorithm)))
    else:
        signature = key.sign(subject.whole())
    made = signature if (bool(path) if raw is None else raw) else base64.b64encode(signature).decode()
    if not path:
        return made
    try:
        written = made if isinstance(made, bytes) else made.encode()
        managed_file.replace(ctx.host, ctx.host.path(path), written, Attributes())
    except HostError as error:
        raise CommandError(str(error)) from error
    return f"Signature written to '{path}'"


def verify(
    ctx: Context,
    text: str | bytes | None = None,
    filename: str | None = None,
    pubkey: object = None,
    signature: object = None,
    digest: str | None = None,
    signed_by_any: object = None,
    signed_by_all: object = None,
    **kwargs: object,
) -> dict[str, object]:
    """Check signatures of a text or of a file of the host. Return a map with ``res`` (True or False) and ``message``.

    Raise InvocationError for arguments that do not fit, CommandError for a missing file, and if no signature can be read.

    text, filename
        what was signed: a text, or the path of a file
    pubkey
        the public key, or the path of its file
    signature
        the signature in base64, a file with it, or its URL; with ``signed_by_any`` and ``signed_by_all`` also a list
    digest
        name of the hash algorithm for RSA and ECDSA; default: sha256
    signed_by_any
        list of public keys, one of which must have signed
    signed_by_all
        list of public keys, all of which must have signed

    CLI Example:

        salt '*' asymmetric.verify pubkey=/root/my_pubkey.pem text='I like you' signature=/root/ilikeyou.sig
    """
    any_keys, all_keys = _listed(signed_by_any), _listed(signed_by_all)
    if text and filename:
        raise InvocationError("`text` and `filename` arguments are mutually exclusive")
    if not signature:
        raise InvocationError("Missing `signature` parameter")
    if (any_keys or all_keys) and pubkey:
        raise InvocationError("Either specify pubkey + signature or signed_by_(any|all)")
    if not any_keys and not all_keys:
        if not pubkey:
            raise InvocationError("Missing pubkey(s) to check against")
        if not isinstance(signature, str | bytes):
            raise InvocationError("`signature` must be a string or bytes when verifying a single signing `pubkey`")
        all_keys = [pubkey]
    if not text and not filename:
        raise InvocationError("Missing data to verify. Either specify `text` or `filename`")
    subject = _subject(ctx, text or None, filename)
    try:
        signatures = _signatures(ctx, _listed(signature))
    except CommandError as error:
        if pubkey:
            return {"res": False, "message": str(error)}
        raise
    if any_keys and not any(_tried(ctx, key, signatures, subject, digest) for key in any_keys):
        message = "None of the public keys listed in signed_by_any provided a valid signature"
        return {"res": False, "message": message}
    for key in all_keys:
        try:
            match = _matching(ctx, key, signatures, subject, digest)
        except (CommandError, InvocationError, HostError) as error:
            start = "Failed checking signature" if pubkey else "Failed while checking `signed_by_all`"
            return {"res": False, "message": f"{start}: {error}"}
        # A signature counts for one key.
        signatures = [one for one in signatures if one not in match]
    message = "The signature is valid" if pubkey else "All required keys have provided a signature"
    return {"res": True, "message": message}


def _subject(ctx: Context, text: str | bytes | None, filename: str | None) -> _Subject:
    if text is not None:
        return _Subject(text.encode() if isinstance(text, str) else text)
    place = _place(ctx, str(filename))
    if not place.is_file():
        raise CommandError(f"Path '{filename}' does not exist")
    return _Subject(place)


def _place(ctx: Context, name: str) -> Path:
    """Return the path of a file of the host, or of a file in the minion's cache, where fetched files are."""
    cachedir = str(ctx.opts.get("cachedir") or "")
    if cachedir and Path(name).is_relative_to(cachedir) and Path(name).is_file():
        return Path(name)
    return ctx.host.path(name)


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else [value] if value else []


def _algorithm(name: str | None) -> hashes.HashAlgorithm:
    found = getattr(hashes, str(name or _DEFAULT_DIGEST).upper(), None)
    if not (isinstance(found, type) and issubclass(found, hashes.HashAlgorithm)):
        raise CommandError(f"Invalid value '{name}' for digest")
    made: hashes.HashAlgorithm = found()
    return made


def _pss(algorithm: hashes.HashAlgorithm, length: object) -> padding.PSS:
    return padding.PSS(mgf=padding.MGF1(algorithm), salt_length=length)  # type: ignore[arg-type]


def _signatures(ctx: Context, given: Sequence[object]) -> list[bytes]:
    """Return the bytes of the signatures that can be read. Raise CommandError if there are none."""
    found, errors = [], []
    for one in given:
        try:
            found.append(_signature(ctx, one))
        except (CommandError, HostError) as error:
            _LOG.error("%s", error)
            errors.append(error)
    if found:
        return found
    if len(given) == 1:
        raise CommandError(str(errors[0]))
    raise CommandError("Unable to locate any of the provided signatures")


def _signature(ctx: Context, given: object) -> bytes:
    data = given.encode() if isinstance(given, str) else given
    if not isinstance(data, bytes):
        raise CommandError(f"Failed loading signature '{given!r}' as file and/or base64 string")
    path = _fetched(ctx, given) if isinstance(given, str) else ""
    is_path = path.startswith("/") and "\n" not in path and len(path) < _LONGEST_PATH
    if is_path and _place(ctx, path).is_file():
        data = _place(ctx, path).read_bytes()
    try:
        # Base64, too, may begin with a slash.
        decoded = base64.b64decode(data)
    except (ValueError, binascii.Error):
        decoded = b""
    if decoded and base64.b64encode(decoded) == data.replace(b"\n", b""):
        return decoded
    if is_path and not _place(ctx, path).is_file():
        raise CommandError(f"Failed loading signature '{given}' as file and/or base64 string")
    return data


def _fetched(ctx: Context, reference: str) -> str:
    """Return the path of a fetched URL; any other text unchanged."""
    scheme = _SCHEME.match(reference)
    if scheme is None:
        return reference
    path = reference.removeprefix("file://") if scheme[1] == "file" else ctx.call("cp.cache_file", reference)
    if not path:
        raise CommandError(f"Failed fetching '{reference}'")
    return str(path)


def _tried(ctx: Context, key: object, signatures: Sequence[bytes], subject: _Subject, digest: str | None) -> bool:
    try:
        return bool(_matching(ctx, key, signatures, subject, digest))
    except (CommandError, InvocationError, HostError) as error:
        _LOG.info("%s", error)
        return False


def _matching(
    ctx: Context, reference: object, signatures: Sequence[bytes], subject: _Subject, digest: str | None
) -> list[bytes]:
    """Return the signatures that a public key made. Raise CommandError if there is none, and if the key cannot be read."""
    given = _fetched(ctx, reference) if isinstance(reference, str) else reference
    key = loading.public_key(references.content(ctx.host, given))
    found = []
    for signature in signatures:
        try:
            if isinstance(key, rsa.RSAPublicKey):
                algorithm = _algorithm(digest)
                data, kind = subject.digest(algorithm.name), utils.Prehashed(algorithm)
                key.verify(signature, data, _pss(algorithm, padding.PSS.AUTO), kind)
            elif isinstance(key, ec.EllipticCurvePublicKey):
                algorithm = _algorithm(digest)
                key.verify(signature, subject.digest(algorithm.name), ec.ECDSA(utils.Prehashed(algorithm)))
            else:
                key.verify(signature, subject.whole())
        except InvalidSignature:
            continue
        found.append(signature)
    if not found:
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        der = key.public_bytes(serialization.Encoding.DER, form)
        raise CommandError(f"Invalid signature for key {hashlib.sha256(der).hexdigest()}")
    return found
