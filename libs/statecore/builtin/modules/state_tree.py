"""Looks at the state tree as this minion sees it: what is wrong, what a run would change, what waits for what, and why.

``state.check``, ``state.plan``, ``state.graph`` and ``state.explain`` are these; the command ``statecore`` does the same without
a minion. Nothing here changes the host. Plain data is returned; with ``text=True`` what the command would print. Exit codes: 1
where the tree does not compile or a check found errors, 2 where a state would fail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from statecore.analysis.check_text import check_text
from statecore.analysis.explain_text import explain_text
from statecore.analysis.finding import merged
from statecore.analysis.inspection import check as checking
from statecore.analysis.inspection import explain as explaining
from statecore.analysis.inspection import graph as drawing
from statecore.analysis.inspection import plan as planning
from statecore.analysis.plan_text import plan_text
from statecore.model.context import Context
from statecore.model.errors import InvocationError, SlsError

OUTPUTTERS = dict.fromkeys(("check", "plan", "graph", "explain"), "nested")

_OPTIONS = ("saltenv", "pillarenv", "pillar", "state_top")

#: Run that a name stands for: the top file's.
_HIGHSTATE = "highstate"


def check(ctx: Context, mods: str | Sequence[str] | None = None, text: bool = False, **kwargs: Any) -> Any:
    """All that is wrong or odd in the tree, in the top file and every SLS, or in some SLS: ``findings``, with file, line, column.

    CLI Example:

        salt web1 state.check
    """
    findings = checking.check(_bench(ctx, kwargs), _split(mods) or ())
    told = checking.report(findings)
    if told["summary"]["errors"]:
        ctx.scratch["retcode"] = 1
    return check_text(merged({"": findings})) if text else told


def plan(
    ctx: Context, mods: str | Sequence[str] | None = None, all_: bool = False, text: bool = False, **kwargs: Any
) -> Any:
    """What a run would change: of each state that would, the verdict, the diffs of whole files, and through which requisites it
    reacts. ``all_=True`` tells of those that would not change, too.

    CLI Example:

        salt web1 state.plan web
    """

    def look() -> Any:
        told = planning.report(planning.plan(_bench(ctx, kwargs), _split(mods)))
        if any(each["verdict"] == "fail" for each in told["states"]):
            ctx.scratch["retcode"] = 2
        if text:
            return plan_text(told, everything=all_)
        states = [each for each in told["states"] if all_ or each["verdict"] != "unchanged"]
        return {"summary": told["summary"], "states": states}

    return _or_errors(ctx, look)


def graph(ctx: Context, mods: str | Sequence[str] | None = None, format: str = "mermaid", **kwargs: Any) -> Any:
    """The states of a run in their order, and their requisites: mermaid, dot or svg as text, json as data.

    CLI Example:

        salt web1 state.graph web format=dot
    """
    make = drawing.FORMATS.get(format)
    if make is None:
        raise InvocationError(f"there is no format '{format}'; there are {', '.join(sorted(drawing.FORMATS))}")
    return _or_errors(ctx, lambda: make(drawing.drawn(_bench(ctx, kwargs), _split(mods))))


def explain(ctx: Context, mods: str | Sequence[str], id_: str, text: bool = False, **kwargs: Any) -> Any:
    """Why the states of an ID run when they do, what they wait for, who made them what they are, each with file and line.

    mods
        the run that is meant: SLS, or ``highstate``

    CLI Example:

        salt web1 state.explain web nginx-conf
    """
    slses = None if mods == _HIGHSTATE else _split(mods)

    def look() -> Any:
        told = explaining.explain(_bench(ctx, kwargs), slses, str(id_))
        return explain_text(told) if text else told

    return _or_errors(ctx, look)


def _bench(ctx: Context, kwargs: Mapping[str, Any]) -> Any:
    options = {key: kwargs[key] for key in _OPTIONS if kwargs.get(key) is not None}
    if not isinstance(options.get("pillar", {}), Mapping):
        raise InvocationError("Pillar data must be formatted as a dictionary")
    return ctx.state_system.bench({**options, "test": True})


def _or_errors(ctx: Context, look: Callable[[], Any]) -> Any:
    """What was seen, or the list of errors that a run would return."""
    try:
        return look()
    except SlsError as error:
        ctx.scratch["retcode"] = 1
        return error.lines()


def _split(mods: str | Sequence[str] | None) -> list[str] | None:
    if mods is None or mods == "":
        return None
    return (
        [name.strip() for name in str(mods).split(",")] if isinstance(mods, str | int) else [str(name) for name in mods]
    )
