"""Success of a state run: a failed state fails the run, unless ``onfail`` states with ``onfail_stop: False`` made up
for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from statecore.model.types import High, Running, untag

#: (ID, state module) of a state.
_Named = tuple[str, str]


def failed(running: Running, high: High | None = None) -> bool:
    """Return True if the run failed, by Salt's rule for the exit code. A run without states failed.

    A failed state is made up for if states of ``high`` have ``onfail`` on it and ``onfail_stop: False``, one of them
    succeeded and none failed.
    """
    if not running:
        return True
    failures = [name for name, entry in running.items() if entry.get("result") is False]
    if not failures:
        return False
    stand_ins = _stand_ins(high or {})
    if not stand_ins:
        return True
    results: dict[_Named, list[object]] = {}
    for name, entry in running.items():
        results.setdefault(_named(name), []).append(entry.get("result"))
    return not all(_made_good(stand_ins.get(_named(name), ()), results) for name in failures)


def _made_good(stand_ins: Iterable[_Named], results: Mapping[_Named, list[object]]) -> bool:
    given = [result for each in stand_ins for result in results.get(each, ())]
    return True in given and False not in given


def _named(name: str) -> _Named:
    try:
        chunk = untag(name)
    except ValueError:
        return name, ""
    return chunk.id, chunk.state


def _stand_ins(high: High) -> dict[_Named, set[_Named]]:
    """Map of each state for which ``onfail`` states exist to the set of these: they make up for its failure. A state is
    (ID, module).
    """
    found: dict[_Named, set[_Named]] = {}
    for state_id, body in high.items():
        for module, run in body.items() if isinstance(body, Mapping) else ():
            if not str(module).startswith("__") and isinstance(run, list):
                for failing in _failings(run):
                    if failing[0] != state_id:
                        found.setdefault(failing, set()).add((state_id, str(module).partition(".")[0]))
    return found


def _failings(run: list[object]) -> Iterator[_Named]:

    arguments = [item for item in run if isinstance(item, Mapping)]
    if not any(item.get("onfail_stop", True) is False for item in arguments):
        return
    for item in arguments:
        requisites = item.get("onfail")
        for requisite in requisites if isinstance(requisites, list) else ():
            if isinstance(requisite, Mapping):
                yield from ((str(wanted), str(module)) for module, wanted in requisite.items())
