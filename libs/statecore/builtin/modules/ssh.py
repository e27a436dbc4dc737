"""SSH keys of the managed host's users and of their known hosts: Salt's ``ssh`` execution module.

Files are read and written directly. Only fetching another host's keys needs a program, ``ssh-keyscan``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.text_lines import lines_of, text_of
from statecore.system.hostfiles import accounts, ssh_keys

_AUTHORIZED = ".ssh/authorized_keys"
_KNOWN = ".ssh/known_hosts"
_KNOWN_TO_ALL = "/etc/ssh/ssh_known_hosts"
_HOST_KEY = re.compile(r"ssh_host_(?P<type>.+)_key(?P<pub>(?P<cert>-cert)?\.pub)?")
_KEY_NAMES = ("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519")

#: Number of attempts to fetch a host's keys.
_ATTEMPTS = 5

# ------------------------------------------------------------------------------------- authorized keys


def auth_keys(
    ctx: Context, user: object = None, config: str = _AUTHORIZED, fingerprint_hash_type: str | None = None
) -> dict[str, Any]:
    """Return the keys in a user's authorized_keys: a map of key to enc (its type), comment, options and fingerprint.

    For a list of users, or without a user (all users), return a map of user to such a map.

    CLI Example:

        salt '*' ssh.auth_keys root
    """
    users = user if isinstance(user, list) else [user] if user else ctx.call("user.list_users")
    keys: dict[str, dict[str, Any]] = {}
    for each in users:
        if accounts.find(ctx.host, str(each)) is None:
            continue
        name = _config(ctx, str(each), config)
        if (data := managed_file.read(ctx.host.path(name), name)) is not None:
            keys[str(each)] = ssh_keys.authorized(data.decode("utf-8", "surrogateescape"), fingerprint_hash_type)
    return keys.get(user, {}) if isinstance(user, str) else keys


def check_key(
    ctx: Context,
    user: str,
    key: str,
    enc: str,
    comment: str,
    options: list[str] | None,
    config: str = _AUTHORIZED,
    cache_keys: object = None,
    fingerprint_hash_type: str | None = None,
) -> str:
    """Return the change that an SSH key needs in a user's authorized_keys: "add", "update", or "exists" for none. Raise
    CommandError for an unknown type of key.
    """
    wanted = ssh_keys.authorized_line(key, ssh_keys.key_type(enc), comment, options)
    has = auth_keys(ctx, user, config, fingerprint_hash_type).get(key)
    if has is None:
        return "add"
    return "exists" if ssh_keys.authorized_line(key, has["enc"], has["comment"], has["options"]) == wanted else "update"


def check_key_file(
    ctx: Context,
    user: str,
    source: str,
    config: str = _AUTHORIZED,
    saltenv: str = "base",
    fingerprint_hash_type: str | None = None,
) -> dict[str, str]:
    """Return a map of each SSH key in a file to the change that it needs in a user's authorized_keys: "add", "update"
    or "exists". Return {} for a file without keys.
    """
    return {
        key: check_key(ctx, user, key, each["enc"], each["comment"], each["options"], config)
        for key, each in _keys_of(ctx, source, saltenv, fingerprint_hash_type).items()
    }


def set_auth_key(
    ctx: Context,
    user: str,
    key: str,
    enc: str = "ssh-rsa",
    comment: str = "",
    options: list[str] | None = None,
    config: str = _AUTHORIZED,
    cache_keys: object = None,
    fingerprint_hash_type: str | None = None,
) -> str:
    """Add an SSH key to a user's authorized_keys. Return "new", "replace" or "no change".

    Return "fail" for an unknown user or one without home, "invalid" for a key with spaces, "Invalid public key" for no
    key.

    CLI Example:

        salt '*' ssh.set_auth_key root AAAAB3... enc=ssh-rsa comment=ann@one
    """
    if len(key.split()) > 1:
        return "invalid"
    enc = ssh_keys.key_type(enc)
    account = accounts.find(ctx.host, user)
    if account is None:
        return "fail"
    if ssh_keys.fingerprint(key, fingerprint_hash_type) is None:
        return "Invalid public key"
    status = check_key(ctx, user, key, enc, comment, options, config)
    if status == "exists":
        return "no change"
    name = _config(ctx, user, config)
    if name.startswith(account.home) and not ctx.host.path(account.home).is_dir():
        return "fail"
    _directory(ctx, name, account.uid, account.gid)
    text = ssh_keys.with_key(_text(ctx, name), key, ssh_keys.authorized_line(key, enc, comment, options))
    _write(ctx, name, text, account.uid, account.gid)
    return "replace" if status == "update" else "new"


def set_auth_key_from_file(
    ctx: Context,
    user: str,
    source: str,
    config: str = _AUTHORIZED,
    saltenv: str = "base",
    fingerprint_hash_type: str | None = None,
    **kwargs: Any,
) -> str:
    """Add every SSH key of a file to a user's authorized_keys. Return "fail", "replace", "new" or "no change": the
    first of these that any key gave.
    """
    options = kwargs.get("options")
    done = [
        set_auth_key(ctx, user, key, each["enc"], each["comment"], options or each["options"], config)
        for key, each in _keys_of(ctx, source, saltenv, fingerprint_hash_type).items()
    ]
    return next((word for word in ("fail", "replace", "new") if word in done), "no change") if done else "fail"


def rm_auth_key(
    ctx: Context, user: str, key: str, config: str = _AUTHORIZED, fingerprint_hash_type: str | None = None
) -> str:
    """Remove an SSH key from a user's authorized_keys. Return "Key removed" or "Key not present"."""
    if key not in auth_keys(ctx, user, config, fingerprint_hash_type):
        return "Key not present"
    name = _config(ctx, user, config)
    _write(ctx, name, ssh_keys.without_key(_text(ctx, name), key))
    return "Key removed"


