"""Git repositories as states (Salt's ``git`` state)."""

from __future__ import annotations

from statecore.states.git import config, latest, plain

#: The modules whose functions make up this one.
PARTS = (latest, plain, config)
