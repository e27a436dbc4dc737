"""Kernel modules, and the list of modules that are loaded at boot: Salt's ``kmod`` execution module."""

from __future__ import annotations

import os
import re

from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.text_lines import lines_of

ALIASES = {"available": "available_"}


def available_(ctx: Context) -> list[str]:
    """Return the names of all kernel modules that the host has for the running kernel, sorted."""
    top = ctx.host.path(f"/lib/modules/{os.uname().release}")
    names = [path.name.partition(".ko")[0].replace("-", "_") for path in top.rglob("*.ko*")]
    builtin = top / "modules.builtin"
    if builtin.is_file():
        names += [line.rpartition("/")[2].removesuffix(".ko") for line in lines_of(builtin.read_text("utf-8"))]
    return sorted(names)


def check_available(ctx: Context, mod: str) -> bool:
    """Return whether the host has a kernel module for the running kernel."""
    return mod in available_(ctx)


def lsmod(ctx: Context) -> list[dict[str, object]]:
    """Return a list of maps, one for each loaded kernel module: module (its name), size (bytes), depcount, deps.

    CLI Example:

        salt '*' kmod.lsmod
    """
    rows = (line.split() for line in lines_of(ctx.host.run(["lsmod"]).stdout)[1:])
    return [
        {"module": row[0], "size": row[1], "depcount": row[2], "deps": row[3].split(",") if len(row) > 3 else []}
        for row in rows
        if len(row) > 2
    ]


def mod_list(ctx: Context, only_persist: bool = False) -> list[str]:
    """Return the names of the loaded kernel modules, or with ``only_persist`` of those that are loaded at boot."""
    if not only_persist:
        return sorted(str(each["module"]) for each in lsmod(ctx))
    lines = (line.split() for line in lines_of(_text(ctx)) if not line.strip().startswith("#"))
    return sorted({words[0] for words in lines if words})


def is_loaded(ctx: Context, mod: str) -> bool:
    """Return whether a kernel module is loaded."""
    return mod in mod_list(ctx)


def load(ctx: Context, mod: str, persist: bool = False) -> object:
    """Load a kernel module. Return the sorted names of all modules that were loaded with it, or an error text.

    persist
        True: also load the module at boot
    """
    before = set(mod_list(ctx))
    result = ctx.host.run(["modprobe", *mod.split()])
    if result.retcode:
        ctx.scratch["retcode"] = result.retcode
        return f"Error loading module {mod}: {result.stderr.strip()}"
    new = set(mod_list(ctx)) - before
    if persist and mod.split()[0] not in mod_list(ctx, True):
        text, count = re.subn(rf"^#[\t ]*{re.escape(mod)}[\t ]*$", mod, _text(ctx), flags=re.MULTILINE)
        gap = "" if not text or text.endswith("\n") else "\n"
        _write(ctx, text if count else f"{text}{gap}{mod}\n")
        new.add(mod.split()[0])
    return sorted(new)


def remove(ctx: Context, mod: str, persist: bool = False, comment: bool = True) -> object:
    """Unload a kernel module. Return the sorted names of all modules that were unloaded with it, or an error text.

    persist
        True: also remove the module from the list for the boot
    comment
        False: delete the line from this list, instead of commenting it out
    """
    before = set(mod_list(ctx))
    result = ctx.host.run(["rmmod", mod])
    if result.retcode:
        ctx.scratch["retcode"] = result.retcode
        return f"Error removing module {mod}: {result.stderr.strip()}"
    gone = before - set(mod_list(ctx))
    if persist and mod.split()[0] in mod_list(ctx, True):
        pattern = rf"^[\t ]*({re.escape(mod)}\b.*)$\n?"
        _write(ctx, re.sub(pattern, r"#\1\n" if comment else "", _text(ctx), flags=re.MULTILINE))
        gone.add(mod)
    return sorted(gone)


def _conf(ctx: Context) -> str:
    return "/etc/modules-load.d/salt_managed.conf" if "systemd" in ctx.grains else "/etc/modules"


def _text(ctx: Context) -> str:
    name = _conf(ctx)
    return (managed_file.read(ctx.host.path(name), name) or b"").decode("utf-8", "replace")


def _write(ctx: Context, text: str) -> None:
    real_path = ctx.host.path(_conf(ctx))
    managed_file.make_directories(ctx.host, real_path.parent, Attributes(), ctx.host.root)
    managed_file.replace(ctx.host, real_path, text.encode(), Attributes())
