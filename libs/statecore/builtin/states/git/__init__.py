"""Git repositories as states (Salt's ``git`` state)."""

from __future__ import annotations

from statecore.builtin.states.git import cloned, config, detached, latest

#: The modules whose functions make up this one.
PARTS = (latest, cloned, detached, config)
