"""Runner ``survey``: runs a function on many minions and groups the minions by their returns."""

from __future__ import annotations

import difflib
from typing import NotRequired, TypedDict

from saltern.mworker.runners.runner import RunnerFault, RunnerTools
from statecore.model.text_lines import lines_of


class EqualReturns(TypedDict):
    """One group of survey.hash: the minions (``pool``) whose returns are equal, and that return as text."""

    pool: list[str]
    #: The common return as text.
    result: str
    diff: NotRequired[str]


def hash(tools: RunnerTools, *args: object, **kwargs: object) -> list[EqualReturns]:
    """Group minions by equal returns: [{"pool": minions, "result": their common return as text}].

    args
        target, function and its arguments
    survey_sort
        ``down``: the largest pool first, ``up``: the smallest
    tgt_type
        ``compound`` or ``pcre``

    CLI Example:

        salt-run survey.hash '*' file.get_hash /etc/hosts survey_sort=up
    """
    return _pools(tools, args, kwargs)


def diff(tools: RunnerTools, *args: object, **kwargs: object) -> list[EqualReturns]:
    """Group minions by equal returns, as ``survey.hash`` does: [{"pool": minions, "result": their common return as
    text, "diff": text}]. ``diff`` is the difference from the first pool's result to this pool's result; the first pool
    has none.
    """
    pools = _pools(tools, args, kwargs)
    for pool in pools[1:]:
        lines = difflib.unified_diff(
            lines_of(pools[0]["result"]),
            lines_of(pool["result"]),
            fromfile=pools[0]["pool"][0],
            tofile=pool["pool"][0],
            n=0,
            lineterm="",
        )
        pool["diff"] = "\n".join(lines)
    return pools


def _pools(tools: RunnerTools, args: tuple[object, ...], kwargs: dict[str, object]) -> list[EqualReturns]:
    if len(args) < 2:
        raise RunnerFault("a target and a function are needed, as in: salt-run survey.hash '*' test.version")
    tgt, fun, *arg = args
    sort, tgt_type = kwargs.pop("survey_sort", "down"), kwargs.pop("tgt_type", "compound")
    if sort not in ("up", "down") or tgt_type not in ("compound", "pcre"):
        raise RunnerFault("survey_sort is up or down, tgt_type compound or pcre")
    asked = tools.ask(tgt, tgt_type, str(fun), arg, kwargs)
    pools: dict[str, list[str]] = {}
    for minion, load in asked.answers().items():
        pools.setdefault(str(load.get("return")), []).append(minion)
    found: list[EqualReturns] = [{"pool": minions, "result": result} for result, minions in pools.items()]
    return sorted(found, key=lambda pool: len(pool["pool"]), reverse=sort == "down")
