"""Keyboard layouts of the console and of X: Salt's ``keyboard`` execution module."""

from __future__ import annotations

import re
from collections.abc import Mapping

from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.errors import CommandError

#: Family of the system -> the file with the layout, and the variable in it.
_FILES: Mapping[str, tuple[str, str]] = {
    "RedHat": ("/etc/sysconfig/keyboard", "LAYOUT"),
    "Debian": ("/etc/default/keyboard", "XKBLAYOUT"),
    "Gentoo": ("/etc/conf.d/keymaps", "keymap"),
}


def available(ctx: Context) -> str | None:
    """Return None if the host has localectl, or is of a family whose file is known; else return the reason as text."""
    known = ctx.host.which("localectl") or ctx.grains.get("os_family") in _FILES
    return None if known else "the host has no localectl, and is no RedHat, Debian or Gentoo"


def get_sys(ctx: Context) -> str:
    """Return the name of the keyboard layout of the console, such as "us". Raise CommandError if none is configured.

    CLI Example:

        salt '*' keyboard.get_sys
    """
    if ctx.host.which("localectl"):
        return _field(ctx.host.run(["localectl"]).stdout, r"^\s*VC Keymap: *(.*)$", "localectl shows no VC Keymap")
    name, variable = _FILES[ctx.grains["os_family"]]
    return _field(_text(ctx, name), rf"^{variable}=[\"']?([^\"'\n]*)", f"{name} has no {variable}")


def set_sys(ctx: Context, layout: str) -> str:
    """Set the keyboard layout of the console. Return the layout's name. Raise CommandError if this fails.

    CLI Example:

        salt '*' keyboard.set_sys dvorak
    """
    if ctx.host.which("localectl"):
        _run(ctx, ["localectl", "set-keymap", layout])
        return layout
    name, variable = _FILES[ctx.grains["os_family"]]
    old = _text(ctx, name)
    new = re.sub(rf"^{variable}=.*$", lambda _: f"{variable}={layout}", old, flags=re.MULTILINE)
    if new != old:
        managed_file.replace(ctx.host, ctx.host.path(name), new.encode("utf-8", "surrogateescape"), Attributes())
    return layout


def get_x(ctx: Context) -> str:
    """Return the name of the keyboard layout of X, such as "us", by setxkbmap. Raise CommandError if it fails.

    CLI Example:

        salt '*' keyboard.get_x
    """
    return _field(_run(ctx, ["setxkbmap", "-query"]), r"^layout: *(.*)$", "setxkbmap shows no layout")


def set_x(ctx: Context, layout: str) -> str:
    """Set the keyboard layout of X by setxkbmap. Return the layout's name. Raise CommandError if this fails.

    CLI Example:

        salt '*' keyboard.set_x dvorak
    """
    _run(ctx, ["setxkbmap", layout])
    return layout


def _run(ctx: Context, words: list[str]) -> str:
    done = ctx.host.run(words)
    if done.retcode:
        raise CommandError(f"{' '.join(words)}: {done.stderr.strip() or done.retcode}")
    return done.stdout


def _field(text: str, pattern: str, missing: str) -> str:
    found = re.search(pattern, text, re.MULTILINE)
    if found is None:
        raise CommandError(missing)
    return found[1].strip()


def _text(ctx: Context, name: str) -> str:
    data = managed_file.read(ctx.host.path(name), name)
    if data is None:
        raise CommandError(f"the host has no {name}")
    return data.decode("utf-8", "surrogateescape")
