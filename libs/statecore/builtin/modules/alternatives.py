"""Alternatives, which select one of several programs for a common name: Salt's ``alternatives`` execution module."""

from __future__ import annotations

from collections.abc import Sequence

from statecore.model.context import Context
from statecore.model.errors import CommandError

ALIASES = {"set": "set_"}

_PLACE = "/etc/alternatives"

#: os_family -> directory with one file for each group; the file's second line is the group's link.
_GROUPS = {"RedHat": "/var/lib/alternatives", "Suse": "/var/lib/rpm/alternatives"}


def available(ctx: Context) -> str | None:
    """Return None if the host has /etc/alternatives, else a sentence with the reason."""
    return None if ctx.host.path(_PLACE).is_dir() else f"the host has no {_PLACE}"


def display(ctx: Context, name: str) -> str:
    """Return the output of ``update-alternatives --display`` for a group.

    CLI Example:

        salt '*' alternatives.display editor
    """
    result = ctx.host.run([_program(ctx), "--display", name])
    return result.stderr if result.retcode and result.stderr else result.stdout


def show_link(ctx: Context, name: str) -> str | bool:
    """Return the link of a group, such as /usr/bin/editor; False if the group does not exist."""
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
    """Return the path of the program that is selected in a group; False if the group does not exist."""
    real_path = ctx.host.path(f"{_PLACE}/{name}", follow=False)
    return str(real_path.readlink()) if real_path.is_symlink() else False


def check_exists(ctx: Context, name: str, path: str) -> bool:
    """Return whether a program is one of the alternatives of a group."""
    result = ctx.host.run([_program(ctx), "--display", name])
    return result.retcode == 0 and any(line.split(" ")[0] == path for line in result.stdout.splitlines())


def check_installed(ctx: Context, name: str, path: str) -> bool:
    """Return whether a program is the selected one of a group."""
    return show_current(ctx, name) == path


def install(ctx: Context, name: str, link: str, path: str, priority: int) -> str:
    """Add a program to a group. Raises CommandError with the program's error output."""
    return _do(ctx, ["--install", link, name, path, str(priority)])


def remove(ctx: Context, name: str, path: str) -> str:
    """Remove a program from a group. Raises CommandError."""
    return _do(ctx, ["--remove", name, path])


def auto(ctx: Context, name: str) -> str:
    """Select the program with the highest priority of a group. Raises CommandError."""
    return _do(ctx, ["--auto", name])


def set_(ctx: Context, name: str, path: str) -> str:
    """Select a program of a group. Raises CommandError."""
    return _do(ctx, ["--set", name, path])


def _program(ctx: Context) -> str:
    return "alternatives" if ctx.grains.get("os_family") == "RedHat" else "update-alternatives"


def _do(ctx: Context, words: Sequence[str]) -> str:
    result = ctx.host.run([_program(ctx), *words])
    if result.retcode:
        raise CommandError(result.stderr.strip() or f"{_program(ctx)} failed with {result.retcode}")
    return result.stdout.strip()
