"""``salt.utils.decorators`` for users' modules: decorators for conditional, cached, timed and deprecated functions, and
for checks of arguments.
"""

from __future__ import annotations

import functools
import logging
import sys
import time
from collections.abc import Callable
from typing import Any, TypeAlias

from statecore.loader.compat.version import SaltStackVersion, __saltstack_version__
from statecore.loader.user_module import DEPENDS
from statecore.model.errors import InvocationError

log = logging.getLogger(__name__)

Function: TypeAlias = Callable[..., object]


class Depends:
    """Decorator ``@depends("library")``: the loader keeps the function only if its module has this name, or the
    argument is True.

    With ``version`` the library must have at least this version. With ``retcode`` or ``nonzero_retcode`` the argument
    is a command, which must end with this exit code. Otherwise ``fallback_function`` replaces the function, or the
    function is left out. ``loader/user_module.py`` evaluates the decorator.
    """

    def __init__(self, *dependencies: object, **kwargs: object) -> None:
        self.dependencies = dependencies
        self.params = kwargs

    def __call__(self, function: Function) -> Function:
        module = sys.modules[function.__module__]
        vars(module).setdefault(DEPENDS, []).append((function.__name__, self.dependencies, self.params))
        return function


depends = Depends


def memoize(func: Function) -> Function:
    """Decorator that caches a function's results. The key of the cache is the text of all arguments."""
    known: dict[str, object] = {}

    @functools.wraps(func)
    def remembered(*args: object, **kwargs: object) -> object:
        key = ",".join([*map(str, args), *(f"{name}={kwargs[name]}" for name in sorted(kwargs))])
        if key not in known:
            known[key] = func(*args, **kwargs)
        return known[key]

    return remembered


def timing(function: Function) -> Function:
    """Decorator that logs the seconds of each call of a function."""

    @functools.wraps(function)
    def timed(*args: object, **kwargs: object) -> object:
        started = time.monotonic()
        value = function(*args, **{name: given for name, given in kwargs.items() if not name.startswith("__")})
        log.info("Function %s took %f seconds to execute", function.__name__, time.monotonic() - started)
        return value

    return timed


def ignores_kwargs(*kwarg_names: str) -> Callable[[Function], Function]:
    """Return a decorator that removes the keyword arguments ``kwarg_names`` from each call of a function."""

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def call(*args: object, **kwargs: object) -> object:
            return function(*args, **{name: value for name, value in kwargs.items() if name not in kwarg_names})

        return call

    return decorate


def ensure_unicode_args(function: Function) -> Function:
    """Decorator without effect: in Python 3 all text is Unicode."""

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> object:
        return function(*args, **kwargs)

    return call


def _given(
    function: Function, names: tuple[str, ...], args: tuple[object, ...], kwargs: dict[str, object]
) -> list[str]:
    """Return those of the parameter names ``names`` that have a true value in a call of ``function`` with these
    arguments.
    """
    positional = zip(function.__code__.co_varnames, args, strict=False)
    return [name for name, value in (*kwargs.items(), *positional) if value and name in names]


def require_one_of(*kwarg_names: str) -> Callable[[Function], Function]:
    """Return a decorator whose function raises InvocationError unless exactly one of the arguments ``kwarg_names`` is
    given.
    """

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def call(*args: object, **kwargs: object) -> object:
            given = _given(function, kwarg_names, args, kwargs)
            if len(given) > 1:
                raise InvocationError(f"Only one of the following is allowed: {', '.join(kwarg_names)}")
            if not given:
                raise InvocationError(f"One of the following must be provided: {', '.join(kwarg_names)}")
            return function(*args, **kwargs)

        return call

    return decorate


def allow_one_of(*kwarg_names: str) -> Callable[[Function], Function]:
    """Return a decorator whose function raises InvocationError if more than one of the arguments ``kwarg_names`` is
    given.
    """

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def call(*args: object, **kwargs: object) -> object:
            if len(_given(function, kwarg_names, args, kwargs)) > 1:
                raise InvocationError(f"Only of the following is allowed: {', '.join(kwarg_names)}")
            return function(*args, **kwargs)

        return call

    return decorate


def is_deprecated(
    globals: dict[str, object], version: str, with_successor: str | None = None
) -> Callable[[Function], Function]:
    """Return a decorator that logs a warning at each call: the version that removes the function, and the function to
    use instead.
    """

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def call(*args: object, **kwargs: object) -> object:
            _warn(
                function.__name__, version, f"Use its successor '{with_successor}' instead." if with_successor else ""
            )
            return function(*args, **kwargs)

        return call

    return decorate


def with_deprecated(
    globals: dict[str, Any], version: str, with_name: str | None = None, policy: int = 1
) -> Callable[[Function], Function]:
    """Return a decorator that calls the function's older form (``_NAME``, or ``with_name``) if the configuration
    demands it.

    The options ``use_deprecated`` and ``use_superseded``, in the minion's options or its pillar, list functions as
    ``module.function``.
    """

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def call(*args: object, **kwargs: object) -> object:
            name = function.__name__
            full = f"{globals.get('__virtualname__') or globals['__name__'].rpartition('.')[2]}.{name}"
            opts = globals.get("__opts__") or {}
            option = "use_superseded" if policy == 2 else "use_deprecated"
            named = full in (opts.get(option) or (opts.get("pillar") or {}).get(option) or ())
            if named is (policy == 2):
                return function(*args, **kwargs)
            old = globals.get(with_name or f"_{name}")
            if old is None:
                raise InvocationError(f"'{full}' has no older form '{with_name or f'_{name}'}'")
            _warn(name, version, "The older form is called.")
            return old(*args, **kwargs)

        return call

    return decorate


def _warn(name: str, version: str, more: str) -> None:
    until = SaltStackVersion.from_name(version) if not version[:1].isdecimal() else SaltStackVersion.parse(version)
    gone = (
        "is deprecated and its lifetime has expired"
        if until <= __saltstack_version__
        else f"is deprecated and will expire in version '{version}'"
    )
    log.warning("The function '%s' %s. %s", name, gone, more)
