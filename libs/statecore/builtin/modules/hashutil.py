"""Digests and base64 (Salt's ``hashutil`` module)."""

from __future__ import annotations

import base64
import hashlib
import hmac

from statecore.host.content import managed_file
from statecore.model.context import Context
from statecore.model.errors import CommandError

_DIGESTS = ("md5", "sha256", "sha512")


def digest(ctx: Context, instr: str | bytes, checksum: str = "md5") -> str:
    """Hexadecimal digest of a text: md5, sha256 or sha512.

    CLI Example:

        salt '*' hashutil.digest 'get salted' sha256
    """
    if checksum not in _DIGESTS:
        raise CommandError(f"Hash func '{checksum}' is not supported.")
    return hashlib.new(checksum, _bytes(instr)).hexdigest()


def digest_file(ctx: Context, infile: str, checksum: str = "md5") -> str:
    """The same of a file of the host."""
    return digest(ctx, _file(ctx, infile), checksum)


def md5_digest(ctx: Context, instr: str) -> str:
    """Hexadecimal MD5 digest of a text."""
    return digest(ctx, instr, "md5")


def sha256_digest(ctx: Context, instr: str) -> str:
    """Hexadecimal SHA-256 digest of a text."""
    return digest(ctx, instr, "sha256")


def sha512_digest(ctx: Context, instr: str) -> str:
    """Hexadecimal SHA-512 digest of a text."""
    return digest(ctx, instr, "sha512")


def base64_b64encode(ctx: Context, instr: str) -> str:
    """A text in base64, in one line."""
    return base64.b64encode(_bytes(instr)).decode()


def base64_b64decode(ctx: Context, instr: str) -> str:
    """What a base64 text says."""
    return base64.b64decode(_bytes(instr)).decode("utf-8", "surrogateescape")


def base64_encodestring(ctx: Context, instr: str) -> str:
    """A text in base64, in lines of 76."""
    return base64.encodebytes(_bytes(instr)).decode()


def base64_decodestring(ctx: Context, instr: str) -> str:
    """What a base64 text of several lines says."""
    return base64.decodebytes(_bytes(instr)).decode("utf-8", "surrogateescape")


def base64_encodefile(ctx: Context, fname: str) -> str:
    """A file of the host in base64, in lines of 76."""
    return base64.encodebytes(_file(ctx, fname)).decode()


def base64_decodefile(ctx: Context, instr: str, outfile: str) -> bool:
    """Writes what a base64 text says into a file of the host."""
    managed_file.replace(ctx.host, ctx.host.path(outfile), base64.decodebytes(_bytes(instr)), managed_file.Attributes())
    return True


def hmac_signature(ctx: Context, string: str, shared_secret: str, challenge_hmac: str) -> bool:
    """Whether a text was signed (HMAC-SHA256, base64) with this secret."""
    made = base64.b64encode(hmac.new(_bytes(shared_secret), _bytes(string), "sha256").digest())
    return hmac.compare_digest(made, _bytes(challenge_hmac))


def hmac_compute(ctx: Context, string: str, shared_secret: str) -> str:
    """HMAC-SHA256 of a text, hexadecimal."""
    return hmac.new(_bytes(shared_secret), _bytes(string), "sha256").hexdigest()


def github_signature(ctx: Context, string: str, shared_secret: str, challenge_hmac: str) -> bool:
    """Whether a text was signed (``sha1=...``) with this secret."""
    kind, _, wanted = challenge_hmac.partition("=")
    return hmac.compare_digest(hmac.new(_bytes(shared_secret), _bytes(string), kind).hexdigest(), wanted)


def _bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")


def _file(ctx: Context, name: str) -> bytes:
    data = managed_file.read(ctx.host.path(name), name)
    if data is None:
        raise CommandError(f"File path '{name}' not found.")
    return data
