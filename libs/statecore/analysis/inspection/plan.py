"""``plan``: what a run would change, from a run in test mode that notes the plans of native states; ``apply`` does it."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from statecore import engine
from statecore.analysis.inspection.compilation import compiled
from statecore.analysis.planfile import plan_data
from statecore.analysis.prediction import Prediction, predicted
from statecore.compile.draft import Draft, assume_mod_watch
from statecore.compile.graph import Graph
from statecore.loader import Loader, Served
from statecore.model.context import Context
from statecore.model.errors import SlsError, SlsFault
from statecore.model.ports import Function
from statecore.model.types import Low, Plan, Running, tag
from statecore.runtime.state_runs.state_system import RunParts


@dataclass(frozen=True, slots=True)
class Planned:
    """A run that has not begun."""

    predictions: tuple[Prediction, ...]
    #: Tag -> ``file:line`` of its declaration.
    places: Mapping[str, str]
    graph: Graph


def run_draft(bench: RunParts, slses: Sequence[str] | None, reacts: Callable[[str], bool] = assume_mod_watch) -> Draft:
    """The compiled run of SLS references; of the top file for None. Raises SlsError with every fault, of the pillar too.

    ``reacts`` as for ``compile_sls``.
    """
    matches = run_matches(bench, slses)
    compilation = compiled(bench.stage.tree, matches, bench.stage.opts, reacts)
    if compilation.faults:
        raise SlsError([told.fault for told in compilation.faults])
    return compilation.draft


def run_matches(bench: RunParts, slses: Sequence[str] | None) -> Mapping[str, Sequence[str]]:
    """saltenv -> SLS references of a run; users' modules are there after it. Raises SlsError where no run could begin."""
    errors = bench.stage.ctx.pillar.get("_errors")
    if errors:
        raise SlsError([SlsFault(f"The pillar does not compile: {error}") for error in errors])
    matches: Mapping[str, Sequence[str]] = bench.top() if slses is None else {bench.stage.ctx.saltenv: list(slses)}
    if not matches:
        raise SlsError(
            [SlsFault("The top file gives this minion nothing", hint="name an SLS, or add a target to the top file")]
        )
    bench.fetch_modules(list(matches))
    return matches


def plan(bench: RunParts, slses: Sequence[str] | None) -> Planned:
    """What a run would do. ``bench`` is one in test mode. Raises SlsError."""
    graph = run_draft(
        bench, slses, lambda state: bench.loader.has("states", f"{state}.mod_watch", bench.stage.ctx)
    ).graph
    tree = bench.stage.tree
    places = {tag(low): str(tree.locate(*_path(low)) or "") for low in graph.chunks}
    loader = _NotingLoader(bench.loader)
    # What is only asked in test mode needs no children, whose notes would be lost with them.
    chunks = tuple({key: value for key, value in low.items() if key != "parallel"} for low in graph.chunks)
    running = engine.run(_copied(graph._replace(chunks=chunks)), bench.stage.ctx, loader, bench.options)
    return Planned(tuple(predicted(graph, running, loader.plans)), places, graph)


def report(planned: Planned) -> dict[str, Any]:
    """A plan as plain data: ``summary`` in a line, ``states`` in order of evaluation."""
    return plan_data(planned.predictions, planned.places)


def apply(bench: RunParts, planned: Planned) -> Running:
    """Does what was planned: the very chunks, not rendered again. ``bench`` is one that is not in test mode."""
    return engine.run(_copied(planned.graph), bench.stage.ctx, bench.loader, bench.options)


def _copied(graph: Graph) -> Graph:
    """The same with chunks of its own: the engine marks those that it gathers."""
    return graph._replace(chunks=copy.deepcopy(graph.chunks))


class _NotingLoader(Loader):
    """Notes the plan that each native state returns, by its chunk. Loads what the other one loads."""

    def __init__(self, loader: Loader) -> None:
        super().__init__(loader.extension_dir)
        self.plans: dict[tuple[str, str, str], dict[str, Plan]] = {}

    def function(self, kind: str, name: str, ctx: Context) -> tuple[Served, str]:
        """The function, which notes what it returns."""
        served, function = super().function(kind, name, ctx)
        if kind != "states" or not served.native:
            return served, function
        return replace(
            served, functions={**served.functions, function: self._noting(served.functions[function])}
        ), function

    def _noting(self, own: Function) -> Function:
        @functools.wraps(own)
        def noting(ctx: Context, *args: Any, **kwargs: Any) -> Any:
            returned = own(ctx, *args, **kwargs)
            if isinstance(returned, Plan) and ctx.low:
                key = str(ctx.low["state"]), str(ctx.low["__id__"]), str(ctx.low["name"])
                self.plans.setdefault(key, {})[str(ctx.low["fun"])] = returned
            return returned

        return noting


def _path(low: Low) -> tuple[str, ...]:
    return str(low.get("__sls__", "")), str(low.get("__env__", "base")), str(low["__id__"]), str(low["state"])
