"""The roles of a master as children of one parent process: the lab's launcher and ``salt-master`` fork them.

Options and roles are made before the forks, so that the roles share their memory; each role reads its keys after its fork.
Source: docs/decisions/0017-workers-from-one-parent.md
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from functools import partial

from saltern.kit.process.service import RoleProgram, Start, new_role

#: Roles of a master on one machine, in the order of their start. An mworker is a parent with all workers.
ROLES = ("eventpublisher", "reqserver", "publisher", "maintenance", "reactor", "mworker")

#: Modules that several roles need for their first connection.
_FIRST_NEEDED = ("encodings.idna", "secrets", "stringprep", "unicodedata")


def load_shared_modules() -> None:
    """Import the modules that several roles would load after their fork, so that they share their memory."""
    for module in _FIRST_NEEDED:
        importlib.import_module(module)


def role_program(name: str) -> RoleProgram:
    """Return the RoleProgram of the role ``name``. Raises ImportError where the packages of a master are not installed."""
    program: RoleProgram = importlib.import_module(f"saltern.{name}.main").PROGRAM
    return program


def before_fork(program: RoleProgram, start: Start) -> Start:
    """Return ``start`` with the role, which is made here and not after the fork. Raises ConfigError."""
    return dataclasses.replace(start, role=new_role(program, start))


def after_fork(program: RoleProgram, start: Start) -> Callable[[], int]:
    """Return the function that a child process runs as this role; it returns the exit code."""
    return partial(_run, program, start)


def _run(program: RoleProgram, start: Start) -> int:
    start.configure_logs(program.name)
    return program.run(program, start)
