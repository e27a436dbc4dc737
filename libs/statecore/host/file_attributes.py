"""chattr attributes of a file (immutable, append only, no dump), read and set by the host's own programs lsattr and
chattr.
"""

from __future__ import annotations

from typing import NamedTuple

from statecore.model.errors import HostError, InvocationError
from statecore.model.ports import CommandResult, ManagedHost
from statecore.model.text_lines import lines_of

#: Letters that may be set. The file system sets the others that lsattr shows. Salt: salt/modules/file.py, lsattr
LETTERS = "aAcCdDeijPsStTu"

#: Letters that prevent writing, renaming and changes of the owner.
SEALS = "ai"

#: Letters that are never removed: a file with extents keeps them.
_KEPT = "e"


class Difference(NamedTuple):
    """The chattr letters ("i", "a") to set on a file, and the chattr letters to remove from it."""

    added: str
    removed: str


def checked(wanted: object) -> str:
    """Return the chattr letters ("i", "a") in a state's argument ``attrs``. Raises InvocationError for unknown letters."""
    letters = str(wanted)
    if unknown := sorted(set(letters) - set(LETTERS)):
        raise InvocationError(f"attrs are letters of {LETTERS}, not {''.join(unknown)!r}")
    return letters


def read(host: ManagedHost, name: str) -> str:
    """Return the chattr letters that are set on a file of the host.

    Raises HostError, also if the file system has no such attributes.
    """
    result = _run(host, "lsattr", "-d", name)
    shown = result.stdout.split(None, 1)
    if result.retcode or not shown:
        raise HostError(f"the attributes of {name} cannot be read: {_reason(result, 'lsattr')}")
    return "".join(letter for letter in shown[0] if letter in LETTERS)


def difference(found: str, wanted: str) -> Difference:
    """Return the chattr letters to set and to remove on a file that has the letters ``found``."""
    new = set(wanted) | (set(found) & set(_KEPT))
    return Difference("".join(sorted(new - set(found))), "".join(sorted(set(found) - new)))


def change(host: ManagedHost, name: str, todo: Difference) -> None:
    """Set and remove chattr letters of a file of the host. Raises HostError if ``chattr`` fails."""
    for sign, letters in (("-", todo.removed), ("+", todo.added)):
        if letters:
            result = _run(host, "chattr", f"{sign}{letters}", name)
            if result.retcode:
                raise HostError(f"{sign}{letters} cannot be set on {name}: {_reason(result, 'chattr')}")


def _run(host: ManagedHost, program: str, *arguments: str) -> CommandResult:
    if host.which(program) is None:
        raise HostError(f"not supported: attrs: the host has no program {program}")
    return host.run([program, *arguments])


def _reason(result: CommandResult, program: str) -> str:
    lines = lines_of((result.stderr or result.stdout).strip())
    return lines[-1].removeprefix(f"{program}: ") if lines else f"{program} ended with {result.retcode}"
