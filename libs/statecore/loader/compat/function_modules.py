"""``import salt.modules.NAME`` and ``import salt.states.NAME`` in users' modules: modules with the functions of
``__salt__`` and ``__states__``.

Custom grains import Salt's execution modules because they have no ``__salt__`` (``cmdmod._run_quiet`` in grains). The
functions can be called only while a function of the importing module runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from statecore.loader.compat.state_helpers import HELPERS
from statecore.loader.current_context import context_of
from statecore.loader.dunders import SaltTable

#: File name of Salt's module -> the module's name in ``__salt__``, if the two differ.
_VIRTUAL: Mapping[str, str] = {
    "cmdmod": "cmd",
    "configmod": "config",
    "djangomod": "django",
    "aptpkg": "pkg",
    "dpkg_lowpkg": "lowpkg",
    "groupadd": "group",
    "linux_shadow": "shadow",
    "linux_sysctl": "sysctl",
    "localemod": "locale",
    "mod_random": "random",
    "rpm_lowpkg": "lowpkg",
    "saltcheck": "saltcheck",
    "sysmod": "sys",
    "systemd_service": "service",
    "timezone": "timezone",
    "useradd": "user",
    "virtualenv_mod": "virtualenv",
    "yumpkg": "pkg",
}

#: Private function of Salt that custom modules call -> (public function with the same effect, arguments to set).
_PRIVATE: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "cmd._run_quiet": ("cmd.run", {"output_loglevel": "quiet"}),
    "cmd._run_all_quiet": ("cmd.run_all", {"output_loglevel": "quiet"}),
    "cmd._retcode_quiet": ("cmd.retcode", {"output_loglevel": "quiet"}),
}


class _FunctionModule(ModuleType):
    """A module such as ``salt.modules.cmdmod``. Its attributes are the functions of that name in ``__salt__`` or
    ``__states__``.
    """

    def __getattr__(self, function: str) -> object:
        if function.startswith("__"):
            raise AttributeError(function)
        kind, _, stem = self.__name__.removeprefix("salt.").partition(".")
        full = f"{_VIRTUAL.get(stem, stem)}.{function}"
        if kind == "states" and full in HELPERS:
            return HELPERS[full]
        wanted, fixed = _PRIVATE.get(full, (full, {}))
        if function.startswith("_") and full not in _PRIVATE:
            raise AttributeError(f"'{self.__name__}.{function}' is private to Salt")

        def call(*args: object, **kwargs: object) -> object:
            ctx = context_of(f"{self.__name__}.{function}")
            table = SaltTable(ctx.functions if kind == "modules" else ctx.states)
            return table[wanted](*args, **{**fixed, **kwargs})

        call.__name__ = function
        return call


def module(name: str) -> ModuleType:
    """Return the module object that a user's module gets for ``import salt.modules.NAME`` or ``import
    salt.states.NAME``.
    """
    return _FunctionModule(name)
