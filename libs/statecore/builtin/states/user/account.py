"""One user account: the wanted values, the differences from the existing account, and the steps that create or change
it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date as date_type
from functools import partial
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import CommandError, HostError, InvocationError
from statecore.model.types import Outcome, Plan, Step
from statecore.system.hostfiles import password_hashes

_DATE = re.compile(r"\d{4}-\d\d-\d\d")


HIDDEN = "XXX-REDACTED-XXX"


#: Arguments for the parts of the comment (GECOS) field of /etc/passwd.
COMMENT = ("fullname", "roomnumber", "workphone", "homephone", "other")


#: Argument -> (key in the return of shadow.info, function that sets it, words in comments).
AGES: Mapping[str, tuple[str, str, str]] = {
    "date": ("lstchg", "shadow.set_date", "last change date"),
    "mindays": ("min", "shadow.set_mindays", "minimum days"),
    "maxdays": ("max", "shadow.set_maxdays", "maximum days"),
    "inactdays": ("inact", "shadow.set_inactdays", "inactive days"),
    "warndays": ("warn", "shadow.set_warndays", "warn days"),
    "expire": ("expire", "shadow.set_expire", "expire days"),
}


#: Arguments that accept a date (YYYY-MM-DD).
_DAYS = ("date", "expire")


@dataclass(frozen=True, slots=True)
class WantedUser:
    """The values of a user account that ``user.present`` wants. None: leave the value unchanged."""

    name: str
    uid: int | None
    gid: str | int | None
    usergroup: bool | None
    #: Groups that must exist. ``optional``: groups that are used only if they exist. None: argument not given.
    groups: tuple[str, ...] | None
    optional: tuple[str, ...] | None
    remove_groups: bool
    home: str | None
    createhome: bool
    persist_home: bool
    password: str | None
    enforce_password: bool
    empty_password: bool
    password_lock: bool | None
    shell: str | None
    comment: Mapping[str, str]
    ages: Mapping[str, object]


def number(argument: str, value: object) -> int | None:
    """Return a whole number from the argument called ``argument``; a date becomes the number of days since 1970. None
    for an empty value. Raise InvocationError if the value is neither a whole number nor a valid date.
    """
    if value in (None, ""):
        return None
    text = str(value).strip()
    if argument in _DAYS and (isinstance(value, date_type) or _DATE.fullmatch(text)):
        try:
            return (date_type.fromisoformat(text[:10]) - date_type(1970, 1, 1)).days
        except ValueError as error:
            raise InvocationError(f"{argument}: '{value}' is not a date: {error}") from error
    if isinstance(value, bool | float) or re.fullmatch(r"-?\d+", text) is None:
        raise InvocationError(f"{argument} must be a whole number, not {value!r}")
    return int(text)


def hashed(ctx: Context, name: str, password: str) -> str:
    """Return the hash of a password for /etc/shadow: the user's current hash if it matches the password, else a new one."""
    known = str(ctx.call("shadow.info", name)["passwd"])
    # A locked account has a "!" before the hash.
    bare = known.removeprefix("!")
    return known if password_hashes.matches(password, bare) else str(ctx.call("shadow.gen_password", password))


def changes_of(ctx: Context, wanted: WantedUser, now: Mapping[str, Any]) -> dict[str, object]:
    """Map of the values of a user account to change, under Salt's keys ("uid", "groups", "shell", ...); {} if the account is
    as wanted.
    """
    change: dict[str, object] = {}
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


def group_number(ctx: Context, gid: str | int) -> int | None:
    """Return the number of the group with this name or number; None if the group does not exist (yet)."""
    try:
        return ctx.host.gid(gid)
    except HostError:
        return None


def _group_changes(ctx: Context, wanted: WantedUser, now: Mapping[str, Any]) -> list[str] | None:
    """Return the wanted additional groups of the user, sorted; None if the user has them already.

    The old and new primary groups are not counted.
    """
    goal = {*(wanted.groups or ()), *(wanted.optional or ())}
    has = set(now["groups"])
    if not wanted.remove_groups or (wanted.groups is None and not wanted.optional):
        goal |= has
    primary = now["gid"] if wanted.gid is None else group_number(ctx, wanted.gid)
    numbers = {each["name"]: each["gid"] for each in ctx.call("group.getent")}
    goal = {group for group in goal if numbers.get(group) != primary}
    # Compare numbers: two group names may have the same number.
    ignored = {primary, now["gid"]}
    has = {group for group in has if numbers.get(group) not in ignored and (group != wanted.name or group in goal)}
    goal_numbers, has_numbers = ({numbers.get(group) for group in each} for each in (goal, has))
    same = goal_numbers == has_numbers or (not wanted.remove_groups and goal_numbers <= has_numbers)
    return None if same else sorted(goal)


def _password_changes(ctx: Context, wanted: WantedUser) -> dict[str, object]:
    asked = wanted.password or wanted.empty_password or wanted.ages or wanted.password_lock is not None
    if not asked:
        return {}
    shadow = ctx.call("shadow.info", wanted.name)
    change: dict[str, object] = {}
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


def not_allowed(changes: Mapping[str, object], now: Mapping[str, object], *, allow_uid: bool, allow_gid: bool) -> str:
    """Return the comment that refuses a change of the user's uid or gid that is not allowed; "" if all changes are
    allowed.
    """
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


