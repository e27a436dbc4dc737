"""The minion's schedule, whose jobs are listed, added, changed, run and removed: Salt's ``schedule`` execution
module.

The functions ask the running minion. ``offline=True`` works on the saved schedule instead, for a minion that does not
run. Jobs of pillar can only be changed in pillar. ``queries`` lists jobs, ``changes`` adds and removes them,
``switches`` enables, disables and runs them, ``copies`` adds them to other minions; ``minion_schedule`` sends the
requests to the minion.
"""

from __future__ import annotations

from statecore.builtin.modules.schedule import changes, copies, queries, switches

#: The modules that define the functions of ``schedule``.
PARTS = (queries, changes, switches, copies)
