"""``file.line`` and ``file.keyvalue``: single lines of a file, and lines with a key and a value."""

from __future__ import annotations

import time
from collections.abc import Mapping

from statecore.builtin.states.file.arguments import Refused, ensure_parent, local_path, step
from statecore.builtin.states.file.edits import Target
from statecore.host.content import managed_file
from statecore.host.content.edits import text
from statecore.host.content.edits.keyvalue import KeyValueEdit, edit
from statecore.host.content.edits.single_line import Line
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.errors import CommandError, HostError, InvocationError
from statecore.model.types import Outcome, Plan, Step


def line(
    ctx: Context,
    name: str,
    content: object = None,
    match: str | None = None,
    mode: str | None = None,
    location: str | None = None,
    before: str | None = None,
    after: str | None = None,
    show_changes: bool = True,
    backup: bool = False,
    quiet: bool = False,
    indent: bool = True,
    create: bool = False,
    user: str | int | None = None,
    group: str | int | None = None,
    file_mode: object = None,
) -> Plan:
    """Insert, replace or delete one line of a file.

    content
        the line
    match
        regular expression or text that finds the line to replace or delete; default: ``content``
    mode
        ``ensure``: the line exists, between the lines that match ``after`` and ``before``; ``insert``: likewise, or at
        ``location``; ``replace``; ``delete``
    location
        for ``insert``: ``start`` or ``end`` of the file
    indent
        True: indent the line like the line beside it
    create, user, group, file_mode
        True: create a missing file; its owner, group and mode
    backup
        True: keep the old file beside the new one, with the time as suffix
    quiet
        no effect here: as in Salt, a missing file is always a failure of this state
    """
    try:
        wanted = Attributes(user, group, managed_file.parse_mode(file_mode))
        place = local_path(ctx, name)
        created = create and not place.exists()
        target = Target(ctx, name, place, b"") if created else Target.of(ctx, name)
        new = Line.of(locals()).put_into(target.text)
        owned = {} if created else managed_file.attribute_changes(ctx.host, place, wanted)
    except (Refused, CommandError, InvocationError) as error:
        return Plan.failed(str(error))
    changed = new != target.text
    if not (changed or created or owned):
        return Plan.unchanged("No changes needed to be made")

    def prepare() -> Outcome:
        if created:
            ensure_parent(ctx, place, False, wanted)
            managed_file.replace(ctx.host, place, b"", wanted)
            return Outcome("", {"new": name})
        managed_file.set_attributes(ctx.host, place, wanted)
        return Outcome("", owned)

    reported: dict[str, object] = {"new": name} if created else dict(owned)
    steps: list[Step] = []
    if created or owned:
        steps.append(step(f"create {name}" if created else f"set owner and mode of {name}", prepare))
    if not changed:
        return Plan.change(
            "Changes would be made", [*steps, Step("report the result", lambda: Outcome("Changes were made"))], reported
        )
    kept = f".{time.strftime('%Y-%m-%d-%H-%M-%S')}" if backup else ""
    changes = reported | {"diff": target.diff(new, shown=show_changes)}
    write = target.write(new, "Changes would be made", "Changes were made", changes, backup=kept, shown=show_changes)
    return Plan.change(write.comment, [*steps, *write.steps], changes)


def keyvalue(
    ctx: Context,
    name: str,
    key: object = None,
    value: object = None,
    key_values: object = None,
    separator: str = "=",
    append_if_not_found: bool = False,
    prepend_if_not_found: bool = False,
    search_only: bool = False,
    show_changes: bool = True,
    ignore_if_missing: bool = False,
    count: int = 1,
    uncomment: str | None = None,
    key_ignore_case: bool = False,
    value_ignore_case: bool = False,
    create_if_missing: bool = False,
    prune: bool = False,
) -> Plan:
    """Set the values of keys in lines such as ``key=value``.

    key, value
        the key and its value
    key_values
        map of several keys to values, in place of ``key`` and ``value``
    separator
        text between key and value
    append_if_not_found, prepend_if_not_found
        True: add missing keys at the end, or the beginning
    count
        number of lines of a key to keep and change; further lines are removed. -1: change all lines, remove none.
    uncomment
        comment characters: a commented key with them is uncommented
    key_ignore_case, value_ignore_case
        True: compare without regard to upper and lower case
    prune
        True: remove all lines of other keys
    search_only
        True: change nothing; fail unless one of the keys exists
    create_if_missing, ignore_if_missing
        True: create a missing file; a missing file is no failure
    """
    try:
        pairs = _pairs(key, value, key_values)
        place = local_path(ctx, name)
        old = managed_file.read(place, name)
    except (Refused, InvocationError) as error:
        return Plan.failed(str(error))
    except (HostError, OSError):
        return Plan(result=bool(ignore_if_missing), comment=f"unable to open {name}")
    if old is None and not create_if_missing:
        return Plan(result=bool(ignore_if_missing), comment=f"unable to open {name}")
    target = Target(ctx, name, place, old or b"")
    try:
        key_edit = KeyValueEdit(
            pairs=pairs,
            separator=str(separator),
            append=append_if_not_found or old is None,
            prepend=prepend_if_not_found,
            count=int(count),
            uncomment=uncomment,
            key_ignore_case=key_ignore_case,
            value_ignore_case=value_ignore_case,
            prune=prune,
        )
        edited = edit(text.decoded(target.old, name), key_edit)
    except (ValueError, InvocationError) as error:
        return Plan.failed(str(error))
    if search_only:
        # Salt documents search_only, but changes the file nevertheless; the documentation is followed here.
        return Plan.unchanged("The pattern was found") if edited.found else Plan.failed("The pattern was not found")
    if not edited.changed and not edited.deleted:
        return Plan.unchanged("")
    would = f"File {name} is set to be changed ({edited.changed} lines modified, {edited.deleted} deleted)"
    changes = {"diff": "".join(edited.diff)} if show_changes else {}
    if show_changes:
        would += "\nPredicted diff:\n\r\t\t" + "\r\t\t".join(edited.diff)
    did = f"Changed {edited.changed}, deleted {edited.deleted} lines"
    return target.write(edited.text, would, did, changes, shown=show_changes)


def _pairs(key: object, value: object, key_values: object) -> dict[str, object]:
    if key is not None and value is not None:
        if isinstance(key_values, Mapping):
            raise Refused("file.keyvalue can not combine key_values with key and value")
        return {str(key): value}
    if not key_values:
        raise Refused("file.keyvalue key and value not supplied and key_values is empty")
    if not isinstance(key_values, Mapping):
        raise Refused("file.keyvalue key and value not supplied and key_values is not a dictionary")
    return {str(name): each for name, each in key_values.items()}
