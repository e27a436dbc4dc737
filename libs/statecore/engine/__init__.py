"""State engine: runs low chunks and returns the running dictionary.

Read the files in this order: ``requisite`` (meaning of each requisite), ``machine`` (the next state to run), ``call``
(the call of one state function), ``drive`` (the loop that runs a graph). The compiler decides the order of the run and
which state needs which (``compile.graph``, ``compile.sort``).

Source: docs/state-system.md#runtime
"""

from statecore.engine.drive import EngineOptions, run, single

__all__ = ["EngineOptions", "run", "single"]
