"""Making and changing users."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from statecore.builtin.states.user.reading import changes_of
from statecore.builtin.states.user.wanted import AGES, COMMENT, HIDDEN, WantedUser
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.types import Outcome, Plan, Step


def update(ctx: Context, wanted: WantedUser, changes: Mapping[str, Any], missing: list[str]) -> Plan:
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


def _apply(ctx: Context, wanted: WantedUser, changes: Mapping[str, Any], before: Mapping[str, Any]) -> None:
    """Makes the changes; groups last, since the primary group decides what they mean."""
    name = wanted.name
    home = changes.get("home")
    steps: Mapping[str, Callable[[Any], Any]] = {
        "passwd": lambda value: ctx.call("shadow.set_password", name, value),
        "empty_password": lambda _: ctx.call("shadow.del_password", name),
        "password_lock": lambda lock: ctx.call(f"shadow.{'lock' if lock else 'unlock'}_password", name),
        "home": lambda value: ctx.call("user.chhome", name, value, persist=wanted.persist_home),
        "homeDoesNotExist": lambda value: _make_home(ctx, value, before),
        **{age: partial(ctx.call, function, name) for age, (_, function, _) in AGES.items()},
        **{key: partial(ctx.call, f"user.ch{key}", name) for key in ("uid", "gid", "shell", *COMMENT)},
        "groups": lambda value: ctx.call("user.chgroups", name, value, not wanted.remove_groups),
    }
    for key, step in steps.items():
        if key == "homeDoesNotExist" and home and ctx.host.path(home).is_dir():
            # It was moved there with all that is in it.
            continue
        if key in changes:
            step(changes[key])


def _make_home(ctx: Context, home: str, owner: Mapping[str, Any]) -> None:
    ctx.call("file.mkdir", home, owner["uid"], owner["gid"], "0755")


def create(ctx: Context, wanted: WantedUser, made: Mapping[str, Any], missing: list[str]) -> Plan:
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
            # The account names a home, but there is none.
            changes = {**changes, "home": ""}
        return _with_password(ctx, wanted, changes)

    return Plan.change(would, [Step(f"make the user {name}", work)])


def _with_password(ctx: Context, wanted: WantedUser, changes: dict[str, Any]) -> Outcome:
    """Sets the password of a new user, and how it ages."""
    name = wanted.name
    failed: list[str] = []

    def attempt(function: str, what: str, *args: Any) -> None:
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
