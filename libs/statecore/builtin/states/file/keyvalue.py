"""``file.keyvalue``: keys with values in lines of a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statecore.builtin.states.file.edit_plan import Target
from statecore.builtin.states.file.places import Refused, place_of
from statecore.host.content import managed_file
from statecore.host.content.edits import text
from statecore.host.content.edits.keyvalue import KeyValueEdit, edit
from statecore.model.context import Context
from statecore.model.errors import HostError, InvocationError
from statecore.model.types import Plan


def keyvalue(
    ctx: Context,
    name: str,
    key: Any = None,
    value: Any = None,
    key_values: Any = None,
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
    """The lines of these keys have these values.

    key_values
        several keys at once, in place of ``key`` and ``value``
    count
        lines of a key that are kept; what is more is removed. -1 changes all and removes none
    uncomment
        characters that make a line a comment: a commented key is made a line
    prune
        removes all lines of other keys
    search_only
        changes nothing: fails unless one of the keys is there
    """
    try:
        pairs = _pairs(key, value, key_values)
        place = place_of(ctx, name)
        old = managed_file.read(place, name)
    except (Refused, InvocationError) as error:
        return Plan.failed(str(error))
    except (HostError, OSError):
        return Plan(result=bool(ignore_if_missing), comment=f"unable to open {name}")
    if old is None and not create_if_missing:
        return Plan(result=bool(ignore_if_missing), comment=f"unable to open {name}")
    target = Target(ctx, name, place, old or b"")
    try:
        wish = KeyValueEdit(
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
        edited = edit(text.decoded(target.old, name), wish)
    except (ValueError, InvocationError) as error:
        return Plan.failed(str(error))
    if search_only:
        # Salt documents it, and changes the file nevertheless.
        return Plan.unchanged("The pattern was found") if edited.found else Plan.failed("The pattern was not found")
    if not edited.changed and not edited.deleted:
        return Plan.unchanged("")
    would = f"File {name} is set to be changed ({edited.changed} lines modified, {edited.deleted} deleted)"
    changes = {"diff": "".join(edited.diff)} if show_changes else {}
    if show_changes:
        would += "\nPredicted diff:\n\r\t\t" + "\r\t\t".join(edited.diff)
    did = f"Changed {edited.changed}, deleted {edited.deleted} lines"
    return target.write(edited.text, would, did, changes, shown=show_changes)


def _pairs(key: Any, value: Any, key_values: Any) -> dict[str, Any]:
    if key is not None and value is not None:
        if isinstance(key_values, Mapping):
            raise Refused("file.keyvalue can not combine key_values with key and value")
        return {str(key): value}
    if not key_values:
        raise Refused("file.keyvalue key and value not supplied and key_values is empty")
    if not isinstance(key_values, Mapping):
        raise Refused("file.keyvalue key and value not supplied and key_values is not a dictionary")
    return {str(name): each for name, each in key_values.items()}
