"""Salt's ``ssh_known_hosts`` states: host keys in known_hosts, of a user or of the system."""

from __future__ import annotations

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.types import Outcome, Plan, Step

_NO_FILE = 'If not specifying a "user", specify an absolute "config".'


def present(
    ctx: Context,
    name: str,
    user: str | None = None,
    fingerprint: str | None = None,
    key: str | None = None,
    port: int | None = None,
    enc: str | None = None,
    config: str | None = None,
    hash_known_hosts: bool = True,
    timeout: int = 5,
    fingerprint_hash_type: str | None = None,
) -> Plan:
    """Add an SSH server's public key to known_hosts.

    key, enc
        the key and its type
    fingerprint
        fingerprint of the key. Without key and fingerprint, the key that the host presents is trusted.
    config
        path of the file, relative to the user's home directory; absolute without a user
    hash_known_hosts
        False: write the host name in plain text
    timeout
        seconds to wait for the host's key
    """
    place = config or (".ssh/known_hosts" if user else "/etc/ssh/ssh_known_hosts")
    if not user and not place.startswith("/"):
        return Plan.failed(_NO_FILE)
    if key and fingerprint:
        return Plan.failed('Specify either "key" or "fingerprint", not both.')
    if key and not enc:
        return Plan.failed('Required argument "enc" if using "key" argument.')
    if port not in (None, 22) and hash_known_hosts:
        return Plan.failed("argument port can not be used in conjunction with argument hash_known_hosts")
    about: dict[str, object] = {"key": key, "fingerprint": fingerprint, "config": place, "port": port}
    about["fingerprint_hash_type"] = fingerprint_hash_type
    try:
        status = ctx.call("ssh.check_known_host", user, name, **about)
    except CommandError as error:
        return Plan.failed(str(error))
    if status == "exists" and ctx.test:
        return Plan.unchanged(f"Host {name} is already in {place}")
    if status == "exists" and (key or fingerprint):
        return Plan.unchanged(f"{name} already exists in {place}")

    def work() -> Outcome:
        done = ctx.call(
            "ssh.set_known_host", user, name, enc=enc, hash_known_hosts=hash_known_hosts, timeout=timeout, **about
        )
        if done["status"] == "exists":
            return Outcome(f"{name} already exists in {place}")
        if done["status"] == "error":
            return Outcome(done["error"], ok=False)
        first = done["new"][0]
        comment = f"{name}'s key(s) saved to {place}"
        if key:
            comment = f"{name}'s key saved to {place} (key: {first['key']})"
        elif fingerprint:
            comment = f"{name}'s key saved to {place} (fingerprint: {first['fingerprint']})"
        elif enc:
            comment = f"{name}'s {enc} key saved to {place} (key: {first['key']})"
        return Outcome(comment, {"old": done["old"], "new": done["new"]})

    would = f"Key for {name} is set to be {'added to' if status == 'add' else 'updated in'} {place}"
    return Plan.change(would, [Step(f"make the host {name} known", work)])


def absent(ctx: Context, name: str, user: str | None = None, config: str | None = None) -> Plan:
    """Remove an SSH server's public keys from known_hosts. Nothing happens if there are none."""
    place = config or (".ssh/known_hosts" if user else "/etc/ssh/ssh_known_hosts")
    if not user and not place.startswith("/"):
        return Plan.failed(_NO_FILE)
    try:
        known = ctx.call("ssh.get_known_host_entries", user, name, config=place)
    except CommandError as error:
        return Plan.failed(str(error))
    if not known:
        return Plan.unchanged("Host is already absent")

    def work() -> Outcome:
        done = ctx.call("ssh.rm_known_host", user=user, hostname=name, config=place)
        if done["status"] == "error":
            return Outcome(done["error"], ok=False)
        return Outcome(done["comment"], {"old": known, "new": None})

    return Plan.change(f"Key for {name} is set to be removed from {place}", [Step(f"forget the host {name}", work)])
