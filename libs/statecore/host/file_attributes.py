"""What ``chattr`` sets on a file (immutable, append only, no dump), by the host's own programs lsattr and chattr."""

from __future__ import annotations

from typing import NamedTuple

from statecore.model.errors import HostError, InvocationError
from statecore.model.ports import CommandResult, ManagedHost

#: The letters that may be set; others that lsattr shows are the file system's own. Salt: modules/file.py, lsattr.
LETTERS = "aAcCdDeijPsStTu"

#: Letters of a file that nobody may write, rename or give away.
SEALS = "ai"

#: What has extents keeps them: nothing takes this letter off.
_KEPT = "e"


class Difference(NamedTuple):
    """Letters to be set, and to be taken off."""

    added: str
    removed: str


def checked(wanted: object) -> str:
    """The letters of an argument. Raises InvocationError."""
    letters = str(wanted)
    if unknown := sorted(set(letters) - set(LETTERS)):
        raise InvocationError(f"attrs are letters of {LETTERS}, not {''.join(unknown)!r}")
    return letters


def read(host: ManagedHost, name: str) -> str:
    """The letters of a file, by the host's own name of it. Raises HostError, also where the file system has none."""
    told = _run(host, "lsattr", "-d", name)
    shown = told.stdout.split(None, 1)
    if told.retcode or not shown:
        raise HostError(f"the attributes of {name} cannot be read: {_reason(told, 'lsattr')}")
    return "".join(letter for letter in shown[0] if letter in LETTERS)


def difference(found: str, wanted: str) -> Difference:
    """What is to be done to a file that has these letters. Pure."""
    new = set(wanted) | (set(found) & set(_KEPT))
    return Difference("".join(sorted(new - set(found))), "".join(sorted(set(found) - new)))


def change(host: ManagedHost, name: str, todo: Difference) -> None:
    """Sets and takes off letters. Raises HostError."""
    for sign, letters in (("-", todo.removed), ("+", todo.added)):
        if letters:
            told = _run(host, "chattr", f"{sign}{letters}", name)
            if told.retcode:
                raise HostError(f"{sign}{letters} cannot be set on {name}: {_reason(told, 'chattr')}")


def _run(host: ManagedHost, program: str, *arguments: str) -> CommandResult:
    if host.which(program) is None:
        raise HostError(f"not supported: attrs: the host has no program {program}")
    return host.run([program, *arguments])


def _reason(told: CommandResult, program: str) -> str:
    lines = (told.stderr or told.stdout).strip().splitlines()
    return lines[-1].removeprefix(f"{program}: ") if lines else f"{program} ended with {told.retcode}"
