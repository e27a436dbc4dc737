"""Salt's ``mount`` states: mounted file systems, active swap, and their entries in fstab."""

from __future__ import annotations

from statecore.builtin.states.mount import fstab, mounts

#: Modules whose public functions are this package's state functions.
PARTS = (mounts, fstab)
