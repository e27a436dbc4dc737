"""The runtime stage of the seeds: low chunks in, the running dictionary out.

Read it in this order: ``requisite`` (what each requisite means), ``graph`` (who needs whom), ``machine`` (in which order,
and what becomes of each), ``call`` (one state), ``drive`` (the loop that performs it all).
"""

from statecore.engine.drive import Options, references, run, single
from statecore.engine.report import tag, untag

__all__ = ["Options", "references", "run", "single", "tag", "untag"]
