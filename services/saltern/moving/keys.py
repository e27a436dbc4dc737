"""The master's own keys: from Salt's ``pki_dir`` to the key directories of the roles, and back.

Root may run this over directories that other users fill. ``GuardedTree`` reads and writes them; names of files that the
configuration gives are of the type ``FileName``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from saltern.kit.command.command_line import CommandError
from saltern.kit.config.master import ConfigError
from saltern.kit.keys.keygen import make_keys
from saltwire.errors import OwnFault, PeerFault
from saltwire.keys import PrivateKey, PublicKey
from statecore.host.content.guarded_tree import GuardedTree, Owner
from statecore.model.file_name import FileName

#: Roles whose key directory holds the master's private key.
ROLES = ("publisher", "mworker")

#: Bytes of the longest file of a key or signature; a key of 16384 bits has 13 kB.
_MOST_BYTES = 64 * 1024


class SignNames(NamedTuple):
    """The files for signing the master's public key: the key's name without ``.pem``, and the name of the signature."""

    key: FileName
    signature: FileName

    @property
    def private(self) -> FileName:
        """Return the name of the file with the private signing key."""
        return FileName(f"{self.key}.pem")

    @property
    def public(self) -> FileName:
        """Return the name of the file with the public signing key."""
        return FileName(f"{self.key}.pub")


def sign_names(key: str, signature: str) -> SignNames:
    """Return the values of ``master_sign_key_name`` and ``master_pubkey_signature`` as names of files. Raise CommandError
    if a value is no name of a file.
    """
    try:
        names = SignNames(FileName(key), FileName(signature))
        # The longest name has an end.
        FileName(f"{key}.pem")
    except ValueError as error:
        raise CommandError(
            f"master_sign_key_name and master_pubkey_signature must name files of pki_dir: {error}"
        ) from error
    return names


def taken(pki: Path, names: SignNames, *, within: Path | None = None, links: bool = True) -> dict[FileName, bytes]:
    """Return the map of file name to content for the master's own keys in ``pki_dir``: its key pair, and its signing key pair.

    ``links``: False if links that lead out of ``pki`` are refused, also in its directories below ``within``. Raise
    CommandError if the key is missing or unreadable, or does not match its public key, and for a file that is not
    a regular file.
    """
    tree = GuardedTree(within if within is not None and pki.is_relative_to(within) else pki, links=links)
    folder = pki.relative_to(tree.top)
    wanted = (FileName("master.pem"), FileName("master.pub"), names.private, names.public, names.signature)
    found = dict(_contents(tree, folder, wanted))
    if "master.pem" not in found:
        raise CommandError(f"{pki / 'master.pem'}: does not exist; name the master's key directory with --pki")
    for private_name, public_name in ((wanted[0], wanted[1]), (names.private, names.public)):
        if private_name not in found:
            continue
        try:
            private = PrivateKey.from_pem(found[private_name])
            public = PublicKey.from_pem(found.get(public_name) or private.public.pem)
        except OwnFault as error:
            hint = "; take its passphrase away first: openssl rsa -in OLD -out NEW"
            raise CommandError(
                f"{pki / private_name}: {error}{hint if 'password' in str(error).lower() else ''}"
            ) from error
        except PeerFault as error:
            raise CommandError(f"{pki / public_name}: {error}") from error
        if public.pem != private.public.pem:
            raise CommandError(f"{pki / public_name}: does not belong to {pki / private_name}")
    return found


def _contents(tree: GuardedTree, folder: Path, names: tuple[FileName, ...]) -> Iterator[tuple[FileName, bytes]]:
    for name in names:
        try:
            place = _place(tree, str(folder / name))
            if tree.exists(place):
                yield name, tree.read(place, _MOST_BYTES)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise CommandError(
                f"{tree.top / folder / name}: cannot be read: {error.strerror}; run as the user who owns the keys,"
                " and copy what a link names"
            ) from error


def _place(tree: GuardedTree, name: str) -> str:
    """Return the name of the file that holds a key of ``pki_dir``.

    Salt 3008 makes ``master.pem`` an absolute link to another file of ``pki_dir``. In a copy of the directory the link
    is broken, and the other file is beside it.
    """
    target = tree.linked(name)
    if target is None or Path(target).name in ("", ".."):
        return name
    beside = str(Path(name).with_name(Path(target).name))
    return beside if beside != name and tree.exists(beside) else name


def check_empty(keys: Path, found: Mapping[FileName, bytes]) -> None:
    """Raise CommandError if a role's directory in ``keys`` already has the key of another master than the one in
    ``found``, or if it cannot be read.
    """
    tree = GuardedTree(keys)
    for role in ROLES:
        name = f"{role}/master.pem"
        try:
            held = tree.read(name, _MOST_BYTES)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise CommandError(f"{error.filename}: {error.strerror}") from error
        if _number(held) != _number(found[FileName("master.pem")]):
            raise CommandError(f"{keys / name}: is the key of another master; name another directory by --keys")


def lay_down(keys: Path, found: Mapping[FileName, bytes], owner: tuple[int, int] | None = None) -> list[Path]:
    """Write the stock master's keys into the key directories of the roles, and make all keys that are still missing,
    as ``saltern keygen`` makes them.

    ``owner``: (uid, gid) of the files; None: as in ``make_keys``. Return the paths of the files that were written.
    Raise OSError, ConfigError.
    """
    tree = GuardedTree(keys, None if owner is None else Owner(*owner))
    tree.make_top()
    written = []
    for role in ROLES:
        for name, content in found.items():
            # Only the mworkers, which answer sign-ins, need the public keys and the signing key pair.
            if name == "master.pub" or (role != "mworker" and name != "master.pem"):
                continue
            path = f"{role}/{name}"
            if not tree.exists(path) or tree.read(path) != content:
                tree.put(path, content)
                written.append(keys / path)
    return [*written, *make_keys(keys, owner=owner)]


def held(keys: Path, names: SignNames) -> dict[FileName, bytes]:
    """Return {file name in Salt's ``pki_dir``: content} for the master's own keys, read from the roles' key directories.

    Raise CommandError.
    """
    directory = keys / "mworker"
    if not (directory / "master.pem").exists():
        raise CommandError(
            f"{directory / 'master.pem'}: does not exist; name the directory of `saltern keygen` with --keys"
        )
    return taken(directory, names)


def _number(pem: bytes) -> str:
    try:
        return PrivateKey.from_pem(pem).public.pem
    except OwnFault as error:
        raise ConfigError(f"a master.pem of the roles: {error}") from error