def rm_auth_key_from_file(
    ctx: Context,
    user: str,
    source: str,
    config: str = _AUTHORIZED,
    saltenv: str = "base",
    fingerprint_hash_type: str | None = None,
) -> str:
    """Remove every SSH key of a file from a user's authorized_keys. Return "Key removed", "Key not present", or "fail"
    if the file has no keys.
    """
    keys = _keys_of(ctx, source, saltenv, fingerprint_hash_type)
    done = [rm_auth_key(ctx, user, key, config) for key in keys]
    return "Key removed" if "Key removed" in done else "Key not present" if done else "fail"


def user_keys(
    ctx: Context,
    user: str | Sequence[str] | None = None,
    pubfile: str | Literal[False] | None = None,
    prvfile: str | Literal[False] | None = None,
) -> dict[str, dict[str, str]]:
    """Return the SSH keys in the homes of users: a map of user to {file name: text}. ``pubfile`` or ``prvfile`` False
    leaves that kind out.
    """
    names = [pubfile] if pubfile else [] if pubfile is False else [f"{name}.pub" for name in _KEY_NAMES]
    names += [prvfile] if prvfile else [] if prvfile is False else list(_KEY_NAMES)
    found: dict[str, dict[str, str]] = {}
    for each in user if isinstance(user, list) else [user] if user else ctx.call("user.list_users"):
        account = accounts.find(ctx.host, str(each))
        for name in names if account else []:
            path = name if name.startswith("/") else f"{account.home}/.ssh/{name}" if account else ""
            if (data := managed_file.read(ctx.host.path(path), path)) is not None:
                found.setdefault(str(each), {})[Path(name).name] = data.decode("utf-8", "replace").strip()
    return found


def host_keys(ctx: Context, keydir: str | None = None, private: bool = True, certs: bool = True) -> dict[str, str]:
    """Return the host's own SSH keys: a map of type (``rsa``, ``rsa.pub``, ``rsa-cert.pub``) to text."""
    directory = ctx.host.path(keydir or "/etc/ssh")
    keys: dict[str, str] = {}
    for path in sorted(directory.iterdir()) if directory.is_dir() else []:
        found = _HOST_KEY.fullmatch(path.name)
        if found is None or (not found["pub"] and not private) or (found["cert"] and not certs):
            continue
        data = managed_file.read(path, path.name) or b""
        keys[found["type"] + (found["pub"] or "")] = data.decode("utf-8", "replace").strip()
    return keys


# ----------------------------------------------------------------------------------------- known hosts


def get_known_host_entries(
    ctx: Context,
    user: str | None,
    hostname: str,
    config: str | None = None,
    port: int | None = None,
    fingerprint_hash_type: str | None = None,
) -> list[dict[str, str]] | None:
    """Return the entries of a host in a user's known_hosts, or in the host's own file if no user is given: a list of
    maps with hostname, key, enc (the key's type) and fingerprint. Return None if there are none. Raise CommandError for
    an unknown user.
    """
    found = ssh_keys.known(_text(ctx, _known(ctx, user, config)), ssh_keys.ssh_name(hostname, port))
    return ssh_keys.entries((words for _, words in found), fingerprint_hash_type) or None


