"""What of a user has to change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statecore.builtin.states.user.wanted import AGES, WantedUser
from statecore.model.context import Context
from statecore.model.errors import HostError


def changes_of(ctx: Context, wanted: WantedUser, now: Mapping[str, Any]) -> dict[str, Any]:
    """What has to change, by Salt's names; {} when nothing."""
    change: dict[str, Any] = {}
    if wanted.uid is not None and now["uid"] != wanted.uid:
        change["uid"] = wanted.uid
    if wanted.gid is not None and now["gid"] != group_number(ctx, wanted.gid):
        change["gid"] = wanted.gid
    groups = _group_changes(ctx, wanted, now)
    if groups is not None:
        change["groups"] = groups
    if wanted.home and now["home"] != wanted.home:
        change["home"] = wanted.home
    home = wanted.home or now["home"]
    if wanted.createhome and home and not ctx.host.path(home).is_dir():
        change["homeDoesNotExist"] = home
    if wanted.shell and now["shell"] != wanted.shell:
        change["shell"] = wanted.shell
    change |= _password_changes(ctx, wanted)
    change |= {part: value for part, value in wanted.comment.items() if now[part] != value}
    return change


def group_number(ctx: Context, gid: Any) -> int | None:
    """None for a group that is not there (yet)."""
    try:
        return ctx.host.gid(gid)
    except HostError:
        return None


def _group_changes(ctx: Context, wanted: WantedUser, now: Mapping[str, Any]) -> list[str] | None:
    """The groups to be in beside the primary one, None when they are right. Primary groups, old and new, do not count."""
    goal = {*(wanted.groups or ()), *(wanted.optional or ())}
    has = set(now["groups"])
    if not wanted.remove_groups or (wanted.groups is None and not wanted.optional):
        goal |= has
    primary = now["gid"] if wanted.gid is None else group_number(ctx, wanted.gid)
    numbers = {each["name"]: each["gid"] for each in ctx.call("group.getent")}
    goal = {group for group in goal if numbers.get(group) != primary}
    # A second name for a group does not make another group.
    ignored = {primary, now["gid"]}
    has = {group for group in has if numbers.get(group) not in ignored and (group != wanted.name or group in goal)}
    goal_numbers, has_numbers = ({numbers.get(group) for group in each} for each in (goal, has))
    same = goal_numbers == has_numbers or (not wanted.remove_groups and goal_numbers <= has_numbers)
    return None if same else sorted(goal)


def _password_changes(ctx: Context, wanted: WantedUser) -> dict[str, Any]:
    asked = wanted.password or wanted.empty_password or wanted.ages or wanted.password_lock is not None
    if not asked:
        return {}
    shadow = ctx.call("shadow.info", wanted.name)
    change: dict[str, Any] = {}
    never_set = shadow["passwd"] == ctx.call("shadow.default_hash")
    differs = bool(wanted.password) and shadow["passwd"] != wanted.password
    if differs and not wanted.empty_password and (never_set or wanted.enforce_password):
        change["passwd"] = wanted.password
    if wanted.empty_password and shadow["passwd"] != "":
        change["empty_password"] = True
    change |= {key: value for key, value in wanted.ages.items() if shadow[AGES[key][0]] != value}
    locked = str(shadow["passwd"]).startswith("!")
    if wanted.password_lock is not None and wanted.password_lock is not locked:
        change["password_lock"] = wanted.password_lock
    return change


def not_allowed(changes: Mapping[str, Any], now: Mapping[str, Any], *, allow_uid: bool, allow_gid: bool) -> str:
    refused = [
        f"Changing {key} ({now[key]} -> {changes[key]}) not permitted, set allow_{key}_change to True to force this "
        "change. Note that this will not change file ownership."
        for key, allowed in (("uid", allow_uid), ("gid", allow_gid))
        if key in changes and not allowed
    ]
    if not refused:
        return ""
    return "Encountered error checking for needed changes. Additional info follows:\n\n" + "\n".join(
        f"- {each}" for each in refused
    )
