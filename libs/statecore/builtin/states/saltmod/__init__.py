"""Salt's ``salt`` states, for orchestrations: jobs on minions, and runner and wheel functions of the master."""

from __future__ import annotations

from statecore.builtin.states.saltmod import master_functions, minion_jobs

VIRTUAL = "salt"

#: Modules whose public functions are this package's state functions.
PARTS = (minion_jobs, master_functions)
