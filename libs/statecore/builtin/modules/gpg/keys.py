"""Functions of ``gpg`` for keys: list, make, import, export, trust, delete."""

from __future__ import annotations

import socket
from typing import Any

from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.errors import InvocationError
from statecore.model.text_lines import lines_of
from statecore.system.gpg_program import Gpg, GpgOutput, parse_keys, passphrase_of

_KEY_SERVER = "keys.openpgp.org"

#: Salt's word for a trust -> gpg's number, and Salt's word in messages.
_LEVELS = {
    "expired": ("1", "Expired"),
    "unknown": ("2", "Unknown"),
    "not_trusted": ("3", "Not Trusted"),
    "marginally": ("4", "Marginally"),
    "fully": ("5", "Fully Trusted"),
    "ultimately": ("6", "Ultimately Trusted"),
}

#: Bits of gpg's number for an imported key -> what became of it.
_IMPORTED = {
    "1": "added to keychain",
    "0": "already exists in keychain",
    "4": "updated: new signatures",
    "8": "updated: new subkeys",
}


def list_keys(
    ctx: Context, user: str | None = None, gnupghome: str | None = None, keyring: str | None = None
) -> list[dict[str, Any]]:
    """Return the public keys of a user: a list of maps with ``keyid``, ``uids``, ``fingerprint``, ``created``, ``keyLength``,
    ``trust``, ``ownerTrust``, ``expires``, ``expired`` and ``subkeys``.

    CLI Example:

        salt '*' gpg.list_keys user=ann
    """
    return Gpg.of(ctx, user, gnupghome, keyring).keys()


def list_secret_keys(
    ctx: Context, user: str | None = None, gnupghome: str | None = None, keyring: str | None = None
) -> list[dict[str, Any]]:
    """Return the secret keys of a user, in the form of ``gpg.list_keys``.

    CLI Example:

        salt '*' gpg.list_secret_keys user=ann
    """
    return Gpg.of(ctx, user, gnupghome, keyring).keys(secret=True)


def get_key(
    ctx: Context,
    keyid: str | None = None,
    fingerprint: str | None = None,
    user: str | None = None,
    gnupghome: str | None = None,
    keyring: str | None = None,
) -> dict[str, Any] | bool:
    """Return one public key of a user in the form of ``gpg.list_keys``, found by its long or short id or its
    fingerprint. Return False if the user does not have it.

    CLI Example:

        salt '*' gpg.get_key keyid=3FAD9F1E
    """
    return _found(list_keys(ctx, user, gnupghome, keyring), keyid, fingerprint)


def get_secret_key(
    ctx: Context,
    keyid: str | None = None,
    fingerprint: str | None = None,
    user: str | None = None,
    gnupghome: str | None = None,
    keyring: str | None = None,
) -> dict[str, Any] | bool:
    """Return one secret key of a user in the form of ``gpg.list_keys``, found by its long or short id or its
    fingerprint. Return False if the user does not have it.

    CLI Example:

        salt '*' gpg.get_secret_key keyid=3FAD9F1E
    """
    return _found(list_secret_keys(ctx, user, gnupghome, keyring), keyid, fingerprint)


def search_keys(
    ctx: Context, text: str, keyserver: str | None = None, user: str | None = None, gnupghome: str | None = None
) -> list[dict[str, Any]]:
    """Return the OpenPGP keys that a key server finds for a text, such as a name or an address: a list of maps in
    the form of ``gpg.list_keys``, without ``fingerprint``.

    CLI Example:

        salt '*' gpg.search_keys ann@example.com
    """
    words = ["--with-colons", "--keyserver", keyserver or _KEY_SERVER, "--search-keys", text]
    listing = Gpg.of(ctx, user, gnupghome).run(words).stdout
    rows = []
    for line in lines_of(listing):
        row = line.split(":")
        # A key server's record: pub:keyid:algorithm:length:created:expires:flags
        if row[0] == "pub" and len(row) > 5:
            rows.append(":".join(["pub", "", row[3], row[2], row[1], row[4], row[5]]))
        elif row[0] == "uid" and len(row) > 1:
            rows.append(":".join(["uid", *[""] * 8, row[1]]))
    return [{key: value for key, value in each.items() if key != "fingerprint"} for each in parse_keys("\n".join(rows))]