def recv_known_host_entries(
    ctx: Context,
    hostname: str,
    enc: str | None = None,
    port: int | None = None,
    hash_known_hosts: bool = True,
    timeout: int = 5,
    fingerprint_hash_type: str | None = None,
) -> list[dict[str, str]] | None:
    """Fetch the SSH keys of a host with ssh-keyscan. Return a list of maps with hostname, key, enc (the key's type) and
    fingerprint, None if the host does not answer. ``timeout`` is in seconds.
    """
    words = ["ssh-keyscan", *(["-p", str(port)] if port else []), *(["-t", enc] if enc else [])]
    words += [*(["-H"] if hash_known_hosts else []), "-T", str(timeout), hostname]
    for _ in range(_ATTEMPTS):
        lines = [line for line in lines_of(ctx.host.run(words).stdout) if not line.startswith("#")]
        if lines:
            return ssh_keys.entries((line.split() for line in lines), fingerprint_hash_type) or None
    return None


def check_known_host(
    ctx: Context,
    user: str | None = None,
    hostname: str | None = None,
    key: str | None = None,
    fingerprint: str | None = None,
    config: str | None = None,
    port: int | None = None,
    fingerprint_hash_type: str | None = None,
) -> object:
    """Return the change that a user's known_hosts needs to have this host with ``key`` or ``fingerprint``: "add",
    "update", or "exists" for none. Without a hostname return {"status": "error", "error"}.
    """
    if not hostname:
        return _error("hostname argument required")
    known = get_known_host_entries(ctx, user, hostname, config, port, fingerprint_hash_type)
    if not known:
        return "add"
    wanted, column = (key, "key") if key else (fingerprint, "fingerprint")
    return "exists" if not wanted or wanted in [each[column] for each in known] else "update"


def set_known_host(
    ctx: Context,
    user: str | None = None,
    hostname: str | None = None,
    fingerprint: str | None = None,
    key: str | None = None,
    port: int | None = None,
    enc: str | None = None,
    config: str | None = None,
    hash_known_hosts: bool = True,
    timeout: int = 5,
    fingerprint_hash_type: str | None = None,
) -> dict[str, object]:
    """Add a host to a user's known_hosts, with a given key or with the keys that it presents.

    Return {"status": "exists", "keys"}, {"status": "updated", "old", "new"} or {"status": "error", "error"}.
    """
    if not hostname:
        return _error("hostname argument required")
    if port not in (None, 22) and hash_known_hosts:
        return _error("argument port can not be used in conjunction with argument hash_known_hosts")
    stored = get_known_host_entries(ctx, user, hostname, config, port, fingerprint_hash_type)
    keys = [each["key"] for each in stored or () if enc is None or each["enc"] == enc]
    right_print = not fingerprint or fingerprint in [each["fingerprint"] for each in stored or ()]
    current = bool(stored) and right_print and (not key or key in keys)
    if current and (key or fingerprint):
        return {"status": "exists", "keys": keys}
    new: list[dict[str, Any]] = [{"hostname": hostname, "enc": enc or "ssh-rsa", "key": key}] if key else []
    if not key:
        new = recv_known_host_entries(ctx, hostname, enc, port, hash_known_hosts, timeout, fingerprint_hash_type) or []
        if not new:
            return _error("Unable to receive remote host keys")
        if fingerprint and fingerprint not in [each["fingerprint"] for each in new]:
            return _error(
                "Remote host public keys found but none of their fingerprints match the one you have provided"
            )
        if current and {each["key"] for each in new} == set(keys):
            return {"status": "exists", "keys": keys}
    name = _known(ctx, user, config)
    text = _without_host(_text(ctx, name), ssh_keys.ssh_name(hostname, port), enc)
    for each in new:
        shown = each["hostname"]
        if port not in (None, 22) and ":" not in shown:
            each["port"], shown = port, f"[{shown}]:{port}"
        text += f"{shown} {each['enc']} {each['key']}\n"
    _write_known(ctx, user, name, ssh_keys.hashed(text) if key and hash_known_hosts else text)
    return {"status": "updated", "old": stored, "new": new}


