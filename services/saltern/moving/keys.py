"""The master's own keys: from Salt's ``pki_dir`` to the key directories of the roles, and back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from saltern.kit.command.command_line import CommandError
from saltern.kit.config.master import ConfigError
from saltern.kit.keys.keygen import make_keys
from saltwire.errors import OwnFault, PeerFault
from saltwire.keys import PrivateKey, PublicKey
from statecore.host.content import atomic_file

#: Roles whose key directory holds the master's private key.
ROLES = ("publisher", "mworker")


def taken(pki: Path, sign_name: str, signature: str) -> dict[str, bytes]:
    """Return the map of file name to content for the master's own keys in ``pki_dir``: its key pair, and its signing key pair.

    Raise CommandError if the key is missing, unreadable, or does not match its public key.
    """
    names = ("master.pem", "master.pub", f"{sign_name}.pem", f"{sign_name}.pub", signature)
    found = {name: _content(path) for name in names if (path := _place(pki, name)).exists()}
    if "master.pem" not in found:
        raise CommandError(f"{pki / 'master.pem'}: does not exist; name the master's key directory with --pki")
    for name in ("master", sign_name):
        if f"{name}.pem" not in found:
            continue
        try:
            private = PrivateKey.from_pem(found[f"{name}.pem"])
            public = PublicKey.from_pem(found.get(f"{name}.pub") or private.public.pem)
        except OwnFault as error:
            hint = "; take its passphrase away first: openssl rsa -in OLD -out NEW"
            raise CommandError(
                f"{pki / name}.pem: {error}{hint if 'password' in str(error).lower() else ''}"
            ) from error
        except PeerFault as error:
            raise CommandError(f"{pki / name}.pub: {error}") from error
        if public.pem != private.public.pem:
            raise CommandError(f"{pki / name}.pub: does not belong to {pki / name}.pem")
    return found


def _place(pki: Path, name: str) -> Path:
    """Return the path of a key file in ``pki_dir``.

    Salt 3008 makes ``master.pem`` an absolute link, which is broken in a copy of the directory.
    """
    path = pki / name
    return pki / path.readlink().name if path.is_symlink() and not path.exists() else path


def check_empty(keys: Path, found: Mapping[str, bytes]) -> None:
    """Raise CommandError if a role's directory in ``keys`` already has the key of another master than the one in ``found``."""
    for role in ROLES:
        path = keys / role / "master.pem"
        if path.exists() and _number(path.read_bytes()) != _number(found["master.pem"]):
            raise CommandError(f"{path}: is the key of another master; name another directory by --keys")


def lay_down(keys: Path, found: Mapping[str, bytes]) -> list[Path]:
    """Write the stock master's keys into the key directories of the roles, and make all keys that are still missing,
    as ``saltern keygen`` makes them.

    Return the paths of the files that were written. Raise OSError, ConfigError.
    """
    written = []
    for role in ROLES:
        for name, content in found.items():
            # Only the mworkers, which answer sign-ins, need the public keys and the signing key pair.
            if name == "master.pub" or (role != "mworker" and name != "master.pem"):
                continue
            path = keys / role / name
            if not path.exists() or path.read_bytes() != content:
                put(path, content, 0o600)
                written.append(path)
    return [*written, *make_keys(keys)]


def held(keys: Path, sign_name: str, signature: str) -> dict[str, bytes]:
    """Return {file name in Salt's ``pki_dir``: content} for the master's own keys, read from the roles' key directories.

    Raise CommandError.
    """
    directory = keys / "mworker"
    if not (directory / "master.pem").exists():
        raise CommandError(
            f"{directory / 'master.pem'}: does not exist; name the directory of `saltern keygen` with --keys"
        )
    return taken(directory, sign_name, signature)


def put(path: Path, content: bytes, mode: int) -> None:
    """Write a key file and its directory atomically. The file is readable by its owner only until ``mode`` is set."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    atomic_file.write(path, content, mode, exact=True)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CommandError(f"{path}: cannot be read: {error.strerror}; run as the user who owns the keys") from error


def _number(pem: bytes) -> str:
    try:
        return PrivateKey.from_pem(pem).public.pem
    except OwnFault as error:
        raise ConfigError(f"a master.pem of the roles: {error}") from error
