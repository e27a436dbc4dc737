"""The renderer ``gpg``: values that are OpenPGP messages become what they say. The program ``gpg`` does it."""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from statecore.render.faults import DataFault
from statecore.render.stage import RenderContext

log = logging.getLogger(__name__)

_MESSAGE = re.compile(rb"-----BEGIN PGP MESSAGE-----.*?-----END PGP MESSAGE-----", re.DOTALL)

#: Beginning of a message: a value without it costs one search.
_BEGIN = "-----BEGIN PGP MESSAGE-----"

#: Seconds that gpg may take for one message; it waits for a password where a key has one.
_PATIENCE = 60


def render(data: Any, stage: RenderContext) -> Any:
    """The data with every message in it decrypted, in texts, maps and lists.

    Options: gpg_keydir, gpg_decrypt_must_succeed (True: a message that cannot be decrypted is a fault; False: it stays, and
    the log says so). Raises DataFault also where there is no gpg.
    """
    program = shutil.which("gpg")
    if program is None:
        raise DataFault("GPG unavailable: there is no program gpg", 0)
    keys = _keys(stage.opts)
    with _home(keys) as home:
        return _Opened(program, home, keys, bool(stage.opts.get("gpg_decrypt_must_succeed", True))).value(data)


class _Opened:
    """Decrypts what it is given, equal messages once."""

    def __init__(self, program: str, home: str, keys: str, must_succeed: bool) -> None:
        self._command = [program, "--homedir", home, "--status-fd", "2", "--no-tty", "--batch", "-d"]
        self._keys = keys
        self._must_succeed = must_succeed
        self._known: dict[bytes, bytes] = {}

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value) if _BEGIN in value else value
        if isinstance(value, Mapping):
            return {key: self.value(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.value(item) for item in value]
        return value

    def _text(self, text: str) -> str | bytes:
        found, count = _MESSAGE.subn(lambda message: self._message(message[0]), text.encode("utf-8", "surrogateescape"))
        # The newline is YAML's, behind a message over several lines.
        plain = found.rstrip(b"\n") if count else found
        try:
            return plain.decode()
        except UnicodeDecodeError:
            return plain

    def _message(self, message: bytes) -> bytes:
        if message not in self._known:
            self._known[message] = self._decrypted(message)
        return self._known[message]

    def _decrypted(self, message: bytes) -> bytes:
        # Messages from a command line have their newlines spelled out.
        message = message.replace(rb"\n", b"\n")
        try:
            done = subprocess.run(self._command, input=message, capture_output=True, timeout=_PATIENCE, check=False)
            plain, said = done.stdout, done.stderr.decode("utf-8", "replace")
        except (OSError, subprocess.TimeoutExpired) as error:
            plain, said = b"", str(error)
        if plain:
            return plain
        reason = f"Could not decrypt cipher: {_reason(said)} (keys in {self._keys})"
        if self._must_succeed:
            raise DataFault(reason, 0)
        log.warning("%s", reason)
        return message


@contextmanager
def _home(keys: str) -> Iterator[str]:
    """The directory of the keys, as gpg can use it. It puts locks and the socket of its agent beside them: of a directory that
    cannot be written, as a mounted secret is, it gets a copy that nobody else can read, gone afterwards with the agent."""
    if not Path(keys).is_dir() or os.access(keys, os.W_OK):
        yield keys
        return
    # Here: few trees have secrets that lie in such a place, and all would load it.
    import tempfile

    with tempfile.TemporaryDirectory(prefix="gpg-") as home:
        shutil.copytree(keys, home, dirs_exist_ok=True, ignore=_unwanted)
        for directory in (Path(home), *(path for path in Path(home).rglob("*") if path.is_dir())):
            directory.chmod(0o700)
        try:
            yield home
        finally:
            subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], capture_output=True, check=False)


def _unwanted(directory: str, names: list[str]) -> list[str]:
    """Sockets and locks of another's agent, and the second set of names (``..data``) that Kubernetes gives a mounted secret."""
    return [name for name in names if name.startswith(("S.", ".#", "..")) or name.endswith(".lock")]


def _reason(said: str) -> str:
    """What gpg says to people, on one line."""
    lines = [line.removeprefix("gpg: ") for line in said.splitlines() if not line.startswith("[GNUPG:]")]
    return "; ".join(line.strip() for line in lines if line.strip()) or "gpg says nothing"


def _keys(opts: Mapping[str, Any]) -> str:
    """The directory of the keys."""
    configured = opts.get("config_dir") or os.path.split(str(opts.get("conf_file") or ""))[0] or "/etc/salt"
    return str(opts.get("gpg_keydir") or os.path.join(str(configured), "gpgkeys"))
