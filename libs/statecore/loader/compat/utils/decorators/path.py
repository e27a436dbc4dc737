"""``salt.utils.decorators.path`` for users' modules: decorators for functions that need programs of this machine."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from statecore.loader.compat.exceptions import CommandNotFoundError
from statecore.loader.compat.utils import path


def which(exe: str) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Return a decorator whose function raises CommandNotFoundError if the program ``exe`` is not installed on this
    machine.
    """

    def decorate(function: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(function)
        def call(*args: object, **kwargs: object) -> object:
            if path.which(exe) is None:
                raise CommandNotFoundError(f"The '{exe}' binary was not found in $PATH.")
            return function(*args, **kwargs)

        return call

    return decorate


def which_bin(exes: Sequence[str]) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Return a decorator whose function raises CommandNotFoundError if none of the programs is installed on this
    machine.
    """

    def decorate(function: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(function)
        def call(*args: object, **kwargs: object) -> object:
            if path.which_bin(exes) is None:
                quoted = [f"'{exe}'" for exe in exes]
                raise CommandNotFoundError(f"None of provided binaries({quoted}) were found in $PATH.")
            return function(*args, **kwargs)

        return call

    return decorate
