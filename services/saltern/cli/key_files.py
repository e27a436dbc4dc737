"""Actions of ``salt-key`` on files: key pairs, the signature of the master's key, import and export of a ``pki_dir``."""

from __future__ import annotations

import argparse
import binascii
import os
import pwd
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from saltern.kit.command.command_line import CommandError, Exit
from saltern.kit.command.output.flags import Printer
from saltern.kit.config.master import ClientOptions
from saltern.kit.links.answers import WheelCall
from saltwire.errors import OwnFault, PeerFault
from saltwire.ids import is_minion_id
from saltwire.keys import PrivateKey, PublicKey, clean_pem
from statecore.host.content.guarded_tree import GuardedTree, RefusedFile

Confirm: TypeAlias = Callable[[], bool]

#: Keys in one request; a worker handles them in a second.
_AT_ONCE = 500


def gen_keys(name: str, flags: argparse.Namespace, options: ClientOptions, printer: Printer) -> int:
    """Carry out ``salt-key --gen-keys``: write a new key pair and print its fingerprint. An existing private key is kept.

    Return exit code 0. Raise CommandError if a file cannot be written.
    """
    public, _ = make_pair(flags.gen_keys_dir, name, keysize=_bits(flags, options), user=flags.user)
    printer.show({"return": public.fingerprint(flags.finger_hash or options.hash_type)}, "nested")
    return Exit.OK


def gen_signature(
    word: str, flags: argparse.Namespace, options: ClientOptions, printer: Printer, wheel: WheelCall, confirm: Confirm
) -> int:
    """Carry out ``salt-key --gen-signature``: write a file with the signature of the master's public key, and print True.

    Return exit code 0. Raise CommandError if a key file is missing or unreadable, or the signature cannot be written.
    """
    sign_master(
        flags.signature_path,
        options.master_sign_key_name,
        options.master_pubkey_signature,
        private=flags.priv,
        public=flags.pub,
        auto_create=flags.auto_create,
        keysize=_bits(flags, options),
        algorithm=options.publish_signing_algorithm,
        ask=lambda: wheel("key.master_key_str")["local"]["master.pub"],
    )
    printer.show({"return": True}, "nested")
    return Exit.OK


def preseed(
    minion: str, flags: argparse.Namespace, options: ClientOptions, printer: Printer, wheel: WheelCall, confirm: Confirm
) -> int:
    """Carry out ``salt-key --preseed``: let the master accept a minion's key before its first sign-in. Return exit code 0.

    The key is that of ``--pub``, or a new pair. If the master refuses the key, CommandError is raised; a new pair is removed
    if the master refuses or does not answer.
    """
    made: list[Path] = []
    if flags.pub:
        public = _public(Path(flags.pub))
    else:
        public, made = make_pair(flags.gen_keys_dir, minion, keysize=_bits(flags, options), user=flags.user)
    stored = False
    try:
        answer = wheel("key.import", keys={"minions": {minion: public.pem}}, replace=flags.replace)
        stored = not answer["kept"] and not answer["refused"]
    finally:
        if not stored:
            remove(made)
    if not stored:
        why = (answer["kept"] | answer["refused"])[minion]
        raise CommandError(f"the key of {minion} was not accepted: {why}" + ("; --replace" if answer["kept"] else ""))
    if not flags.quiet:
        printer.say(f"Key for minion {minion} accepted.")
        for path in made:
            printer.say(f"made {path}")
    return Exit.OK


