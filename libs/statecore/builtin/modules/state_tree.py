"""Analysis of the state tree for this minion: errors, a run's changes, the order of states and its reasons.

``state.check``, ``state.plan``, ``state.graph`` and ``state.explain`` call these functions; the command ``statecore``
does the same without a minion. They never change the host. They return plain data, or with ``text=True`` the text that
the command prints. Exit codes: 1 where the tree does not compile or a check found errors, 2 where a state would fail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

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
from statecore.runtime.state_runs.state_system import RunParts

OUTPUTTERS = dict.fromkeys(("check", "plan", "graph", "explain"), "nested")

_OPTIONS = ("saltenv", "pillarenv", "pillar", "state_top")

#: Name for the run of all SLS files that the top file assigns.
_HIGHSTATE = "highstate"


def check(ctx: Context, mods: str | Sequence[str] | None = None, text: bool = False, **kwargs: object) -> object:
    """Return the errors and oddities in the top file and every SLS file of the state tree, or in the SLS files
    ``mods``, as a map.

    The map has the keys ``findings`` (with file, line and column) and ``summary``. With ``text``, return the text that
    the command prints.

    CLI Example:

        salt web1 state.check
    """
    findings = checking.check(_parts(ctx, kwargs), _split(mods) or ())
    report = checking.report(findings)
    if report["summary"]["errors"]:
        ctx.scratch["retcode"] = 1
    return check_text(merged({"": findings})) if text else report


def plan(
    ctx: Context, mods: str | Sequence[str] | None = None, all_: bool = False, text: bool = False, **kwargs: object
) -> object:
    """Return the changes that a state run would make: a map with ``summary`` and ``states``. Each state has its
    verdict, diffs of whole files, and the requisites through which it reacts. Return a list of errors if the tree does
    not compile.

    ``all_=True`` includes the states that would not change.

    CLI Example:

        salt web1 state.plan web
    """

    def look() -> object:
        report = planning.report(planning.plan(_parts(ctx, kwargs), _split(mods)))
        if any(each["verdict"] == "fail" for each in report["states"]):
            ctx.scratch["retcode"] = 2
        if text:
            return plan_text(report, everything=all_)
        states = [each for each in report["states"] if all_ or each["verdict"] != "unchanged"]
        return {"summary": report["summary"], "states": states}

    return _or_errors(ctx, look)


def graph(ctx: Context, mods: str | Sequence[str] | None = None, format: str = "mermaid", **kwargs: object) -> object:
    """Return the states of a state run in their order with their requisites: as text in mermaid, dot or svg, or as data
    in json.

    CLI Example:

        salt web1 state.graph web format=dot
    """
    make = drawing.FORMATS.get(format)
    if make is None:
        raise InvocationError(f"there is no format '{format}'; there are {', '.join(sorted(drawing.FORMATS))}")
    return _or_errors(ctx, lambda: make(drawing.drawn(_parts(ctx, kwargs), _split(mods))))


def explain(ctx: Context, mods: str | Sequence[str], id_: str, text: bool = False, **kwargs: object) -> object:
    """Return a map that explains the states of an ID in the state tree: why they run when they do, what they wait for,
    and the file and line of each part. With ``text`` return text. Return a list of errors if the tree does not compile.

    mods
        the run in which the ID is explained: SLS files, or ``highstate``

    CLI Example:

        salt web1 state.explain web nginx-conf
    """
    slses = None if mods == _HIGHSTATE else _split(mods)

    def look() -> object:
        explained = explaining.explain(_parts(ctx, kwargs), slses, str(id_))
        return explain_text(explained) if text else explained

    return _or_errors(ctx, look)


def _parts(ctx: Context, kwargs: Mapping[str, object]) -> RunParts:
    options = {key: kwargs[key] for key in _OPTIONS if kwargs.get(key) is not None}
    if not isinstance(options.get("pillar", {}), Mapping):
        raise InvocationError("Pillar data must be formatted as a dictionary")
    parts: RunParts = ctx.state_system.run_parts({**options, "test": True})
    return parts


def _or_errors(ctx: Context, look: Callable[[], object]) -> object:
    """Call the function ``look`` and return its result. If the state tree does not compile, return the list of
    errors that a state run would return.
    """
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
