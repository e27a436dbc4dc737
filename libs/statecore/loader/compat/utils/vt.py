"""``salt.utils.vt`` for users' modules: a module that needs a terminal for a program gets an error."""

from __future__ import annotations


class TerminalException(Exception):
    """Error: a module tried to run a program in a terminal, which is not possible here."""


class Terminal:
    """Salt's terminal, which does not exist here: the constructor raises TerminalException."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise TerminalException("no terminal can be opened here: run the program with __salt__['cmd.run_all']")
