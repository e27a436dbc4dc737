"""The renderer ``gpg``: decrypts the OpenPGP messages in SLS data, with the program ``gpg``."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from statecore.model.errors import DataFault
from statecore.model.lazy import lazy_module
from statecore.model.text_lines import lines_of
from statecore.render.context import RenderContext

if TYPE_CHECKING:
    import shutil
    import subprocess
else:
    subprocess = lazy_module("subprocess")
    shutil = lazy_module("shutil")

log = logging.getLogger(__name__)

_MESSAGE = re.compile(rb"-----BEGIN PGP MESSAGE-----.*?-----END PGP MESSAGE-----", re.DOTALL)

#: Start of a message. A value without it costs one search.
_BEGIN = "-----BEGIN PGP MESSAGE-----"

#: Seconds that gpg may take for one message. It waits for a password if a key has one.
_TIME_LIMIT = 60


def render(data: object, context: RenderContext) -> object:
    """Renderer ``gpg``: return the data with every OpenPGP message decrypted, in texts, maps and lists.

    Options: gpg_keydir (directory of the keys), gpg_decrypt_must_succeed (False: a message that cannot be decrypted
    stays, and a warning is logged). Raise DataFault if a message cannot be decrypted, or if the program gpg is not
    installed.
    """
    program = shutil.which("gpg")
    if program is None:
        raise DataFault("GPG unavailable: the program gpg is not installed", 0)
    keys = _keys(context.opts)
    with _writable_home(keys) as home:
        return _Decryption(program, home, keys, bool(context.opts.get("gpg_decrypt_must_succeed", True))).value(data)


class _Decryption:
    """Decrypts the OpenPGP messages in nested data. Equal messages are decrypted once."""

    def __init__(self, program: str, home: str, keys: str, must_succeed: bool) -> None:
        self._command = [program, "--homedir", home, "--status-fd", "2", "--no-tty", "--batch", "-d"]
        self._keys = keys
        self._must_succeed = must_succeed
        self._known: dict[bytes, bytes] = {}

    def value(self, value: object) -> object:
        """Return a copy of nested maps and lists with every OpenPGP message in their texts replaced by its decrypted
        text.
        """
        if isinstance(value, str):
            return self._text(value) if _BEGIN in value else value
        if isinstance(value, Mapping):
            return {key: self.value(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.value(item) for item in value]
        return value

    def _text(self, text: str) -> str | bytes:
        found, count = _MESSAGE.subn(lambda message: self._message(message[0]), text.encode("utf-8", "surrogateescape"))
        # YAML adds a newline after a message of several lines.
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
        # Messages given on a command line have the two characters \n for a newline.
        message = message.replace(rb"\n", b"\n")
        try:
            done = subprocess.run(self._command, input=message, capture_output=True, timeout=_TIME_LIMIT, check=False)
            plain, output = done.stdout, done.stderr.decode("utf-8", "replace")
        except (OSError, subprocess.TimeoutExpired) as error:
            plain, output = b"", str(error)
        if plain:
            return plain
        reason = f"Could not decrypt cipher: {_reason(output)} (keys in {self._keys})"
        if self._must_succeed:
            raise DataFault(reason, 0)
        log.warning("%s", reason)
        return message


@contextmanager
def _writable_home(keys: str) -> Iterator[str]:
    """Yield a directory of GPG keys that gpg can write to: ``keys`` itself, or a private copy if ``keys`` is read-only.

    gpg puts locks and its agent's socket into the directory, which fails in a mounted secret. The copy and its agent
    are removed afterwards.
    """
    if not Path(keys).is_dir() or os.access(keys, os.W_OK):
        yield keys
        return
    # Imported here: few trees have keys in a read-only directory, and every process would load the module.
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
    """Return the file names that are not copied from a directory of GPG keys: sockets and locks of another agent, and
    Kubernetes' internal names (``..data``).
    """
    return [name for name in names if name.startswith(("S.", ".#", "..")) or name.endswith(".lock")]


def _reason(output: str) -> str:
    """Return the error messages in gpg's output in one line."""
    lines = [line.removeprefix("gpg: ") for line in lines_of(output) if not line.startswith("[GNUPG:]")]
    return "; ".join(line.strip() for line in lines if line.strip()) or "gpg gave no error message"


def _keys(opts: Mapping[str, object]) -> str:
    """Return the directory of the GPG keys: the option ``gpg_keydir``, else ``gpgkeys`` in the configuration directory."""
    configured = opts.get("config_dir") or os.path.split(str(opts.get("conf_file") or ""))[0] or "/etc/salt"
    return str(opts.get("gpg_keydir") or os.path.join(str(configured), "gpgkeys"))
