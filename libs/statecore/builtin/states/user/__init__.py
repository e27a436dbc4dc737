"""Salt's ``user`` states: accounts of users."""

from __future__ import annotations

from collections.abc import Mapping

from statecore.builtin.states.user.account import (
    AGES,
    COMMENT,
    WantedUser,
    changes_of,
    create,
    hashed,
    not_allowed,
    number,
    update,
)
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.types import Outcome, Plan, Step

#: Salt's arguments that are not supported -> reason.
_UNSUPPORTED: Mapping[str, str] = {
    "loginclass": "login classes exist only on BSD",
    "local": "it needs luseradd; users are created with useradd",
    **dict.fromkeys(("win_homedrive", "win_profile", "win_logonscript", "win_description"), "it is for Windows hosts"),
}

#: Arguments that are whole numbers.
_NUMBERS = ("uid", "date", "mindays", "maxdays", "inactdays", "warndays", "expire")

_LISTS = ("groups", "optional_groups")


def present(
    ctx: Context,
    name: str,
    uid: int | None = None,
    gid: str | int | None = None,
    usergroup: bool | None = None,
    groups: str | list[str] | None = None,
    optional_groups: str | list[str] | None = None,
    remove_groups: bool = True,
    home: str | None = None,
    createhome: bool = True,
    persist_home: bool = False,
    password: str | None = None,
    hash_password: bool = False,
    enforce_password: bool = True,
    empty_password: bool = False,
    shell: str | None = None,
    unique: bool = True,
    system: bool = False,
    fullname: object = None,
    roomnumber: object = None,
    workphone: object = None,
    homephone: object = None,
    other: object = None,
    loginclass: str | None = None,
    date: object = None,
    mindays: int | None = None,
    maxdays: int | None = None,
    inactdays: int | None = None,
    warndays: int | None = None,
    expire: object = None,
    win_homedrive: str | None = None,
    win_profile: str | None = None,
    win_logonscript: str | None = None,
    win_description: str | None = None,
    nologinit: bool = False,
    allow_uid_change: bool = False,
    allow_gid_change: bool = False,
    password_lock: bool | None = None,
    local: bool = False,
) -> Plan:
    """Create a user, or change an existing user to match the arguments. Arguments that are not given stay as they are.

    uid, gid
        number of the user; primary group (number or name). An existing user's numbers are changed only with
        ``allow_uid_change`` and ``allow_gid_change``.
    usergroup
        True: the primary group has the user's name
    groups, optional_groups
        additional groups. All ``groups`` must exist; of ``optional_groups`` only existing ones are used.
    remove_groups
        False: the user stays in additional groups that are not named
    home, createhome, persist_home
        home directory; create it if missing; True: move the old home's content to a new home
    password
        password hash for /etc/shadow; with ``hash_password`` the plain password
    enforce_password
        False: an existing password is not changed
    empty_password, password_lock
        True: log in without a password; lock (True) or unlock (False) the password
    fullname, roomnumber, workphone, homephone, other
        parts of the comment (GECOS) field
    date, expire
        day of the last password change; day when the account expires: days since 1970, or YYYY-MM-DD
    mindays, maxdays, inactdays, warndays
        password aging, in days
    system, unique, nologinit
        options for a new user: system account; False: the uid may be used twice; no entry in lastlog and faillog
    """
    given = dict(locals())
    for argument, reason in _UNSUPPORTED.items():
        if given[argument]:
            return Plan.failed(f"not supported: {argument}; {reason}")
    try:
        given |= {key: number(key, given[key]) for key in _NUMBERS}
        for key in _LISTS:
            if not isinstance(given[key], list | tuple | None):
                raise InvocationError(f"{key} must be a list of groups, not {given[key]!r}")
    except InvocationError as error:
        return Plan.failed(str(error))
    if password and hash_password:
        password = hashed(ctx, name, str(password))
    comment = {part: str(given[part]) for part in COMMENT if given[part] is not None}
    for part in ("fullname", "roomnumber", "workphone"):
        if "," in comment.get(part, ""):
            return Plan.failed(f"Unsupported char ',' in {comment[part]}")
    named = [str(group) for group in groups or ()]
    missing = [group for group in named if not ctx.call("group.info", group)]
    optional = [str(group) for group in optional_groups or () if ctx.call("group.info", str(group))]
    own_group = bool(usergroup) and bool(ctx.call("group.info", name))
    wanted = WantedUser(
        name=name,
        uid=given["uid"],
        gid=name if own_group else gid,
        usergroup=usergroup,
        groups=tuple(group for group in named if group not in missing) if groups is not None else None,
        optional=tuple(optional) if optional_groups else None,
        remove_groups=remove_groups,
        home=home,
        createhome=createhome,
        persist_home=persist_home,
        password=password,
        enforce_password=enforce_password,
        empty_password=empty_password,
        password_lock=password_lock,
        shell=shell,
        comment=comment,
        ages={key: given[key] for key in AGES if given[key] is not None},
    )
    now = ctx.call("user.info", name)
    if not now:
        creation_options = {"unique": unique, "system": system, "nologinit": nologinit, "gid": gid}
        return create(ctx, wanted, creation_options, missing)
    changes = changes_of(ctx, wanted, now)
    if refused := not_allowed(changes, now, allow_uid=allow_uid_change, allow_gid=allow_gid_change):
        return Plan.failed(refused)
    return update(ctx, wanted, changes, missing)


def absent(ctx: Context, name: str, purge: bool = False, force: bool = False, local: bool = False) -> Plan:
    """Remove a user. Nothing happens if the user does not exist.

    ``purge``: also remove the home directory; ``force``: remove the user even if logged in.
    """
    if local:
        return Plan.failed(f"not supported: local; {_UNSUPPORTED['local']}")
    if not ctx.call("user.info", name):
        return Plan.unchanged(f"User {name} is not present")

    def work() -> Outcome:
        before = ctx.call("user.list_groups", name)
        try:
            ctx.call("user.delete", name, purge, force)
        except CommandError as error:
            return Outcome(f"Failed to remove user {name}: {error}", ok=False)
        gone = [group for group in before if not ctx.call("group.info", group)]
        return Outcome(f"Removed user {name}", {**{f"{group} group": "removed" for group in gone}, name: "removed"})

    return Plan.change(f"User {name} set for removal", [Step(f"remove the user {name}", work)])
