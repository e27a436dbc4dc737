"""Salt's ``acl`` states: access control lists of files (POSIX ACLs).

    /srv/shared:
      acl.present:
        - acl_type: user
        - acl_name: ann
        - perms: rwx
        - recurse: True

``acl_type`` is user, group, mask or other; with ``default:`` before it, the entry is one that new files in a directory
get.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.types import Outcome, Plan, Step

_NUMBERS = {"r": 4, "w": 2, "x": 1, "X": 1, "-": 0}

_WANTED = "Permissions are in the desired state"


def available(ctx: Context) -> str | None:
    """Return None if the host has getfacl and setfacl; else return the reason as text."""
    missing = [program for program in ("getfacl", "setfacl") if ctx.host.which(program) is None]
    return f"the host has no {missing[0]}: install its package acl" if missing else None


class _Acl(NamedTuple):
    """The ACL entries of one kind (user, group ...) of a path and, with ``recurse``, of everything below it."""

    #: user, group, mask or other.
    kind: str
    default: bool
    #: Path -> name -> octal digit of its permissions.
    entries: Mapping[str, Mapping[str, int]]
    #: Owner or group of the path, which an empty name means.
    owner: str

    def known(self, path: str) -> bool:
        """Return True if the path has ACL entries of this kind (user, group ...). Default entries count as present,
        because one may always be added.
        """
        return self.default or bool(self.entries.get(path))


def present(
    ctx: Context,
    name: str,
    acl_type: str,
    acl_name: str = "",
    perms: str = "",
    recurse: bool = False,
    force: bool = False,
) -> Plan:
    """Add or change an entry in the ACL of the path ``name``. The state fails if the path does not exist, or if setfacl
    fails.

    acl_type
        user, group, mask or other, with or without ``default:`` before it
    acl_name
        the user or group; empty: the file's owner or group
    perms
        permissions of the letters r, w, x and X
    recurse
        True: also for everything below the directory
    force
        True: remove all other entries first, if this entry is not as wanted
    """
    acl = _read(ctx, name, acl_type, recurse=recurse)
    if isinstance(acl, Plan):
        return acl
    wanted = acl_name or acl.owner
    now = acl.entries[name].get(wanted)
    new = {"acl_name": acl_name, "acl_type": acl_type, "perms": perms}
    if now is None:
        would = f"New permissions will be applied for {acl_name}: {perms}"
        done = f"Applied new permissions for {acl_name}"
        return _applied(ctx, name, [new], {"new": new}, would, done, str(acl_name), recurse=recurse, force=force)
    checked = acl.entries if recurse else {name: acl.entries[name]}
    if acl.default:
        checked = {path: entries for path, entries in checked.items() if ctx.host.path(path).is_dir()}
    if all(_as_wanted(entries.get(wanted), perms) for entries in checked.values()):
        return Plan.unchanged(_WANTED)
    old = "".join(letter if now & _NUMBERS[letter] else "-" for letter in "rwx")
    changes = {"new": new, "old": {**new, "perms": old}}
    would = f"Updated permissions will be applied for {acl_name}: {old} -> {perms}"
    done = f"Updated permissions for {acl_name}"
    return _applied(ctx, name, [new], changes, would, done, str(acl_name), recurse=recurse, force=force)


def absent(ctx: Context, name: str, acl_type: str, acl_name: str = "", perms: str = "", recurse: bool = False) -> Plan:
    """Remove an entry from the ACL of the path ``name``. Nothing happens if there is no such entry; the state fails if
    the path does not exist.

    ``perms`` has no effect; the other arguments are those of ``acl.present``.
    """
    acl = _read(ctx, name, acl_type, recurse=recurse)
    if isinstance(acl, Plan):
        return acl
    wanted = acl_name or acl.owner
    if not any(wanted in entries for entries in acl.entries.values()):
        return Plan.unchanged(_WANTED)
    return _removed(ctx, name, acl_type, [acl_name], recurse=recurse)


def list_present(
    ctx: Context,
    name: str,
    acl_type: str,
    acl_names: Sequence[str] | None = None,
    perms: str = "",
    recurse: bool = False,
    force: bool = False,
) -> Plan:
    """Add or change the entries of several users or groups in the ACL of the path ``name``. The state fails if the path
    does not exist.

    acl_names
        the users or groups
    perms, recurse, force
        as in ``acl.present``
    """
    acl = _read(ctx, name, acl_type, recurse=False)
    if isinstance(acl, Plan):
        return acl
    names = list(acl_names or ())
    now = {each: acl.entries[name][each] for each in names if each in acl.entries[name]}
    number = _number(perms)
    new = [{"acl_name": each, "acl_type": acl_type, "perms": perms} for each in names]
    listed = {"acl_name": ", ".join(names), "acl_type": acl_type}
    if len(now) < len(names):
        would = f"New permissions will be applied for {names}: {perms}"
        done = f"Applied new permissions for {', '.join(names)}"
        changes: dict[str, object] = {"new": {**listed, "perms": perms}}
        return _applied(ctx, name, new, changes, would, done, str(names), recurse=recurse, force=force)
    wrong = [octal for octal in now.values() if octal != number]
    if not wrong:
        return Plan.unchanged(_WANTED)
    changes = {"new": {**listed, "perms": number}, "old": {**listed, "perms": str(wrong[-1])}}
    would = f"Updated permissions will be applied for {names}: {wrong[0]} -> {perms}"
    done = f"Updated permissions for {names}"
    return _applied(ctx, name, new, changes, would, done, str(names), recurse=recurse, force=force)


def list_absent(
    ctx: Context, name: str, acl_type: str, acl_names: Sequence[str] | None = None, recurse: bool = False
) -> Plan:
    """Remove the entries of several users or groups from the ACL of the path ``name``. Missing entries are ignored; the
    state fails if the path does not exist.

    The arguments are those of ``acl.list_present``.
    """
    acl = _read(ctx, name, acl_type, recurse=False)
    if isinstance(acl, Plan):
        return acl
    there = [each for each in acl_names or () if each in acl.entries[name]]
    return _removed(ctx, name, acl_type, there, recurse=recurse) if there else Plan.unchanged(_WANTED)


def _read(ctx: Context, name: str, acl_type: str, *, recurse: bool) -> _Acl | Plan:
    """Return the ACL entries of one kind of a path (and with ``recurse`` of everything below it) as _Acl; a failed Plan
    if there is no such path or no entry of this kind.
    """
    if not ctx.host.path(name).exists():
        return Plan.failed(f"{name} does not exist")
    default = acl_type.startswith(("d:", "default:"))
    kind = acl_type.partition(":")[2] if default else acl_type
    read: Mapping[str, Mapping[str, Any]] = ctx.call("acl.getfacl", name, recursive=recurse)
    rows = {path: (row.get("defaults", {}) if default else row).get(kind, []) for path, row in read.items()}
    entries = {
        path: {who: entry["octal"] for each in found for who, entry in each.items()} for path, found in rows.items()
    }
    entries.setdefault(name, {})
    comment = read.get(name, {}).get("comment", {})
    acl = _Acl(kind, default, entries, comment.get({"user": "owner", "group": "group"}.get(kind, ""), ""))
    return acl if acl.known(name) else Plan.failed("ACL Type does not exist")


def _number(perms: str) -> int:
    return sum(_NUMBERS.get(letter, 0) for letter in perms)


def _as_wanted(octal: int | None, perms: str) -> bool:
    """Return whether an entry with these permissions (an octal digit; None: no entry) has the wanted ones (letters). X
    wants no x of a file that is not executable.
    """
    wanted = _number(perms)
    return octal == wanted or (perms.endswith("X") and octal is not None and not octal % 2 and octal == wanted - 1)


def _applied(
    ctx: Context,
    name: str,
    entries: Sequence[Mapping[str, str]],
    changes: Mapping[str, object],
    would: str,
    done: str,
    shown: str,
    *,
    recurse: bool,
    force: bool,
) -> Plan:
    """Return the plan of an ``acl`` state that sets the given ACL entries of the path ``name``.

    ``would`` and ``done`` are the comments of test mode and of success, ``shown`` the users or groups in the comment of
    a failure. ``force``: remove all other entries first.
    """

    def work() -> None:
        if force:
            ctx.call("acl.wipefacls", name, recursive=recurse, raise_err=True)
        for entry in entries:
            words = (entry["acl_type"], entry["acl_name"], entry["perms"], name)
            ctx.call("acl.modfacl", *words, recursive=recurse, raise_err=True)

    def run() -> Outcome:
        return _outcome(work, Outcome(done, changes), f"Error updating permissions for {shown}")

    return Plan.change(would, [Step(f"set the ACL of {name}", run)], changes)


def _removed(ctx: Context, name: str, acl_type: str, names: Sequence[str], *, recurse: bool) -> Plan:
    """Return the plan of an ``acl`` state that removes the ACL entries of the users or groups ``names`` from the path
    ``name``.
    """

    def work() -> None:
        for each in names:
            ctx.call("acl.delfacl", acl_type, each, name, recursive=recurse, raise_err=True)

    def run() -> Outcome:
        return _outcome(work, Outcome("Removing permissions"), f"Error removing permissions for {', '.join(names)}")

    return Plan.change("Removing permissions", [Step(f"change the ACL of {name}", run)])


def _outcome(work: Callable[[], None], good: Outcome, bad: str) -> Outcome:
    try:
        work()
    except CommandError as error:
        return Outcome(f"{bad}: {error}", ok=False)
    return good
