"""Salt's ``grains`` states: grains in the minion's grains file. Names are paths such as ``icinga:port``."""

from __future__ import annotations

from collections.abc import Mapping

from statecore.model.context import Context
from statecore.model.types import Outcome, Plan, Step

_DELIMITER = ":"

_ABSENT = object()


def exists(ctx: Context, name: str, delimiter: str = _DELIMITER) -> Plan:
    """Check that the minion has the grain ``name``; the state fails if it does not. Nothing is changed."""
    if _value(ctx, _path(name, delimiter)) is _ABSENT:
        return Plan.failed("Grain does not exist")
    return Plan.unchanged("Grain exists")


def present(ctx: Context, name: str, value: object, delimiter: str = _DELIMITER, force: bool = False) -> Plan:
    """Set a grain. ``force``: also replace lists, maps, and values in the middle of the path."""
    path = _path(name, delimiter)
    existing = _value(ctx, path)
    if existing is not _ABSENT and existing == value:
        return Plan.unchanged("Grain is already set")
    step = Step(f"set grain {path}", lambda: _set(ctx, path, value, force))
    if existing is _ABSENT:
        return Plan.change(f"Grain {path} is set to be added", [step], {"new": path})
    return Plan.change(f"Grain {path} is set to be changed", [step], {"changed": {path: value}})


def _set(ctx: Context, path: str, value: object, force: bool) -> Outcome:
    done = ctx.call("grains.set", path, value, force=force)
    changed = bool(done["result"] and done["changes"])
    return Outcome(
        comment=f"Set grain {path} to {value}" if changed else done["comment"],
        changes=done["changes"],
        ok=bool(done["result"]),
    )


def absent(
    ctx: Context, name: str, destructive: bool = False, delimiter: str = _DELIMITER, force: bool = False
) -> Plan:
    """Set a grain to None, or with ``destructive`` remove it. A list or map is removed only with ``force``."""
    path = _path(name, delimiter)
    existing = _value(ctx, path)
    if existing is _ABSENT:
        return Plan.unchanged(f"Grain {path} does not exist")
    if existing is None and not destructive:
        return Plan.unchanged("Grain is already set")
    changes: Mapping[str, object] = {"deleted": path} if destructive else {"grain": path, "value": None}
    done = f"Grain {path} was deleted" if destructive else f"Value for grain {path} was set to None"
    would = (
        f"Grain {path} is set to be deleted" if destructive else f"Value for grain {path} is set to be deleted (None)"
    )

    def remove() -> Outcome:
        answer = ctx.call("grains.set", path, None, destructive=destructive, force=force)
        if not answer["result"]:
            return Outcome(comment=answer["comment"], ok=False)
        return Outcome(comment=done, changes=changes)

    return Plan.change(would, [Step(f"remove grain {path}", remove)], changes)


def append(ctx: Context, name: str, value: object, convert: bool = False, delimiter: str = _DELIMITER) -> Plan:
    """Append a value to an existing grain that is a list. ``convert``: turn a grain of another type into a list first."""
    path = _path(name, delimiter)
    existing = _value(ctx, path)
    if existing is _ABSENT:
        return Plan.failed(f"Grain {path} does not exist")
    if not isinstance(existing, list) and not convert:
        return Plan.failed(f"Grain {path} is not a valid list")
    if isinstance(existing, list) and value in existing:
        return Plan.unchanged(f"Value {value} is already in the list for grain {path}")
    would = f"Value {value} in grain {path} is set to be added"
    if not isinstance(existing, list):
        would = f"Grain {path} is set to be converted to list and value {value} will be added"

    def add() -> Outcome:
        ctx.call("grains.append", path, value, convert=convert)
        return Outcome(comment=f"Value {value} was added to grain {path}", changes={"added": value})

    return Plan.change(would, [Step(f"append to grain {path}", add)], {"added": value})


def list_present(ctx: Context, name: str, value: object, delimiter: str = _DELIMITER) -> Plan:
    """Append a value, or each of a list of values, to a grain that is a list. A missing grain is created."""
    path = _path(name, delimiter)
    existing = _value(ctx, path)
    if existing is _ABSENT or existing is None or existing == "":
        existing = []
    if not isinstance(existing, list):
        return Plan.failed(f"Grain {path} is not a valid list")
    wanted = value if isinstance(value, list) else [value]
    missing = [item for item in wanted if item not in existing]
    if not missing:
        return Plan.unchanged(f"Value {value} is already in grain {path}")
    added = missing if isinstance(value, list) else value
    notes = []
    if len(missing) < len(wanted):
        found = [item for item in wanted if item in existing]
        notes = [f'Removed value {found} from update due to value found in "{path}".']
    would = f"Value {added} is set to be appended to grain {path}" if existing else f"Grain {path} is set to be added"

    def add() -> Outcome:
        done = ctx.call("grains.append", path, added)
        if not isinstance(done, Mapping):
            return Outcome(comment=f"Failed append value {added} to grain {path}: {done}", ok=False)
        return Outcome(comment=f"Append value {added} to grain {path}", changes={"new": done})

    return Plan.change(would, [Step(f"append to grain {path}", add)], {"new": added}, notes)


def list_absent(ctx: Context, name: str, value: object, delimiter: str = _DELIMITER) -> Plan:
    """Remove a value, or each of a list of values, from a grain that is a list.

    Nothing happens if the grain does not exist; the state fails if it is not a list.
    """
    path = _path(name, delimiter)
    existing = _value(ctx, path)
    if existing is _ABSENT or not existing:
        return Plan.unchanged(f"Grain {path} does not exist")
    if not isinstance(existing, list):
        return Plan.failed(f"Grain {path} is not a valid list")
    wanted = value if isinstance(value, list) else [value]
    found = [item for item in wanted if item in existing]
    absent_notes = [f"Value {item} is absent from grain {path}" for item in wanted if item not in existing]
    if not found:
        return Plan.unchanged("\n".join(absent_notes))

    def remove() -> Outcome:
        for item in found:
            ctx.call("grains.remove", path, item)
        comment = "\n".join(f"Value {item} was deleted from grain {path}" for item in found)
        return Outcome(comment=comment, changes={"deleted": found})

    would = "\n".join(f"Value {item} in grain {path} is set to be deleted" for item in found)
    return Plan.change(would, [Step(f"remove from grain {path}", remove)], {"deleted": found}, absent_notes)


def _path(name: str, delimiter: str) -> str:
    return name.replace(delimiter, _DELIMITER)


def _value(ctx: Context, path: str) -> object:
    return ctx.call("grains.get", path, _ABSENT)
