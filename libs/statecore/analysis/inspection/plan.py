"""``plan`` predicts the changes of a state run by a run in test mode; ``apply`` executes the planned states."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from statecore import engine
from statecore.analysis.inspection.compilation import compiled
from statecore.analysis.planfile import PlanData, plan_data
from statecore.analysis.prediction import Prediction, predicted
from statecore.compile.draft import Draft, assume_mod_watch
from statecore.compile.graph import Graph
from statecore.loader import LoadedModule, Loader
from statecore.model.context import Context
from statecore.model.errors import SlsError, SlsFault
from statecore.model.ports import Function
from statecore.model.types import High, Low, Plan, Running, tag
from statecore.runtime.state_runs.state_system import RunParts


@dataclass(frozen=True, slots=True)
class Planned:
    """Result of ``plan``: the predicted outcome of each state, the ``file:line`` of each state, and the requisite graph."""

    predictions: tuple[Prediction, ...]
    #: State tag -> ``file:line`` of the declaration.
    places: Mapping[str, str]
    graph: Graph
    high: High


def run_draft(parts: RunParts, slses: Sequence[str] | None, reacts: Callable[[str], bool] = assume_mod_watch) -> Draft:
    """Compile SLS files, or those of the top file if ``slses`` is None, and return the compiler's draft.

    ``reacts(state)`` returns True if the state module has mod_watch. Raise SlsError with all faults, also of the
    pillar.
    """
    matches = run_matches(parts, slses)
    compilation = compiled(parts.run.tree, matches, parts.run.opts, reacts)
    if compilation.faults:
        raise SlsError([each.fault for each in compilation.faults])
    return compilation.draft


def run_matches(parts: RunParts, slses: Sequence[str] | None) -> Mapping[str, Sequence[str]]:
    """Return {saltenv: SLS references} of a run, and fetch the users' modules of these environments.

    Raise SlsError if the pillar has errors or the top file assigns no SLS to the minion.
    """
    errors = parts.run.ctx.pillar.get("_errors")
    if errors:
        raise SlsError([SlsFault(f"The pillar does not compile: {error}") for error in errors])
    matches: Mapping[str, Sequence[str]] = parts.top() if slses is None else {parts.run.ctx.saltenv: list(slses)}
    if not matches:
        raise SlsError(
            [SlsFault("The top file gives this minion nothing", hint="name an SLS, or add a target to the top file")]
        )
    parts.fetch_modules(list(matches))
    return matches


def plan(parts: RunParts, slses: Sequence[str] | None) -> Planned:
    """Predict the changes of a run of these SLS files, or of the top file's if ``slses`` is None. Return a Planned: the
    prediction for each state, the ``file:line`` of each state, and the requisite graph. The host stays unchanged.

    ``parts`` must be in test mode. Raise SlsError if the SLS files do not render or compile.
    """
    draft = run_draft(parts, slses, lambda state: parts.loader.has("states", f"{state}.mod_watch", parts.run.ctx))
    graph = draft.graph
    tree = parts.run.tree
    places = {tag(low): str(tree.locate(*_path(low)) or "") for low in graph.chunks}
    loader = _NotingLoader(parts.loader)
    # ``parallel`` would run the state in a child process, and the plans recorded there would be lost.
    chunks = tuple({key: value for key, value in low.items() if key != "parallel"} for low in graph.chunks)
    running = engine.run(_copied(graph._replace(chunks=chunks)), parts.run.ctx, loader, parts.options)
    return Planned(tuple(predicted(graph, running, loader.plans)), places, graph, draft.high)


def report(planned: Planned) -> PlanData:
    """Return a plan as a map for JSON: ``summary`` (one line) and ``states`` in order of evaluation."""
    return plan_data(planned.predictions, planned.places)


def apply(parts: RunParts, planned: Planned) -> Running:
    """Run the low chunks of a plan on the host without rendering again. Return the running dictionary.

    ``parts`` must not be in test mode.
    """
    return engine.run(_copied(planned.graph), parts.run.ctx, parts.loader, parts.options)


def apply_as_job(parts: RunParts, planned: Planned) -> Running | list[str]:
    """Run the low chunks of a plan as ``state.apply`` runs them: with disabled states, pauses and the job's exit code.

    ``parts`` must not be in test mode.
    """
    return parts.run_graph(_copied(planned.graph), planned.high)


def _copied(graph: Graph) -> Graph:
    """Return the graph with copied chunks, because the engine marks the chunks that mod_aggregate gathers."""
    return graph._replace(chunks=copy.deepcopy(graph.chunks))


class _NotingLoader(Loader):
    """A loader that records the Plan that each native state returns, by the state's module, ID, name and function."""

    def __init__(self, loader: Loader) -> None:
        super().__init__(loader.extension_dir)
        self.plans: dict[tuple[str, str, str], dict[str, Plan]] = {}

    def function(self, kind: str, name: str, ctx: Context) -> tuple[LoadedModule, str]:
        """Return (loaded module, function name) as Loader does. If the function is a native state function, the
        returned module has a variant of it that also records the Plan that it returns.
        """
        served, function = super().function(kind, name, ctx)
        if kind != "states" or not served.native:
            return served, function
        return replace(
            served, functions={**served.functions, function: self._noting(served.functions[function])}
        ), function

    def _noting(self, own: Function) -> Function:
        @functools.wraps(own)
        def noting(ctx: Context, *args: object, **kwargs: object) -> object:
            returned = own(ctx, *args, **kwargs)
            if isinstance(returned, Plan) and ctx.low:
                key = str(ctx.low["state"]), str(ctx.low["__id__"]), str(ctx.low["name"])
                self.plans.setdefault(key, {})[str(ctx.low["fun"])] = returned
            return returned

        return noting


def _path(low: Low) -> tuple[str, ...]:
    return str(low.get("__sls__", "")), str(low.get("__env__", "base")), str(low["__id__"]), str(low["state"])
