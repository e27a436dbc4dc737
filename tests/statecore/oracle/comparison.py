"""What of two answers is compared, and how.

``shown`` is for trees that somebody wrote: everything, in order. ``generously`` is for trees that nobody looked at: the same,
but for what Salt leaves to chance or does to everybody's surprise; each of these has its line in docs/differences.md.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

#: Requisites whose references Salt may repeat.
_REQUISITES = frozenset(
    {
        *("require", "watch", "prereq", "onfail", "onchanges", "listen", "listen_in"),
        *("require_any", "watch_any", "onfail_any", "onfail_all", "onchanges_any"),
    }
)

#: As salt_trees.py tells an exception.
_EXCEPTION = re.compile(r"([A-Z][A-Za-z]*(Error|Exception)|StopIteration|KeyError):")

#: What Salt says besides of what it has already said is wrong; ours follow requisites only when all is well formed.
_ECHOES = re.compile(
    r"ID (include|exclude|extend) in SLS|Error when rendering state|The type |Nonexistent saltenv|"
    r"Referenced state does not exist|Recursive requisites were found"
)

#: Before what each writes in a way of its own: a value, an ID where Salt has the name.
_QUOTED = re.compile(r'(?<=Illegal requisite ")|(?<=Requisite declaration )|(?<=\]) in state ')

_DOTTED = re.compile(r"Invalid requisite in \w+: \S+ for (.*?),? in SLS")

_RING = "Recursive requisites were found"
_DANGLING = "Referenced state does not exist for requisite"


def agreed(own: Any, salts: Any) -> Any:
    """Ours, with Salt's line for each that begins with it: ours may say more behind Salt's words."""
    if not isinstance(own, list) or not isinstance(salts, list) or len(own) != len(salts):
        return own
    return [theirs if _says(each, theirs) else each for each, theirs in zip(own, salts, strict=True)]


def _says(own: Any, salts: Any) -> bool:
    return isinstance(own, str) and isinstance(salts, str) and own.startswith(salts)


def shown(told: dict[str, Any]) -> dict[str, Any]:
    """What is compared: of errors the first line of each, as ours say more; of a run what came of each state, in order."""
    pillar = dict(told["pillar"])
    errors = pillar.pop("_errors", None)
    return {
        "pillar": pillar,
        "errors": _first_lines(errors or []),
        "high": _first_lines(told["high"]),
        "low": _first_lines(told["low"]),
        "ran": _ran(told["ran"]),
    }


def _first_lines(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return [each.splitlines()[0].rstrip() if isinstance(each, str) and each else each for each in value]


def _ran(running: Any) -> Any:
    if isinstance(running, list):
        return _first_lines(running)
    ordered = sorted(running.items(), key=lambda item: item[1]["__run_num__"])
    return [(tag, entry["result"], entry["changes"], _comment(entry)) for tag, entry in ordered]


def _comment(entry: dict[str, Any]) -> Any:
    """The comment; of a failure the first line, as ours add what is near and where it stands."""
    return _first_lines([entry["comment"]]) if entry["result"] is False and entry["comment"] else entry["comment"]


def generously(told: dict[str, Any], salts: dict[str, Any], opts: Mapping[str, Any]) -> dict[str, Any]:
    """The same of one of two answers, for trees that nobody looked at. Nothing of what made Salt itself stumble."""
    off = opts.get("disabled_requisites", [])
    high, low, ran = (_sentences(told[part]) or told[part] for part in ("high", "low", "ran"))
    if isinstance(high, list):
        return {"high": high} if not _stumbled(salts["high"]) else {}
    parts = {
        "high": high,
        "IDs": [key for key in high if not key.startswith("__")],
        "low": [once(chunk, off) if isinstance(chunk, dict) else chunk for chunk in low],
        # Salt stops between two stages of a run, not of what it shows; ours say the same in both, and stop sooner.
        "ran": low if isinstance(ran, list) else _came(ran, salts),
    }
    return {part: value for part, value in parts.items() if not _stumbled(salts.get(part))}


def _came(ran: dict[str, Any], salts: dict[str, Any]) -> list[Any]:
    """What came of each state.

    Without entries that have no number: Salt's for a state that returned what it may not. Where there are prereqs, without what
    listened: Salt loses what came of a listener that a prereq's check had left out.
    """
    theirs = salts["ran"] if isinstance(salts["ran"], dict) else {}
    lost = {tag for tag, entry in theirs.items() if "__run_num__" not in entry}
    if any("__prereq__" in chunk for chunk in salts["low"]):
        lost |= {tag for tag in ran if "_|-listener_" in tag}
    return [(*came, _parts(said)) for *came, said in _ran({tag: ran[tag] for tag in ran if tag not in lost})]


def _stumbled(answer: Any) -> bool:
    """Whether Salt raised an exception instead of answering."""
    return isinstance(answer, list) and any(isinstance(line, str) and _EXCEPTION.match(line) for line in answer)


def _sentences(value: Any) -> list[str]:
    """Errors sorted, each once.

    Salt names the first dangling requisite of each state, and a ring besides; ours name all that dangle, then rings. Where a
    requisite_in names a function Salt also says that what it names cannot be extended.
    """
    if not isinstance(value, list) or not value or not isinstance(value[0], str):
        return []
    lines = {each.partition(_RING)[0] + _RING if _RING in each else each for each in _first_lines(value)}
    lines = {_DANGLING + each.partition(" in state ")[2] if each.startswith(_DANGLING) else each for each in lines}
    # Salt has two forms of this sentence.
    lines = {each.replace(", in SLS", " in SLS") if each.startswith("Invalid requisite in") else each for each in lines}
    dotted = {found[1] for each in lines if (found := _DOTTED.match(each))}
    return sorted(
        each
        for each in lines
        if not (each.startswith(_RING) and len(lines) > 1)
        and not any(each.startswith(f"Cannot extend ID '{name}'") for name in dotted)
    )


def once(chunk: dict[str, Any], off: Collection[str] = ()) -> dict[str, Any]:
    """A chunk with each reference of a requisite once, without those that are disabled."""
    return {
        key: [item for at, item in enumerate(value) if item not in value[:at]] if key in _REQUISITES else value
        for key, value in chunk.items()
        if key not in off
    }


def _parts(comment: Any) -> Any:
    """The failed requisites of a comment sorted: Salt names them as a set has them."""
    line = comment[0] if isinstance(comment, list) and comment else comment
    text, failed, names = str(line).partition("requisite failed: ")
    return [text, *sorted(names.split(", "))] if failed else comment


def refused(own: dict[str, Any], salts: dict[str, Any]) -> str:
    """What is wrong with our answer to a tree that is not well formed; "" when it is as it should be.

    Ours say at least what Salt says before it goes on with what it said is wrong. Where Salt says nothing, or stumbles, ours
    may refuse.
    """
    for part in ("high", "low"):
        if not isinstance(own[part], dict | list):
            return f"{part} is no answer: {own[part]}"
        errors, theirs = _sentences(own[part]), _sentences(salts[part])
        unlocated = [each for each in own[part] if errors and "\n    at " not in each]
        if unlocated:
            return f"{part} has errors without a place: {unlocated}"
        if not theirs or _stumbled(theirs):
            continue
        if not errors:
            return f"{part}: Salt refuses, {theirs}"
        if part == "high" or not _sentences(own["high"]):
            openings = {_QUOTED.split(each)[0] for each in theirs if not _ECHOES.match(each)}
            missing = [each for each in openings if not any(one.startswith(each) for one in errors)]
            if missing:
                return f"{part} lacks {missing}, has {errors}"
    return ""
