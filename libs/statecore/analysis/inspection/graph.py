"""``graph``: draw the states of a run in their order, with their requisites."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from statecore.analysis.diagram import Diagram, as_data, diagram, dot, mermaid
from statecore.analysis.inspection.plan import run_draft
from statecore.analysis.svg import svg
from statecore.model.types import Low
from statecore.runtime.state_runs.state_system import RunParts

#: Format -> function that returns the diagram as text, or as a map for JSON.
FORMATS: Mapping[str, Callable[[Diagram], object]] = {"mermaid": mermaid, "dot": dot, "json": as_data, "svg": svg}


def drawn(parts: RunParts, slses: Sequence[str] | None) -> Diagram:
    """Return the diagram of a run of these SLS references, or of the top file's if ``slses`` is None.

    Raise SlsError if they do not render or compile.
    """
    return diagram(run_draft(parts, slses).graph, lambda low: declared_at(parts, low))


def declared_at(parts: RunParts, low: Low) -> str:
    """Return the ``file:line`` of the state that a chunk was compiled from; "" if it is not known."""
    sls, saltenv = str(low.get("__sls__", "")), str(low.get("__env__", "base"))
    return str(parts.run.tree.locate(sls, saltenv, str(low["__id__"]), str(low["state"])) or "")
