"""The plan file, in which ``statecore plan --out-file`` stores a plan: its content, and the comparison of two plans.
Pure.

Of managed files, a plan file stores only the diffs. Whole file contents and low chunks are stored as seals only: keyed
hashes (HMAC-SHA256) with a random salt of this plan file. A seal shows whether a value changed, not the value.
"""

from __future__ import annotations

import difflib
import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NotRequired, TypedDict, cast

from statecore.analysis.prediction import Prediction, summary
from statecore.model.text_lines import lines_of
from statecore.model.types import FileChange, tag

#: Version of the file's format. Increase it when older plan files can no longer be compared.
VERSION = 1

_KIND = "statecore plan"

#: scrypt's work factors for seals of file contents that must not be shown: a short secret cannot be guessed cheaply.
_HARD = {"n": 2**14, "r": 8, "p": 1}


class PlannedFile(TypedDict):
    """A managed file that a planned state would change: its path on the host, and the diff."""

    path: str
    diff: str
    #: Seals of the content before and after; None: no file. Only in a plan file.
    before: NotRequired[str | None]
    after: NotRequired[str | None]


class PlannedReaction(TypedDict):
    """A requisite by which a planned state reacts to another state (module and ID)."""

    requisite: str
    state: str
    id: str


class PlannedState(TypedDict):
    """The prediction for one state of a planned run as a map for JSON: its verdict, comment, warnings, changes, steps and
    file diffs.
    """

    tag: str
    verdict: str
    id: str
    function: str
    name: str
    sls: str
    #: ``file:line`` of the declaration; "" if it is not known.
    at: str
    comment: str
    #: Warnings of the state, such as those about arguments that it ignores.
    warnings: list[str]
    changes: dict[str, object]
    #: Descriptions of the steps that the state would take.
    steps: list[str]
    files: list[PlannedFile]
    because: list[PlannedReaction]
    #: Seal of the low chunk. Only in a plan file.
    low: NotRequired[str]


class PlanData(TypedDict):
    """A plan: its summary line, and its states in order of evaluation."""

    summary: str
    states: list[PlannedState]


class PlanFile(PlanData):
    """Content of a plan file: the plan, the random salt of its keyed hashes, and the minion and SLS references of the
    run.
    """

    kind: str
    version: int
    #: Salt of the seals, hexadecimal.
    salt: str
    #: The minion and the SLS references of the run.
    run: dict[str, object]


class PlanFault(Exception):
    """Error: a file is not a plan of the current version. ``str()`` is the reason."""


def plan_data(predictions: Sequence[Prediction], places: Mapping[str, str]) -> PlanData:
    """Return a plan as a map for JSON: ``summary`` (one line), ``states``. ``places`` maps a state's tag to its
    ``file:line``.
    """
    return {
        "summary": summary([each.verdict for each in predictions], sum(bool(each.warnings) for each in predictions)),
        # A listen reaction has its own tag. It is declared where the listening state is.
        "states": [_state(each, places.get(each.tag) or places.get(tag(each.low), "")) for each in predictions],
    }


def sealed(
    predictions: Sequence[Prediction], places: Mapping[str, str], run: Mapping[str, object], salt: bytes
) -> PlanFile:
    """Return the content of a plan file: the plan, plus keyed hashes of low chunks and file contents made with
    ``salt``.

    ``run`` holds the minion and the SLS references, which ``apply`` needs to make the plan again.
    """
    data = plan_data(predictions, places)
    for state, each in zip(data["states"], predictions, strict=True):
        state["low"] = _seal(_canonical(each.low), salt)
        for shown, file in zip(state["files"], each.files, strict=True):
            shown |= {"before": _content(file.before, file, salt), "after": _content(file.after, file, salt)}
    return {"kind": _KIND, "version": VERSION, "salt": salt.hex(), "run": dict(run), **data}


def opened(text: str) -> PlanFile:
    """Parse the text of a plan file and return it as a map: the plan, its random salt, and the minion and SLS
    references of the run. Raise PlanFault if the text is not a plan of this version.
    """
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
    return cast("PlanFile", data)


def drift(planned: PlanData, now: PlanData) -> list[str]:
    """Return the differences between the stored plan and the plan made now, one line each; an empty list if there are
    none.
    """
    before = {each["tag"]: each for each in planned["states"]}
    after = {each["tag"]: each for each in now["states"]}
    found = [f"{_named(each)}: it is no longer in the run" for name, each in before.items() if name not in after]
    found += [f"{_named(each)}: it is new in the run" for name, each in after.items() if name not in before]
    for name in [name for name in before if name in after]:
        found += [f"{_named(after[name])}: {why}" for why in _differences(before[name], after[name])]
    if not found and list(before) != list(after):
        found.append("the states would run in another order")
    return found


def _state(each: Prediction, declared_at: str) -> PlannedState:
    low = each.low
    return {
        "tag": each.tag,
        "verdict": each.verdict.value,
        "id": str(low["__id__"]),
        "function": f"{low['state']}.{low['fun']}",
        "name": str(low["name"]),
        "sls": str(low.get("__sls__", "")),
        "at": declared_at,
        "comment": each.comment,
        "warnings": list(each.warnings),
        "changes": json.loads(_canonical(each.changes)),
        "steps": list(each.steps),
        "files": [{"path": file.path, "diff": unified(file)} for file in each.files],
        "because": [{"requisite": why.kind, "state": why.state, "id": why.id} for why in each.because],
    }


def _differences(before: PlannedState, after: PlannedState) -> list[str]:
    if before.get("low") != after["low"]:
        return ["the tree, the pillar or the grains make another state of it now"]
    if before.get("verdict") != after["verdict"]:
        return [f"planned as '{before.get('verdict')}', now '{after['verdict']}': {_first(after['comment'])}"]
    if before.get("files") != after["files"]:
        return [_file(old, new) for old, new in _paired(before.get("files"), after["files"]) if old != new]
    if before.get("changes") != after["changes"] or before.get("steps") != after["steps"]:
        return ["what it would change on the host is not the same any more"]
    return []


def _paired(before: object, after: list[PlannedFile]) -> list[tuple[Mapping[str, object], Mapping[str, object]]]:
    old = {
        str(each.get("path")): each for each in (before if isinstance(before, list) else ()) if isinstance(each, dict)
    }
    new = {each["path"]: each for each in after}
    return [(old.get(path, {}), new.get(path, {})) for path in dict.fromkeys([*old, *new])]


def _file(old: Mapping[str, object], new: Mapping[str, object]) -> str:
    path = new.get("path") or old.get("path")
    if old.get("before") != new.get("before"):
        return f"{path} on the host is not what it was"
    return f"{path} would get another content"


def _first(comment: str) -> str:
    return comment.partition("\n")[0]


def _named(state: PlannedState) -> str:
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


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=str)


#: Number of first bytes searched for a NUL byte to detect binary data, as diff and git do.
_SNIFF = 8192

_NOWHERE = "/dev/null"


def unified(change: FileChange) -> str:
    """Return the unified diff of a file change, each line ended by a newline.

    Returns a sentence if the change may not be shown, is binary, or only creates or removes an empty file; "" if
    nothing changes.
    """
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
    """Return the lines of a file's content with their line ends; [] for a missing file; None for binary data."""
    if data is None:
        return []
    if b"\0" in data[:_SNIFF]:
        return None
    try:
        return lines_of(data.decode(), keepends=True)
    except UnicodeDecodeError:
        return None


def _ended(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
