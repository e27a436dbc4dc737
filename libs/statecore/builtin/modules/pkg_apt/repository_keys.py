"""Signing keys of APT's sources: their files on the host and their form (armoured or binary). No program of the host is
needed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from statecore.builtin.modules.pkg_apt import keyservers
from statecore.builtin.modules.pkg_apt.keyservers import Ppa
from statecore.host.content import managed_file
from statecore.model.context import Context
from statecore.model.errors import CommandError, HostError, InvocationError
from statecore.sources import downloads
from statecore.system.hostfiles import openpgp_keys
from statecore.system.hostfiles.apt_sources import AptSource
from statecore.system.packages import package_requests

KEYRINGS = "/etc/apt/keyrings"

#: Directory of keys that are trusted for every source.
TRUSTED = "/etc/apt/trusted.gpg.d"

#: File of keys that apt-key kept, which are trusted for every source.
OLD = "/etc/apt/trusted.gpg"


@dataclass(frozen=True, slots=True)
class KeyLocation:
    """Directory and file name of a signing key on the host."""

    directory: str
    #: Without a suffix where the key's form decides it (.asc, .gpg).
    name: str

    @classmethod
    def of(cls, directory: str, name: str | None) -> KeyLocation:
        """Return the location of a signing key: the file ``name`` (default "key") in a directory."""
        return cls(directory.rstrip("/"), name or "key")

    def path(self, data: bytes) -> str:
        """Return the file path for a signing key with the content ``data``, which decides the suffix .asc or .gpg."""
        if self.name.endswith((".asc", ".gpg")) or PurePosixPath(self.name).suffix in (".pgp", ".kbx"):
            return f"{self.directory}/{self.name}"
        return f"{self.directory}/{self.name}{'.gpg' if openpgp_keys.is_binary(data) else '.asc'}"


@dataclass(frozen=True, slots=True)
class Key:
    """A signing key that the host must have, and its location. It is given by a URL, by its text, by IDs on a key
    server, or by the archive of Launchpad that it signs.
    """

    location: KeyLocation
    url: str | None = None
    text: str | None = None
    ids: tuple[str, ...] = ()
    server: str = ""
    ppa: Ppa | None = None


def of(wanted: AptSource, given: Mapping[str, Any], ppa: Ppa | None = None) -> Key | None:
    """Return the Key (signing key and location) for an APT source from the arguments key_url, key_text, or keyid and
    keyserver, or of the archive of Launchpad; None if none is given. Raises InvocationError for a keyid without a
    keyserver.
    """
    key_url, key_text, server = given.get("key_url"), given.get("key_text"), given.get("keyserver")
    ids = keyservers.key_ids(given["keyid"]) if given.get("keyid") else ()
    server = server or (keyservers.UBUNTU if ppa else None)
    if ids and not server:
        raise InvocationError("both keyserver and keyid options required.")
    if ids:
        # Refuses an address that is none, in test mode too.
        keyservers.lookup_url(str(server), ids[0])
    if not (key_url or key_text or ids or ppa):
        return None
    asked = ids or ppa is not None
    known = (
        {"ids": ids, "server": str(server), "ppa": None if ids else ppa}
        if asked
        else {"url": key_url, "text": key_text}
    )
    if wanted.signed_by.startswith("/"):
        path = PurePosixPath(wanted.signed_by.split(",")[0])
        return Key(KeyLocation(str(path.parent), path.name), **known)
    if asked:
        return Key(KeyLocation(TRUSTED, f"{ppa.stem if ppa else '-'.join(ids)}.gpg"), **known)
    stem = PurePosixPath(key_url.partition("?")[0]).stem if key_url else urlsplit(wanted.uri).hostname
    return Key(KeyLocation(TRUSTED, re.sub(r"[^A-Za-z0-9._-]", "-", stem or "key").removesuffix(".")), **known)


def missing(ctx: Context, key: Key) -> str | None:
    """Return the path of the file that has to be written for a signing key; None if the key is present.

    A key on a server is not downloaded for the comparison: an existing file counts as present.
    """
    if key.server:
        path = f"{key.location.directory}/{key.location.name}"
        if ctx.host.path(path).is_file():
            return None
        trusted = key.location.directory == TRUSTED and key.ids
        return None if trusted and all(files_with(ctx, each) for each in key.ids) else path
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


def files_with(ctx: Context, key_id: str) -> list[str]:
    """Return the paths of the files that are trusted for every source and hold the key with this ID. Files that cannot be
    read as keys, such as GnuPG's key boxes, are left out.
    """
    folder = ctx.host.path(TRUSTED)
    names = sorted(f"{TRUSTED}/{each.name}" for each in folder.iterdir()) if folder.is_dir() else []
    found = []
    for path in (OLD, *names):
        data = managed_file.read(ctx.host.path(path), path)
        try:
            held = openpgp_keys.fingerprints(openpgp_keys.dearmoured(data)) if data else []
        except ValueError:
            continue
        if any(openpgp_keys.belongs(key_id, each) for each in held):
            found.append(path)
    return found


def keep(ctx: Context, key: Key) -> None:
    """Write the signing key ``key`` to its file on the host, readable by all, unless the file has this content already.
    Raise CommandError for data that is no key, or that cannot be fetched.
    """
    path, data = _content(ctx, key)
    real_path = ctx.host.path(path)
    if managed_file.read(real_path, path) == data:
        return
    managed_file.make_directories(ctx.host, real_path.parent, managed_file.Attributes(mode=0o755), ctx.host.path("/"))
    managed_file.replace(ctx.host, real_path, data, managed_file.Attributes(mode=0o644))


def _content(ctx: Context, key: Key) -> tuple[str, bytes]:
    """Return (path of the signing key's file on the host, its content)."""
    if key.server:
        ids = (key.ppa.fingerprint(ctx),) if key.ppa else key.ids
        data = keyservers.fetched(ctx, key.server, ids)
        path = key.location.path(data)
        return path, openpgp_keys.armoured(data) if path.endswith(".asc") else data
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
