"""One loaded module of Salt: its module name, its public functions, and how to bind the functions to a Context."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType, MethodType, ModuleType
from typing import Protocol

from statecore.loader.arguments import Parameters, misfit
from statecore.loader.find import ModuleFile
from statecore.model.context import Context
from statecore.model.errors import StatecoreError
from statecore.model.ports import Function


class Unusable(StatecoreError):
    """The reason why a module cannot be used on this host, as str(): it cannot be imported, or its ``available`` or
    ``__virtual__`` refused.
    """


class Binder(Protocol):
    """Interface of a function that binds a module's function to one Context."""

    def __call__(self, function: Function, ctx: Context, /) -> Function:
        """Return the function bound to the Context: callers of the result pass only the function's own arguments."""
        ...


@dataclass(frozen=True, slots=True)
class LoadedModule:
    """One loaded module (execution, state, grains ...) that is usable on this host, built-in or a user's."""

    name: str
    source: ModuleFile
    #: Public name -> the module's function, unbound (native functions take ctx first).
    functions: Mapping[str, Function]
    binder: Binder
    #: Public function name -> outputter ("highstate" for state.apply).
    outputters: Mapping[str, str] = field(default_factory=dict)
    #: Further names of the module (Salt's ``__virtual_aliases__``).
    aliases: tuple[str, ...] = ()
    #: The module's docstring, with its indentation.
    raw_doc: str | None = None
    #: True if the functions take ctx first: native modules, except those of ``__utils__`` and ``__serializers__``.
    takes_ctx: bool = False
    #: Built-in state function with ``**kwargs`` -> names that it takes by these; others are unknown arguments.
    options: Mapping[str, frozenset[str]] = field(default_factory=dict)
    _signatures: dict[str, inspect.Signature] = field(default_factory=dict)
    _parameters: dict[str, Parameters] = field(default_factory=dict)

    @property
    def listed(self) -> list[str]:
        """Names of the functions that users may call: all but internal ones (``_name``)."""
        return [name for name in self.functions if not name.startswith("_")]

    @property
    def module_doc(self) -> str | None:
        """The module's docstring without indentation; None if the module has no docstring."""
        return None if self.raw_doc is None else inspect.cleandoc(self.raw_doc)

    @property
    def native(self) -> bool:
        """True for a built-in module, False for a user's module in Salt's style."""
        return self.source.native

    def has_name(self, name: str) -> bool:
        """Return whether ``name`` is the module's name or one of its further names (``__virtual_aliases__``)."""
        return name == self.name or name in self.aliases

    def bound(self, function: str, ctx: Context) -> Function:
        """Return the module's function called ``function``, bound to the Context. Raise KeyError if there is no such
        function.
        """
        return self.binder(self.functions[function], ctx)

    def call(self, function: str, ctx: Context, arguments: Mapping[str, object]) -> object:
        """Call the module's function with keyword arguments and return its result. The function's exceptions are passed
        on.
        """
        own = self.functions[function]
        return own(ctx, **arguments) if self.takes_ctx else self.binder(own, ctx)(**arguments)

    def parameters(self, function: str) -> Parameters:
        """Return the Parameters of the module's function called ``function``. The first parameter ``ctx`` of a built-in
        function is left out.
        """
        known = self._parameters.get(function)
        if known is None:
            own = self.functions[function]
            known = Parameters.of_function(own, int(self.takes_ctx)) or Parameters.of(self.signature(function))
            if function in self.options:
                known = known._replace(options=self.options[function])
            self._parameters[function] = known
        return known

    def misfit(self, function: str, name: str, args: Sequence[object], kwargs: Mapping[str, object]) -> str | None:
        """Return why the arguments of a call do not fit the module's function, in the words of Python's TypeError; None
        if they fit.

        ``name`` is the function's name in the message.
        """
        if self.parameters(function).fit(args, kwargs):
            return None
        return misfit(name, self.signature(function), args, kwargs)

    def signature(self, function: str) -> inspect.Signature:
        """Return the signature of the module's function called ``function``, without the context parameter."""
        known = self._signatures.get(function)
        if known is None:
            known = inspect.signature(self.functions[function])
            if self.takes_ctx:
                known = known.replace(parameters=list(known.parameters.values())[1:])
            self._signatures[function] = known
        return known


def bind_native(function: Function, ctx: Context, /) -> Function:
    """Return a built-in module's function with its first parameter ``ctx`` set. The result keeps the function's name
    and docstring.

    It is a closure, not a ``functools.partial``: a partial shows its arguments, here the Context, as ``args``.
    """

    def bound(*args: object, **kwargs: object) -> object:
        return function(ctx, *args, **kwargs)

    return functools.update_wrapper(bound, function)


def native_module(source: ModuleFile, module: ModuleType, ctx: Context | None) -> LoadedModule:
    """Return a built-in module as LoadedModule, with the functions, name and aliases that its file declares.

    A file declares a function by ``def`` or, where several modules share the function, by ``name = object.method``. In
    execution modules, a function that does not take ``ctx`` first is a helper of its file and is left out. The names
    VIRTUAL, ALIASES, OUTPUTTERS and OPTIONS of the file are read. An alias that starts with ``_`` is internal: states
    and modules call it through their Context, and no listing or job does. ``PARTS`` of a package lists submodules whose
    functions are added. Raise Unusable if the file's function ``available(ctx)`` returns a reason. If ``ctx`` is None,
    ``available`` is not called: such a module may be inspected, but its functions must not be called.
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
        and (isinstance(value, MethodType) or (isinstance(value, FunctionType) and value.__module__ == part.__name__))
        and (source.kind != "modules" or _takes_ctx(value))
    }
    for public, python_name in aliases.items():
        functions[public] = getattr(module, python_name)
    return LoadedModule(
        name=getattr(module, "VIRTUAL", source.stem),
        source=source,
        functions=functions,
        binder=bind_native,
        outputters=getattr(module, "OUTPUTTERS", {}),
        raw_doc=module.__doc__,
        takes_ctx=True,
        options={
            name: names
            for part in (module, *getattr(module, "PARTS", ()))
            for name, names in getattr(part, "OPTIONS", {}).items()
        },
    )


def _takes_ctx(function: FunctionType | MethodType) -> bool:
    """Return whether ``ctx`` is the first parameter (of a method: the first after ``self``). A decorated function without
    named parameters counts as one.
    """
    code = function.__code__
    names = code.co_varnames[int(isinstance(function, MethodType)) : code.co_argcount]
    return not names or names[0] in ("ctx", "_ctx")


def plain_module(source: ModuleFile, module: ModuleType) -> LoadedModule:
    """Return a built-in module of ``__utils__`` or ``__serializers__`` as LoadedModule. Its functions have no parameter
    ``ctx``.
    """
    functions = {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_") and isinstance(value, FunctionType) and value.__module__ == module.__name__
    }
    return LoadedModule(
        name=source.stem,
        source=source,
        functions=functions,
        binder=lambda function, ctx, /: function,
        raw_doc=module.__doc__,
    )


def argspec(signature: inspect.Signature) -> dict[str, object]:
    """Map that ``sys.argspec`` shows for a signature: args (names), varargs, kwargs (True or None) and defaults
    (values).
    """
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
