"""``file.mknod``: devices and pipes."""

from __future__ import annotations

import os
import stat
from typing import Any

from statecore.builtin.states.file.places import Refused, place_of, step
from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.host.rooted_path import lexists, located
from statecore.model.context import Context
from statecore.model.errors import HostError, InvocationError, StateFailure
from statecore.model.types import Outcome, Plan

#: Type -> (kind of node, what it is called, the same with its article).
_KINDS = {
    "c": (stat.S_IFCHR, "Character device", "a character device"),
    "b": (stat.S_IFBLK, "Block device", "a block device"),
    "p": (stat.S_IFIFO, "Fifo pipe", "a fifo pipe"),
}


def mknod(
    ctx: Context,
    name: str,
    ntype: str,
    major: int = 0,
    minor: int = 0,
    user: Any = None,
    group: Any = None,
    mode: Any = "0600",
) -> Plan:
    """A character device (``ntype: c``), a block device (``b``) or a pipe (``p``), with its numbers, owner and mode."""
    if ntype not in _KINDS:
        return Plan.failed(
            f"Node type unavailable: '{ntype}'. Available node types are character ('c'), block ('b'), and pipe ('p')"
        )
    kind, word, article = _KINDS[ntype]
    try:
        place = place_of(ctx, name)
        wanted = Attributes(user, group, managed_file.parse_mode(mode))
        managed_file.know_owner(ctx.host, wanted)
        device = 0 if ntype == "p" else os.makedev(int(major), int(minor))
        if not lexists(place):
            return _new(ctx, name, place_of(ctx, name), kind | (wanted.mode or 0o600), device, wanted, word)
        found = place.stat()
        if stat.S_IFMT(found.st_mode) != kind:
            raise Refused(f"File {name} exists and is not {article}. Refusing to continue")
        if found.st_rdev != device:
            numbers = f"{os.major(found.st_rdev)}/{os.minor(found.st_rdev)}"
            raise Refused(f"{word} {name} exists and has a different major/minor {numbers}. Refusing to continue")
        changes = managed_file.attribute_changes(ctx.host, place, wanted)
    except (Refused, HostError, InvocationError) as error:
        return Plan.failed(str(error))
    except (TypeError, ValueError, OverflowError) as error:
        return Plan.failed(f"major and minor are numbers, not {major!r} and {minor!r}: {error}")
    if not changes:
        return Plan.unchanged(f"{word} {name} is in the correct state")

    def work() -> Outcome:
        managed_file.set_attributes(ctx.host, place, wanted)
        return Outcome("", changes)

    return Plan.change("", (step(f"set owner and mode of {name}", work),), changes)


def _new(ctx: Context, name: str, place: Any, mode: int, device: int, wanted: Attributes, word: str) -> Plan:
    changes = {"new": f"{word} {name} created."}

    def work() -> Outcome:
        managed_file.make_directories(ctx.host, place.parent, Attributes(wanted.user, wanted.group), ctx.host.root)
        try:
            with located(place) as (own, way):
                os.mknod(own, mode, device, dir_fd=way)
        except OSError as error:
            raise StateFailure(f"{name} cannot be made: {error.strerror}") from error
        managed_file.set_attributes(ctx.host, place, wanted)
        return Outcome("", changes)

    return Plan.change(f"{word} {name} is set to be created", (step(f"make {name}", work),), changes)
