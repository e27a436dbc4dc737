"""Top files: from what the environments' top files say to the SLS references of one minion (seed 000). Pure.

A top file maps environments to targets to lists of references, among which stand options: ``match`` (how the target is
meant), ``delimiter``, ``subfilter`` (targets within the target), and, for pillar, ``order`` and ``ignore_missing``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from statecore.model.named_tuple import NamedTuple

#: Environment -> target -> its list, as written.
Sections = dict[str, dict[Any, Any]]

#: Environment -> its top file, and those that this one includes.
Tops = Mapping[str, Sequence[Mapping[Any, Any]]]

#: Key of a top file that is no environment.
INCLUDE = "include"

_OPTIONS = frozenset({"match", "delimiter", "subfilter", "order", "ignore_missing"})

#: target, how it is meant, delimiter -> whether it means the minion.
Meant = Callable[[str, str, str], bool]


class Malformed(NamedTuple):
    """One thing wrong with a top file, in Salt's words."""

    message: str
    #: Path of keys to it.
    keys: tuple[str, ...]


@dataclass(slots=True)
class Chosen:
    """What one minion gets."""

    #: Environment -> references, in order.
    refs: dict[str, list[str]] = field(default_factory=dict)
    #: (environment, reference) whose absence is no error.
    optional: set[tuple[str, str]] = field(default_factory=set)


def _merge(tops: Tops, default: str) -> Sections:
    """Base speaks for all; another environment for itself only, and only where base is silent about it."""
    found: Sections = {}
    for top in tops.get("base", ()):
        for env, targets in _sections(top):
            _add(found, env, targets)
    spoken = frozenset(found)
    for own, each in tops.items():
        for top in each:
            for env, targets in _sections(top):
                if env == own != "base" and env not in spoken:
                    _add(found, env, targets)
    return found


def _same(tops: Tops, default: str) -> Sections:
    """Every environment speaks for itself only; the default top speaks for those that have no top file."""
    found: Sections = {}
    for own, each in tops.items():
        for top in each if any(each) else tops.get(default, ()):
            for env, targets in _sections(top):
                if env == own:
                    _add(found, env, targets)
    return found


def _merge_all(tops: Tops, default: str) -> Sections:
    """Every top file speaks for all, and one target's references are joined."""
    found: Sections = {}
    for each in tops.values():
        for top in each:
            for env, targets in _sections(top):
                section = found.setdefault(env, {})
                for target, rows in _targets(targets):
                    section[target] = _joined(section[target], rows) if target in section else rows
    return found


def _replace(tops: Tops, default: str) -> Sections:
    """Every top file speaks for all; of one target the last list counts."""
    found: Sections = {}
    for each in tops.values():
        for top in each:
            for env, targets in _sections(top):
                _add(found, env, targets)
    return found


#: top_file_merging_strategy -> how many top files become one; ``replace`` is the pillar's.
STRATEGIES: Mapping[str, Callable[[Tops, str], Sections]] = {
    "merge": _merge,
    "same": _same,
    "merge_all": _merge_all,
    "replace": _replace,
}


def verify(sections: Sections) -> list[Malformed]:
    """What is not formed as a top file must be."""
    return [fault for env, targets in sections.items() for fault in _of_section(env, targets)]


def _of_section(env: Any, targets: Mapping[Any, Any]) -> Iterator[Malformed]:
    if not isinstance(env, str):
        yield Malformed(f"Environment {env} in top file is not formed as a string", (str(env),))
    elif not env:
        yield Malformed("Empty saltenv statement in top file", (env,))
    if _NOT_A_MAP in targets:
        yield Malformed(f"The top file matches for saltenv {env} are not formatted as a dict", (str(env),))
        return
    for target, rows in targets.items():
        if not isinstance(rows, list):
            yield Malformed(
                f"Malformed topfile: state declarations for matcher {target!r} in saltenv {env!r} are not formed as a"
                f" list (got {type(rows).__name__})",
                (str(env), str(target)),
            )
            continue
        for row in rows:
            wrong = _of_row(env, row)
            if wrong:
                yield Malformed(wrong, (str(env), str(target)))


def _of_row(env: str, row: Any) -> str:
    if isinstance(row, Mapping):
        empty = any(value in (None, "", [], {}) for value in row.values())
        return f"Improperly formatted top file matcher in saltenv {env}: {dict(row)}" if empty else ""
    if row == "":
        return f"Environment {env} contains an empty sls index"
    # Salt stumbles over these.
    return "" if isinstance(row, str) else f"Environment {env} contains {row!r}, which is no SLS reference"


def choose(sections: Sections, meant: Meant, envs: Sequence[str], *, ordered: bool) -> Chosen:
    """References of the targets that mean the minion. ``envs``: environments that a row ``env: reference`` may name.

    ``ordered``: as in pillar, targets come by their option ``order``, and of an environment's references each comes once.
    """
    chosen = Chosen()
    for env, targets in sections.items():
        rows_of = sorted(targets.items(), key=lambda item: _order(item[1])) if ordered else targets.items()
        for target, rows in rows_of:
            _choose(chosen, env, target, rows, meant, envs)
    if ordered:
        chosen.refs = {env: list(dict.fromkeys(refs)) for env, refs in chosen.refs.items()}
    return chosen


def _choose(chosen: Chosen, env: str, target: Any, rows: list[Any], meant: Meant, envs: Sequence[str]) -> None:
    options = {key: value for row in rows if isinstance(row, Mapping) for key, value in row.items()}
    if not meant(str(target), str(options.get("match", "compound")), str(options.get("delimiter", ":"))):
        return
    refs = chosen.refs.setdefault(env, [])
    for row in rows:
        if isinstance(row, str):
            refs.append(row)
            if options.get("ignore_missing"):
                chosen.optional.add((env, row))
        elif isinstance(row, Mapping):
            for inner, inner_rows in (row.get("subfilter") or {}).items():
                _choose(chosen, env, inner, inner_rows, meant, envs)
            for other, ref in row.items():
                if other in envs and other not in _OPTIONS:
                    chosen.refs.setdefault(other, []).append(str(ref))


def _order(rows: Any) -> int:
    options = {key: value for row in rows if isinstance(row, Mapping) for key, value in row.items()}
    order = options.get("order", 0)
    return int(order) if isinstance(order, int) or str(order).lstrip("-").isdecimal() else 0


#: Stands for a section that is no map of targets, until ``verify`` says so.
_NOT_A_MAP = object()


def _sections(top: Mapping[Any, Any]) -> Iterator[tuple[Any, Any]]:
    return ((env, targets) for env, targets in top.items() if env != INCLUDE)


def _targets(targets: Any) -> list[tuple[Any, Any]]:
    return list(targets.items()) if isinstance(targets, Mapping) else [(_NOT_A_MAP, targets)]


def _add(found: Sections, env: Any, targets: Any) -> None:
    found.setdefault(env, {}).update(_targets(targets))


def _joined(first: Any, second: Any) -> Any:
    if not isinstance(first, list) or not isinstance(second, list):
        return second
    options = [row for row in second if isinstance(row, Mapping)] or [row for row in first if isinstance(row, Mapping)]
    refs = dict.fromkeys(row for row in (*first, *second) if isinstance(row, str))
    return [*options, *refs]


__all__ = ["INCLUDE", "STRATEGIES", "Chosen", "Malformed", "Meant", "Sections", "Tops", "choose", "verify"]
