"""The renderer ``nacl``: decrypts the values ``NACL[...]`` of data, by PyNaCl (extra ``saltern-statecore[nacl]``).

The option ``nacl.config`` is a map: ``box_type`` (sealedbox or secretbox), ``sk`` (the secret key in base64) or ``sk_file``
(default: ``master/nacl`` in ``pki_dir``). ``key`` and ``keyfile`` are their old names, which mean secretbox.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from statecore.model.errors import CommandError, DataFault
from statecore.render.context import RenderContext

_MESSAGE = re.compile(r"NACL\[(.*)\]")


def render(data: object, context: RenderContext) -> object:
    """Renderer ``nacl``: return the data with every value ``NACL[...]`` decrypted, in texts, maps and lists. Raise DataFault
    if a value cannot be decrypted.
    """
    try:
        return decrypted(data, context.opts)
    except CommandError as error:
        raise DataFault(str(error), 0) from error


def decrypted(data: object, opts: Mapping[str, object]) -> object:
    """Return a copy of nested maps and lists with every text ``NACL[...]`` decrypted.

    ``opts`` are the options. Raise CommandError if there is no key, or a text cannot be decrypted.
    """
    return _value(data, _Box(opts))


def _value(value: object, box: _Box) -> object:
    if isinstance(value, str):
        found = _MESSAGE.fullmatch(value.removesuffix("\n"))
        return value if found is None else box.opened(found[1])
    if isinstance(value, Mapping):
        return {key: _value(item, box) for key, item in value.items()}
    if isinstance(value, list):
        return [_value(item, box) for item in value]
    return value


class _Box:
    """Decrypts messages with PyNaCl. The key is read, and PyNaCl imported, at the first message."""

    def __init__(self, opts: Mapping[str, object]) -> None:
        self._opts = opts
        self._open: Callable[[bytes], bytes] | None = None

    def opened(self, message: str) -> str | bytes:
        """Decrypt a message in base64. Return its text, or bytes if it is not UTF-8. Raise CommandError if it cannot
        be decrypted.
        """
        if self._open is None:
            self._open = _opener(self._opts)
        try:
            plain = self._open(base64.b64decode(message))
        # PyNaCl's CryptoError, and the errors of base64.
        except Exception as error:
            raise CommandError(f"NACL[{message[:8]}...] cannot be decrypted with this key: {error}") from error
        try:
            return plain.decode()
        except UnicodeDecodeError:
            return plain


def _opener(opts: Mapping[str, object]) -> Callable[[bytes], bytes]:
    try:
        # Optional, and a C library: imported when the first message is there.
        from nacl.public import PrivateKey, SealedBox
        from nacl.secret import SecretBox
    except ImportError as error:
        raise CommandError("PyNaCl is not installed here: install saltern-statecore[nacl]") from error
    given = opts.get("nacl.config")
    config = given if isinstance(given, Mapping) else {}
    old = bool(config.get("key") or config.get("keyfile"))
    kind = str(config.get("box_type") or ("secretbox" if old else "sealedbox"))
    if kind not in ("sealedbox", "secretbox"):
        raise CommandError(f"nacl.config: the box_type is sealedbox or secretbox, not '{kind}'")
    text = config.get("sk") or config.get("key")
    file = Path(
        str(config.get("sk_file") or config.get("keyfile") or Path(str(opts.get("pki_dir", "")), "master/nacl"))
    )
    try:
        key = base64.b64decode(str(text) if text else file.read_text("ascii"))
        opened: Callable[[bytes], bytes] = (
            SealedBox(PrivateKey(key)).decrypt if kind == "sealedbox" else SecretBox(key).decrypt
        )
    except OSError as error:
        raise CommandError(
            f"nacl.config names no key, and the key file {file} cannot be read: {error.strerror}"
        ) from error
    except Exception as error:
        raise CommandError(f"the key of nacl.config is no key of 32 bytes in base64: {error}") from error
    return opened
