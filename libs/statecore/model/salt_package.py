"""Makes our compatibility package importable as ``salt`` in processes that run users' code.

Users' modules find the package by their own ``__import__`` (``loader/salt_imports.py``). Libraries that these modules
import, and SLS files in Python, use Python's own import. ``install`` adds import finders for them. ``salt`` is found
last, so it never hides a Salt that is installed for the same Python. The package ``loader/compat`` itself is imported
with the first ``import salt``.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import importlib.abc

_COMPAT = "statecore.loader.compat"

#: Packages of Salt whose modules give access to ``__salt__`` and ``__states__`` by name (``salt.modules.cmdmod``).
_FUNCTION_PACKAGES = ("salt.modules.", "salt.states.")

#: Modules of Salt that an extension has taken over -> the extension's module, which is used if it is installed.
_MOVED: Mapping[str, str] = {"salt.utils.dockermod": "saltext.dockermod.utils.dockermod"}

#: Salt's further methods of loggers (``log.trace``) -> their level.
_LEVELS: Mapping[str, int] = {"garbage": 1, "trace": 5, "profile": 15}


class SaltFinder:
    """Last import finder: finds ``salt``, which is our compatibility package, if no Salt is installed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the import spec of ``salt``; None for all other modules."""
        return _spec(fullname) if fullname == "salt" else None


class _InnerFinder:
    """First import finder: finds the modules of ``salt``, if ``salt`` is our compatibility package.

    Python's own finder would load these files a second time, because it searches the package's directory.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the import spec of a module of ``salt``; None for all other modules.

        Raise ModuleNotFoundError with the reason if our package does not have the module.
        """
        ours = fullname.startswith("salt.") and getattr(sys.modules.get("salt"), "__name__", "") == _COMPAT
        return _spec(fullname) if ours else None


def _spec(name: str) -> importlib.machinery.ModuleSpec:
    found = module(name)
    # Python's import needs no more of a loader; importlib.abc, its base class, costs memory.
    loader = cast("importlib.abc.Loader", _Existing(found))
    return importlib.machinery.ModuleSpec(name, loader, is_package=hasattr(found, "__path__"))


class _Existing:
    """Import loader for a module that is already loaded under another name: the import adds the new name to
    sys.modules.
    """

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._spec = module.__spec__

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Return the module that is already loaded under another name."""
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the module's own ``__spec__``, which Python's import has replaced. The module's code is not run
        again.
        """
        module.__spec__ = self._spec


def install() -> None:
    """Add the import finders of ``salt`` and Salt's log levels, unless they are there. Call before users' code runs."""
    for name, level in _LEVELS.items():
        if not hasattr(logging.Logger, name):
            logging.addLevelName(level, name.upper())
            setattr(logging.Logger, name, _log_method(level))
    if not any(isinstance(finder, SaltFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _InnerFinder())
        sys.meta_path.append(SaltFinder())


def _log_method(level: int) -> Callable[..., None]:
    def write(logger: logging.Logger, message: object, *args: object, **kwargs: Any) -> None:
        # The line in the log names the caller, not this function.
        logger.log(level, message, *args, **{"stacklevel": 2, **kwargs})

    return write


def module(name: str) -> ModuleType:
    """Return the module of our compatibility package that stands for Salt's module ``name`` ("salt.utils.files").

    Raise ModuleNotFoundError with the reason if our package does not have it.
    """
    for package in _FUNCTION_PACKAGES:
        if name.startswith(package):
            loaded: ModuleType = importlib.import_module(f"{_COMPAT}.function_modules").module(name)
            setattr(module(package[:-1]), name.removeprefix(package), loaded)
            return loaded
    for start, moved in _MOVED.items():
        if name == start or name.startswith(f"{start}."):
            found = _moved(name, moved + name.removeprefix(start).removesuffix(".__init__"))
            outer, _, inner = name.removesuffix(".__init__").rpartition(".")
            setattr(module(outer), inner, found)
            return found
    ours = _COMPAT + name.removeprefix("salt")
    if importlib.util.find_spec(ours.rpartition(".")[0]) is None or importlib.util.find_spec(ours) is None:
        refused = importlib.import_module(f"{_COMPAT}.refused").REFUSED
        reason = next((why for start, why in refused.items() if name == start or name.startswith(f"{start}.")), "")
        text = f"'{name}' is not part of the compatibility package for Salt modules"
        raise ModuleNotFoundError(text + (f": {reason}" if reason else ""), name=name)
    found = importlib.import_module(ours)
    # A missing attribute is reported under Salt's module name, which the user's module has imported.
    vars(found).setdefault("__getattr__", partial(_no_attribute, name))
    return found


def _moved(name: str, moved: str) -> ModuleType:
    try:
        return importlib.import_module(moved)
    except ModuleNotFoundError as missing:
        if missing.name is None or not f"{moved}.".startswith(f"{missing.name}."):
            raise
        raise ModuleNotFoundError(f"'{name}' is in the extension {moved}, which is not installed", name=name) from None


def _no_attribute(module: str, name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(f"'{module}.{name}' is not part of the compatibility package for Salt modules")