def import_keys(
    word: str, flags: argparse.Namespace, options: ClientOptions, printer: Printer, wheel: WheelCall, confirm: Confirm
) -> int:
    """Carry out ``salt-key --import``: send all keys of a ``pki_dir`` to the master. Return the exit code.

    It is 0, or 1 if the directory has files that are no valid key or the master did not store a key. The command may be
    repeated, also after it was interrupted.
    """
    held = read_keys(Path(word))
    say = (lambda text: None) if flags.quiet else printer.say
    for path, why in held.passed.items():
        sys.stderr.write(f"{path}: {why}\n")
    if not held.count():
        say(f"There are no keys in {word}.")
        return Exit.GENERIC if held.passed else Exit.OK
    say("The following keys are going to be imported:")
    if not flags.quiet:
        printer.show({name: sorted(pems) for name, pems in held.keys.items()}, "key")
    if not flags.yes and not confirm():
        return Exit.OK
    stored = same = 0
    left: dict[str, str] = {}
    for keys in _portions(held.keys):
        answer = wheel("key.import", keys=keys, replace=flags.replace)
        stored += sum(map(len, answer["stored"].values()))
        same += len(answer["same"])
        left |= answer["kept"] | answer["refused"]
    for minion, why in left.items():
        sys.stderr.write(f"Key for minion {minion} not imported: {why}.\n")
    say(f"{stored} keys imported, {same} were here already, {len(left)} were not imported.")
    return Exit.GENERIC if left or held.passed else Exit.OK


def export_keys(
    word: str, flags: argparse.Namespace, options: ClientOptions, printer: Printer, wheel: WheelCall, confirm: Confirm
) -> int:
    """Carry out ``salt-key --export``: write all minion keys in the layout of Salt's ``pki_dir``. Return the exit code.

    The master's own key is written by `saltern export`.
    """
    ids = wheel("key.list_all")
    keys: dict[str, dict[str, str]] = {name: {} for name in LISTS}
    for portion in _portions({name: dict.fromkeys(minions, "") for name, minions in ids.items()}):
        for name, minions in portion.items():
            keys[name] |= wheel("key.key_str", match=list(minions)).get(name, {})
    written = write_keys(Path(word), keys)
    if not flags.quiet:
        count = sum(map(len, keys.values()))
        printer.say(f"{len(written)} keys written to {word}, {count - len(written)} were there already.")
    return Exit.OK


def _portions(keys: Mapping[str, Mapping[str, str]]) -> Iterator[dict[str, dict[str, str]]]:
    """Yield the keys in maps of at most 500 keys, each {key state: {minion id: PEM}}, so that no request takes long."""
    for name, pems in keys.items():
        rest = iter(pems.items())
        while piece := dict(islice(rest, _AT_ONCE)):
            yield {name: piece}


def _public(path: Path) -> PublicKey:
    try:
        return PublicKey.from_pem(path.read_bytes())
    except OSError as error:
        raise CommandError(f"--pub {path}: {error.strerror}") from error
    except PeerFault as error:
        raise CommandError(f"--pub {path}: {error}") from error


#: Bits of a key pair: smaller ones are unsafe, larger ones are not read by any master.
SMALLEST, LARGEST = 2048, 16384


def _bits(flags: argparse.Namespace, options: ClientOptions) -> int:
    """Return the size of a new key pair in bits: that of the command line, else of the option ``keysize``, at least 2048."""
    given: int = flags.keysize
    return given or max(SMALLEST, options.keysize)


def make_pair(directory: Path, name: str, *, keysize: int, user: str = "") -> tuple[PublicKey, list[Path]]:
    """Make the key files ``<name>.pem`` and ``<name>.pub``. Return (public key, files that were made).

    An existing private key is kept, and its missing public key is written. ``user``: owner of new files. ``keysize``: bits. Raise
    CommandError if a file cannot be written.
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
    """Delete the key files that a failed action wrote; a missing file is ignored."""
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
    """Sign the master's public key with the key ``<name>.pem`` and return the path of the signature file (base64).

    ``private`` and ``public`` name other key files. ``ask`` fetches the public key from the master. Raise CommandError if a
    key file is missing or unreadable, or the signature cannot be written.
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
    """Return the private key in a file. Raise CommandError if it cannot be read."""
    try:
        return PrivateKey.from_pem(path.read_bytes())
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error
    except OwnFault as error:
        raise CommandError(f"{path}: {error}") from error


def _put(path: Path, content: bytes, owner: tuple[int, int] | None) -> None:
    # Mode 0400 from the first byte on; O_EXCL does not follow an existing link.
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


#: Directories of keys below ``pki_dir``.
LISTS = ("minions", "minions_pre", "minions_rejected", "minions_denied")

Keys: TypeAlias = Mapping[str, Mapping[str, str]]

#: Bytes of the longest key file that is read; a key of 16384 bits has 3 kB.
_MAX_BYTES = 64 * 1024


