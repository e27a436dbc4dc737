"""Encryption and decryption with keys of NaCl: Salt's ``nacl`` execution module.

A sealed box is encrypted with a public key and decrypted with its secret key; a secret box needs the secret key for both. The
option ``nacl.config`` may hold ``box_type``, ``sk``, ``sk_file``, ``pk`` and ``pk_file``; arguments of the same names win. Files
that arguments name are the host's; those of the option, and ``master/nacl`` in ``pki_dir``, are the minion's own. The extra
``saltern-statecore[nacl]`` brings PyNaCl.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from nacl.exceptions import CryptoError
from nacl.public import PrivateKey, PublicKey, SealedBox
from nacl.secret import SecretBox

from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.errors import CommandError

#: Old names of arguments -> names today. With an old name, the box is a secret box.
_OLD = {"keyfile": "sk_file", "key": "sk"}

_BOXES = ("sealedbox", "secretbox")

_T = TypeVar("_T")

#: Modes of the files of a secret and of a public key.
_SECRET, _PUBLIC = 0o600, 0o644


def keygen(ctx: Context, sk_file: str | None = None, pk_file: str | None = None, **kwargs: object) -> object:
    """Make a pair of keys. Return the map of ``sk`` and ``pk`` in base64, or the sentence that says where they were written.

    sk_file
        file for the secret key, with mode 0600. If it exists, only the public key is written
    pk_file
        file for the public key; default: ``sk_file`` with the suffix ``.pub``

    Raise CommandError if both files exist, or a file cannot be read or written.

    CLI Example:

        salt '*' nacl.keygen sk_file=/etc/app/nacl
    """
    named = str(kwargs.get("keyfile") or sk_file or "")
    if not named:
        if pk_file:
            raise CommandError("sk_file: Must be set inorder to generate a public key.")
        pair = PrivateKey.generate()
        return {"sk": _text(pair.encode()), "pk": _text(pair.public_key.encode())}
    public = str(pk_file or f"{named}.pub")
    secret_path, public_path = ctx.host.path(named), ctx.host.path(public)
    if secret_path.is_file() and public_path.is_file():
        raise CommandError(f"sk_file:{named} and pk_file:{public} already exist.")
    if secret_path.is_file():
        pair = _called(lambda: PrivateKey(_bytes(_read(secret_path, named))), "sk_file")
        _write(ctx, public_path, public, _text(pair.public_key.encode()), _PUBLIC)
        return f"saved pk_file: {public}"
    pair = PrivateKey.generate()
    _write(ctx, secret_path, named, _text(pair.encode()), _SECRET)
    _write(ctx, public_path, public, _text(pair.public_key.encode()), _PUBLIC)
    return f"saved sk_file:{named}  pk_file: {public}"


def enc(ctx: Context, data: object, **kwargs: object) -> str:
    """Encrypt a text as ``box_type`` says (``sealedbox``, the default, or ``secretbox``). Return it in base64.

    The arguments are those of ``sealedbox_encrypt`` and ``secretbox_encrypt``. ``key`` and ``keyfile`` are old names of ``sk``
    and ``sk_file``, which mean a secret box.

    CLI Example:

        salt '*' nacl.enc mypassword pk='vrwQF7cNiNAVQVAiS3bvcbJUnF0cN6fU9YTZD9mBfzQ='
    """
    settings = _Settings(ctx, kwargs)
    return (secretbox_encrypt if settings.kind() == "secretbox" else sealedbox_encrypt)(ctx, data, **settings.given)


def enc_file(ctx: Context, name: str, out: str | None = None, **kwargs: object) -> str:
    """Encrypt a file, as ``enc`` does a text. Return the text in base64, or the sentence that says where it was written.

    name
        path of the host, or a URL
    out
        path of the host for the encrypted text; it must not exist

    CLI Example:

        salt '*' nacl.enc_file name=salt://crt/mycert out=/tmp/cert
    """
    return _of_file(ctx, name, out, lambda data: enc(ctx, data, **kwargs))


def dec(ctx: Context, data: object, **kwargs: object) -> object:
    """Decrypt data in base64 as ``box_type`` says (``sealedbox``, the default, or ``secretbox``). Return the text, or bytes
    that are no text.

    The arguments are those of ``sealedbox_decrypt`` and ``secretbox_decrypt``. ``key`` and ``keyfile`` are old names of ``sk``
    and ``sk_file``, which mean a secret box.

    CLI Example:

        salt '*' nacl.dec pEXHQM6cuaF7A=
    """
    settings = _Settings(ctx, kwargs)
    return (secretbox_decrypt if settings.kind() == "secretbox" else sealedbox_decrypt)(ctx, data, **settings.given)


def dec_file(ctx: Context, name: str, out: str | None = None, **kwargs: object) -> object:
    """Decrypt a file, as ``dec`` does data. Return the text, or the sentence that says where it was written.

    name
        path of the host, or a URL
    out
        path of the host for the decrypted text; it must not exist

    CLI Example:

        salt '*' nacl.dec_file name=salt://crt/mycert.nacl out=/tmp/id_rsa
    """
    return _of_file(ctx, name, out, lambda data: dec(ctx, data, **kwargs))


def sealedbox_encrypt(ctx: Context, data: object, **kwargs: object) -> str:
    """Encrypt a text with a public key. Return it in base64; only the secret key decrypts it.

    pk, pk_file
        the public key in base64, or its file

    CLI Example:

        salt '*' nacl.sealedbox_encrypt datatoenc pk_file=/etc/app/nacl.pub
    """
    key = _Settings(ctx, kwargs).key("pk", "no pubkey or pk_file found")
    box = _called(lambda: SealedBox(PublicKey(key)), "pk")
    return _text(_called(lambda: box.encrypt(_data(data)), "data"))


def sealedbox_decrypt(ctx: Context, data: object, **kwargs: object) -> object:
    """Decrypt data in base64 that ``sealedbox_encrypt`` made. Return the text, or bytes that are no text.

    sk, sk_file
        the secret key in base64, or its file

    CLI Example:

        salt '*' nacl.sealedbox_decrypt pEXHQM6cuaF7A= sk_file=/etc/app/nacl
    """
    if data is None:
        return None
    key = _Settings(ctx, kwargs).key("sk", "no key or sk_file found")
    box = _called(lambda: SealedBox(PrivateKey(key)), "sk")
    return _plain(_called(lambda: box.decrypt(_bytes(data)), "data"))


def secretbox_encrypt(ctx: Context, data: object, **kwargs: object) -> str:
    """Encrypt a text with a secret key. Return it in base64; the same key decrypts it.

    sk, sk_file
        the secret key in base64, or its file

    CLI Example:

        salt '*' nacl.secretbox_encrypt datatoenc sk_file=/etc/app/nacl
    """
    key = _Settings(ctx, kwargs).key("sk", "no key or sk_file found")
    box = _called(lambda: SecretBox(key), "sk")
    return _text(_called(lambda: box.encrypt(_data(data)), "data"))


def secretbox_decrypt(ctx: Context, data: object, **kwargs: object) -> object:
    """Decrypt data in base64 that ``secretbox_encrypt`` made. Return the text, or bytes that are no text.

    sk, sk_file
        the secret key in base64, or its file

    CLI Example:

        salt '*' nacl.secretbox_decrypt pEXHQM6cuaF7A= sk_file=/etc/app/nacl
    """
    if data is None:
        return None
    key = _Settings(ctx, kwargs).key("sk", "no key or sk_file found")
    box = _called(lambda: SecretBox(key), "sk")
    return _plain(_called(lambda: box.decrypt(_bytes(data)), "data"))


class _Settings:
    """The arguments of a call over the option ``nacl.config``."""

    def __init__(self, ctx: Context, given: Mapping[str, object]) -> None:
        self._ctx = ctx
        #: The arguments under their names of today.
        self.given = {_OLD.get(name, name): value for name, value in given.items()}
        if self.given.keys() != given.keys():
            self.given["box_type"] = "secretbox"
        config = ctx.call("config.get", "nacl.config", {})
        self._config: Mapping[str, object] = config if isinstance(config, Mapping) else {}

    def kind(self) -> str:
        """Return the name of the box. Raise CommandError for an unknown one."""
        kind = str(self.given.get("box_type") or self._config.get("box_type") or _BOXES[0])
        if kind not in _BOXES:
            raise CommandError(f"box_type is {' or '.join(_BOXES)}, not '{kind}'")
        return kind

    def key(self, name: str, missing: str) -> bytes:
        """Return the key ``sk`` or ``pk``, 32 bytes. Raise CommandError with the words ``missing`` if there is none."""
        file = f"{name}_file"
        text = self.given.get(name) or (None if self.given.get(file) else self._config.get(name))
        if not text:
            path = str(self.given.get(file) or "")
            own = Path(str(self._config.get(file) or Path(str(self._ctx.opts.get("pki_dir", "")), _DEFAULTS[name])))
            try:
                text = _read(self._ctx.host.path(path), path) if path else _read(own, str(own))
            except CommandError as error:
                raise CommandError(f"{missing}: {error}") from error
        return _bytes(text)


#: Kind of key -> its usual file in ``pki_dir``.
_DEFAULTS = {"sk": "master/nacl", "pk": "master/nacl.pub"}


def _of_file(ctx: Context, name: str, out: str | None, work: Callable[[object], object]) -> str:
    if out and ctx.host.path(out).is_file():
        raise CommandError(f"file:{out} already exist.")
    data = ctx.call("cp.get_file_str", name)
    if data is False or data is None:
        raise CommandError(f"there is no file {name}")
    result = work(data)
    if not out:
        return result if isinstance(result, str) else _text(_data(result))
    _write(ctx, ctx.host.path(out), out, result if isinstance(result, bytes) else str(result), _SECRET)
    return f"Wrote: {out}"


def _read(path: Path, name: str) -> str:
    try:
        return path.read_text("ascii").rstrip("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{name} cannot be read: {error}") from error


def _write(ctx: Context, path: Path, name: str, text: str | bytes, mode: int) -> None:
    data = text if isinstance(text, bytes) else text.encode()
    try:
        managed_file.replace(ctx.host, path, data, Attributes(mode=mode))
    except OSError as error:
        raise CommandError(f"{name} cannot be written: {error.strerror}") from error


def _called(make: Callable[[], _T], what: str) -> _T:
    """Return what PyNaCl returns. Raise CommandError, which names the argument, for a wrong key or data."""
    try:
        return make()
    except (CryptoError, TypeError, ValueError) as error:
        raise CommandError(f"{what}: {error}") from error


def _bytes(text: object) -> bytes:
    try:
        return base64.b64decode(_data(text))
    except binascii.Error as error:
        raise CommandError(f"not base64: {error}") from error


def _data(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _plain(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data
