"""Digests, signatures and base64: Salt's ``hashutil`` execution module."""

from __future__ import annotations

import base64
import hashlib
import hmac

from statecore.host.content import managed_file
from statecore.model.context import Context
from statecore.model.errors import CommandError

_DIGESTS = ("md5", "sha256", "sha512")


def digest(ctx: Context, instr: str | bytes, checksum: str = "md5") -> str:
    """Return the hexadecimal digest of a text. ``checksum`` is md5, sha256 or sha512; raise CommandError for any other.

    CLI Example:

        salt '*' hashutil.digest 'get salted' sha256
    """
    if checksum not in _DIGESTS:
        raise CommandError(f"Hash func '{checksum}' is not supported.")
    return hashlib.new(checksum, _bytes(instr)).hexdigest()


def digest_file(ctx: Context, infile: str, checksum: str = "md5") -> str:
    """Return the hexadecimal digest of a file of the host. ``checksum`` is md5, sha256 or sha512."""
    return digest(ctx, _file(ctx, infile), checksum)


def md5_digest(ctx: Context, instr: str) -> str:
    """Return the hexadecimal MD5 digest of a text."""
    return digest(ctx, instr, "md5")


def sha256_digest(ctx: Context, instr: str) -> str:
    """Return the hexadecimal SHA-256 digest of a text."""
    return digest(ctx, instr, "sha256")


def sha512_digest(ctx: Context, instr: str) -> str:
    """Return the hexadecimal SHA-512 digest of a text."""
    return digest(ctx, instr, "sha512")


def base64_b64encode(ctx: Context, instr: str) -> str:
    """Return a text encoded as base64, in one line."""
    return base64.b64encode(_bytes(instr)).decode()


def base64_b64decode(ctx: Context, instr: str) -> str:
    """Decode a base64 text. Return the decoded bytes as text (UTF-8). Raise ValueError for wrong padding."""
    return base64.b64decode(_bytes(instr)).decode("utf-8", "surrogateescape")


def base64_encodestring(ctx: Context, instr: str) -> str:
    """Return a text encoded as base64, in lines of 76 characters."""
    return base64.encodebytes(_bytes(instr)).decode()


def base64_decodestring(ctx: Context, instr: str) -> str:
    """Decode a base64 text of several lines. Return the decoded bytes as text (UTF-8). Raise ValueError for wrong
    padding.
    """
    return base64.decodebytes(_bytes(instr)).decode("utf-8", "surrogateescape")


def base64_encodefile(ctx: Context, fname: str) -> str:
    """Return the content of a file of the host encoded as base64, in lines of 76 characters."""
    return base64.encodebytes(_file(ctx, fname)).decode()


def base64_decodefile(ctx: Context, instr: str, outfile: str) -> bool:
    """Decode the base64 text ``instr`` and write the bytes to the file ``outfile`` of the host. Return True."""
    managed_file.replace(ctx.host, ctx.host.path(outfile), base64.decodebytes(_bytes(instr)), managed_file.Attributes())
    return True


def hmac_signature(ctx: Context, string: str, shared_secret: str, challenge_hmac: str) -> bool:
    """Return whether ``challenge_hmac`` is the HMAC-SHA256 (as base64) of a text with the key ``shared_secret``."""
    made = base64.b64encode(hmac.new(_bytes(shared_secret), _bytes(string), "sha256").digest())
    return hmac.compare_digest(made, _bytes(challenge_hmac))


def hmac_compute(ctx: Context, string: str, shared_secret: str) -> str:
    """Return the HMAC-SHA256 of a text with the key ``shared_secret``, as hexadecimal digits."""
    return hmac.new(_bytes(shared_secret), _bytes(string), "sha256").hexdigest()


def github_signature(ctx: Context, string: str, shared_secret: str, challenge_hmac: str) -> bool:
    """Return whether ``challenge_hmac``, a GitHub signature such as ``sha1=...``, is that of a text with the key
    ``shared_secret``.
    """
    kind, _, wanted = challenge_hmac.partition("=")
    return hmac.compare_digest(hmac.new(_bytes(shared_secret), _bytes(string), kind).hexdigest(), wanted)


def _bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")


def _file(ctx: Context, name: str) -> bytes:
    data = managed_file.read(ctx.host.path(name), name)
    if data is None:
        raise CommandError(f"File path '{name}' not found.")
    return data
