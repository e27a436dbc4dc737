"""Salt's log levels besides those of Python."""

from __future__ import annotations

#: Least severities of the levels ``profile``, ``trace`` and ``garbage``, as numbers of ``logging``. Debug is 10.
PROFILE, TRACE, GARBAGE = 15, 5, 1
