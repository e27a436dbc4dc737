"""The minion's schedule (Salt's ``schedule`` module): what the running minion does by itself is shown and changed.

Where no minion runs, ``offline=True`` works on the saved schedule. Jobs of pillar can only be changed in pillar. ``shows`` tells of
jobs, ``changes`` adds and removes them, ``switches`` lets them run or not, ``elsewhere`` hands them to other minions; ``asking``
speaks to the minion.
"""

from __future__ import annotations

from statecore.builtin.modules.schedule import changes, copies, queries, switches

#: The modules whose functions make up this one.
PARTS = (queries, changes, switches, copies)
