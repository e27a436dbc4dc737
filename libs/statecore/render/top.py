"""Top files: computes the SLS references of one minion from the top files of all saltenvs.

A top file maps saltenvs to targets to lists of SLS references. A list may also contain options: ``match`` (target
type), ``delimiter``, ``subfilter`` (targets within the target) and, for pillar, ``order`` and ``ignore_missing``.

Source: docs/state-system.md#top-file, docs/state-system.md#matching.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

#: Saltenv -> target -> list of SLS references and options, as written in the top file. ``verify`` checks the types.
Sections = dict[str, dict[Any, Any]]

#: Saltenv -> its top file, and the top files that this one includes.
Tops = Mapping[str, Sequence[Mapping[object, object]]]

#: Key of a top file that is not a saltenv.
INCLUDE = "include"

_OPTIONS = frozenset({"match", "delimiter", "subfilter", "order", "ignore_missing"})

#: Function from (target, target type, delimiter) to True if the target matches the minion.
TargetMatcher = Callable[[str, str, str], bool]


class Malformed(NamedTuple):
    """One error in the form of a top file: Salt's error message, and the keys that lead from the top of the file
    to the error.
    """

    message: str
    #: Keys from the top of the file down to the error.
    keys: tuple[str, ...]


@dataclass(slots=True)
class Chosen:
    """The SLS references that the top files assign to one minion, by saltenv, and those of them that may be
    missing without an error.
    """

    #: Saltenv -> SLS references, in order.
    refs: dict[str, list[str]] = field(default_factory=dict)
    #: (saltenv, SLS reference) pairs that may be missing without an error (``ignore_missing``).
    optional: set[tuple[str, str]] = field(default_factory=set)


def _merge(tops: Tops, default: str) -> Sections:
    """Return the top files merged by the strategy ``merge``: the top file of base counts for all saltenvs.

    The top file of another saltenv counts only for its own section, and only if base has no section of that name.
    """
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
    """Return the top files merged by the strategy ``same``: each saltenv's top file counts for its own section only.

    A saltenv without a top file uses the top file of the saltenv in the option ``default_top``.
    """
    found: Sections = {}
    for own, each in tops.items():
        for top in each if any(each) else tops.get(default, ()):
            for env, targets in _sections(top):
                if env == own:
                    _add(found, env, targets)
    return found


def _merge_all(tops: Tops, default: str) -> Sections:
    """Return the top files merged by the strategy ``merge_all``: all sections of all top files count. SLS references of
    the same target are joined.
    """
    found: Sections = {}
    for each in tops.values():
        for top in each:
            for env, targets in _sections(top):
                section = found.setdefault(env, {})
                for target, rows in _targets(targets):
                    section[target] = _joined(section[target], rows) if target in section else rows
    return found


def _replace(tops: Tops, default: str) -> Sections:
    """Return the top files merged by the strategy ``replace``, which is for pillar: all sections of all top files
    count.

    Of several lists for the same target the last one is used.
    """
    found: Sections = {}
    for each in tops.values():
        for top in each:
            for env, targets in _sections(top):
                _add(found, env, targets)
    return found


#: Value of ``top_file_merging_strategy`` -> function that merges the top files. Only pillar uses ``replace``.
STRATEGIES: Mapping[str, Callable[[Tops, str], Sections]] = {
    "merge": _merge,
    "same": _same,
    "merge_all": _merge_all,
    "replace": _replace,
}


def verify(sections: Sections) -> list[Malformed]:
    """Return the errors in the form of the merged top files ({saltenv: {target: rows}}); [] if the form is
    correct.
    """
    return [fault for env, targets in sections.items() for fault in _of_section(env, targets)]


def _of_section(env: object, targets: Mapping[object, object]) -> Iterator[Malformed]:
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


def _of_row(env: object, row: object) -> str:
    if isinstance(row, Mapping):
        empty = any(value in (None, "", [], {}) for value in row.values())
        return f"Improperly formatted top file matcher in saltenv {env}: {dict(row)}" if empty else ""
    if row == "":
        return f"Environment {env} contains an empty sls index"
    # Salt raises an exception for these.
    return "" if isinstance(row, str) else f"Environment {env} contains {row!r}, which is not an SLS reference"


def choose(sections: Sections, matcher: TargetMatcher, envs: Sequence[str], *, ordered: bool) -> Chosen:
    """Return the Chosen of a minion: the SLS references of all targets in the merged top files that match the
    minion.

    ``sections`` is {saltenv: {target: rows}}. ``matcher`` returns whether a target matches the minion.
    ``envs``: the saltenvs from which a row of the form {saltenv: SLS reference} may take a reference.
    ``ordered`` (pillar): sort the targets by their option ``order``, and remove repeated references of a
    saltenv.
    """
    chosen = Chosen()
    for env, targets in sections.items():
        rows_of = sorted(targets.items(), key=lambda item: _order(item[1])) if ordered else targets.items()
        for target, rows in rows_of:
            _choose(chosen, env, target, rows, matcher, envs)
    if ordered:
        chosen.refs = {env: list(dict.fromkeys(refs)) for env, refs in chosen.refs.items()}
    return chosen


def _choose(
    chosen: Chosen, env: str, target: object, rows: list[object], matcher: TargetMatcher, envs: Sequence[str]
) -> None:
    options = {key: value for row in rows if isinstance(row, Mapping) for key, value in row.items()}
    if not matcher(str(target), str(options.get("match", "compound")), str(options.get("delimiter", ":"))):
        return
    refs = chosen.refs.setdefault(env, [])
    for row in rows:
        if isinstance(row, str):
            refs.append(row)
            if options.get("ignore_missing"):
                chosen.optional.add((env, row))
        elif isinstance(row, Mapping):
            for inner, inner_rows in (row.get("subfilter") or {}).items():
                _choose(chosen, env, inner, inner_rows, matcher, envs)
            for other, ref in row.items():
                if other in envs and other not in _OPTIONS:
                    chosen.refs.setdefault(other, []).append(str(ref))


def _order(rows: Iterable[object]) -> int:
    options = {key: value for row in rows if isinstance(row, Mapping) for key, value in row.items()}
    order = options.get("order", 0)
    return int(order) if isinstance(order, int) or str(order).lstrip("-").isdecimal() else 0


#: Key that marks a section that is not a map of targets. ``verify`` reports it.
_NOT_A_MAP = object()


def _sections(top: Mapping[Any, object]) -> Iterator[tuple[Any, object]]:
    return ((env, targets) for env, targets in top.items() if env != INCLUDE)


def _targets(targets: object) -> list[tuple[object, object]]:
    return list(targets.items()) if isinstance(targets, Mapping) else [(_NOT_A_MAP, targets)]


def _add(found: Sections, env: str, targets: object) -> None:
    found.setdefault(env, {}).update(_targets(targets))


def _joined(first: object, second: object) -> object:
    if not isinstance(first, list) or not isinstance(second, list):
        return second
    options = [row for row in second if isinstance(row, Mapping)] or [row for row in first if isinstance(row, Mapping)]
    refs = dict.fromkeys(row for row in (*first, *second) if isinstance(row, str))
    return [*options, *refs]


__all__ = ["INCLUDE", "STRATEGIES", "Chosen", "Malformed", "Sections", "TargetMatcher", "Tops", "choose", "verify"]
