"""Salt's ``ssh_auth`` states: public keys in users' authorized_keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.types import Outcome, Plan, Step
from statecore.system.hostfiles import ssh_keys

_CONFIG = ".ssh/authorized_keys"
_FULL_KEY = re.compile(r"^(.*?)\s?((?:sk-)?(?:ssh-|ecds)[\w@.-]+\s.+)$")
_NOT_ADDED = "Failed to add the ssh key. Is the home directory available, and/or does the key file exist?"
_INVALID = "Invalid public ssh key, most likely has spaces or invalid syntax"

#: Return of the ``ssh`` module -> (comment, change).
_DONE: Mapping[str, tuple[str, str]] = {
    "new": ("The authorized host key {key} for user {user} was added", "New"),
    "replace": ("The authorized host key {key} for user {user} was updated", "Updated"),
    "no change": ("The authorized host key {key} is already present for user {user}", ""),
}


@dataclass(frozen=True, slots=True)
class _Key:
    """A wanted SSH public key with its type, comment and options, from the arguments of an ``ssh_auth`` state."""

    key: str
    enc: str
    comment: str
    options: list[str]


def present(
    ctx: Context,
    name: str,
    user: str,
    enc: str = "ssh-rsa",
    comment: str = "",
    source: str = "",
    options: Sequence[str] | None = None,
    config: str = _CONFIG,
    fingerprint_hash_type: str | None = None,
) -> Plan:
    """Add an SSH public key to a user's authorized keys.

    name
        the key, ``key comment``, or a whole line: ``options type key comment``
    source
        file with keys, all of which are added in place of ``name``
    config
        the user's file of authorized keys, relative to the home directory; ``%u`` is the user, ``%h`` the home
        directory
    enc, comment, options
        type, comment and options of the key, if ``name`` does not contain them
    """
    try:
        if source:
            return _present_file(ctx, name, user, source, options, config, fingerprint_hash_type)
        key = _key(name, enc, comment, options)
        if key is None or ssh_keys.fingerprint(key.key, fingerprint_hash_type) is None:
            return Plan.failed(_INVALID)
        status = ctx.call("ssh.check_key", user, key.key, key.enc, key.comment, key.options, config=config)
    except CommandError as error:
        return Plan.failed(str(error))
    if status == "exists":
        return Plan.unchanged(_DONE["no change"][0].format(key=key.key, user=user))

    def work() -> Outcome:
        done = ctx.call(
            "ssh.set_auth_key", user, key.key, enc=key.enc, comment=key.comment, options=key.options, config=config
        )
        return _outcome(done, key.key, user)

    would = f"Key {key.key} for user {user} is set to be {'updated' if status == 'update' else 'added'}"
    return Plan.change(would, [Step(f"let a key log in as {user}", work)])


def absent(
    ctx: Context,
    name: str,
    user: str,
    enc: str = "ssh-rsa",
    comment: str = "",
    source: str = "",
    options: Sequence[str] | None = None,
    config: str = _CONFIG,
    fingerprint_hash_type: str | None = None,
) -> Plan:
    """Remove an SSH public key from a user's authorized keys, if it is there. Arguments as in ``ssh_auth.present``."""
    try:
        if source:
            return _absent_file(ctx, name, user, source, config, fingerprint_hash_type)
        parsed = _key(name, enc, comment, options)
        key = parsed.key if parsed else name
        there = key in ctx.call("ssh.auth_keys", user, config)
    except CommandError as error:
        return Plan.failed(str(error))
    if not there:
        return Plan.unchanged("Key is already absent" if ctx.test else "Key not present")

    def work() -> Outcome:
        return Outcome(ctx.call("ssh.rm_auth_key", user, key, config=config), {key: "Removed"})

    return Plan.change(
        f"Key {key} for user {user} is set for removal", [Step(f"shut a key out that logs in as {user}", work)]
    )


