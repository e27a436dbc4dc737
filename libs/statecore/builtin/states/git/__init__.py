"""Salt's ``git`` states: clones of Git repositories, and keys of their configuration."""

from __future__ import annotations

from statecore.builtin.states.git import clones, config, latest

#: Modules whose public functions are this package's state functions.
PARTS = (latest, clones, config)
