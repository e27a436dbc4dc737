"""What a user is to be, and how what is asked for is read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date as date_type
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import InvocationError
from statecore.system.hostfiles import password_hashes

_DATE = re.compile(r"\d{4}-\d\d-\d\d")


HIDDEN = "XXX-REDACTED-XXX"


#: Parts of the comment field.
COMMENT = ("fullname", "roomnumber", "workphone", "homephone", "other")


#: Argument -> (field of shadow.info, function that sets it, what it is called in a comment).
AGES: Mapping[str, tuple[str, str, str]] = {
    "date": ("lstchg", "shadow.set_date", "last change date"),
    "mindays": ("min", "shadow.set_mindays", "minimum days"),
    "maxdays": ("max", "shadow.set_maxdays", "maximum days"),
    "inactdays": ("inact", "shadow.set_inactdays", "inactive days"),
    "warndays": ("warn", "shadow.set_warndays", "warn days"),
    "expire": ("expire", "shadow.set_expire", "expire days"),
}


#: Arguments that may be days, written YYYY-MM-DD.
_DAYS = ("date", "expire")


@dataclass(frozen=True, slots=True)
class WantedUser:
    """What a user is to be. None: as it is."""

    name: str
    uid: int | None
    gid: Any
    usergroup: bool | None
    #: Groups that must exist, and those that count only if they do; None: none were named.
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
    ages: Mapping[str, Any]


def number(argument: str, value: Any) -> int | None:
    """A whole number, or a day as days since 1970; None for nothing."""
    if value in (None, ""):
        return None
    text = str(value).strip()
    if argument in _DAYS and (isinstance(value, date_type) or _DATE.fullmatch(text)):
        try:
            return (date_type.fromisoformat(text[:10]) - date_type(1970, 1, 1)).days
        except ValueError as error:
            raise InvocationError(f"{argument}: '{value}' is no day: {error}") from error
    if isinstance(value, bool | float) or re.fullmatch(r"-?\d+", text) is None:
        raise InvocationError(f"{argument} must be a whole number, not {value!r}")
    return int(text)


def hashed(ctx: Context, name: str, password: str) -> str:
    """The hash that the user has, where it is that of the password; else a new one."""
    known = str(ctx.call("shadow.info", name)["passwd"])
    # A lock is one sign before it, which is no part of it.
    bare = known.removeprefix("!")
    return known if password_hashes.matches(password, bare) else str(ctx.call("shadow.gen_password", password))
