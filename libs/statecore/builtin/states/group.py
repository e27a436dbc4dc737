"""Salt's ``group`` states: groups of users."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.types import Outcome, Plan, Step
from statecore.model.values import to_int

#: Why the argument ``local`` is refused.
_LOCAL = "it needs lgroupadd; groups are created with groupadd"


def present(
    ctx: Context,
    name: str,
    gid: int | str | None = None,
    system: bool = False,
    addusers: list[str] | None = None,
    delusers: list[str] | None = None,
    members: list[str] | None = None,
    non_unique: bool = False,
    local: bool = False,
) -> Plan:
    """Create a group, or change its number and members.

    members
        list of exactly these members. Excludes ``addusers`` and ``delusers``.
    addusers, delusers
        lists of users to add to, and to remove from, the members
    gid, system, non_unique
        number of the group; True: a system group; True: the number may be used twice
    """
    if local:
        return Plan.failed(f"not supported: local; {_LOCAL}")
    for argument, value in (("members", members), ("addusers", addusers), ("delusers", delusers)):
        if value is not None and not isinstance(value, list | tuple):
            return Plan.failed(f"{argument} must be a list of users, not {value!r}")
    if members is not None and (addusers is not None or delusers is not None):
        return Plan.failed(
            'Error: Conflicting options "members" with "addusers" and/or "delusers" can not be used together. '
        )
    if set(addusers or ()) & set(delusers or ()):
        return Plan.failed("Error. Same user(s) can not be added and deleted simultaneously")
    if gid is not None:
        try:
            gid = to_int(gid)
        except (TypeError, ValueError):
            return Plan.failed("Invalid gid")
    wanted: _Wanted = {"gid": gid, "addusers": addusers, "delusers": delusers, "members": members}
    now = ctx.call("group.info", name)
    if not now:
        return _create(ctx, name, wanted, system=system, non_unique=non_unique)
    changes = _changes(now, **wanted)
    if not changes:
        return Plan.unchanged(f"Group {name} is present and up to date")
    lines = ["The following group attributes are set to be changed:", *(f"{key}: {changes[key]}" for key in changes)]
    would = "\n".join(lines) + "\n"

    def work() -> Outcome:
        try:
            _apply(ctx, name, changes, non_unique=non_unique)
        except CommandError as error:
            left = _changes(ctx.call("group.info", name), **wanted)
            return Outcome(f"{would}Some changes could not be applied: {error}", {"Failed": left}, ok=False)
        left = _changes(ctx.call("group.info", name), **wanted)
        if left:
            return Outcome(f"{would}Some changes could not be applied", {"Failed": left}, ok=False)
        return Outcome(would, {"Final": "All changes applied successfully"})

    return Plan.change(would, [Step(f"change the group {name}", work)])


def absent(ctx: Context, name: str, local: bool = False) -> Plan:
    """Remove a group. Nothing happens if it does not exist."""
    if local:
        return Plan.failed(f"not supported: local; {_LOCAL}")
    if not ctx.call("group.info", name):
        return Plan.unchanged("Group not present")

    def work() -> Outcome:
        try:
            ctx.call("group.delete", name)
        except CommandError as error:
            return Outcome(f"Failed to remove group {name}: {error}", ok=False)
        return Outcome(f"Removed group {name}", {name: ""})

    return Plan.change(f"Group {name} is set for removal", [Step(f"remove the group {name}", work)])


class _Wanted(TypedDict):
    gid: int | None
    addusers: list[str] | None
    delusers: list[str] | None
    members: list[str] | None


def _create(ctx: Context, name: str, wanted: _Wanted, *, system: bool, non_unique: bool) -> Plan:
    gid = wanted["gid"]

    def work() -> Outcome:
        # Checked when the step runs: earlier states may have freed or used the number.
        taken = next((each["name"] for each in ctx.call("group.getent") if each["gid"] == gid), None)
        if gid is not None and not non_unique and taken is not None:
            return Outcome(f"Group {name} is not present but gid {gid} is already taken by group {taken}", ok=False)
        try:
            ctx.call("group.add", name, gid=gid, system=system, non_unique=non_unique)
        except CommandError as error:
            return Outcome(f"Failed to create new group {name}: {error}", ok=False)
        listed = wanted["addusers"] or wanted["members"]
        reason = ""
        if listed:
            try:
                ctx.call("group.members", name, listed)
            except CommandError as error:
                reason = f": {error}"
        made = ctx.call("group.info", name)
        if left := _changes(made, **wanted):
            comment = f"Group {name} has been created but, some changes could not be applied{reason}"
            return Outcome(comment, {"Failed": left}, ok=False)
        return Outcome(f"New group {name} created", made)

    return Plan.change(f"Group {name} set to be added", [Step(f"make the group {name}", work)])


def _changes(
    now: Mapping[str, Any],
    *,
    gid: int | None,
    addusers: list[str] | None,
    delusers: list[str] | None,
    members: list[str] | None,
) -> dict[str, object]:
    """Map of the values of a group to change, under Salt's keys ("gid", "members", "addusers", "delusers"); {} if the group is
    as wanted.
    """
    has = now.get("members", [])
    change: dict[str, object] = {}
    if gid is not None and now.get("gid") != gid:
        change["gid"] = gid
    if members is not None and set(members) != set(has):
        change["members" if members else "delusers"] = list(members or has)
    if more := [user for user in addusers or () if user not in has]:
        change["addusers"] = more
    if fewer := [user for user in delusers or () if user in has]:
        change["delusers"] = fewer
    return change


def _apply(ctx: Context, name: str, changes: Mapping[str, Any], *, non_unique: bool) -> None:
    if "gid" in changes:
        ctx.call("group.chgid", name, changes["gid"], non_unique=non_unique)
    for user in changes.get("addusers", ()):
        ctx.call("group.adduser", name, user)
    for user in changes.get("delusers", ()):
        ctx.call("group.deluser", name, user)
    if "members" in changes:
        ctx.call("group.members", name, changes["members"])
