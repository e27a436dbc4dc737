"""The commands ``saltern import`` and ``saltern export``: turn a stock Salt master into a Saltern master, and back.

The master keeps its key pair, so minions still trust it. When the roles run, ``salt-key --import`` imports the
minions' keys, and ``saltern import --data`` imports the data of minions in the stock master's cache: grains, pillar
and mine. A report lists each option with file and line, and its treatment. Everything is checked before anything is
written.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pwd
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from saltern.kit.command.command_line import CommandError, Exit, run_command
from saltern.kit.command.launcher import INTERRUPTED
from saltern.kit.config.master import ConfigError, load_client, load_master
from saltern.kit.config.minion_id import FILE, found_id, id_in, with_domain
from saltern.kit.keys.keygen import check_keys, owner_ids
from saltern.kit.links.answers import WheelCall
from saltern.kit.links.control import ControlError, ControlTimeout, connect_control, wheel_functions
from saltern.moving import keys, minion_data
from saltern.moving.files import Option, joined, read_options, read_plain
from saltern.moving.settings import Fate, fate_of, group_faults, is_salts
from statecore.host.content.guarded_tree import GuardedTree, Owner
from statecore.model import yaml
from statecore.model.file_name import FileName
from statecore.model.option_parser import OptionParser

_SALTS = "/etc/salt"

#: Kind of treatment -> heading in the report.
_HEADINGS: Mapping[str, str] = {
    "carries": "Carries over:",
    "not needed": "Not needed here:",
    "not supported": "Not supported:",
}

#: The stock master's ``cachedir`` where its configuration names none.
_CACHE = "/var/cache/salt/master"

#: Seconds for one portion of data: the master may have to compile the pillar of each minion.
_PATIENCE = 300.0

#: Permission bits of a new configuration: it may contain passwords, and the roles' group reads it.
_CONFIG_MODE = 0o640

#: Account of the roles that the Debian packages make.
_ACCOUNT = "salt"

#: Bytes of the longest file that is compared with new content.
_MOST_BYTES = 16 * 1024 * 1024

Answer = TypeVar("Answer")

_SIGNS = ("master_sign", "master_pubkey_signature")


def import_main(argv: Sequence[str]) -> int:
    """Run ``saltern import``. Return exit code 0, or 1 for an error, or with ``--check`` if an option is not supported."""
    return run_command(lambda: _import(argv), INTERRUPTED)


def export_main(argv: Sequence[str]) -> int:
    """Run ``saltern export``. Return exit code 0, or 1 if a file cannot be read or written."""
    return run_command(lambda: _export(argv), INTERRUPTED)


def _import(argv: Sequence[str]) -> int:
    parser = _parser("import", "Imports the configuration and the keys of a stock Salt master.", _SALTS)
    parser.add_argument(
        "--check",
        action="store_true",
        help="only print the report and write nothing; exit code 1 if an option is not supported",
    )
    parser.add_argument(
        "--data",
        nargs="?",
        const="",
        metavar="DIR",
        help="send grains, pillar and mine from the stock master's cachedir DIR to the running master, and do nothing else "
        "(without DIR: as the stock master's configuration says)",
    )
    parser.add_argument(
        "--replace", action="store_true", help="with --data: also replace what minions told the running master"
    )
    parser.add_argument(
        "--owner",
        type=owner_ids,
        metavar="UID:GID",
        help="numeric owner of the keys; the new file `master` gets the group (default: as the directory --keys)",
    )
    flags = _parsed(parser, argv)
    if flags.data is not None:
        return _import_data(flags)
    options = read_options(flags.config, "master", outside=flags.outside)
    fates = _fates(options)
    config = joined([fate.here for _, fate in fates])
    own_id = "" if config.get("id") else stock_master_id(flags.config, config, outside=flags.outside)
    if own_id:
        config = {"id": own_id, **config}
    pki = flags.pki or _pki(options, flags.config)
    found = keys.taken(pki, _sign_names(config), within=flags.config, links=flags.outside)
    owner = flags.owner or _roles_owner(flags.keys)
    _check_keys(flags.keys, found)
    content = _file(config, f"Imported from {flags.config}")
    _check_new(flags.out / "master", content)
    _check_whole(content)
    _report(fates)
    if own_id:
        sys.stdout.write(
            f"Added:\n  id: {own_id}: the stock master's own id, for which orchestrations compile pillar\n"
        )
    if flags.check:
        return Exit.GENERIC if any(fate.kind == "not supported" for _, fate in fates) else Exit.OK
    written = _written(
        lambda: keys.lay_down(flags.keys, found, owner),
        {flags.out / "master": (content.encode(), _CONFIG_MODE)} if content else {},
        Owner(os.geteuid(), owner[1]) if owner else None,
    )
    minions = [
        name for name in ("minions", "minions_pre", "minions_rejected", "minions_denied") if (pki / name).is_dir()
    ]
    count = sum(1 for name in minions for path in (pki / name).iterdir() if not path.name.startswith("."))
    _say(flags.keys, written)
    if count:
        sys.stdout.write(f"\n{count} keys of minions are in {pki}. When the roles run:\n  salt-key --import {pki}\n")
    cachedir = _cachedir(options)
    if cachedir.is_dir() and (known := minion_data.count(cachedir)):
        sys.stdout.write(
            f"\nGrains, pillar and mine of {known} minions are in {cachedir}. When the keys are imported:\n"
            f"  saltern import --data {cachedir}\n"
        )
    return Exit.OK


def _import_data(flags: argparse.Namespace) -> int:
    """Carry out ``saltern import --data``. Return exit code 0, or 1 if a file or the data of a minion cannot be used."""
    cachedir = (
        Path(flags.data) if flags.data else _cachedir(read_options(flags.config, "master", outside=flags.outside))
    )
    remembered = minion_data.read(cachedir)
    if flags.check:
        for minion, parts in remembered.minions.items():
            sys.stdout.write(f"{minion}: {', '.join(parts)}\n")
        brought = minion_data.Brought()
    else:
        brought = _asked(flags.config_dir, lambda wheel: minion_data.send(remembered, wheel, replace=flags.replace))
        every = [part for stored in brought.stored.values() for part in stored]
        numbers = ", ".join(f"{name} of {every.count(name)}" for name in minion_data.PARTS)
        sys.stdout.write(f"Stored of {len(remembered.minions)} minions: {numbers}.\n")
    for place, why in (remembered.faults | brought.refused).items():
        sys.stderr.write(f"{place}: {why}\n")
    for minion, why in brought.pillar_errors.items():
        sys.stderr.write(f"{minion}: its pillar cannot be compiled: {why}\n")
    return Exit.GENERIC if remembered.faults or brought.refused else Exit.OK


def _export_data(flags: argparse.Namespace) -> int:
    """Carry out ``saltern export --data``. Return exit code 0."""
    minions = _asked(flags.config_dir, minion_data.fetch)
    files = minion_data.write(Path(flags.data), minions)
    sys.stdout.write(f"{files} files with grains, pillar and mine of {len(minions)} minions are in {flags.data}.\n")
    return Exit.OK


def _asked(config_dir: str | None, ask: Callable[[WheelCall], Answer]) -> Answer:
    """Call ``ask`` with a function that calls wheel functions of the running master, and return the result of ``ask``.
    Raise CommandError if the master refuses or does not answer, or for unusable options.
    """
    try:
        control = connect_control(load_client(config_dir), config_dir=config_dir)
        try:
            return ask(wheel_functions(control, _PATIENCE))
        finally:
            control.close()
    except ControlError as error:
        raise CommandError(error.message) from error
    except ControlTimeout as error:
        raise CommandError(f"{error}. Start the roles first", Exit.UNAVAILABLE) from error
    except ConfigError as error:
        raise CommandError(str(error), Exit.CONFIG) from error


def _fates(options: Sequence[Option]) -> list[tuple[Option, Fate]]:
    """Return (option, Fate) for each option of the stock master; a Fate says whether and how the option is carried over.

    Invalid node groups get rows of their own.
    """
    every = joined([{option.name: option.value} for option in options if option.name == "nodegroups"]).get("nodegroups")
    faults = group_faults(every) if isinstance(every, dict) else {}
    fates: list[tuple[Option, Fate]] = []
    for option in options:
        if option.name != "nodegroups" or not isinstance(option.value, dict):
            fates.append((option, fate_of(option.name, option.value)))
            continue
        good = {name: group for name, group in option.value.items() if name not in faults}
        if good or not option.value:
            fates.append((option, fate_of(option.name, good)))
        for name in (name for name in option.value if name in faults):
            directory = option._replace(line=option.lines.get(str(name), option.line))
            fates.append((directory, Fate("not supported", f"the group '{name}': {faults[name]}")))
    return fates


def _export(argv: Sequence[str]) -> int:
    parser = _parser("export", "Exports configuration and keys for a stock Salt master.", _SALTS)
    parser.add_argument(
        "--data",
        metavar="DIR",
        help="write grains, pillar and mine of the running master's minions to the stock master's cachedir DIR, and do "
        "nothing else",
    )
    flags = _parsed(parser, argv)
    if flags.data is not None:
        return _export_data(flags)
    options = read_options(flags.config, "master", outside=flags.outside)
    fates = [(option, _back(option)) for option in options]
    config = joined([fate.here for _, fate in fates])
    found = keys.held(flags.keys, _sign_names(config))
    content = _file(config, f"Exported from {flags.config}")
    pki = flags.pki or flags.out / "pki" / "master"
    files = {pki / name: (data, 0o400 if name.endswith(".pem") else 0o644) for name, data in found.items()}
    for path, (data, _) in files.items():
        if _other_content(path, data):
            raise CommandError(f"{path}: exists with other content; export to an empty directory")
    _check_new(flags.out / "master", content)
    _report(fates)
    _say(flags.keys, _written(list, files | {flags.out / "master": (content.encode(), _CONFIG_MODE)}))
    sys.stdout.write(f"\nThe keys of minions are in the master. While the roles run:\n  salt-key --export {pki}\n")
    return Exit.OK


def _back(option: Option) -> Fate:
    if option.name == "module_settings" and isinstance(option.value, dict):
        return Fate("carries", "", option.value)
    if option.name == "out_table" and isinstance(option.value, dict):
        return Fate("carries", "", {f"out.table.{name}": value for name, value in option.value.items()})
    if is_salts(option.name):
        return Fate("carries", "", {option.name: option.value})
    return Fate("not needed", "a stock master has no such option")


def stock_master_id(directory: Path, config: Mapping[str, object], *, outside: bool = False) -> str:
    """Return the id of a stock master whose configuration has no option ``id``: the id in the file ``minion_id`` of
    its configuration directory, else this machine's name; with ``append_domain`` and with ``_master`` at the end.
    ``outside`` is as in ``read_options``. Raise CommandError if the file cannot be read.
    Salt: salt/config/__init__.py, apply_master_config
    """
    name = id_in(read_plain(directory, FILE, outside=outside)) or found_id("", {}, lowercase=False, remove_domain=False)
    return f"{with_domain(name, str(config.get('append_domain') or ''))}_master"


def _sign_names(config: Mapping[str, object]) -> keys.SignNames:
    name, signature = _SIGNS
    return keys.sign_names(str(config.get("master_sign_key_name", name)), str(config.get(signature, signature)))


def _roles_owner(directory: Path) -> tuple[int, int] | None:
    """Return (uid, gid) of the user that root's new keys belong to: the owner of the directory of all keys if it exists,
    else the account of the Debian packages. None if this process keeps them.
    """
    if os.geteuid() != 0:
        return None
    with contextlib.suppress(OSError):
        found = directory.stat()
        return found.st_uid, found.st_gid
    with contextlib.suppress(KeyError):
        entry = pwd.getpwnam(_ACCOUNT)
        return entry.pw_uid, entry.pw_gid
    return None


def _check_keys(directory: Path, found: Mapping[FileName, bytes]) -> None:
    """Raise CommandError if the stock master's keys cannot be added to the directory of all keys."""
    try:
        keys.check_empty(directory, found)
        check_keys(directory)
    except OSError as error:
        raise CommandError(f"{error.filename}: {error.strerror}") from error
    except ConfigError as error:
        raise CommandError(str(error)) from error


