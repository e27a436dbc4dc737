"""The runtime stage of the seeds: low chunks in, the running dictionary out.

Read it in this order: ``requisite`` (what each requisite means), ``machine`` (what is next, and what becomes of it),
``call`` (one state), ``drive`` (the loop that performs it all). Who needs whom, and the order of the run, is the compiler's
(``compile.graph``, ``compile.sort``).
"""

from statecore.engine.drive import EngineOptions, run, single

__all__ = ["EngineOptions", "run", "single"]