def update(ctx: Context, wanted: WantedUser, changes: Mapping[str, object], missing: list[str]) -> Plan:
    """Return a plan that changes an existing user.

    ``missing``: wanted groups that do not exist, which fail the state.
    """
    name = wanted.name
    if not changes and not missing:
        return Plan.unchanged(f"User {name} is present and up to date")
    shown = [f"{key}: {HIDDEN if key == 'passwd' else value}" for key, value in changes.items()]
    shown += [f"groups (pending creation): {','.join(missing)}"] if missing else []
    would = "\n".join(["The following user attributes are set to be changed:", *shown]) + "\n"

    def work() -> Outcome:
        if missing:
            return _no_groups(missing)
        before, shadow = ctx.call("user.info", name), ctx.call("shadow.info", name)
        reason = ""
        try:
            _apply(ctx, wanted, changes, before)
        except CommandError as error:
            reason = f": {error}"
        after, shadow_after = ctx.call("user.info", name), ctx.call("shadow.info", name)
        made = {key: after[key] for key in after if after[key] != before[key]}
        for key in shadow_after:
            if shadow_after[key] != shadow[key]:
                made[key] = HIDDEN if key == "passwd" else shadow_after[key]
        left = changes_of(ctx, wanted, after)
        if left:
            hidden = {key: HIDDEN if key == "passwd" else value for key, value in left.items()}
            return Outcome(f"These values could not be changed: {hidden}{reason}", made, ok=False)
        return Outcome(f"Updated user {name}" if made else f"User {name} is present and up to date", made)

    return Plan.change(would, [Step(f"change the user {name}", work)])


def _apply(ctx: Context, wanted: WantedUser, changes: Mapping[str, object], before: Mapping[str, object]) -> None:
    """Apply ``changes`` (a map from ``changes_of``) to the user account, with functions of the modules ``user`` and
    ``shadow``. Additional groups come last, because they depend on the primary group. Errors of the functions are
    passed on.
    """
    name = wanted.name
    home = str(changes.get("home") or "")
    steps: Mapping[str, Callable[[object], object]] = {
        "passwd": lambda value: ctx.call("shadow.set_password", name, value),
        "empty_password": lambda _: ctx.call("shadow.del_password", name),
        "password_lock": lambda lock: ctx.call(f"shadow.{'lock' if lock else 'unlock'}_password", name),
        "home": lambda value: ctx.call("user.chhome", name, value, persist=wanted.persist_home),
        "homeDoesNotExist": lambda value: _make_home(ctx, str(value), before),
        **{age: partial(ctx.call, function, name) for age, (_, function, _) in AGES.items()},
        **{key: partial(ctx.call, f"user.ch{key}", name) for key in ("uid", "gid", "shell", *COMMENT)},
        "groups": lambda value: ctx.call("user.chgroups", name, value, not wanted.remove_groups),
    }
    for key, step in steps.items():
        if key == "homeDoesNotExist" and home and ctx.host.path(home).is_dir():
            # user.chhome has already moved the home directory here.
            continue
        if key in changes:
            step(changes[key])


def _make_home(ctx: Context, home: str, owner: Mapping[str, object]) -> None:
    ctx.call("file.mkdir", home, owner["uid"], owner["gid"], "0755")


def create(ctx: Context, wanted: WantedUser, made: Mapping[str, object], missing: list[str]) -> Plan:
    """Return a plan that creates a user.

    ``made``: further arguments of ``user.add``. ``missing``: groups that do not exist; with any of them the step
    fails before it creates the user.
    """
    name = wanted.name
    would = f"User {name} set to be added" + (f" (pending groups: {','.join(missing)})" if missing else "")

    def work() -> Outcome:
        if missing:
            return _no_groups(missing)
        groups = [*(wanted.groups or ()), *(wanted.optional or ())]
        try:
            ctx.call(
                "user.add",
                name,
                uid=wanted.uid,
                groups=groups or None,
                home=wanted.home,
                shell=wanted.shell,
                createhome=wanted.createhome,
                usergroup=wanted.usergroup,
                **wanted.comment,
                **made,
            )
        except CommandError as error:
            return Outcome(f"Failed to create new user {name}: {error}", ctx.call("user.info", name), ok=False)
        changes = ctx.call("user.info", name)
        if not wanted.createhome:
            # The account has a home path, but the directory was not created.
            changes = {**changes, "home": ""}
        return _with_password(ctx, wanted, changes)

    return Plan.change(would, [Step(f"make the user {name}", work)])


def _with_password(ctx: Context, wanted: WantedUser, changes: dict[str, object]) -> Outcome:
    """Set password and password aging of a new user, and return the outcome of the creation: failed if one cannot be set."""
    name = wanted.name
    failed: list[str] = []

    def attempt(function: str, what: str, *args: object) -> None:
        try:
            done = ctx.call(function, name, *args)
            reason = ""
        except CommandError as error:
            done, reason = False, f": {error}"
        if not done:
            failed.append(f"User {name} created but failed to {what}{reason}")

    if wanted.password and not wanted.empty_password:
        attempt("shadow.set_password", f"set password to {HIDDEN}", wanted.password)
        changes["password"] = HIDDEN
    if wanted.empty_password and not wanted.password:
        attempt("shadow.del_password", "empty password")
        changes["password"] = ""
    for key, value in wanted.ages.items():
        if value or key == "date":
            attempt(AGES[key][1], f"set {AGES[key][2]} to {value}", value)
            changes[key] = value
    return Outcome("\n".join(failed) or f"New user {name} created", changes, ok=not failed)


def _no_groups(missing: list[str]) -> Outcome:
    return Outcome(f"The following group(s) are not present: {','.join(missing)}", ok=False)