def _parser(name: str, description: str, config: str) -> argparse.ArgumentParser:
    parser = OptionParser(prog=f"saltern {name}", description=description)
    there = "the stock master's configuration" if name == "import" else "the configuration of our roles"
    parser.add_argument("--config", type=Path, default=Path(config), metavar="DIR", help=f"{there} (default: {config})")
    parser.add_argument(
        "--pki", type=Path, metavar="DIR", help="pki_dir of the stock master (default: as its configuration says)"
    )
    parser.add_argument(
        "--keys",
        type=Path,
        metavar="DIR",
        help="directory with the roles' keys, as `saltern keygen` makes it",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="directory for the new file `master`")
    parser.add_argument(
        "--outside",
        action="store_true",
        help="also read files outside of --config and --pki that links and the option include name",
    )
    parser.add_argument(
        "-c", "--config-dir", metavar="DIR", help="with --data: the configuration of this command, as for salt-key"
    )
    return parser


def _parsed(parser: argparse.ArgumentParser, argv: Sequence[str]) -> argparse.Namespace:
    flags = parser.parse_args(argv)
    if flags.data is None and not (flags.keys and flags.out):
        parser.error("--keys and --out are needed, or --data")
    return flags


def _pki(options: Sequence[Option], config: Path) -> Path:
    """Return the stock master's ``pki_dir``, absolute and below ``root_dir``. Salt: salt/config/__init__.py, prepend_root_dir"""
    named, root = _last(options, "pki_dir"), str(_last(options, "root_dir") or "/")
    if named is None:
        return config / "pki" / "master"
    path = Path(str(named))
    return path if path.is_relative_to(root) else Path(root, *path.parts[1:])


