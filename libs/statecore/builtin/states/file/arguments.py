"""What every file state asks first: where a name lies on the host, whose it is to be, what other states have below it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.host.content.write_plan import NOTE as NOTE
from statecore.host.content.write_plan import need_parent as need_parent
from statecore.host.content.write_plan import parent_attributes as parent_attributes
from statecore.host.content.write_plan import step as step
from statecore.model.context import Context

#: Arguments that mean something on Windows alone -> what leaves them out.
WINDOWS = {
    "win_owner": None,
    "win_perms": None,
    "win_deny_perms": None,
    "win_inheritance": True,
    "win_perms_reset": False,
}


class Refused(Exception):
    """A plan that cannot be made; str() is the state's comment."""


def place_of(ctx: Context, name: str, *, follow: bool = True) -> Path:
    if not name:
        raise Refused("Destination file name is missing")
    if not str(name).startswith("/"):
        raise Refused(f"Specified file {name} is not an absolute path")
    return ctx.host.path(str(name), follow=follow)


def refuse_windows(given: Mapping[str, Any]) -> None:
    """Raises Refused for what of the arguments is given and means something on Windows alone."""
    for argument, absent in WINDOWS.items():
        value = given.get(argument, absent)
        if value is not None and value != absent:
            raise Refused(f"not supported: {argument} (Windows)")


def attributes(user: Any, group: Any, mode: Any) -> tuple[Attributes, bool]:
    """Wanted attributes, and whether the mode is the source's own."""
    if mode == "keep":
        return Attributes(user, group), True
    return Attributes(user, group, managed_file.parse_mode(mode)), False
