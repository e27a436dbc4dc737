"""Key files that ``salt-key`` makes on this machine: a minion's key pair, and the signature of the master's public key."""

from __future__ import annotations

import binascii
import os
import pwd
from collections.abc import Callable
from pathlib import Path

from saltern.kit.command.command_line import CommandError, Exit
from saltwire.errors import OwnFault, PeerFault
from saltwire.ids import is_minion_id
from saltwire.keys import PrivateKey, PublicKey

#: Bits of a key pair: fewer are not safe, more no master reads.
SMALLEST, LARGEST = 2048, 16384


def make_pair(directory: Path, name: str, *, keysize: int, user: str = "") -> tuple[PublicKey, list[Path]]:
    """``<name>.pem`` and ``<name>.pub``; the public key, and the files that were made.

    A key that is there is kept, and its public key written beside it where that is missing. ``user`` owns what was made.
    Raises CommandError.
    """
    if not is_minion_id(name):
        raise CommandError(f"'{name}' is no name for a key: it becomes the name of files", Exit.USAGE)
    owner = _user(user)
    secret, public = directory / f"{name}.pem", directory / f"{name}.pub"
    made: list[Path] = []
    try:
        private = read_private(secret) if secret.exists() else PrivateKey.generate(keysize)
        for path, content in ((secret, private.to_pem()), (public, private.public.pem.encode() + b"\n")):
            if not path.exists():
                _put(path, content, owner)
                made.append(path)
    except OSError as error:
        remove(made)
        raise CommandError(f"{error.filename}: {error.strerror}; name another directory by --gen-keys-dir") from error
    if PublicKey.from_pem(public.read_bytes()).pem != private.public.pem:
        raise CommandError(f"{public}: does not belong to {secret}; move one of them away")
    return private.public, made


def remove(paths: list[Path]) -> None:
    """Takes back what was made."""
    for path in paths:
        path.unlink(missing_ok=True)


def sign_master(
    directory: Path,
    name: str,
    signature: str,
    *,
    private: str,
    public: str,
    auto_create: bool,
    keysize: int,
    algorithm: str,
    ask: Callable[[], str],
) -> Path:
    """Signs the master's public key with ``<name>.pem``; the file ``signature`` in ``directory`` that says so in base64.

    ``private`` and ``public`` name other key files; ``ask`` fetches the master's own. Raises CommandError.
    """
    if private and not Path(private).is_file():
        raise CommandError(f"Private-key {private} does not exist")
    if public and not Path(public).is_file():
        raise CommandError(f"Public-key {public} does not exist")
    secret = Path(private) if private else directory / f"{name}.pem"
    if not secret.exists():
        if not auto_create:
            raise CommandError(f"No usable private-key found: {secret} is not there; --auto-create makes it")
        make_pair(directory, name, keysize=keysize)
    target = directory / signature
    if target.exists():
        raise CommandError(f"{target} exists already; move it away to make another")
    try:
        key = PublicKey.from_pem(Path(public).read_bytes() if public else ask())
        _put(target, binascii.b2a_base64(read_private(secret).sign(key.pem.encode(), algorithm)), None)
    except OSError as error:
        raise CommandError(f"{error.filename}: {error.strerror}") from error
    except PeerFault as error:
        raise CommandError(f"{public or 'the key of the master'}: {error}") from error
    return target


def read_private(path: Path) -> PrivateKey:
    """A private key's file. Raises CommandError."""
    try:
        return PrivateKey.from_pem(path.read_bytes())
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error
    except OwnFault as error:
        raise CommandError(f"{path}: {error}") from error


def _put(path: Path, content: bytes, owner: tuple[int, int] | None) -> None:
    # Its owner's alone from the first byte on; O_EXCL: a link that waits here is not followed.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        if owner is not None:
            os.fchown(file.fileno(), *owner)


def _user(name: str) -> tuple[int, int] | None:
    if not name:
        return None
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise CommandError(f"there is no user '{name}' on this machine (-u)", Exit.USAGE) from None
    return entry.pw_uid, entry.pw_gid
