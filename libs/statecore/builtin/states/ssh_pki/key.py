"""The states ``ssh_pki.private_key_managed`` and ``ssh_pki.public_key_managed``: keys of OpenSSH in files."""

from __future__ import annotations

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.types import Plan
from statecore.system.certificates import issuing, references
from statecore.system.certificates.arguments import passphrase as password
from statecore.system.certificates.loading import MissingPassword, WrongPassword
from statecore.system.certificates.state_file import FaultOfCall, ManagedFile, need_nothing_more, split
from statecore.system.ssh_certificates import keys

_REGENERATE = "Pass overwrite: true to force regeneration"

_NOT_LOADED = (
    ". Note that the source could not be loaded, so this assessment relies on the source being created beforehand"
)


def private_key_managed(
    ctx: Context,
    name: str,
    algo: str = "rsa",
    keysize: int | None = None,
    passphrase: str | None = None,
    new: bool = False,
    overwrite: bool = False,
    check_cmd: str | None = None,
    **kwargs: object,
) -> Plan:
    """Create a private key of OpenSSH. An existing key is kept if it has the wanted type and size. Default mode: 0400.

    algo, keysize
        rsa (2048, 3072, 4096; default 3072), ec (256, 384, 521; default 256), ed25519
    passphrase
        encrypt the key with this passphrase. A key without one is encrypted and stays the same key.
    new
        True: create a new key in each run. Use it with ``prereq`` on a certificate that is recreated.
    overwrite
        True: replace an existing file that cannot be read as a key with this passphrase
    user, group, mode, makedirs, …
        as in ``file.managed``
    """
    try:
        given, rest = split({**kwargs, "check_cmd": check_cmd})
        need_nothing_more(rest)
        size = keys.need_size(algo, keysize)
        locked = password("passphrase", passphrase)
        file = ManagedFile.of(ctx, name, given, mode="0400")
        changes: dict[str, object] = {}
        current = None
        if file.old is not None and not new:
            current, changes = _current(file.old, locked, overwrite=overwrite)
        if current is not None:
            changes |= _differences(current, algo, size)
        else:
            changes["created" if file.old is None else "replaced"] = name
    except FaultOfCall as error:
        return Plan.failed(str(error))

    def make() -> bytes:
        kept = current is not None and set(changes) == {"passphrase"}
        return keys.encoded_private(current if current and kept else keys.make_key(algo, size), locked)

    done = "encrypted" if set(changes) == {"passphrase"} else ""
    return file.plan("private key", changes, make, again=file.old is not None, done=done)


def public_key_managed(
    ctx: Context,
    name: str,
    public_key_source: object,
    passphrase: str | None = None,
    check_cmd: str | None = None,
    **kwargs: object,
) -> Plan:
    """Write the public key of a private key, certificate or public key of OpenSSH to a file.

    public_key_source
        a path of the host, or the content
    passphrase
        the passphrase of ``public_key_source``
    user, group, mode, makedirs, …
        as in ``file.managed``
    """
    source: keys.PublicKey | None = None
    found = True
    try:
        given, rest = split({**kwargs, "check_cmd": check_cmd})
        need_nothing_more(rest)
        locked = password("passphrase", passphrase)
        file = ManagedFile.of(ctx, name, given)
        try:
            source = keys.any_public_key(keys.content(ctx.host, public_key_source), locked)
        except references.NoSuchFile:
            # An earlier state may create the missing file. Applying the state fails if it does not.
            found = False
        current = None if file.old is None else keys.public_key(file.old)
    except FaultOfCall as error:
        return Plan.failed(str(error))
    changes: dict[str, object] = {}
    if source is None or current is None or not issuing.same_key(source, current):
        changes["created" if current is None else "updated"] = name

    def make() -> bytes:
        return (
            f"{keys.encoded_public(keys.any_public_key(keys.content(ctx.host, public_key_source), locked))}\n".encode()
        )

    note = "" if found else _NOT_LOADED
    return file.plan("public key", changes, make, again=current is not None, verb="update", note=note)


def _current(data: bytes, locked: str | None, *, overwrite: bool) -> tuple[keys.PrivateKey | None, dict[str, object]]:
    """Return (existing private key, {"passphrase": True} or {}). The map says whether the passphrase changes. The key is
    None if it cannot be read and ``overwrite`` allows a new one. Raise CommandError if it cannot be read otherwise.
    """
    try:
        return keys.private_key(data, locked), {}
    except keys.NeedlessPassword:
        return keys.private_key(data), {"passphrase": True}
    except WrongPassword as error:
        if overwrite:
            return None, {"passphrase": True}
        raise CommandError(f"The provided passphrase cannot decrypt the private key. {_REGENERATE}") from error
    except MissingPassword as error:
        if overwrite:
            return None, {"passphrase": True}
        raise CommandError(f"The current key is encrypted with a passphrase. {_REGENERATE}") from error
    except keys.NotReadable as error:
        if overwrite:
            return None, {}
        raise CommandError(f"The existing file does not seem to be a private key. {_REGENERATE}") from error


def _differences(current: keys.PrivateKey, algo: str, size: int | None) -> dict[str, object]:
    if issuing.key_type(current) != algo:
        return {"algo": algo}
    return {"keysize": size} if size is not None and issuing.key_size(current) != size else {}
