"""What every file state asks first: where a name lies on the host, whose it is to be, what other states have below it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from statecore import managed_file
from statecore.context import Context
from statecore.file_write import NOTE as NOTE
from statecore.file_write import need_parent as need_parent
from statecore.file_write import parent_attributes as parent_attributes
from statecore.file_write import step as step
from statecore.managed_file import Attributes

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
        ("ignore_ordering", "ignore_whitespace", "ignore_comment_characters"),
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


def refuse(given: Mapping[str, Any]) -> None:
    for argument, value in given.items():
        if value:
            raise Refused(f"not supported: {argument} ({_UNSUPPORTED.get(argument, 'nothing here sets it')})")


def attributes(user: Any, group: Any, mode: Any) -> tuple[Attributes, bool]:
    """Wanted attributes, and whether the mode is the source's own."""
    if mode == "keep":
        return Attributes(user, group), True
    return Attributes(user, group, managed_file.parse_mode(mode)), False