def _cachedir(options: Sequence[Option]) -> Path:
    """Return the directory of the stock master's option ``cachedir`` as an absolute path. A path that is not below
    ``root_dir`` is taken as relative to it, as in Salt.
    """
    root, path = str(_last(options, "root_dir") or "/"), Path(str(_last(options, "cachedir") or _CACHE))
    return path if path.is_relative_to(root) else Path(root, *path.parts[1:])


def _last(options: Sequence[Option], name: str) -> object:
    return next((option.value for option in reversed(options) if option.name == name), None)


def _file(config: Mapping[str, object], comment: str) -> str:
    return f"# {comment}\n" + (yaml.dump(dict(config), sort_keys=False, allow_unicode=True) if config else "")


def _check_new(path: Path, content: str) -> None:
    if _other_content(path, content.encode()):
        raise CommandError(f"{path}: exists with other content; name another directory with --out")


def _other_content(path: Path, content: bytes) -> bool:
    """Return whether a file exists with other content. Raise CommandError if it cannot be read, or is no regular file."""
    try:
        return GuardedTree(path.parent).read(path.name, _MOST_BYTES) != content
    except FileNotFoundError:
        return False
    except OSError as error:
        raise CommandError(f"{error.filename}: {error.strerror}") from error


def _check_whole(content: str) -> None:
    """Raise CommandError if the roles would reject ``content``, the text of the new file ``master``."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "master").write_text(content, encoding="utf-8")
        try:
            load_master(directory, env={})
        except ConfigError as error:
            raise CommandError(f"the roles would reject the new configuration: {error}", Exit.CONFIG) from error


def _written(
    first: Callable[[], list[Path]], files: Mapping[Path, tuple[bytes, int]], owner: Owner | None = None
) -> list[Path]:
    try:
        written = first()
        for path, (content, mode) in files.items():
            tree = GuardedTree(path.parent, owner)
            tree.make_top()
            if not tree.exists(path.name):
                tree.put(path.name, content, mode)
                written.append(path)
    except OSError as error:
        raise CommandError(f"{error.filename}: {error.strerror}") from error
    except ConfigError as error:
        raise CommandError(str(error)) from error
    return written


def _report(fates: Sequence[tuple[Option, Fate]]) -> None:
    for kind, heading in _HEADINGS.items():
        rows = [(option, fate) for option, fate in fates if fate.kind == kind]
        if rows:
            sys.stdout.write(f"{heading}\n")
        for option, fate in rows:
            sys.stdout.write(f"  {option.place}: {option.name}{f': {fate.why}' if fate.why else ''}\n")


def _say(keys_of_roles: Path, written: Sequence[Path]) -> None:
    made = [path for path in written if path.is_relative_to(keys_of_roles)]
    lines = [f"written {path}" for path in written if path not in made]
    if made:
        lines.append(f"written {len(made)} files below {keys_of_roles}: the keys of the roles")
    sys.stdout.write("\n" + "\n".join(lines or ["Everything was there already."]) + "\n")
