"""Salt's ``etcd`` states: keys and directories of etcd.

``profile`` names a map of settings in the minion's configuration or in pillar; see the module ``etcd``. Each state also
takes ``host``, ``port``, ``username``, ``password``, ``ca``, ``client_cert`` and ``client_key``.
"""

from __future__ import annotations

from statecore.model.context import Context
from statecore.model.types import Outcome, Plan, Step

VIRTUAL = "etcd"
ALIASES = {"set": "set_"}

_NO_PROFILE = "No profile found, using a profile is always recommended"


def set_(ctx: Context, name: str, value: object, profile: str | None = None, **kwargs: object) -> Plan:
    """Set the key ``name`` of etcd. Nothing happens if it has this value. The state fails if etcd refuses, or if the
    key is missing and no ``profile`` is given, as in Salt.

    value
        the value; with version 2 of the interface it is stored as text
    profile
        settings of the server
    """
    current = ctx.call("etcd.get", name, profile=profile, **kwargs)
    if current is None and profile is None:
        return Plan.failed(_NO_PROFILE)
    if current is not None and str(current) == str(value):
        return Plan.unchanged("Key contains correct value")

    def work() -> Outcome:
        if ctx.call("etcd.set", name, value, profile=profile, **kwargs) is None:
            return Outcome(f"Unable to set {name}: the log has etcd's reason", ok=False)
        return Outcome("Key value updated" if current else "New key created", {name: value})

    would = f"Key {name} is set to be {'updated' if current else 'created'}"
    return Plan.change(would, [Step(f"set {name}", work)], {name: value})


def wait_set(ctx: Context, name: str, value: object, profile: str | None = None, **kwargs: object) -> Plan:
    """Set the key ``name`` if a watched state changed. The arguments are those of ``etcd.set``."""
    return Plan.unchanged("")


def directory(ctx: Context, name: str, profile: str | None = None, **kwargs: object) -> Plan:
    """Make the directory ``name`` in etcd (version 2 of its interface). Nothing happens if it exists; the state fails
    if etcd refuses.

    profile
        settings of the server
    """
    current = ctx.call("etcd.get", name, recurse=True, profile=profile, **kwargs)
    if current is None and profile is None:
        return Plan.failed(_NO_PROFILE)
    if current is not None:
        return Plan.unchanged("Directory exists")

    def work() -> Outcome:
        if not ctx.call("etcd.set", name, None, directory=True, profile=profile, **kwargs):
            return Outcome(f"Unable to make the directory {name}: the log has etcd's reason", ok=False)
        return Outcome("New directory created", {name: "Created"})

    return Plan.change(f"Directory {name} is set to be created", [Step(f"make {name}", work)], {name: "Created"})


def rm(ctx: Context, name: str, recurse: bool = False, profile: str | None = None, **kwargs: object) -> Plan:
    """Delete the key ``name`` of etcd. Nothing happens if there is no such key; without ``profile`` the state then
    fails, as in Salt.

    recurse
        True: also delete the keys below it
    profile
        settings of the server
    """
    current = ctx.call("etcd.get", name, recurse=True, profile=profile, **kwargs)
    if current is None and profile is None:
        return Plan.failed(_NO_PROFILE)
    if current is None:
        return Plan.unchanged("Key does not exist")

    def work() -> Outcome:
        if not ctx.call("etcd.rm", name, recurse=recurse, profile=profile, **kwargs):
            return Outcome("Unable to remove key", ok=False)
        return Outcome("Key removed", {name: "Deleted"})

    return Plan.change(f"Key {name} is set to be removed", [Step(f"delete {name}", work)], {name: "Deleted"})


def wait_rm(ctx: Context, name: str, recurse: bool = False, profile: str | None = None, **kwargs: object) -> Plan:
    """Delete the key ``name`` if a watched state changed. The arguments are those of ``etcd.rm``."""
    return Plan.unchanged("")


def mod_watch(
    ctx: Context,
    name: str,
    value: object = None,
    recurse: bool = False,
    profile: str | None = None,
    sfun: str = "wait_set",
    **kwargs: object,
) -> Plan:
    """Set the key of ``etcd.wait_set``, or delete the key of ``etcd.wait_rm``, because a watched state changed."""
    if sfun in ("wait_set_key", "wait_set"):
        return set_(ctx, name, value, profile, **kwargs)
    if sfun in ("wait_rm_key", "wait_rm"):
        return rm(ctx, name, recurse, profile, **kwargs)
    return Plan.failed(f"etcd.{sfun} does not work with the watch requisite, please use etcd.wait_set or etcd.wait_rm")
