"""Checks of the arguments that all ``file`` states share: the path, Windows arguments, and the owner and mode."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.host.content.write_plan import NOTE as NOTE
from statecore.host.content.write_plan import ensure_parent as ensure_parent
from statecore.host.content.write_plan import parent_attributes as parent_attributes
from statecore.host.content.write_plan import step as step
from statecore.model.context import Context

#: Windows-only arguments -> default value.
WINDOWS = {
    "win_owner": None,
    "win_perms": None,
    "win_deny_perms": None,
    "win_inheritance": True,
    "win_perms_reset": False,
}


class Refused(Exception):
    """Error: the arguments of a ``file`` state allow no plan. The text is the comment of the failed state.

    ``in_test`` is the comment in test mode, if Salt words it differently there.
    """

    def __init__(self, comment: str, in_test: str = "") -> None:
        super().__init__(comment)
        self.in_test = in_test


def local_path(ctx: Context, name: str, *, follow: bool = True) -> Path:
    """Return the path, for this process, of the file ``name`` of the managed host.

    ``follow=False`` returns the path of a symbolic link itself. Raises Refused if the name is empty or not absolute.
    """
    if not name:
        raise Refused("Destination file name is missing")
    if not str(name).startswith("/"):
        raise Refused(f"Specified file {name} is not an absolute path")
    return ctx.host.path(str(name), follow=follow)


def refuse_windows(given: Mapping[str, object]) -> None:
    """Raise Refused if an argument of a ``file`` state that only Windows has differs from its default."""
    for argument, absent in WINDOWS.items():
        value = given.get(argument, absent)
        if value is not None and value != absent:
            raise Refused(f"not supported: {argument} (Windows)")


def attributes(user: str | int | None, group: str | int | None, mode: object) -> tuple[Attributes, bool]:
    """Return (wanted owner, group and mode of a file; True if ``mode`` is "keep": the source file's own mode)."""
    if mode == "keep":
        return Attributes(user, group), True
    return Attributes(user, group, managed_file.parse_mode(mode)), False
