"""The calls of the sweep, made from the signatures and examples of Salt's functions, and the comparison of the answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

#: [kind of the call, arguments by position, arguments by name]
Call: TypeAlias = list[Any]

#: ["return", value, exit code], ["raise", class, message] or ["late"]
Answer: TypeAlias = Sequence[Any]

#: Stands for each required argument in calls of the kind "wrong".
WRONG = "no-such-thing"

#: What differs between two machines or moments in texts: numbers of processes, addresses, names of temporary files and objects.
_VARIES = re.compile(r"0x[0-9a-f]+|/tmp/sweep/(?:salt|ours)|/tmp/[\w.\-]{6,}|\b\d{4}-\d\d-\d\d[ T][\d:.]+")


@dataclass(frozen=True, slots=True)
class Row:
    """One row of ``differences.yaml``: the calls it is about, in what they may differ, and why."""

    #: Patterns of functions ("mount.*").
    functions: tuple[str, ...]
    why: str
    #: Kinds of calls: bare, wrong, keyword, example; empty: all.
    kinds: tuple[str, ...] = ()
    #: What may differ: "values" (both return, and values or exit codes differ), "outcome" (one raises, the other returns), "all".
    what: str = "all"

    def covers(self, function: str, kind: str, what: str) -> bool:
        """Return whether the row allows a difference."""
        return (
            self.what in ("all", what)
            and (not self.kinds or kind in self.kinds)
            and any(fnmatchcase(function, pattern) for pattern in self.functions)
        )


def of_function(told: Mapping[str, Any]) -> list[Call]:
    """Return the calls of one function: without arguments, with a wrong value for each required argument, with an unknown
    keyword, and those of Salt's documentation.
    """
    required = len(told["required"])
    made: list[Call] = [["bare", [], {}]]
    if required:
        made.append(["wrong", [WRONG] * required, {}])
    if not told["keywords"]:
        made.append(["keyword", [WRONG] * required, {"nosuchkeyword": 1}])
    made += [["example", args, kwargs] for args, kwargs in told["examples"]]
    return made


def difference(ours: Answer | None, salts: Answer | None) -> str:
    """Return in what two answers differ: "outcome", "values", or "" if they are equal.

    Errors are equal whatever their words are: each side words them in its way. An answer that Salt does not give in time is not
    compared.
    """
    first, second = (answer or ["none"] for answer in (ours, salts))
    if second[0] == "late":
        return ""
    if first[0] != second[0]:
        return "outcome"
    if first[0] != "return":
        return ""
    return "" if (_masked(first[1]), first[2]) == (_masked(second[1]), second[2]) else "values"


def compared(
    calls: Mapping[str, Sequence[Call]], ours: Mapping[str, Any], salts: Mapping[str, Any]
) -> Iterator[tuple[str, Call, str, Answer, Answer]]:
    """Yield (function, call, "outcome" or "values", our answer, Salt's answer) for each call with two different answers."""
    for function, made in calls.items():
        mine, others = ours.get(function, []), salts.get(function, [])
        for at, call in enumerate(made):
            one = mine[at] if at < len(mine) else ["none"]
            other = others[at] if at < len(others) else ["none"]
            if what := difference(one, other):
                yield function, call, what, one, other


def _masked(value: Any) -> Any:
    if isinstance(value, str):
        return _VARIES.sub("…", value).rstrip()
    if isinstance(value, Mapping):
        return {key: 0 if key == "pid" else _masked(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_masked(each) for each in value]
    if isinstance(value, float):
        # Seconds that something took.
        return round(value, 2)
    return value