def read_key(
    ctx: Context,
    path: str | None = None,
    text: str | None = None,
    fingerprint: str | None = None,
    keyid: str | None = None,
    user: str | None = None,
    gnupghome: str | None = None,
) -> list[dict[str, Any]]:
    """Return the keys in a file of the host or in a text, without importing them, in the form of ``gpg.list_keys``.

    fingerprint, keyid
        only this key

    CLI Example:

        salt '*' gpg.read_key /srv/ann.asc
    """
    if not (path or text):
        raise InvocationError("Either `path` or `text` is required.")
    if path and text:
        raise InvocationError("`path` and `text` are mutually exclusive.")
    words = ["--with-colons", "--fixed-list-mode", "--import-options", "import-show", "--dry-run", "--import"]
    output = Gpg.of(ctx, user, gnupghome).run([*words, *([path] if path else [])], text or "")
    keys = parse_keys(output.stdout, subkeys=False)
    return [key for key in keys if not (fingerprint or keyid) or _is(key, keyid, fingerprint)]


def create_key(
    ctx: Context,
    key_type: str = "RSA",
    key_length: int = 1024,
    name_real: str = "Autogenerated Key",
    name_comment: str = "Generated by SaltStack",
    name_email: str | None = None,
    subkey_type: str | None = None,
    subkey_length: int | None = None,
    expire_date: str | None = None,
    use_passphrase: bool = False,
    user: str | None = None,
    gnupghome: str | None = None,
    keyring: str | None = None,
) -> dict[str, Any]:
    """Make a pair of OpenPGP keys. Return a map with ``res`` (whether this succeeded), ``fingerprint`` and
    ``message``.

    name_real, name_comment, name_email
        parts of the user id; the address is by default the user's at this host
    expire_date
        date (2030-01-01), or a time such as 2y
    use_passphrase
        True: protect the secret key by the passphrase of the pillar

    CLI Example:

        salt '*' gpg.create_key key_length=4096 name_email=ann@example.com
    """
    failed = {"res": False, "fingerprint": ""}
    try:
        passphrase = passphrase_of(ctx, use_passphrase)
    except InvocationError as error:
        return failed | {"message": str(error)}
    address = name_email or f"{user or 'root'}@{ctx.grains.get('host') or socket.gethostname()}"
    rows = {
        "Key-Type": key_type,
        "Key-Length": key_length,
        "Name-Real": name_real,
        "Name-Comment": name_comment,
        "Name-Email": address,
        "Subkey-Type": subkey_type,
        "Subkey-Length": subkey_length,
        "Expire-Date": expire_date,
    }
    wrong = [name for name, value in rows.items() if "\n" in str(value)]
    if wrong:
        raise InvocationError(f"{', '.join(wrong)}: a line end would be another instruction for gpg")
    lines = [f"{name}: {value}" for name, value in rows.items() if value]
    lines.append("%no-protection" if passphrase is None else f"Passphrase: {passphrase}")
    text = "\n".join([*lines, "%commit", ""])
    made = Gpg.of(ctx, user, gnupghome, keyring).run(["--gen-key"], text).all("KEY_CREATED")
    if not made:
        return failed | {"message": "Unable to generate GPG key pair."}
    return {"res": True, "fingerprint": made[0][1], "message": "GPG key pair successfully generated."}


def delete_key(
    ctx: Context,
    keyid: str | None = None,
    fingerprint: str | None = None,
    delete_secret: bool = False,
    user: str | None = None,
    gnupghome: str | None = None,
    use_passphrase: bool = True,
    keyring: str | None = None,
) -> dict[str, Any]:
    """Delete an OpenPGP key of a user. Return a map with ``res`` (whether this succeeded) and ``message``.

    delete_secret
        True: also delete the secret key; without it, a key with a secret key stays
    use_passphrase
        True: the secret key needs the passphrase of the pillar

    CLI Example:

        salt '*' gpg.delete_key keyid=3FAD9F1E
    """
    if fingerprint and keyid:
        return {"res": False, "message": "Only specify one argument, fingerprint or keyid"}
    if not (fingerprint or keyid):
        return {"res": False, "message": "Required argument, fingerprint or keyid"}
    gpg = Gpg.of(ctx, user, gnupghome, keyring)
    key = _found(gpg.keys(), keyid, fingerprint)
    if not isinstance(key, dict):
        return {"res": False, "message": "Key not available in keychain."}
    name, message = str(key["fingerprint"]), ""
    if _found(gpg.keys(secret=True), keyid, name):
        if not delete_secret:
            return {"res": False, "message": "Secret key exists, delete first or pass delete_secret=True."}
        failed = f"Failed to delete secret key for {name}: "
        try:
            passphrase = passphrase_of(ctx, use_passphrase)
        except InvocationError as error:
            return {"res": False, "message": f"{failed}{error}"}
        if problem := _problem(gpg.run(["--delete-secret-keys", name], passphrase=passphrase)):
            return {"res": False, "message": f"{failed}{problem}"}
        message = f"Secret key for {name} deleted\n"
    if problem := _problem(gpg.run(["--delete-keys", name])):
        return {"res": False, "message": f"{message}Failed to delete public key for {name}: {problem}"}
    return {"res": True, "message": f"{message}Public key for {name} deleted"}


