"""The file that keeps a plan: what it holds, how two of them differ. Pure.

It holds no content of a file beyond what the diffs show: contents, and the low data that states were compiled to, are there as
seals only, made with a random salt of the file's own.
"""

from __future__ import annotations

import difflib
import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from statecore.analysis.prediction import Prediction, summary
from statecore.model.types import FileChange, tag

#: Changes when a file of an earlier one cannot be compared any more.
VERSION = 1

_KIND = "statecore plan"

#: Work factor for seals of what nobody may see, so that a short secret cannot be guessed from its seal in passing.
_HARD = {"n": 2**14, "r": 8, "p": 1}


class PlanFault(Exception):
    """A file that is no plan of this version; str() says what it is."""


def plan_data(predictions: Sequence[Prediction], places: Mapping[str, str]) -> dict[str, Any]:
    """A plan as plain data, for people and programs. ``places``: tag -> where the state is declared."""
    return {
        "summary": summary([each.verdict for each in predictions]),
        # A listener has a tag of its own; it is declared where its state is.
        "states": [_state(each, places.get(each.tag) or places.get(tag(each.low), "")) for each in predictions],
    }


def sealed(
    predictions: Sequence[Prediction], places: Mapping[str, str], run: Mapping[str, Any], salt: bytes
) -> dict[str, Any]:
    """The content of a plan file. ``run``: what has to be said to make the plan again."""
    data = plan_data(predictions, places)
    for told, each in zip(data["states"], predictions, strict=True):
        told["low"] = _seal(_canonical(each.low), salt)
        for shown, file in zip(told["files"], each.files, strict=True):
            shown |= {"before": _content(file.before, file, salt), "after": _content(file.after, file, salt)}
    return {"kind": _KIND, "version": VERSION, "salt": salt.hex(), "run": dict(run), **data}


def opened(text: str) -> dict[str, Any]:
    """The plan in a file. Raises PlanFault."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise PlanFault(f"it is no JSON: {error}") from error
    if not isinstance(data, dict) or data.get("kind") != _KIND:
        raise PlanFault("it is no plan of statecore")
    if data.get("version") != VERSION:
        raise PlanFault(f"it is a plan of version {data.get('version')}; this statecore reads version {VERSION}")
    try:
        bytes.fromhex(data["salt"])
        whole = isinstance(data["run"], dict) and all(isinstance(each["tag"], str) for each in data["states"])
    except (KeyError, TypeError, ValueError) as error:
        raise PlanFault("it is a plan from which something was taken away") from error
    if not whole:
        raise PlanFault("it is a plan in which something was changed")
    return data


def drift(planned: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What is different now from what was planned, a line each; [] where the plan still holds."""
    before = {each["tag"]: each for each in planned["states"]}
    after = {each["tag"]: each for each in now["states"]}
    found = [f"{_named(each)}: it is no longer in the run" for name, each in before.items() if name not in after]
    found += [f"{_named(each)}: it is new in the run" for name, each in after.items() if name not in before]
    for name in [name for name in before if name in after]:
        found += [f"{_named(after[name])}: {why}" for why in _differences(before[name], after[name])]
    if not found and list(before) != list(after):
        found.append("the states would run in another order")
    return found


def _state(each: Prediction, place: str) -> dict[str, Any]:
    low = each.low
    return {
        "tag": each.tag,
        "verdict": each.verdict.value,
        "id": str(low["__id__"]),
        "function": f"{low['state']}.{low['fun']}",
        "name": str(low["name"]),
        "sls": str(low.get("__sls__", "")),
        "at": place,
        "comment": each.comment,
        "changes": json.loads(_canonical(each.changes)),
        "steps": list(each.steps),
        "files": [{"path": file.path, "diff": unified(file)} for file in each.files],
        "because": [{"requisite": why.kind, "state": why.state, "id": why.id} for why in each.because],
    }


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    if before.get("low") != after["low"]:
        return ["the tree, the pillar or the grains make another state of it now"]
    if before.get("verdict") != after["verdict"]:
        return [f"planned as '{before.get('verdict')}', now '{after['verdict']}': {_first(after['comment'])}"]
    if before.get("files") != after["files"]:
        return [_file(old, new) for old, new in _paired(before.get("files"), after["files"]) if old != new]
    if before.get("changes") != after["changes"] or before.get("steps") != after["steps"]:
        return ["what it would change on the host is not the same any more"]
    return []


def _paired(before: Any, after: list[dict[str, Any]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    old = {str(each.get("path")): each for each in before or () if isinstance(each, dict)}
    new = {each["path"]: each for each in after}
    return [(old.get(path, {}), new.get(path, {})) for path in dict.fromkeys([*old, *new])]


def _file(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    path = new.get("path") or old.get("path")
    if old.get("before") != new.get("before"):
        return f"{path} on the host is not what it was"
    return f"{path} would get another content"


def _first(comment: str) -> str:
    return comment.partition("\n")[0]


def _named(state: Mapping[str, Any]) -> str:
    return f"{state.get('function')} {state.get('name')} (ID {state.get('id')})"


def _content(data: bytes | None, file: FileChange, salt: bytes) -> str | None:
    if data is None:
        return None
    if not file.shown:
        return hashlib.scrypt(data, salt=salt, **_HARD).hex()
    return _seal(data, salt)


def _seal(data: bytes | str, salt: bytes) -> str:
    return hmac.new(
        salt, data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data, "sha256"
    ).hexdigest()


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


#: Bytes looked at to tell text from binary, as diff and git do.
_SNIFF = 8192

_NOWHERE = "/dev/null"


def unified(change: FileChange) -> str:
    """The diff, its lines ended; a sentence where it cannot be shown or text cannot tell it; "" for no difference."""
    if change.before == change.after:
        return ""
    if not change.shown:
        return f"{change.path}: its author wants the change shown to nobody\n"
    before, after = _lines(change.before), _lines(change.after)
    if before is None or after is None:
        old, new = (f"{len(side)} bytes" if side is not None else "no file" for side in (change.before, change.after))
        return f"{change.path}: binary, {old} -> {new}\n"
    names = (_NOWHERE if change.before is None else change.path, _NOWHERE if change.after is None else change.path)
    return "".join(_ended(difflib.unified_diff(before, after, *names))) or f"{change.path}: an empty file\n"


def _lines(data: bytes | None) -> list[str] | None:
    """Lines with their ends; None for what is no text."""
    if data is None:
        return []
    if b"\0" in data[:_SNIFF]:
        return None
    try:
        return data.decode().splitlines(keepends=True)
    except UnicodeDecodeError:
        return None


def _ended(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
