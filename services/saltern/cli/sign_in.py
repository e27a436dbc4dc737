"""The option ``-a`` of ``salt`` and ``salt-run``: signs in a user of ``external_auth``. The command then has this
user's rights in place of the rights of its CurveZMQ key.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from saltern.kit.command.command_line import CommandError, CommandParser, Exit
from saltern.kit.links.control import ControlClient, ControlError
from statecore.model.lazy import lazy_module

if TYPE_CHECKING:
    from statecore.host.content import private_files
else:
    # Only for -T, which writes the token to a file.
    private_files = lazy_module("statecore.host.content.private_files")

#: Seconds for a sign-in: a directory may take its time.
_PATIENCE = 60.0

#: File in the home directory that holds the token of ``-T``; the name is Salt's.
TOKEN_FILE = ".salt_token"


def add_eauth_flags(parser: CommandParser) -> None:
    """Add the options of external authentication to a parser."""
    group = parser.add_argument_group("external authentication (default: the rights of this command's key)")
    group.add_argument(
        "-a",
        "--auth",
        "--eauth",
        "--external-auth",
        dest="eauth",
        default="",
        metavar="BACKEND",
        help="sign in as a user of this backend of external_auth (file, ldap, oidc, pam, sharedsecret)",
    )
    group.add_argument(
        "-T",
        "--make-token",
        dest="make_token",
        action="store_true",
        help=f"with -a: keep the token in ~/{TOKEN_FILE}; until it expires, -a asks for no password",
    )
    group.add_argument("--username", default="", metavar="NAME", help="user name for -a (default: ask for it)")
    group.add_argument(
        "--password",
        default="",
        metavar="WORD",
        help="password for -a (default: ask for it; other users of this machine can see command lines)",
    )


def ask_once(
    flags: argparse.Namespace, ask: Callable[[str], str] | None = None, ask_secretly: Callable[[str], str] | None = None
) -> None:
    """Ask for the user name and password of ``-a`` that the command line lacks, and store them in ``flags``.

    Several masters are then signed in to without further questions.
    """
    if not flags.eauth:
        return
    if not flags.username and flags.eauth != "oidc":
        flags.username = (ask or _asked)("username: ")
    flags.password = flags.password or (ask_secretly or _asked_secretly)("password: ")


@contextlib.contextmanager
def signed_in(
    control: ControlClient,
    flags: argparse.Namespace,
    env: Mapping[str, str],
    ask: Callable[[str], str] | None = None,
    ask_secretly: Callable[[str], str] | None = None,
    *,
    use_kept: bool = True,
) -> Iterator[None]:
    """Context manager: in the ``with`` block, the requests of ``control`` have the rights of the user that the command
    line names. Without ``-a`` nothing is changed. ``use_kept``: use the stored token of an earlier command with ``-T``.

    The user's token is revoked at the end of the block; with ``-T`` it is stored in a file and stays valid. Raises
    CommandError for a wrong password.
    """
    if not flags.eauth:
        if flags.make_token:
            raise CommandError("-T makes a token for a user: name the backend with -a", Exit.USAGE)
        yield
        return
    path = Path(env.get("HOME") or Path.home()) / TOKEN_FILE
    if use_kept and not flags.username and not flags.make_token and (kept := _kept(control, path, flags.eauth)):
        control.token = kept
        yield
        return
    name = flags.username or ("" if flags.eauth == "oidc" else (ask or _asked)("username: "))
    word = flags.password or (ask_secretly or _asked_secretly)("password: ")
    try:
        answer = control.call("login", timeout=_PATIENCE, username=name, password=word, eauth=flags.eauth)
    except ControlError as error:
        raise CommandError(f"{error.message} ({flags.eauth}, user '{name}')", Exit.NO_RETURN) from error
    assert isinstance(answer, dict)
    control.token = str(answer["token"])
    if flags.make_token:
        _write(path, control.token)
        yield
        return
    try:
        yield
    finally:
        token, control.token = control.token, ""
        control.call("logout", of=token)


def _kept(control: ControlClient, path: Path, backend: str) -> str:
    """Return the stored token of an earlier command with ``-T``, if it is of this eauth backend and the master still
    accepts it; else empty text.
    """
    try:
        token = path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
    try:
        found = control.call("token_info", of=token)
    except ControlError:
        return ""
    return token if isinstance(found, dict) and found.get("eauth") == backend else ""


def _write(path: Path, token: str) -> None:
    """Write a token to a new file that only its owner can read. Raises CommandError if the file cannot be written."""
    try:
        path.unlink(missing_ok=True)
        with private_files.new_file(path) as file:
            file.write(token.encode())
    except OSError as error:
        raise CommandError(f"the token cannot be kept: {path}: {error.strerror}") from error


def _asked(prompt: str) -> str:
    sys.stderr.write(prompt)
    sys.stderr.flush()
    return sys.stdin.readline().rstrip("\n")


def _asked_secretly(prompt: str) -> str:
    # Only here: other commands start quicker without it.
    import getpass

    return getpass.getpass(prompt, sys.stderr)