def rm_known_host(
    ctx: Context,
    user: str | None = None,
    hostname: str | None = None,
    config: str | None = None,
    port: int | None = None,
) -> dict[str, object]:
    """Remove a host from a user's known_hosts. The previous file is kept as ``.old``. Return {"status": "removed",
    "comment": text} or {"status": "error", "error": text}.
    """
    if not hostname:
        return _error("hostname argument required")
    name = _known(ctx, user, config)
    if not ctx.host.path(name).is_file():
        return _error(f"Known hosts file {name} does not exist")
    text = _text(ctx, name)
    shown = ssh_keys.ssh_name(hostname, port)
    at = [number for number, _ in ssh_keys.known(text, shown)]
    if not at:
        return {"status": "removed", "comment": f"Host {shown} not found in {name}"}
    managed_file.copy_beside(ctx.host, ctx.host.path(name), ".old")
    _write_known(ctx, user, name, _without_host(text, shown, None))
    found = [f"# Host {shown} found: line {number + 1}" for number in at]
    lines = [*found, f"{name} updated.", f"Original contents retained as {name}.old"]
    return {"status": "removed", "comment": "\n".join(lines)}


def hash_known_hosts(ctx: Context, user: str | None = None, config: str | None = None) -> dict[str, object]:
    """Hash the names of all hosts in a user's known_hosts. Return a map with ``status`` and ``comment``, or
    ``error``.
    """
    name = _known(ctx, user, config)
    if not ctx.host.path(name).is_file():
        return _error(f"Known hosts file {name} does not exist")
    _write_known(ctx, user, name, ssh_keys.hashed(_text(ctx, name)))
    return {"status": "updated", "comment": f"{name} updated."}


# ----------------------------------------------------------------------------------------------- files


def _keys_of(ctx: Context, source: str, saltenv: str, hash_type: str | None) -> dict[str, dict[str, Any]]:
    cached = ctx.call("cp.cache_file", source, saltenv)
    if not cached:
        raise CommandError("Failed to pull key file from salt file server")
    return ssh_keys.authorized(text_of(Path(cached), "surrogateescape"), hash_type)


def _config(ctx: Context, user: str, config: str) -> str:
    """Return the path of a user's authorized_keys. ``%u``, ``%h`` and ``%%`` are replaced as in sshd_config. A relative
    path is below the user's home.
    """
    account = accounts.find(ctx.host, user)
    if account is None:
        raise CommandError(f"User '{user}' does not exist")
    tokens = {"%%": "%", "%u": user, "%h": account.home}
    if unknown := [each for each in re.findall(r"%.?", config) if each not in tokens]:
        raise CommandError(f'AuthorizedKeysFile path: unknown token character "{unknown[0]}"')
    return str(Path(account.home) / re.sub(r"%.", lambda each: tokens[each[0]], config))


def _known(ctx: Context, user: str | None, config: str | None) -> str:
    file = Path(config or (_KNOWN if user else _KNOWN_TO_ALL))
    if file.is_absolute():
        return str(file)
    account = accounts.find(ctx.host, user) if user else None
    if account is None:
        raise CommandError(f"User {user} does not exist" if user else "Cannot determine absolute path to file.")
    return str(Path(account.home) / file)


def _text(ctx: Context, name: str) -> str:
    return (managed_file.read(ctx.host.path(name), name) or b"").decode("utf-8", "surrogateescape")


def _directory(ctx: Context, name: str, uid: int | None, gid: int | None) -> None:
    """Create the directory of an SSH key file, readable by its owner only, if it does not exist."""
    real_path = ctx.host.path(name).parent
    if not real_path.is_dir():
        root = os.geteuid() == 0
        own = Attributes(uid if root else None, gid if root else None, 0o700)
        managed_file.make_directories(ctx.host, real_path.parent, Attributes(), ctx.host.root)
        managed_file.make_directories(ctx.host, real_path, own, ctx.host.root)


def _write(ctx: Context, name: str, text: str, uid: int | None = None, gid: int | None = None) -> None:
    real_path = ctx.host.path(name)
    root = os.geteuid() == 0
    new = Attributes(uid if root else None, gid if root else None, 0o600)
    data = text.encode("utf-8", "surrogateescape")
    managed_file.replace(ctx.host, real_path, data, Attributes() if real_path.exists() else new)


def _write_known(ctx: Context, user: str | None, name: str, text: str) -> None:
    account = accounts.find(ctx.host, user) if user else None
    uid, gid = (account.uid, account.gid) if account else (None, None)
    _directory(ctx, name, uid, gid)
    _write(ctx, name, text, uid, gid)


def _without_host(text: str, name: str, enc: str | None) -> str:
    drop = {number for number, words in ssh_keys.known(text, name) if enc is None or words[1] == enc}
    lines = lines_of(text)
    return "".join(f"{line}\n" for number, line in enumerate(lines) if number not in drop)


def _error(why: str) -> dict[str, object]:
    return {"status": "error", "error": why}
