"""One loaded module: which name it serves, its public functions, and how to bind them to a context."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any, Protocol

from statecore.loader.arguments import Parameters, misfit
from statecore.loader.find import ModuleFile
from statecore.model.context import Context
from statecore.model.errors import StatecoreError
from statecore.model.ports import Function


class Unusable(StatecoreError):
    """This file cannot serve here; str() is the reason (import error, ``available`` or ``__virtual__`` said no)."""


class Binder(Protocol):
    """Makes a plain callable of a module's function for one context."""

    def __call__(self, function: Function, ctx: Context, /) -> Function:
        """The function with its context in place."""
        ...


@dataclass(frozen=True, slots=True)
class Served:
    """A module that is usable here."""

    name: str
    source: ModuleFile
    #: Public name -> the module's own function (native ones take ctx first).
    functions: Mapping[str, Function]
    binder: Binder
    #: Public function name -> outputter ("state.apply" is shown by highstate).
    outputters: Mapping[str, str] = field(default_factory=dict)
    #: Further names that it serves (Salt's ``__virtual_aliases__``).
    aliases: tuple[str, ...] = ()
    #: The docstring of the module, as it stands there.
    raw_doc: str | None = None
    #: Whether the functions take ctx first: our own do, but for those that users' modules see under Salt's names.
    takes_ctx: bool = False
    _signatures: dict[str, inspect.Signature] = field(default_factory=dict)
    _parameters: dict[str, Parameters] = field(default_factory=dict)

    @property
    def module_doc(self) -> str | None:
        """The docstring of the module."""
        return None if self.raw_doc is None else inspect.cleandoc(self.raw_doc)

    @property
    def native(self) -> bool:
        """True for our own modules, False for users' in Salt's style."""
        return self.source.native

    def answers_to(self, name: str) -> bool:
        """Whether the module is served under this name."""
        return name == self.name or name in self.aliases

    def bound(self, function: str, ctx: Context) -> Function:
        """The function ready to be called. Raises KeyError when the module has no such function."""
        return self.binder(self.functions[function], ctx)

    def call(self, function: str, ctx: Context, arguments: Mapping[str, Any]) -> Any:
        """Calls the function, which raises whatever it raises."""
        own = self.functions[function]
        return own(ctx, **arguments) if self.takes_ctx else self.binder(own, ctx)(**arguments)

    def parameters(self, function: str) -> Parameters:
        """What a caller may pass, and must."""
        known = self._parameters.get(function)
        if known is None:
            own = self.functions[function]
            known = Parameters.of_function(own, int(self.takes_ctx)) or Parameters.of(self.signature(function))
            self._parameters[function] = known
        return known

    def misfit(self, function: str, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
        """Why the function, which is called ``name``, cannot be called so; None when it can."""
        if self.parameters(function).fit(args, kwargs):
            return None
        return misfit(name, self.signature(function), args, kwargs)

    def signature(self, function: str) -> inspect.Signature:
        """What a caller may pass: the function's signature, ctx left out for native functions."""
        known = self._signatures.get(function)
        if known is None:
            known = inspect.signature(self.functions[function])
            if self.takes_ctx:
                known = known.replace(parameters=list(known.parameters.values())[1:])
            self._signatures[function] = known
        return known


def bind_native(function: Function, ctx: Context, /) -> Function:
    """The native function with ctx filled in; keeps name and docstring for messages."""
    bound = functools.partial(function, ctx)
    functools.update_wrapper(bound, function)
    return bound


def serve_native(source: ModuleFile, module: ModuleType, ctx: Context | None) -> Served:
    """Reads a native module by the protocol: VIRTUAL, PARTS, available(ctx), ALIASES, OUTPUTTERS. Raises Unusable.

    Without a context nobody asks whether it is usable: it can be looked at, not called.
    A module that is a package names in ``PARTS`` those of its modules whose functions are served with its own.
    """
    available: Callable[[Context], str | None] | None = getattr(module, "available", None)
    if available is not None and ctx is not None and (reason := available(ctx)) is not None:
        raise Unusable(reason)
    aliases: Mapping[str, str] = getattr(module, "ALIASES", {})
    hidden = set(aliases.values()) | {"available"}
    functions = {
        name: value
        for part in (module, *getattr(module, "PARTS", ()))
        for name, value in vars(part).items()
        if not name.startswith("_")
        and name not in hidden
        and isinstance(value, FunctionType)
        and value.__module__ == part.__name__
    }
    for public, python_name in aliases.items():
        functions[public] = getattr(module, python_name)
    return Served(
        name=getattr(module, "VIRTUAL", source.stem),
        source=source,
        functions=functions,
        binder=bind_native,
        outputters=getattr(module, "OUTPUTTERS", {}),
        raw_doc=module.__doc__,
        takes_ctx=True,
    )


def serve_plain(source: ModuleFile, module: ModuleType) -> Served:
    """A module of ours that takes no context: what ``__utils__`` and ``__serializers__`` name."""
    functions = {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_") and isinstance(value, FunctionType) and value.__module__ == module.__name__
    }
    return Served(
        name=source.stem,
        source=source,
        functions=functions,
        binder=lambda function, ctx, /: function,
        raw_doc=module.__doc__,
    )


def argspec(signature: inspect.Signature) -> dict[str, Any]:
    """Salt's argspec dict of a signature (sys.argspec): args, varargs, kwargs, defaults."""
    kinds = inspect.Parameter
    plain = [
        parameter
        for parameter in signature.parameters.values()
        if parameter.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)
    ]
    defaults = [parameter.default for parameter in plain if parameter.default is not kinds.empty]
    star = {parameter.kind: True for parameter in signature.parameters.values()}
    return {
        "args": [parameter.name for parameter in plain] or None,
        "defaults": defaults or None,
        "varargs": star.get(kinds.VAR_POSITIONAL),
        "kwargs": star.get(kinds.VAR_KEYWORD),
    }
