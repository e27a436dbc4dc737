"""Signing keys of APT's sources: their files on the host and their form (armoured or binary). No program of the host is
needed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from statecore.host.content import managed_file
from statecore.model.context import Context
from statecore.model.errors import CommandError, HostError
from statecore.sources import downloads
from statecore.system.hostfiles import openpgp_keys
from statecore.system.hostfiles.apt_sources import AptSource
from statecore.system.packages import package_requests

KEYRINGS = "/etc/apt/keyrings"

#: Directory of keys that are trusted for every source.
TRUSTED = "/etc/apt/trusted.gpg.d"

NO_KEYSERVER = (
    "not supported: keyid, keyserver; name the key itself with key_url, such as"
    " https://keyserver.ubuntu.com/pks/lookup?op=get&search=0xKEYID"
)


@dataclass(frozen=True, slots=True)
class KeyLocation:
    """Directory and file name of a signing key on the host."""

    directory: str
    #: Without a suffix where the key's form decides it (.asc, .gpg).
    name: str

    @classmethod
    def of(cls, directory: str, name: str | None) -> KeyLocation:
        """Return the location of a signing key in a directory. The file name is "key" by default."""
        return cls(directory.rstrip("/"), name or "key")

    def path(self, data: bytes) -> str:
        """Return the file path for a signing key with the content ``data``, which decides the suffix .asc or .gpg."""
        if self.name.endswith((".asc", ".gpg")) or PurePosixPath(self.name).suffix in (".pgp", ".kbx"):
            return f"{self.directory}/{self.name}"
        return f"{self.directory}/{self.name}{'.gpg' if openpgp_keys.is_binary(data) else '.asc'}"


@dataclass(frozen=True, slots=True)
class Key:
    """A signing key that the host shall have, given by a URL or by its text, and its location."""

    location: KeyLocation
    url: str | None = None
    text: str | None = None


def of(wanted: AptSource, key_url: str | None, key_text: str | None) -> Key | None:
    """Return the signing key for an APT source; None if neither URL nor text is given."""
    if not key_url and not key_text:
        return None
    if wanted.signed_by.startswith("/"):
        path = PurePosixPath(wanted.signed_by.split(",")[0])
        return Key(KeyLocation(str(path.parent), path.name), key_url, key_text)
    stem = PurePosixPath(key_url.partition("?")[0]).stem if key_url else urlsplit(wanted.uri).hostname
    return Key(
        KeyLocation(TRUSTED, re.sub(r"[^A-Za-z0-9._-]", "-", stem or "key").removesuffix(".")), key_url, key_text
    )


def missing(ctx: Context, key: Key) -> str | None:
    """Return the path of the file that has to be written for a signing key; None if the key is present.

    A key on a server is not downloaded for the comparison: an existing file counts as present.
    """
    if key.url and key.url.startswith(downloads.SCHEMES):
        names = (
            [key.location.name]
            if PurePosixPath(key.location.name).suffix
            else [f"{key.location.name}{end}" for end in (".asc", ".gpg")]
        )
        there = any(ctx.host.path(f"{key.location.directory}/{name}").is_file() for name in names)
        return None if there else f"{key.location.directory}/{key.location.name}"
    path, data = _content(ctx, key)
    return None if managed_file.read(ctx.host.path(path), path) == data else path


def keep(ctx: Context, key: Key) -> None:
    """Write the file of a signing key, readable by all. Raise CommandError for data that is no key, or that cannot be
    fetched.
    """
    path, data = _content(ctx, key)
    real_path = ctx.host.path(path)
    if managed_file.read(real_path, path) == data:
        return
    managed_file.make_directories(ctx.host, real_path.parent, managed_file.Attributes(mode=0o755), ctx.host.path("/"))
    managed_file.replace(ctx.host, real_path, data, managed_file.Attributes(mode=0o644))


def _content(ctx: Context, key: Key) -> tuple[str, bytes]:
    """Return (path of the signing key's file on the host, its content)."""
    data = key.text.encode() if key.text else _fetched(ctx, str(key.url)).read_bytes()
    path = key.location.path(data)
    what = key.url or "key_text"
    try:
        binary = openpgp_keys.dearmoured(data)
    except ValueError as error:
        raise CommandError(f"Error: failed to add key from {what}: {error}") from error
    if not path.endswith(".asc"):
        return path, binary
    if not openpgp_keys.is_armoured(data):
        # APT decides by the file name whether a key is armoured or binary.
        raise CommandError(f"Error: failed to add key from {what}: it is binary; name its file .gpg, not {path}")
    return path, data


def _fetched(ctx: Context, url: str) -> Path:
    try:
        return package_requests.fetched(ctx, url.removeprefix("file://"))
    except HostError:
        raise
    except CommandError as error:
        raise CommandError(f"Error: file not found: {url}: {error}") from error