def manage(
    ctx: Context,
    name: str,
    ssh_keys: Sequence[str],
    user: str,
    enc: str = "ssh-rsa",
    comment: str = "",
    source: str = "",
    options: Sequence[str] | None = None,
    config: str = _CONFIG,
    fingerprint_hash_type: str | None = None,
) -> Plan:
    """Set a user's authorized keys to exactly the list ``ssh_keys``: add missing keys and remove all others."""
    if isinstance(ssh_keys, str):
        return Plan.failed("ssh_keys must be a list of keys")
    words = {word for each in ssh_keys for word in str(each).split(" ")}
    extra = [key for key in ctx.call("ssh.auth_keys", user, config) if key not in words]
    plans = [present(ctx, str(each), user, enc, comment, source, options, config) for each in ssh_keys]
    if wrong := [plan.comment for plan in plans if not plan.result]:
        return Plan.failed("\n".join(wrong))
    steps = [Step(f"shut a key out that logs in as {user}", _remover(ctx, user, key, config)) for key in extra]
    steps += [Step(step.what, _quiet(step)) for plan in plans for step in plan.steps]
    same = [plan.comment for plan in plans if not plan.steps]
    if not steps:
        return Plan.unchanged("\n".join(same))
    would = [*(f"{key} Key set for removal" for key in extra), *(plan.comment for plan in plans if plan.steps)]
    return Plan.change("\n".join(would), steps, notes=same)


def _remover(ctx: Context, user: str, key: str, config: str) -> Callable[[], Outcome]:
    return lambda: Outcome("", {key: ctx.call("ssh.rm_auth_key", user, key, config=config)})


def _quiet(step: Step) -> Callable[[], Outcome]:
    """Return a function that runs the step and returns its Outcome; after success the outcome has no comment. As in
    Salt, only the changes are reported.
    """

    def work() -> Outcome:
        done = step.run()
        return Outcome("", done.changes) if done.ok else done

    return work


def _present_file(
    ctx: Context,
    name: str,
    user: str,
    source: str,
    options: Sequence[str] | None,
    config: str,
    hash_type: str | None,
) -> Plan:
    keys = _source_keys(ctx, source, hash_type)
    if isinstance(keys, Plan):
        return keys
    status = {
        key: ctx.call(
            "ssh.check_key", user, key, each["enc"], each["comment"], options or each["options"], config=config
        )
        for key, each in keys.items()
    }
    would = "".join(f"Set to {word}: {key}\n" for key, word in status.items() if word != "exists")
    if not would:
        same = _DONE["no change"][0].format(key=name, user=user)
        return Plan.unchanged(f"All host keys in file {source} are already present" if ctx.test else same)

    def work() -> Outcome:
        done = ctx.call("ssh.set_auth_key_from_file", user, source, config=config, saltenv=ctx.saltenv, options=options)
        return _outcome(done, name, user)

    return Plan.change(would, [Step(f"let the keys of {source} log in as {user}", work)])


def _absent_file(ctx: Context, name: str, user: str, source: str, config: str, hash_type: str | None) -> Plan:
    keys = _source_keys(ctx, source, hash_type)
    if isinstance(keys, Plan):
        return keys
    has = ctx.call("ssh.auth_keys", user, config)
    would = "".join(f"Set to remove: {key}\n" for key in keys if key in has)
    if not would:
        same = f"All host keys in file {source} are already absent"
        return Plan.unchanged(same if ctx.test else "Key not present")

    def work() -> Outcome:
        done = ctx.call("ssh.rm_auth_key_from_file", user, source, config, saltenv=ctx.saltenv)
        return Outcome(done, {name: "Removed"})

    return Plan.change(would, [Step(f"shut the keys of {source} out that log in as {user}", work)])


def _source_keys(ctx: Context, source: str, hash_type: str | None) -> dict[str, dict[str, object]] | Plan:
    cached = ctx.call("cp.get_file_str", source, ctx.saltenv)
    if cached is False:
        return Plan.failed(f"Failed to add the ssh key. Source file {source} is missing")
    keys = ssh_keys.authorized(str(cached), hash_type)
    return keys or Plan.failed(f"No keys detected in {source}. Is file properly formatted?")


def _key(name: str, enc: str, comment: str, options: Sequence[str] | None) -> _Key | None:
    found = _FULL_KEY.search(name)
    if found is None:
        words = name.split(None, 1)
        if not words:
            return None
        return _Key(words[0], enc, words[1] if len(words) == 2 else comment, list(options or ()))
    given = found.group(1).split(",") if found.group(1) else list(options or ())
    parts = found.group(2).split(None, 2)
    return _Key(parts[1], parts[0], parts[2] if len(parts) == 3 else comment, given)


def _outcome(done: str, key: str, user: str) -> Outcome:
    if done in _DONE:
        comment, change = _DONE[done]
        return Outcome(comment.format(key=key, user=user), {key: change} if change else {})
    return Outcome(_NOT_ADDED if done == "fail" else _INVALID, ok=False)