def import_key(
    ctx: Context,
    text: str | None = None,
    filename: str | None = None,
    user: str | None = None,
    gnupghome: str | None = None,
    keyring: str | None = None,
    select: object = None,
) -> dict[str, Any]:
    """Import the OpenPGP keys of a text or of a file of the host. Return a map with ``res`` (whether this
    succeeded), ``message`` and ``fingerprints``.

    select
        key id, fingerprint or list of them: import only these keys

    CLI Example:

        salt '*' gpg.import_key filename=/srv/ann.asc
    """
    if not (text or filename):
        raise InvocationError("filename or text must be passed.")
    if text and filename:
        raise InvocationError("filename and text are mutually exclusive.")
    if filename and not ctx.host.path(filename).is_file():
        raise InvocationError("filename does not exist.")
    data = text.encode() if text else ctx.host.path(str(filename)).read_bytes()
    chosen = [str(each) for each in (select if isinstance(select, list) else [select]) if each]
    if chosen:
        aside = ctx.call("temp.file")
        try:
            gpg = Gpg.of(ctx, user, gnupghome, aside)
            answer = _imported(gpg.run(["--import"], data))
            if not answer["res"]:
                return answer
            data = gpg.run(["--armor", "--export", *chosen]).stdout.encode()
        finally:
            for name in (aside, f"{aside}~"):
                ctx.host.path(name).unlink(missing_ok=True)
        if not data:
            return {"res": True, "message": "After filtering, no keys to import were left.", "fingerprints": []}
    return _imported(Gpg.of(ctx, user, gnupghome, keyring).run(["--import"], data))


def export_key(
    ctx: Context,
    keyids: object = None,
    secret: bool = False,
    user: str | None = None,
    gnupghome: str | None = None,
    use_passphrase: bool = False,
    output: str | None = None,
    bare: bool = False,
    keyring: str | None = None,
) -> dict[str, Any] | str | bool:
    """Return the armored text of OpenPGP keys as ``comment`` of a map with ``res``; ``{"res": False}`` if there is
    none.

    keyids
        list of ids or fingerprints, or text with commas; default: all keys
    secret
        True: the secret keys
    output
        file of the host to which the text is written instead; a file of secret keys has the mode 0600
    bare
        True: return only the text, False if there is none

    CLI Example:

        salt '*' gpg.export_key keyids=3FAD9F1E
    """
    named = (
        keyids.split(",")
        if isinstance(keyids, str)
        else [str(each) for each in keyids]
        if isinstance(keyids, list)
        else []
    )
    passphrase = passphrase_of(ctx, secret and use_passphrase)
    gpg = Gpg.of(ctx, user, gnupghome, keyring)
    text = gpg.run(["--armor", "--export-secret-keys" if secret else "--export", *named], passphrase=passphrase).stdout
    if not text:
        return False if bare else {"res": False}
    if output:
        managed_file.replace(ctx.host, ctx.host.path(output), text.encode(), Attributes(mode=0o600 if secret else None))
    if bare:
        return text
    return {"res": True, "comment": f"Exported key data has been written to {output}" if output else text}


