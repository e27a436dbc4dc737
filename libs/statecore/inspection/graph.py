"""``graph``: the states of a run in their order, and what waits for what."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from statecore.analysis.diagram import Diagram, as_data, diagram, dot, mermaid
from statecore.analysis.evaluation import sequence
from statecore.analysis.svg import svg
from statecore.engine.graph import link
from statecore.inspection.check import reacts
from statecore.inspection.plan import run_draft
from statecore.state_runs import Bench
from statecore.types import Low

#: Format -> text of a diagram, or plain data.
FORMATS: Mapping[str, Callable[[Diagram], Any]] = {"mermaid": mermaid, "dot": dot, "json": as_data, "svg": svg}


def drawn(bench: Bench, slses: Sequence[str] | None) -> Diagram:
    """The diagram of SLS references; of the top file for None. Raises SlsError."""
    draft = run_draft(bench, slses)
    graph = link(draft.chunks, lambda state: reacts(bench.loader, bench, state))
    return diagram(graph, sequence(graph), lambda low: declared_at(bench, low))


def declared_at(bench: Bench, low: Low) -> str:
    """``file:line`` of a chunk's state, "" when it is not known."""
    sls, saltenv = str(low.get("__sls__", "")), str(low.get("__env__", "base"))
    return str(bench.stage.tree.locate(sls, saltenv, str(low["__id__"]), str(low["state"])) or "")
