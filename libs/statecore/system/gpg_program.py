"""Runs the managed host's program ``gpg``, and reads its lists of keys and its status lines."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.text_lines import lines_of

#: Letter of gpg's lists -> Salt's word for a trust.
TRUST: Mapping[str, str] = {
    "e": "Expired",
    "q": "Unknown",
    "n": "Not Trusted",
    "f": "Fully Trusted",
    "m": "Marginally Trusted",
    "u": "Ultimately Trusted",
    "r": "Revoked",
    "-": "Unknown",
}

_STATUS = "[GNUPG:] "

#: Records that begin a key, and those that begin a subkey.
_KEYS, _SUBKEYS = ("pub", "sec"), ("sub", "ssb")


@dataclass(frozen=True, slots=True)
class Gpg:
    """The program gpg with the keys of one user of the host."""

    ctx: Context
    user: str | None
    home: str
    keyring: str | None

    @classmethod
    def of(cls, ctx: Context, user: str | None, gnupghome: str | None, keyring: object = None) -> Gpg:
        """Return the Gpg for a user's keys. The user's gpg home directory is created if it is missing.

        Raise CommandError if the host has no gpg, InvocationError for an unknown user.
        """
        if ctx.host.which("gpg") is None:
            raise CommandError("the host has no program gpg: install gnupg")
        if keyring and not isinstance(keyring, str):
            raise InvocationError("Please pass keyring as a string. Multiple keyrings are not allowed")
        runs_as = user if user not in (None, "salt") else None
        home = gnupghome or _home_of(ctx, user)
        place = ctx.host.path(home)
        if not place.is_dir():
            owner = Attributes(runs_as, ctx.host.login_group(runs_as) if runs_as else None, 0o700)
            managed_file.make_directories(ctx.host, place, owner, ctx.host.root)
        return cls(ctx, runs_as, home, keyring if isinstance(keyring, str) else None)

    def run(self, words: Sequence[str], data: str | bytes = "", passphrase: str | None = None) -> GpgOutput:
        """Run gpg with the arguments ``words``, without questions, and return its GpgOutput. A failure of gpg is not
        raised.

        ``data`` is the standard input.
        """
        command = ["gpg", "--homedir", self.home, "--no-tty", "--batch", "--yes", "--status-fd", "2"]
        command += ["--no-default-keyring", "--keyring", self.keyring] if self.keyring else []
        given = data.encode() if isinstance(data, str) else data
        if passphrase is not None:
            command += ["--pinentry-mode", "loopback", "--passphrase-fd", "0"]
            given = passphrase.encode() + b"\n" + given
        done = self.ctx.host.run([*command, *words], runas=self.user, stdin=given, env={"LC_ALL": "C.UTF-8"})
        lines = lines_of(done.stderr)
        status = [line.removeprefix(_STATUS).split() for line in lines if line.startswith(_STATUS)]
        return GpgOutput(done.retcode, done.stdout, done.stderr, [row for row in status if row])

    def keys(self, *, secret: bool = False) -> list[dict[str, Any]]:
        """Return the user's public (or secret) keys as a list of maps, as ``parse_keys`` makes them."""
        words = ["--fixed-list-mode", "--with-colons", "--fingerprint", "--fingerprint"]
        return parse_keys(self.run([*words, "--list-secret-keys" if secret else "--list-keys"]).stdout)


@dataclass(frozen=True, slots=True)
class GpgOutput:
    """Exit code, output and status lines of one run of gpg."""

    retcode: int
    stdout: str
    stderr: str
    status: list[list[str]] = field(default_factory=list)

    def all(self, word: str) -> list[list[str]]:
        """Return, for each status line of gpg that begins with ``word``, the list of the words after it."""
        return [row[1:] for row in self.status if row[0] == word]

    def has(self, word: str) -> bool:
        """Return whether a status line of gpg begins with ``word``."""
        return any(row[0] == word for row in self.status)


def passphrase_of(ctx: Context, wanted: bool) -> str | None:
    """Return the passphrase for gpg from the pillar key ``gpg_passphrase``; None unless ``wanted``. Raise
    InvocationError if pillar does not have it.
    """
    if not wanted:
        return None
    found = ctx.pillar.get("gpg_passphrase")
    if not found:
        raise InvocationError("gpg_passphrase not available in pillar.")
    return str(found)


def parse_keys(listing: str, *, subkeys: bool = True) -> list[dict[str, Any]]:
    """Return the keys in the output of ``gpg --with-colons --list-keys`` as a list of maps.

    A map has ``keyid``, ``uids`` and ``fingerprint``, and if they are known ``created``, ``expires``, ``expired``,
    ``keyLength``, ``trust``, ``ownerTrust`` and ``subkeys`` (a list of such maps). Without ``subkeys``, subkeys have no
    fingerprints.
    """
    found: list[dict[str, Any]] = []
    in_subkey = False
    for line in lines_of(listing):
        row = [*line.split(":"), *[""] * 12]
        if row[0] in _KEYS:
            found.append(_key(row, {"uids": [], "fingerprint": ""}))
            in_subkey = False
        elif row[0] in _SUBKEYS and found:
            found[-1].setdefault("subkeys", []).append(_key(row, {}))
            in_subkey = True
        elif row[0] == "fpr" and found:
            if subkeys or not in_subkey:
                (found[-1]["subkeys"][-1] if in_subkey else found[-1])["fingerprint"] = row[9]
        elif row[0] == "uid" and found:
            found[-1]["uids"].append(_unescaped(row[9]))
    return found


def _key(row: Sequence[str], more: Mapping[str, object]) -> dict[str, Any]:
    key: dict[str, Any] = {"keyid": row[4], **more}
    if row[6]:
        key |= {"expires": _date(row[6]), "expired": time.time() >= float(row[6])}
    if row[5]:
        key["created"] = _date(row[5])
    if row[2]:
        key["keyLength"] = row[2]
    if row[8] in TRUST:
        key["ownerTrust"] = TRUST[row[8]]
    if row[1] in TRUST:
        key["trust"] = TRUST[row[1]]
    return key


def _date(seconds: str) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(float(seconds)))


def _unescaped(text: str) -> str:
    return re.sub(r"\\x([0-9a-f]{2})", lambda found: chr(int(found[1], 16)), text)


def _home_of(ctx: Context, user: str | None) -> str:
    if user == "salt":
        if ctx.host.mounted:
            raise CommandError("user: salt means the minion's own keys, which programs of a mounted host cannot reach")
        own = ctx.opts.get("gpg_keydir")
        return str(own or Path(str(ctx.opts.get("conf_file") or "/etc/salt/minion")).parent / "gpgkeys")
    if user is None:
        named = None if ctx.host.mounted else os.environ.get("GNUPGHOME")
        return named or ("/root/.gnupg" if os.geteuid() == 0 else f"{os.environ.get('HOME', '/')}/.gnupg")
    account = ctx.call("user.info", user)
    if not account:
        raise InvocationError(f"User {user} does not exist")
    return f"{account['home']}/.gnupg"
