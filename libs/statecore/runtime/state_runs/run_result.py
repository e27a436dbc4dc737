"""Whether a run counts as failed: a failed state does, unless an ``onfail`` state that stands in for it did its work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from statecore.model.types import High, Running, untag

#: ID and state module.
_Named = tuple[str, str]


def failed(running: Running, high: High | None = None) -> bool:
    """Salt's rule for the exit code. A run of nothing is a failed one.

    A failure is made good by states of ``high`` with ``onfail`` on it and ``onfail_stop: False``, none of which failed.
    """
    if not running:
        return True
    failures = [name for name, entry in running.items() if entry.get("result") is False]
    if not failures:
        return False
    stand_ins = _stand_ins(high or {})
    if not stand_ins:
        return True
    results: dict[_Named, list[Any]] = {}
    for name, entry in running.items():
        results.setdefault(_named(name), []).append(entry.get("result"))
    return not all(_made_good(stand_ins.get(_named(name), ()), results) for name in failures)


def _made_good(stand_ins: Any, results: Mapping[_Named, list[Any]]) -> bool:
    told = [result for each in stand_ins for result in results.get(each, ())]
    return True in told and False not in told


def _named(name: str) -> _Named:
    try:
        chunk = untag(name)
    except ValueError:
        return name, ""
    return chunk.id, chunk.state


def _stand_ins(high: High) -> dict[_Named, set[_Named]]:
    """A state -> the states that stand in for it when it fails."""
    found: dict[_Named, set[_Named]] = {}
    for state_id, body in high.items():
        for module, run in body.items() if isinstance(body, Mapping) else ():
            if not str(module).startswith("__") and isinstance(run, list):
                for failing in _failings(run):
                    if failing[0] != state_id:
                        found.setdefault(failing, set()).add((state_id, str(module).partition(".")[0]))
    return found


def _failings(run: list[Any]) -> Iterator[_Named]:
    """What the arguments of a state say that it stands in for."""
    arguments = [item for item in run if isinstance(item, Mapping)]
    if not any(item.get("onfail_stop", True) is False for item in arguments):
        return
    for item in arguments:
        requisites = item.get("onfail")
        for requisite in requisites if isinstance(requisites, list) else ():
            if isinstance(requisite, Mapping):
                yield from ((str(wanted), str(module)) for module, wanted in requisite.items())
