"""Exit codes of the command ``statecore``, and the exception that ends it with a message."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of ``statecore``, documented in docs/exit-codes.md."""

    OK = 0
    #: The tree does not compile, a check found errors, or the ID does not exist.
    ERRORS = 1
    #: A state failed, or would fail.
    FAILED = 2
    #: The host or the tree changed after the plan was made. Nothing was applied.
    DRIFTED = 3
    #: Something would change (with --exit-code).
    CHANGES = 4
    #: A wrong command line (EX_USAGE).
    USAGE = 64
    #: A plan file that cannot be used (EX_DATAERR).
    DATA = 65
    #: Another state run is in progress. Nothing was applied (EX_TEMPFAIL).
    BUSY = 75


class CommandFault(Exception):
    """Error that ends the command ``statecore``: ``str()`` is written to stderr, ``code`` is the exit code."""

    def __init__(self, message: str, code: Exit = Exit.USAGE) -> None:
        super().__init__(message)
        self.code = code
