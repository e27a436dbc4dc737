"""The variable ``salt`` of templates: ``salt['module.function']()`` and ``salt.module.function()`` call execution
functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from statecore.model.errors import NotAvailable
from statecore.model.failed_calls import salted
from statecore.model.lazy import lazy_module
from statecore.render.jinja.variables import data_copy, plain_data

if TYPE_CHECKING:
    import jinja2
else:
    # SLS files without templates do without Jinja.
    jinja2 = lazy_module("jinja2")


class SaltFunctions(Mapping[str, Callable[..., object]]):
    """Value of the template variable ``salt``: map of "module.function" to the execution function."""

    __slots__ = ("_functions", "_plain")

    def __init__(self, functions: Mapping[str, Callable[..., object]], *, plain: bool = False) -> None:
        """Serve ``functions``. ``plain``: templates get ``plain_data`` of each result."""
        self._functions = functions
        self._plain = plain

    def __getitem__(self, name: str) -> Callable[..., object]:
        """Return the execution function called ``name``, as a closure. A failed call of it returns what Salt's function
        returns.

        For an unavailable function return an undefined value: a template can test it, and a call raises UndefinedError
        with the reason.
        """
        try:
            return _closed(name, self._functions[name], plain=self._plain)
        except NotAvailable as missing:
            return _undefined(str(missing), name)
        except KeyError:
            return _undefined(str(NotAvailable(name)), name)

    def __getattr__(self, module: str) -> object:
        if module.startswith("__"):
            raise AttributeError(module)
        return SaltModule(self, module)

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


def _closed(name: str, function: Callable[..., object], *, plain: bool) -> Callable[..., object]:
    """Return an execution function as a closure that shows ``__name__`` and ``__doc__`` alone, and returns copies: a template
    must not change options, pillar or grains by what a function returned.
    """
    own = salted(name, function)

    def call(*args: object, **kwargs: object) -> object:
        result = own(*args, **kwargs)
        if plain:
            return result if isinstance(result, jinja2.Undefined) else plain_data(result)
        return data_copy(result)

    call.__name__, call.__doc__ = own.__name__, own.__doc__
    return call


def _undefined(hint: str, name: str) -> Callable[..., object]:
    return jinja2.StrictUndefined(hint=hint, name=name)


class SaltModule:
    """Value of ``salt.cmd`` in a template: has the functions of one module as attributes."""

    __slots__ = ("_functions", "_module")

    def __init__(self, functions: SaltFunctions, module: str) -> None:
        self._functions = functions
        self._module = module

    def __getattr__(self, function: str) -> Callable[..., object]:
        if function.startswith("__"):
            raise AttributeError(function)
        return self._functions[f"{self._module}.{function}"]
