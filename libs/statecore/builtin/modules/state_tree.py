"""Analysis of the state tree for this minion: errors, a run's changes, the order of states and its reasons.

``state.check``, ``state.plan``, ``state.graph`` and ``state.explain`` call these functions; the command ``statecore``
does the same without a minion. They never change the host; ``state.apply_plan`` does, by a plan that was kept. They
return plain data, or with ``text=True`` the text that the command prints. Exit codes: 1 where the tree does not compile
or a check found errors, 2 where a state would fail.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping, Sequence

from statecore.analysis import planfile
from statecore.analysis.check_text import check_text
from statecore.analysis.explain_text import explain_text
from statecore.analysis.finding import merged
from statecore.analysis.inspection import check as checking
from statecore.analysis.inspection import explain as explaining
from statecore.analysis.inspection import graph as drawing
from statecore.analysis.inspection import plan as planning
from statecore.analysis.inspection.kept_plans import KeptPlans
from statecore.analysis.plan_text import plan_text
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError, SlsError
from statecore.runtime.state_runs import state_queue
from statecore.runtime.state_runs.state_system import RunParts

OUTPUTTERS = dict.fromkeys(("check", "plan", "graph", "explain"), "nested") | {"apply_plan": "highstate"}

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
    ctx: Context,
    mods: str | Sequence[str] | None = None,
    all_: bool = False,
    text: bool = False,
    keep: bool | str = False,
    **kwargs: object,
) -> object:
    """Return the changes that a state run would make: a map with ``summary`` and ``states``. Each state has its
    verdict, diffs of whole files, and the requisites through which it reacts. Return a list of errors if the tree does
    not compile.

    ``all_=True`` includes the states that would not change. With ``keep=True`` the minion keeps the plan, and the map
    also has its id as ``plan``: ``state.apply_plan`` applies it. ``keep`` may be the id, too: a job for many minions
    then gives all their plans one id.

    CLI Example:

        salt web1 state.plan web
        salt web1 state.plan web keep=True
    """

    def look() -> object:
        slses, options = _split(mods), _options(kwargs)
        planned = planning.plan(_parts(ctx, kwargs), slses)
        report = planning.report(planned)
        kept: dict[str, object] = {}
        if keep:
            run: dict[str, object] = {"options": options, "sls": slses}
            sealed = planfile.sealed(planned.predictions, planned.places, run, secrets.token_bytes(16))
            kept = {"plan": _kept_plans(ctx).keep(sealed, "" if keep is True else str(keep))}
        if any(each["verdict"] == "fail" for each in report["states"]):
            ctx.scratch["retcode"] = 2
        if text:
            return plan_text(report, everything=all_)
        states = [each for each in report["states"] if all_ or each["verdict"] != "unchanged"]
        return {"summary": report["summary"], "states": states, **kept}

    return _or_errors(ctx, look)


def apply_plan(ctx: Context, plan: str, queue: bool | int | None = None) -> object:
    """Apply a plan that ``state.plan keep=True`` kept on this minion. The run is planned again and compared with the
    plan first: if the tree, the pillar, the grains or the host are not as they were, nothing is done, and the return is
    a list of the differences.

    Return the running dictionary (state tag to the state's return). The plan is then deleted.

    plan
        the id that ``state.plan`` returned as ``plan``
    queue
        True: wait for the end of other state runs. Otherwise the plan is refused while one goes on

    CLI Example:

        salt web1 state.apply_plan 5f0c3c1a2b4d6e7f
    """
    plans = _kept_plans(ctx)
    kept = plans.load(str(plan))
    slses, options = kept["run"].get("sls"), kept["run"].get("options")
    if not isinstance(options, Mapping) or not (slses is None or isinstance(slses, list)):
        raise CommandError(f"the plan {plan} does not say which run it plans")
    with state_queue.taken(ctx, queue) as refused:
        if refused:
            return refused

        def run() -> object:
            planned = planning.plan(_parts(ctx, options), slses)
            salt = bytes.fromhex(kept["salt"])
            now = planfile.sealed(planned.predictions, planned.places, kept["run"], salt)
            if found := planfile.drift(kept, json.loads(json.dumps(now))):
                ctx.scratch["retcode"] = 1
                return [f"Nothing was done: this is no longer what the plan {plan} was made of", *found]
            parts: RunParts = ctx.state_system.run_parts({**options, "test": False})
            applied = planning.apply_as_job(parts, planned)
            plans.drop(str(plan))
            return applied

        return _or_errors(ctx, run)


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
    parts: RunParts = ctx.state_system.run_parts({**_options(kwargs), "test": True})
    return parts


def _options(kwargs: Mapping[str, object]) -> dict[str, object]:
    options = {key: kwargs[key] for key in _OPTIONS if kwargs.get(key) is not None}
    if not isinstance(options.get("pillar", {}), Mapping):
        raise InvocationError("Pillar data must be formatted as a dictionary")
    return options


def _kept_plans(ctx: Context) -> KeptPlans:
    return KeptPlans(str(ctx.opts.get("cachedir") or ""))


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
