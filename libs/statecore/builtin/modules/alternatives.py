"""Alternatives of the managed host: Salt's ``alternatives`` execution module.

A group of alternatives gives several programs one common name: the link /usr/bin/editor leads to the selected program,
such as /usr/bin/vim. Every function's argument ``name`` is the name of a group.
"""

from __future__ import annotations

from collections.abc import Sequence

from statecore.model.context import Context
from statecore.model.errors import CallFailed
from statecore.model.text_lines import lines_of

ALIASES = {"set": "set_"}

_PLACE = "/etc/alternatives"

#: os_family -> directory with one file for each group; the file's second line is the group's link.
_GROUPS = {"RedHat": "/var/lib/alternatives", "Suse": "/var/lib/rpm/alternatives"}


def available(ctx: Context) -> str | None:
    """Return None if the host has the directory /etc/alternatives; else return the reason as text."""
    return None if ctx.host.path(_PLACE).is_dir() else f"the host has no {_PLACE}"


def display(ctx: Context, name: str) -> str:
    """Return the output of ``update-alternatives --display`` for a group of alternatives, or its error output if the
    group does not exist.

    CLI Example:

        salt '*' alternatives.display editor
    """
    result = ctx.host.run([_program(ctx), "--display", name])
    return result.stderr if result.retcode and result.stderr else result.stdout


def show_link(ctx: Context, name: str) -> str | bool:
    """Return the path of the link of a group of alternatives, such as /usr/bin/editor. Return False if the group does
    not exist.
    """
    family = str(ctx.grains.get("os_family"))
    if family in _GROUPS:
        try:
            return lines_of(ctx.host.path(f"{_GROUPS[family]}/{name}").read_text("utf-8"))[1]
        except (OSError, IndexError):
            return False
    result = ctx.host.run([_program(ctx), "--query", name])
    rows = (line.partition(":") for line in lines_of(result.stdout.split("\n\n", 1)[0]))
    return next((value.strip() for key, _, value in rows if key == "Link"), False)


def show_current(ctx: Context, name: str) -> str | bool:
    """Return the path of the program that is selected in a group of alternatives. Return False if the group does not
    exist.
    """
    real_path = ctx.host.path(f"{_PLACE}/{name}", follow=False)
    return str(real_path.readlink()) if real_path.is_symlink() else False


def check_exists(ctx: Context, name: str, path: str) -> bool:
    """Return whether the program ``path`` belongs to a group of alternatives."""
    result = ctx.host.run([_program(ctx), "--display", name])
    return result.retcode == 0 and any(line.split(" ")[0] == path for line in lines_of(result.stdout))


def check_installed(ctx: Context, name: str, path: str) -> bool:
    """Return whether the program ``path`` is the one that is selected in a group of alternatives."""
    return show_current(ctx, name) == path


def install(ctx: Context, name: str, link: str, path: str, priority: int) -> str:
    """Add the program ``path`` to a group of alternatives. Return the output of update-alternatives. Raise CallFailed
    with its error output if it fails.
    """
    return _do(ctx, ["--install", link, name, path, str(priority)])


def remove(ctx: Context, name: str, path: str) -> str:
    """Remove the program ``path`` from a group of alternatives. Return the output of update-alternatives. Raise
    CallFailed if it fails.
    """
    return _do(ctx, ["--remove", name, path])


def auto(ctx: Context, name: str) -> str:
    """Select the program with the highest priority in a group of alternatives. Return the output of
    update-alternatives. Raise CallFailed if it fails.
    """
    return _do(ctx, ["--auto", name])


def set_(ctx: Context, name: str, path: str) -> str:
    """Select the program ``path`` in a group of alternatives. Return the output of update-alternatives. Raise
    CallFailed if it fails.
    """
    return _do(ctx, ["--set", name, path])


def _program(ctx: Context) -> str:
    return "alternatives" if ctx.grains.get("os_family") == "RedHat" else "update-alternatives"


def _do(ctx: Context, words: Sequence[str]) -> str:
    result = ctx.host.run([_program(ctx), *words])
    if result.retcode:
        # Salt returns the error output as if it were the result, and the call has the program's exit code.
        ctx.scratch["retcode"] = result.retcode
        raise CallFailed(
            result.stderr.strip() or f"{_program(ctx)} failed with {result.retcode}", result.stderr.strip()
        )
    return result.stdout.strip()
