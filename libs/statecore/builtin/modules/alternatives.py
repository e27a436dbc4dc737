"""Alternatives: which of several programs a common name means (Salt's ``alternatives`` module)."""

from __future__ import annotations

from collections.abc import Sequence

from statecore.model.context import Context
from statecore.model.errors import CommandError

ALIASES = {"set": "set_"}

_PLACE = "/etc/alternatives"

#: Family -> directory with a file for each group, of which the second line is its link.
_GROUPS = {"RedHat": "/var/lib/alternatives", "Suse": "/var/lib/rpm/alternatives"}


def available(ctx: Context) -> str | None:
    """None where the host has alternatives."""
    return None if ctx.host.path(_PLACE).is_dir() else f"the host has no {_PLACE}"


def display(ctx: Context, name: str) -> str:
    """What the program tells of a group.

    CLI Example:

        salt '*' alternatives.display editor
    """
    result = ctx.host.run([_program(ctx), "--display", name])
    return result.stderr if result.retcode and result.stderr else result.stdout


def show_link(ctx: Context, name: str) -> str | bool:
    """The common name, such as /usr/bin/editor; False when there is no such group."""
    family = str(ctx.grains.get("os_family"))
    if family in _GROUPS:
        try:
            return ctx.host.path(f"{_GROUPS[family]}/{name}").read_text("utf-8").splitlines()[1]
        except (OSError, IndexError):
            return False
    result = ctx.host.run([_program(ctx), "--query", name])
    rows = (line.partition(":") for line in result.stdout.split("\n\n", 1)[0].splitlines())
    return next((value.strip() for key, _, value in rows if key == "Link"), False)


def show_current(ctx: Context, name: str) -> str | bool:
    """What the name means now; False when it means nothing."""
    place = ctx.host.path(f"{_PLACE}/{name}", follow=False)
    return str(place.readlink()) if place.is_symlink() else False


def check_exists(ctx: Context, name: str, path: str) -> bool:
    """Whether a program is one of the group."""
    result = ctx.host.run([_program(ctx), "--display", name])
    return result.retcode == 0 and any(line.split(" ")[0] == path for line in result.stdout.splitlines())


def check_installed(ctx: Context, name: str, path: str) -> bool:
    """Whether the name means this program now."""
    return show_current(ctx, name) == path


def install(ctx: Context, name: str, link: str, path: str, priority: int) -> str:
    """Makes a program one of the group. Raises CommandError with the reason why not."""
    return _do(ctx, ["--install", link, name, path, str(priority)])


def remove(ctx: Context, name: str, path: str) -> str:
    """Takes a program out of the group."""
    return _do(ctx, ["--remove", name, path])


def auto(ctx: Context, name: str) -> str:
    """Lets the priority decide."""
    return _do(ctx, ["--auto", name])


def set_(ctx: Context, name: str, path: str) -> str:
    """Makes the name mean this program."""
    return _do(ctx, ["--set", name, path])


def _program(ctx: Context) -> str:
    return "alternatives" if ctx.grains.get("os_family") == "RedHat" else "update-alternatives"


def _do(ctx: Context, words: Sequence[str]) -> str:
    result = ctx.host.run([_program(ctx), *words])
    if result.retcode:
        raise CommandError(result.stderr.strip() or f"{_program(ctx)} failed with {result.retcode}")
    return result.stdout.strip()
