"""File systems and swap (Salt's ``mount`` state): what is mounted, and what is in fstab for the next start."""

from __future__ import annotations

from statecore.builtin.states.mount import fstab, swap, targets

#: The modules whose functions make up this one.
PARTS = (targets, swap, fstab)
