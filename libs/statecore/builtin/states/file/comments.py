"""``file.comment`` and ``file.uncomment``: lines made comments, and lines again."""

from __future__ import annotations

from typing import Any

from statecore.builtin.states.file.edit_plan import Target, suffix
from statecore.builtin.states.file.places import Refused
from statecore.host.content.edits import comments
from statecore.host.content.edits.comments import Pattern
from statecore.model.context import Context
from statecore.model.errors import HostError, InvocationError
from statecore.model.types import Plan


def comment(
    ctx: Context, name: str, regex: str, char: str = "#", backup: Any = ".bak", ignore_missing: bool = False
) -> Plan:
    """The lines that begin with what a regular expression matches are comments.

    char
        what makes a line a comment
    backup
        suffix of the old file's copy; False keeps none
    ignore_missing
        a file without such lines is right too
    """
    try:
        pattern = Pattern(str(regex), str(char))
        target = Target.of(ctx, name)
        old = target.text
        if not pattern.has_line(old):
            if pattern.has_comment(old):
                return Plan.unchanged("Pattern already commented")
            if ignore_missing:
                return Plan.unchanged("Pattern not found and ignore_missing set to True")
            raise Refused(f"{pattern.bare}: Pattern not found")
        new = comments.commented(old, pattern)
        if not pattern.has_comment(new):
            raise Refused("Expected commented lines not found")
    except (Refused, HostError, InvocationError) as error:
        return Plan.failed(str(error))
    return _written(target, new, "Commented lines successfully", backup)


def uncomment(ctx: Context, name: str, regex: str, char: str = "#", backup: Any = ".bak") -> Plan:
    """The comments that hold what a regular expression matches are lines.

    char
        what makes a line a comment
    backup
        suffix of the old file's copy; False keeps none
    """
    try:
        pattern = Pattern(str(regex), str(char))
        target = Target.of(ctx, name)
        old = target.text
        if not pattern.has_spaced_comment(old):
            if pattern.has_indented_line(old):
                return Plan.unchanged("Pattern already uncommented")
            raise Refused(f"{regex}: Pattern not found")
        new = comments.uncommented(old, pattern)
        if not pattern.has_indented_line(new):
            raise Refused("Expected uncommented lines not found")
    except (Refused, HostError, InvocationError) as error:
        return Plan.failed(str(error))
    return _written(target, new, "Uncommented lines successfully", backup)


def _written(target: Target, new: str, did: str, backup: Any) -> Plan:
    if new == target.text:
        return Plan.unchanged(did)
    would = f"File {target.name} is set to be updated"
    changes = {"diff": target.diff(new)}
    return target.write(new, would, did, changes, predicted={target.name: "updated"}, backup=suffix(backup))
