"""Salt's log levels besides those of Python (profile, trace, garbage), and the variable ``unlogged``: True while a
state runs whose commands must not be logged.
"""

from __future__ import annotations

from contextvars import ContextVar

#: Least severities of the levels ``profile``, ``trace`` and ``garbage``, as numbers of ``logging``. Debug is 10.
PROFILE, TRACE, GARBAGE = 15, 5, 1

#: True while a state with ``no_log`` or a quiet command runs: its commands and their output do not appear in the log.
unlogged: ContextVar[bool] = ContextVar("unlogged", default=False)
