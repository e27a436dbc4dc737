"""Execution module ``schedule``: lists, adds, changes, enables, disables, runs and removes the jobs that a minion starts by
itself at set times (Salt's schedule).

A function sends a request to the running minion, which keeps the schedule, and waits for its answer. With ``offline=True``
the function reads or writes the file with the saved schedule instead, while no minion runs. Jobs that come from pillar can
only be changed in pillar.

The functions are defined in four submodules: ``queries`` lists jobs, ``changes`` adds, changes and removes them, ``switches``
enables, disables and runs them, ``copies`` adds them to the schedules of other minions. The submodule ``minion_schedule``
sends their requests to the minion.
"""

from __future__ import annotations

from statecore.builtin.modules.schedule import changes, copies, queries, switches

#: The modules that define the functions of ``schedule``.
PARTS = (queries, changes, switches, copies)
