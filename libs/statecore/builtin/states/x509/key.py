"""The states ``x509.private_key_managed`` and ``x509.pem_managed``: create a private key in a file, and write PEM text
to a file.
"""

from __future__ import annotations

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.types import Plan
from statecore.system.certificates import issuing, loading, policies
from statecore.system.certificates.arguments import passphrase as password
from statecore.system.certificates.state_file import FaultOfCall, ManagedFile, need_nothing_more, split


def private_key_managed(
    ctx: Context,
    name: str,
    algo: str = "rsa",
    keysize: int | None = None,
    passphrase: str | None = None,
    encoding: str = "pem",
    new: bool = False,
    overwrite: bool = False,
    pkcs12_encryption_compat: bool = False,
    bits: int | None = None,
    check_cmd: str | None = None,
    **kwargs: object,
) -> Plan:
    """Create a private key. An existing key is kept if it has the wanted type, size and encoding. Default mode: 0400.

    algo, keysize
        rsa (2048, 3072, 4096), ec (256, 384, 521), ed25519, ed448
    passphrase
        encrypt the key with this passphrase
    encoding
        pem, der or pkcs12
    new
        True: create a new key in each run. Use it with ``prereq`` on a certificate that is recreated.
    overwrite
        True: replace an existing file that cannot be read as a key
    user, group, mode, makedirs, …
        as in ``file.managed``
    """
    try:
        given, rest = split({**kwargs, "check_cmd": check_cmd})
        rest = policies.short(rest)
        need_nothing_more(rest)
        issuing.need_encoding(encoding, issuing.KEYS)
        size = issuing.need_size(algo, bits or keysize)
        locked = password("passphrase", passphrase)
        file = ManagedFile.of(ctx, name, given, mode="0400")
        changes: dict[str, object] = {}
        current = None
        if file.old is not None and new:
            changes["replaced"] = name
        elif file.old is not None:
            current, changes = _current(file.old, locked, overwrite=overwrite)
        if current is not None:
            changes |= _differences(current, algo, size, encoding)
        elif "replaced" not in changes:
            changes["created"] = name
        if file.unlinks:
            changes["replaced"] = name
    except FaultOfCall as error:
        return Plan.failed(str(error))

    def make() -> bytes:
        kept = current is not None and not set(changes) - {"encoding", "passphrase"}
        key = current.key if current and kept else issuing.make_key(algo, size)
        return issuing.encoded_key(key, encoding, locked, pkcs12_encryption_compat)

    return file.plan("private key", changes, make, again=file.old is not None)


def pem_managed(ctx: Context, name: str, text: object, check_cmd: str | None = None, **kwargs: object) -> Plan:
    """Write a PEM entry to a file, in normalized form. ``text``: the PEM text, or the path of a file that contains it.

    user, group, mode, makedirs, …
        as in ``file.managed``
    """
    try:
        given, rest = split({**kwargs, "check_cmd": check_cmd})
        rest = policies.short(rest)
        need_nothing_more(rest)
        entry = ctx.call("x509.get_pem_entry", text)
        file = ManagedFile.of(ctx, name, given)
    except FaultOfCall as error:
        return Plan.failed(str(error))
    return file.plan_of(entry.encode())


def _current(data: bytes, locked: str | None, *, overwrite: bool) -> tuple[loading.LoadedKey | None, dict[str, object]]:
    """Return (existing private key, {"passphrase": True} or {}). The map says whether the passphrase of the key
    changes. The key is None if it cannot be read and ``overwrite`` allows a new one. Raise CommandError if it cannot be
    read otherwise.
    """
    try:
        return loading.key(data, locked), {}
    except loading.NeedlessPassword:
        return loading.key(data), {"passphrase": True}
    except loading.WrongPassword as error:
        if overwrite:
            return None, {"passphrase": True}
        raise CommandError(
            "The provided passphrase cannot decrypt the private key. Pass overwrite: true to force regeneration"
        ) from error
    except loading.MissingPassword as error:
        if overwrite:
            return None, {"passphrase": True}
        raise CommandError(
            "The existing file is encrypted. Pass overwrite: true to force regeneration without passphrase"
        ) from error
    except loading.NotReadable as error:
        if overwrite:
            return None, {}
        raise CommandError(
            "The existing file does not seem to be a private key formatted as DER, PEM or embedded in PKCS12. "
            "Pass overwrite: true to force regeneration"
        ) from error


def _differences(current: loading.LoadedKey, algo: str, size: int | None, encoding: str) -> dict[str, object]:
    found: dict[str, object] = {}
    if issuing.key_type(current.key) != algo:
        found["algo"] = algo
    elif size is not None and issuing.key_size(current.key) != size:
        found["keysize"] = size
    if current.encoding != encoding:
        found["encoding"] = encoding
    return found
