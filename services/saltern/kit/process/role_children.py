"""The roles of a master as child processes of one parent: the lab's launcher or ``salt-master`` forks them.

The parent reads the options and makes the Role objects before the forks, so that the roles share their memory; each
role reads its keys after its fork. Source: docs/decisions/0017-workers-from-one-parent.md
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
    """Import modules that several roles need, before the roles are forked, so that the roles share the memory of the
    modules.
    """
    for module in _FIRST_NEEDED:
        importlib.import_module(module)


def role_program(name: str) -> RoleProgram:
    """Return the RoleProgram of the role ``name``. Raises ImportError where the packages of a master are not installed."""
    program: RoleProgram = importlib.import_module(f"saltern.{name}.main").PROGRAM
    return program


def before_fork(program: RoleProgram, start: Start) -> Start:
    """Return a copy of ``start`` (the values with which a role starts) with the Role object, so that it is made before
    the fork. Raises ConfigError.
    """
    return dataclasses.replace(start, role=new_role(program, start))


def after_fork(program: RoleProgram, start: Start) -> Callable[[], int]:
    """Return the function that runs a role in its child process after the fork; the function returns the exit code."""
    return partial(_run, program, start)


def _run(program: RoleProgram, start: Start) -> int:
    start.configure_logs(program.name)
    return program.run(program, start)
