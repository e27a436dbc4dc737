"""In which order the states of a run are evaluated: the engine's own machine, fed with entries as if all went well. Pure."""

from __future__ import annotations

from typing import Any

from statecore.engine.graph import Graph
from statecore.engine.machine import Machine


def sequence(graph: Graph) -> list[int]:
    """Positions of the chunks in the order in which they are run. Which of them are left out is not told."""
    machine = Machine(graph)
    order: list[int] = []
    while (instruction := machine.step()) is not None:
        node = instruction.node
        if not node.check:
            order.append(node.position)
        machine.feed(instruction, _fine(test=node.check))
    return order


def _fine(*, test: bool) -> dict[str, Any]:
    return {"result": None if test else True, "changes": {"what": "something"}, "comment": "", "name": ""}