def receive_keys(
    ctx: Context,
    keyserver: str | None = None,
    keys: object = None,
    user: str | None = None,
    gnupghome: str | None = None,
    keyring: str | None = None,
) -> dict[str, Any]:
    """Fetch OpenPGP keys from a key server. Return a map with ``res`` (whether all were imported) and ``message``, a
    list with a sentence for each key.

    keys
        list of ids or fingerprints, or text with commas

    CLI Example:

        salt '*' gpg.receive_keys keys="['3FAD9F1E','4FBD9F1E']"
    """
    named = keys.split(",") if isinstance(keys, str) else [str(each) for each in keys] if isinstance(keys, list) else []
    wrong = [each for each in named if each.startswith("-")]
    if wrong:
        raise InvocationError(f"{', '.join(wrong)}: no key id")
    gpg = Gpg.of(ctx, user, gnupghome, keyring)
    output = gpg.run(["--keyserver", keyserver or _KEY_SERVER, "--recv-keys", *named])
    done = [(row[0], row[1]) for row in output.all("IMPORT_OK")]
    message = [f"Key {name} {_IMPORTED[reason]}" for reason, name in done if reason in _IMPORTED]
    message += [f"Unable to add key to keychain: {' '.join(row)}" for row in output.all("IMPORT_PROBLEM")]
    good = bool(done) and not _not_imported(output)
    return {"res": good, "message": message if good else [*message, f"GPG reported failure: {output.stderr}"]}


def trust_key(
    ctx: Context,
    keyid: str | None = None,
    fingerprint: str | None = None,
    trust_level: str | None = None,
    user: str | None = None,
    gnupghome: str | None = None,
    keyring: str | None = None,
) -> dict[str, Any]:
    """Set the trust in the owner of an OpenPGP key. Return a map with ``res`` (whether this succeeded), ``message``
    and ``fingerprint``. Raise InvocationError for an unknown level.

    trust_level
        expired, unknown, not_trusted, marginally, fully or ultimately

    CLI Example:

        salt '*' gpg.trust_key keyid=3FAD9F1E trust_level=marginally
    """
    if bool(keyid) == bool(fingerprint):
        raise InvocationError("Exactly one of keyid or fingerprint is required")
    if trust_level not in _LEVELS:
        raise InvocationError(f"ERROR: Valid trust levels - {','.join(_LEVELS)}")
    gpg = Gpg.of(ctx, user, gnupghome, keyring)
    key = _found(gpg.keys(), keyid, fingerprint)
    if not isinstance(key, dict):
        return {"res": False, "message": f"Key {keyid or fingerprint} not in GPG keychain"}
    name = fingerprint or str(key["fingerprint"])
    number, shown = _LEVELS[trust_level]
    output = gpg.run(["--import-ownertrust"], f"{name}:{number}:\n")
    if output.retcode:
        return {"res": False, "message": output.stderr}
    return {"res": True, "message": f"Setting ownership trust to {shown}.", "fingerprint": name}


# -------------------------------------------------------------------------------------------------- helpers


def _is(key: dict[str, Any], keyid: str | None, fingerprint: str | None) -> bool:
    own = str(key["keyid"])
    return key["fingerprint"] == fingerprint or (keyid is not None and keyid in (own, own[8:]))


def _found(keys: list[dict[str, Any]], keyid: str | None, fingerprint: str | None) -> dict[str, Any] | bool:
    return next((key for key in keys if _is(key, keyid, fingerprint)), False)


def _problem(output: GpgOutput) -> str:
    """Return the reason why gpg did not delete keys, as text; "" if it deleted them."""
    reasons = {"1": "No such key", "2": "Must delete secret key first", "3": "Ambiguous specification"}
    found = output.all("DELETE_PROBLEM")
    if found:
        return reasons.get(found[0][0], f"Unknown error {found[0][0]}")
    return output.stderr.strip() if output.retcode else ""


def _imported(output: GpgOutput) -> dict[str, Any]:
    counts = [int(each) for each in output.all("IMPORT_RES")[-1]] if output.has("IMPORT_RES") else [0] * 14
    total, _, new, new_rsa, unchanged = counts[:5]
    message, good = "", True
    if new or new_rsa:
        message = "Successfully imported key(s)."
    elif unchanged:
        message = "Key(s) already exist in keychain."
    elif _not_imported(output) or not total:
        message, good = "Unable to import key.", False
    return {"res": good, "message": message, "fingerprints": [row[1] for row in output.all("IMPORT_OK")]}


def _not_imported(output: GpgOutput) -> int:
    rows = output.all("IMPORT_RES")
    return int(rows[-1][-1]) if rows and len(rows[-1]) > 13 else 0
