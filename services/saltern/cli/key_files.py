"""``salt-key``'s actions on files: key pairs, the signature of the master's key, and a stock master's directory of keys."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

from saltern.cli import key_making
from saltern.cli.pki import LISTS, read_keys, write_keys
from saltern.kit.command.command_line import CommandError, Exit
from saltern.kit.command.output.flags import Printer
from saltern.kit.config.master import ClientOptions
from saltwire.errors import PeerFault
from saltwire.keys import PublicKey

Wheel: TypeAlias = Callable[..., Any]
Confirm: TypeAlias = Callable[[], bool]

#: Keys in one request: a worker is done with them in a second.
_AT_ONCE = 500


def gen_keys(name: str, flags: argparse.Namespace, options: ClientOptions, printer: Printer) -> int:
    """``--gen-keys``: makes a pair and shows its fingerprint."""
    public, _ = key_making.make_pair(flags.gen_keys_dir, name, keysize=flags.keysize, user=flags.user)
    printer.show({"return": public.fingerprint(flags.finger_hash or options.hash_type)}, "nested")
    return Exit.OK


def gen_signature(
    word: str, flags: argparse.Namespace, options: ClientOptions, printer: Printer, wheel: Wheel, confirm: Confirm
) -> int:
    """``--gen-signature``: signs the master's public key."""
    key_making.sign_master(
        flags.signature_path,
        options.master_sign_key_name,
        options.master_pubkey_signature,
        private=flags.priv,
        public=flags.pub,
        auto_create=flags.auto_create,
        keysize=flags.keysize,
        algorithm=options.publish_signing_algorithm,
        ask=lambda: str(wheel("key.master_key_str")["local"]["master.pub"]),
    )
    printer.show({"return": True}, "nested")
    return Exit.OK


def preseed(
    minion: str, flags: argparse.Namespace, options: ClientOptions, printer: Printer, wheel: Wheel, confirm: Confirm
) -> int:
    """``--preseed``: the master accepts a minion that has not come yet: the key of ``--pub``, or a pair that is made here.

    Refused by the master, or without its answer, what was made is taken away again.
    """
    made: list[Path] = []
    if flags.pub:
        public = _public(Path(flags.pub))
    else:
        public, made = key_making.make_pair(flags.gen_keys_dir, minion, keysize=flags.keysize, user=flags.user)
    stored = False
    answer: dict[str, Any] = {}
    try:
        answer = wheel("key.import", keys={"minions": {minion: public.pem}}, replace=flags.replace)
        stored = not answer["kept"] and not answer["refused"]
    finally:
        if not stored:
            key_making.remove(made)
    if not stored:
        why = (answer["kept"] | answer["refused"])[minion]
        raise CommandError(f"the key of {minion} was not accepted: {why}" + ("; --replace" if answer["kept"] else ""))
    if not flags.quiet:
        printer.say(f"Key for minion {minion} accepted.")
        for path in made:
            printer.say(f"made {path}")
    return Exit.OK


def import_keys(
    word: str, flags: argparse.Namespace, options: ClientOptions, printer: Printer, wheel: Wheel, confirm: Confirm
) -> int:
    """``--import``: takes all keys of a ``pki_dir``. Twice is as good as once, also after a failure in the middle."""
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
    word: str, flags: argparse.Namespace, options: ClientOptions, printer: Printer, wheel: Wheel, confirm: Confirm
) -> int:
    """``--export``: writes all keys as a stock master keeps them. The master's own key is `saltern export`'s."""
    ids: dict[str, list[str]] = wheel("key.list_all")
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
    """The same in pieces that a worker is soon done with."""
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
