"""What orchestrations are made of: states that are jobs, functions, runners and wheels of a master (Salt's ``salt`` states)."""

from __future__ import annotations

from statecore.builtin.states.saltmod import asking, awaiting, running

VIRTUAL = "salt"

#: The modules whose functions make up this one.
PARTS = (asking, running, awaiting)
