"""``salt.utils.functools`` for users' modules: copies of functions, and calls with arguments of states."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterable
from typing import TypedDict

from statecore.model.errors import InvocationError


def namespaced_function(
    function: types.FunctionType, global_dict: dict[str, object], *_: object, **__: object
) -> types.FunctionType:
    """Return a copy of the function that uses ``global_dict``, another module's globals.

    Global names that ``global_dict`` lacks are copied into it from the function's own module.
    """
    for key, value in function.__globals__.items():
        global_dict.setdefault(key, value)
    made = types.FunctionType(
        function.__code__, global_dict, function.__name__, function.__defaults__, function.__closure__
    )
    made.__dict__.update(function.__dict__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def alias_function(fun: types.FunctionType, name: str, doc: str | None = None) -> types.FunctionType:
    """Return a copy of the function with another name, and with the docstring ``doc`` or one that names the original
    function.
    """
    made = types.FunctionType(fun.__code__, fun.__globals__, str(name), fun.__defaults__, fun.__closure__)
    made.__dict__.update(fun.__dict__)
    made.__kwdefaults__ = fun.__kwdefaults__
    made.__doc__ = doc or f"\nThis function is an alias of ``{fun.__name__}``.\n{fun.__doc__ or ''}"
    return made


class _Parsed(TypedDict):
    """The arguments of a call as a map: "args" (list) and "kwargs" (map), as ``parse_function`` returns them."""

    args: list[object]
    kwargs: dict[str, object]


def parse_function(function_arguments: Iterable[object]) -> _Parsed:
    """Return {"args": [...], "kwargs": {...}} for a list of arguments. Maps in the list are keyword arguments."""
    given = list(function_arguments)
    keywords: dict[str, object] = {}
    for each in given:
        if isinstance(each, dict):
            keywords |= each
    return {"args": [each for each in given if not isinstance(each, dict)], "kwargs": keywords}


def call_function(salt_function: Callable[..., object], *args: object, **kwargs: object) -> object:
    """Call a function and return its result. Maps among ``args`` are keyword arguments of the function.

    Raise InvocationError if the arguments do not fit the function, for example if a required one is missing.
    """
    parsed = parse_function(args)
    keywords = {**parsed["kwargs"], **kwargs}
    try:
        inspect.signature(salt_function).bind(*parsed["args"], **keywords)
    except TypeError as error:
        missing = [
            each.name
            for each in list(inspect.signature(salt_function).parameters.values())[len(parsed["args"]) :]
            if each.default is each.empty
            and each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
            and each.name not in keywords
        ]
        raise InvocationError(f"Missing arguments: {', '.join(missing)}" if missing else str(error)) from error
    return salt_function(*parsed["args"], **keywords)
