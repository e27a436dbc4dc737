"""What of two answers is compared, and how.

``shown`` is for trees that somebody wrote: everything, in order. ``generously`` is for trees that nobody looked at: the same,
but for what Salt leaves to chance or does to everybody's surprise; each of these has its line in docs/differences.md.
"""

from __future__ import annotations

from typing import Any

#: Requisites whose references Salt may repeat, or sort as a set has them.
_REQUISITES = ("require", "watch", "prereq", "onfail", "onchanges")

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


def generously(told: dict[str, Any]) -> dict[str, Any]:
    """The same, for trees that nobody looked at."""
    high, low, ran = told["high"], told["low"], told["ran"]
    return {
        "high": _sentences(high),
        "IDs": [] if isinstance(high, list) else [key for key in high if not key.startswith("__")],
        "low": _sentences(low) or [_once(chunk) for chunk in low],
        "ran": _sentences(ran) or [(tag, result, changes, _parts(said)) for tag, result, changes, said in _ran(ran)],
    }


def _sentences(value: Any) -> Any:
    """Errors sorted, each once; None when there are none.

    Salt names the first dangling requisite of each state, and a ring besides; ours name all that dangle, then rings.
    """
    if not isinstance(value, list) or not value or not isinstance(value[0], str):
        return None if isinstance(value, list) else value
    lines = [each.partition(_RING)[0] + _RING if _RING in each else each for each in _first_lines(value)]
    lines = [_DANGLING + each.partition(" in state ")[2] if each.startswith(_DANGLING) else each for each in lines]
    plain = {each for each in lines if each != _RING}
    return sorted(plain or {_RING})


def _once(chunk: Any) -> Any:
    """A chunk with each reference of a requisite once."""
    return {
        key: [item for at, item in enumerate(value) if item not in value[:at]] if key in _REQUISITES else value
        for key, value in chunk.items()
    }


def _parts(comment: Any) -> Any:
    """The failed requisites of a comment sorted: Salt names them as a set has them."""
    line = comment[0] if isinstance(comment, list) and comment else comment
    text, failed, names = str(line).partition("requisite failed: ")
    return [text, *sorted(names.split(", "))] if failed else comment