@dataclass
class Held:
    """The content of a master's ``pki_dir``: its minion keys, and the files that are no valid key.

    ``keys`` is {directory such as ``minions_pre``: {minion id: PEM}}. ``passed`` is {path of a file that is
    no key: reason}.
    """

    keys: dict[str, dict[str, str]] = field(default_factory=dict)
    passed: dict[str, str] = field(default_factory=dict)

    def count(self) -> int:
        """Return how many minion keys the ``pki_dir`` contains, in all of its directories together.

        Only valid keys count (``keys``), not the files in ``passed``.
        """
        return sum(map(len, self.keys.values()))


def read_keys(pki: Path) -> Held:
    """Return all minion keys below a master's ``pki_dir``. Raise CommandError if it is no such directory or cannot be read.

    Hidden files are ignored: they are Salt's indices.
    """
    found = [name for name in LISTS if (pki / name).is_dir()]
    if not found:
        near = " (its directory 'master' is)" if (pki / "master" / "minions").is_dir() else ""
        raise CommandError(f"{pki}: holds none of {', '.join(LISTS)}: it is no pki_dir of a master{near}")
    held = Held()
    tree = GuardedTree(pki)
    for name in found:
        for path in sorted((pki / name).iterdir()):
            if path.name.startswith("."):
                continue
            try:
                pem = _pem(tree, f"{name}/{path.name}")
            except RefusedFile as error:
                held.passed[str(path)] = str(error.strerror)
                continue
            if why := _wrong(path.name, pem):
                held.passed[str(path)] = why
            else:
                held.keys.setdefault(name, {})[path.name] = clean_pem(pem)
    autosigned = sorted(path.name for path in (pki / "minions_autosign").glob("*"))
    for name in autosigned:
        held.passed[str(pki / "minions_autosign" / name)] = "is no key; put the id into the file of autosign_file"
    return held


def _pem(tree: GuardedTree, name: str) -> str:
    """Return the content of a file of a ``pki_dir``. Raise RefusedFile for a file that is not a regular file, or is too
    large, and CommandError if it cannot be read.
    """
    try:
        return tree.read(name, _MAX_BYTES).decode(errors="replace")
    except RefusedFile:
        raise
    except OSError as error:
        raise CommandError(
            f"{tree.top / name}: cannot be read: {error.strerror}; run as the user who owns the keys"
        ) from error


def _wrong(minion: str, pem: str) -> str:
    if not is_minion_id(minion):
        return "the name is no minion id here: it must not mean several"
    try:
        PublicKey.from_pem(pem)
    except PeerFault as error:
        return str(error)
    return ""


def write_keys(pki: Path, keys: Keys) -> list[Path]:
    """Write minion keys in the layout of Salt's ``pki_dir`` and return the files that were written.

    Each key state gets a directory. Files with the same content are kept. If any other file exists, nothing is written and
    CommandError names the file.
    """
    wanted = {f"{name}/{minion}": pem for name in LISTS for minion, pem in keys.get(name, {}).items()}
    if bad := [minion for name in LISTS for minion in keys.get(name, {}) if not is_minion_id(minion)]:
        raise CommandError(f"the master named a minion {bad[0]!r}, which is no minion id; nothing was written")
    tree = GuardedTree(pki)
    here = [f"{name}/{path.name}" for name in LISTS for path in (pki / name).glob("*")]
    try:
        others = [
            pki / name for name in here if name not in wanted or clean_pem(_pem(tree, name)) != clean_pem(wanted[name])
        ]
    except RefusedFile as error:
        raise CommandError(f"{error.filename}: {error.strerror}; export to an empty directory") from error
    if others:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        raise CommandError(f"{others[0]}{more}: is not what would be written; export to an empty directory")
    written = []
    try:
        tree.make_top()
        for name in LISTS:
            tree.make_directory(name, 0o700)
        for path, content in wanted.items():
            if path not in here:
                # Atomically: a master that reads a part of a key would deny the minion.
                tree.put(path, content.encode("ascii"), 0o644)
                written.append(pki / path)
    except OSError as error:
        raise CommandError(f"{error.filename}: {error.strerror}; {len(written)} keys were written") from error
    return written
