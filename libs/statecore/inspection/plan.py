"""``plan``: what a run would change, from a run in test mode that notes the plans of native states; ``apply`` does it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from statecore import engine
from statecore.analysis.prediction import Prediction, predicted
from statecore.compile.draft import Draft
from statecore.context import Context
from statecore.engine.graph import link
from statecore.engine.report import tag
from statecore.errors import SlsError, SlsFault
from statecore.inspection.check import reacts
from statecore.inspection.compilation import compiled
from statecore.loader import Loader, Served
from statecore.loader.served import bind_native
from statecore.ports import Function
from statecore.state_runs import Bench
from statecore.types import Low, Plan, Running


@dataclass(frozen=True, slots=True)
class Planned:
    """A run that has not begun."""

    predictions: tuple[Prediction, ...]
    #: Tag -> ``file:line`` of its declaration.
    places: Mapping[str, str]
    chunks: tuple[Low, ...]


def run_draft(bench: Bench, slses: Sequence[str] | None) -> Draft:
    """The compiled run of SLS references; of the top file for None. Raises SlsError with every fault, of the pillar too."""
    errors = bench.stage.ctx.pillar.get("_errors")
    if errors:
        raise SlsError([SlsFault(f"The pillar does not compile: {error}") for error in errors])
    matches: Mapping[str, Sequence[str]] = bench.top() if slses is None else {bench.stage.ctx.saltenv: list(slses)}
    if not matches:
        raise SlsError(
            [SlsFault("The top file gives this minion nothing", hint="name an SLS, or add a target to the top file")]
        )
    bench.fetch_modules(list(matches))
    compilation = compiled(bench.stage.tree, matches, bench.stage.opts)
    if compilation.faults:
        raise SlsError([told.fault for told in compilation.faults])
    draft = compilation.draft
    if unresolved := engine.references(draft.chunks):
        tree = bench.stage.tree
        marks = [tree.locate(*_path(fault.low), fault.kind) for fault in unresolved]
        raise SlsError(
            [
                SlsFault(fault.message, mark, excerpt=tree.excerpt(mark))
                for fault, mark in zip(unresolved, marks, strict=True)
            ]
        )
    return draft


def plan(bench: Bench, slses: Sequence[str] | None) -> Planned:
    """What a run would do. ``bench`` is one in test mode. Raises SlsError."""
    chunks = run_draft(bench, slses).chunks
    tree = bench.stage.tree
    places = {tag(low): str(tree.locate(*_path(low)) or "") for low in chunks}
    loader = _NotingLoader(bench.loader)
    # The engine marks the chunks that it gathers; those of the plan are to be run again.
    running = engine.run(copy.deepcopy(chunks), bench.stage.ctx, loader, bench.options)
    graph = link(chunks, lambda state: reacts(bench.loader, bench, state))
    predictions = predicted(graph, running, loader.plans)
    return Planned(tuple(predictions), places, chunks)


def apply(bench: Bench, planned: Planned) -> Running:
    """Does what was planned: the very chunks, not rendered again. ``bench`` is one that is not in test mode."""
    return engine.run(copy.deepcopy(planned.chunks), bench.stage.ctx, bench.loader, bench.options)


class _NotingLoader(Loader):
    """Notes the plan that each native state returns, by its chunk. Loads what the other one loads."""

    def __init__(self, loader: Loader) -> None:
        super().__init__(loader.extension_dir)
        self.plans: dict[tuple[str, str, str], dict[str, Plan]] = {}

    def function(self, kind: str, name: str, ctx: Context) -> tuple[Served, str]:
        """The function, which notes what it returns."""
        served, function = super().function(kind, name, ctx)
        return (
            (replace(served, binder=self._bind), function) if kind == "states" and served.native else (served, function)
        )

    def _bind(self, function: Function, ctx: Context, /) -> Callable[..., Any]:
        bound = bind_native(function, ctx)

        def noting(*args: Any, **kwargs: Any) -> Any:
            returned = bound(*args, **kwargs)
            if isinstance(returned, Plan) and ctx.low:
                key = str(ctx.low["state"]), str(ctx.low["__id__"]), str(ctx.low["name"])
                self.plans.setdefault(key, {})[str(ctx.low["fun"])] = returned
            return returned

        return noting


def _path(low: Low) -> tuple[str, ...]:
    return str(low.get("__sls__", "")), str(low.get("__env__", "base")), str(low["__id__"]), str(low["state"])
