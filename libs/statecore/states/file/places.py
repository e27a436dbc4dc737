"""What every file state asks first: where a name lies on the host, whose it is to be, what other states have below it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from statecore import managed_file
from statecore.context import Context
from statecore.errors import HostError, StateFailure
from statecore.managed_file import Attributes
from statecore.types import FileChange, Outcome, Step

#: What test mode adds to every managed file's comment.
NOTE = "Note: No changes made, actual changes may\nbe different due to other states."

#: Arguments of Salt that mean something on other systems, or that nothing here does yet; asking for them is refused.
_UNSUPPORTED = {
    "attrs": "file attributes",
    **dict.fromkeys(("win_owner", "win_perms", "win_deny_perms"), "Windows"),
    "use_etag": "use source_hash",
    **dict.fromkeys(
        ("signature", "source_hash_sig", "signed_by_any", "signed_by_all", "keyring", "gnupghome"),
        "signatures are not verified here",
    ),
    **dict.fromkeys(
        ("ignore_ordering", "ignore_whitespace", "ignore_comment_characters", "new_file_diff"),
        "the difference of two files is shown whole",
    ),
}


class Refused(Exception):
    """A plan that cannot be made; str() is the state's comment."""


def place_of(ctx: Context, name: str, *, follow: bool = True) -> Path:
    if not name:
        raise Refused("Destination file name is missing")
    if not str(name).startswith("/"):
        raise Refused(f"Specified file {name} is not an absolute path")
    return ctx.host.path(str(name), follow=follow)


def step(what: str, work: Callable[[], Outcome], file: FileChange | None = None) -> Step:
    """A step whose refusal by the host is the state's comment as it is."""

    def run() -> Outcome:
        try:
            return work()
        except HostError as error:
            raise StateFailure(str(error)) from error

    return Step(what, run, file)


def refuse(given: Mapping[str, Any]) -> None:
    for argument, value in given.items():
        if value:
            raise Refused(f"not supported: {argument} ({_UNSUPPORTED.get(argument, 'nothing here sets it')})")


def need_parent(
    ctx: Context, place: Path, makedirs: bool, wish: Attributes, why: str = "Parent directory not present"
) -> None:
    """Makes the directory that a file goes into, if it may. Raises StateFailure that says ``why`` not."""
    if place.parent.is_dir():
        return
    if not makedirs:
        raise StateFailure(why)
    managed_file.make_directories(ctx.host, place.parent, wish, ctx.host.root)


def parent_attributes(wish: Attributes, dir_mode: Any) -> Attributes:
    mode = managed_file.parse_mode(dir_mode)
    if mode is None and wish.mode is not None:
        mode = managed_file.directory_mode(wish.mode)
    return Attributes(wish.user, wish.group, mode)


def attributes(user: Any, group: Any, mode: Any) -> tuple[Attributes, bool]:
    """Wanted attributes, and whether the mode is the source's own."""
    if mode == "keep":
        return Attributes(user, group), True
    return Attributes(user, group, managed_file.parse_mode(mode)), False
