"""How the command ends: its exit codes, and its errors without a traceback."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of ``statecore``; documented in docs/statecore.md."""

    OK = 0
    #: The tree does not compile; a check found errors; there is no such ID.
    ERRORS = 1
    #: A state failed, or would fail.
    FAILED = 2
    #: The host or the tree is no longer what the plan was made of; nothing was done.
    DRIFTED = 3
    #: Something would change (with --exit-code).
    CHANGES = 4
    #: A wrong command line (EX_USAGE).
    USAGE = 64
    #: A plan file that cannot be used (EX_DATAERR).
    DATA = 65
    #: Another state run is in progress; nothing was done (EX_TEMPFAIL).
    BUSY = 75


class CommandFault(Exception):
    """The command cannot go on: str() for stderr, ``code`` for the shell."""

    def __init__(self, message: str, code: Exit = Exit.USAGE) -> None:
        super().__init__(message)
        self.code = code
