"""The variable ``salt`` of templates: ``salt['module.function']()`` and ``salt.module.function()`` call execution
functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from statecore.model.errors import NotAvailable
from statecore.model.failed_calls import SaltedFunction
from statecore.model.lazy import lazy_module

if TYPE_CHECKING:
    import jinja2
else:
    # SLS files without templates do without Jinja.
    jinja2 = lazy_module("jinja2")


class SaltFunctions(Mapping[str, Callable[..., object]]):
    """Value of the template variable ``salt``: map of "module.function" to the execution function."""

    def __init__(self, functions: Mapping[str, Callable[..., object]]) -> None:
        self._functions = functions

    def __getitem__(self, name: str) -> Callable[..., object]:
        """Return the execution function called ``name``. A failed call of it returns what Salt's function returns.

        For an unavailable function return an undefined value: a template can test it, and a call raises UndefinedError
        with the reason.
        """
        try:
            return SaltedFunction(name, self._functions[name])
        except NotAvailable as missing:
            return _undefined(str(missing), name)
        except KeyError:
            return _undefined(str(NotAvailable(name)), name)

    def __getattr__(self, module: str) -> object:
        if module.startswith("__"):
            raise AttributeError(module)
        return _TemplateModule(self, module)

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def __contains__(self, name: object) -> bool:
        try:
            return name in self._functions and self._functions[str(name)] is not None
        except (KeyError, NotAvailable):
            return False

    def get(self, name: str, default: Any = None) -> Any:
        """Return the execution function called ``name``, or ``default`` if it is not available."""
        if name not in self:
            return default
        return self[name]


def _undefined(hint: str, name: str) -> Callable[..., object]:
    return jinja2.StrictUndefined(hint=hint, name=name)


class _TemplateModule:
    def __init__(self, functions: SaltFunctions, module: str) -> None:
        self._functions = functions
        self._module = module

    def __getattr__(self, function: str) -> Callable[..., object]:
        if function.startswith("__"):
            raise AttributeError(function)
        return self._functions[f"{self._module}.{function}"]
