"""The command ``saltern rotate``: replaces one kind of secret while jobs run.

    saltern rotate role reqserver mworker     CurveZMQ keys of roles (or cli, api)
    saltern rotate operator ann               an operator's key
    saltern rotate master                     the master's key, by which minions know the master
    saltern rotate redis-password             the passwords of Redis
    saltern rotate redis-users                the password for all roles, by a user and a password for each role
    saltern rotate redis-tls                  the certificates of Redis and of the roles; --authority: the authority, too

It changes the directory that `saltern keygen --out DIR` wrote. Where roles see copies of it, --apply names the command that brings
it to them after each step, and --wait how long that takes. An interrupted rotation is continued by the same command.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import zmq

from masterstore.address import read_url
from saltern.kit.command.command_line import CommandError, Exit, run_command
from saltern.kit.command.launcher import INTERRUPTED
from saltern.kit.config.master import ConfigError, config_directory, load_client, load_master
from saltern.kit.keys.redis_logins import ONE_URL, OPERATOR_URL
from saltern.kit.links.control import ControlClient, ControlError, ControlTimeout
from saltern.kit.links.sockets import NAMES, LinkKeys
from saltern.rotate.key_files import KeyFiles, RotationError
from saltern.rotate.link_keys import rotate_link_key
from saltern.rotate.master_key import rotate_master_key
from saltern.rotate.redis_login import rotate_redis_password
from saltern.rotate.redis_tls import rotate_redis_tls
from saltern.rotate.redis_users import rotate_redis_users
from statecore.model.option_parser import OptionParser

#: Seconds until roles that read the directory itself have seen a change: they look every second.
_WAIT = 3.0

#: Seconds for which minions are waited for, before those that are missing are named.
_PATIENCE = 120.0

#: A URL of Redis up to its host, and host with port.
_HOST = re.compile(r"(://(?:[^/?]*@)?)[^/?@]+")


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``saltern rotate``. Return exit code 0; 1 if the rotation cannot continue, 69 if the master does not answer."""
    return run_command(partial(_run, _parser().parse_args(argv)), INTERRUPTED)


def _run(flags: argparse.Namespace) -> int:
    directory = flags.keys or config_directory(flags.config_dir) / "keys"
    files = KeyFiles(directory, flags.wait, flags.apply)
    try:
        _KINDS[flags.kind](files, flags)
    except RotationError as error:
        raise CommandError(str(error)) from error
    except ConfigError as error:
        raise CommandError(str(error), Exit.GENERIC) from error
    except ControlError as error:
        raise CommandError(error.message) from error
    except ControlTimeout as error:
        raise CommandError(f"{error}. Run the same command again: it goes on here", Exit.UNAVAILABLE) from error
    except OSError as error:
        raise CommandError(f"{error.filename}: {error.strerror}") from error
    return Exit.OK


def _link_keys(files: KeyFiles, flags: argparse.Namespace) -> None:
    for name in flags.names:
        if (flags.kind == "role") is not (name in NAMES):
            hint = f"roles are {', '.join(NAMES)}" if flags.kind == "role" else f"use `saltern rotate role {name}`"
            raise RotationError(f"'{name}' is no {flags.kind}: {hint}")
    for name in flags.names:
        rotate_link_key(files, name)


def _master(files: KeyFiles, flags: argparse.Namespace) -> None:
    options = load_client(flags.config_dir)
    # The directory has the key of `cli`, whose rights this needs.
    control = ControlClient(zmq.Context.instance(), options, LinkKeys.load(files.directory / "cli"))
    try:
        rotate_master_key(files, control, keysize=flags.keysize, patience=flags.patience, force=flags.force)
    finally:
        control.close()


def _redis_password(files: KeyFiles, flags: argparse.Namespace) -> None:
    rotate = rotate_redis_users if files.exists(OPERATOR_URL) else rotate_redis_password
    rotate(files, partial(_reached, at=flags.redis_host))


def _redis_users(files: KeyFiles, flags: argparse.Namespace) -> None:
    rotate_redis_users(files, partial(_reached, at=flags.redis_host))


def _redis_tls(files: KeyFiles, flags: argparse.Namespace) -> None:
    name = next((each for each in (OPERATOR_URL, ONE_URL) if files.exists(each)), None)
    address = f"file://{files.directory / name}" if name else load_master(flags.config_dir).redis_url
    rotate_redis_tls(
        files, read_url(address), authority=flags.authority, reached=partial(_reached, at=flags.redis_host)
    )


def _reached(url: str, at: str) -> str:
    """Return a Redis URL with host and port replaced by ``at``; unchanged if ``at`` is empty.

    It is for a machine that cannot reach Redis by the host in the roles' URL.
    """
    return _HOST.sub(rf"\g<1>{at}", url, count=1) if at else url


_KINDS: Mapping[str, Callable[[KeyFiles, argparse.Namespace], None]] = {
    "role": _link_keys,
    "operator": _link_keys,
    "master": _master,
    "redis-password": _redis_password,
    "redis-users": _redis_users,
    "redis-tls": _redis_tls,
}


def _parser() -> argparse.ArgumentParser:
    parser = OptionParser(
        prog="saltern rotate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="KIND")
    each = {name: kinds.add_parser(name, help=text) for name, text in _HELP.items()}
    for one in each.values():
        one.add_argument(
            "-c", "--config-dir", metavar="DIR", help="directory of the master's configuration (default: /etc/salt)"
        )
        one.add_argument("--keys", type=Path, metavar="DIR", help="directory of all keys (default: <config dir>/keys)")
        one.add_argument(
            "--wait",
            type=_seconds,
            default=_WAIT,
            metavar="SECONDS",
            help=f"for a change to reach the roles (default {_WAIT:g})",
        )
        one.add_argument(
            "--apply", default="", metavar="COMMAND", help="brings the changed DIR to the roles after each step"
        )
    each["role"].add_argument("names", nargs="+", metavar="NAME", choices=NAMES, help=", ".join(NAMES))
    each["operator"].add_argument("names", nargs="+", metavar="NAME", help="as in `saltern keygen --operator NAME`")
    each["master"].add_argument(
        "--keysize", type=int, default=2048, metavar="BITS", help="bits of the new key (default 2048)"
    )
    each["master"].add_argument(
        "--patience", type=_seconds, default=_PATIENCE, metavar="SECONDS", help=f"for minions (default {_PATIENCE:g})"
    )
    each["master"].add_argument(
        "--force", action="store_true", help="forget the old key although minions that are away do not know the new one"
    )
    each["redis-tls"].add_argument("--authority", action="store_true", help="replace the authority, too")
    for name in ("redis-password", "redis-users", "redis-tls"):
        each[name].add_argument(
            "--redis-host",
            default="",
            metavar="HOST:PORT",
            help="where this machine reaches Redis, if not by the URL's host",
        )
    return parser


_HELP: Mapping[str, str] = {
    "role": "CurveZMQ keys of roles",
    "operator": "an operator's key",
    "master": "the master's key, by which minions know the master",
    "redis-password": "the passwords of Redis",
    "redis-users": "the password for all roles, by a user and a password for each role; then as redis-password",
    "redis-tls": "the certificates of Redis and of the roles",
}


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds <= 86400:
        raise argparse.ArgumentTypeError("must be between 0 and 86400 seconds")
    return seconds
