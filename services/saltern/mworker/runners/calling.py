"""Checks a runner's arguments against its signature, and describes the signature for the error message. No I/O."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence

from statecore.loader.arguments import Parameters, misfit, unknown


def misuse(
    fun: str, function: Callable[..., object], arg: Sequence[object], kwarg: Mapping[str, object], *, given: int = 0
) -> str | None:
    """Return an error message if the arguments do not fit the function's signature, else None. ``given``: number of leading
    parameters that the caller does not pass.
    """
    signature = _signature(function, given)
    name = fun.rpartition(".")[2]
    wrong = unknown(Parameters.of(signature), kwarg)
    fault = misfit(name, signature, arg, kwarg)
    if fault is None and wrong:
        fault = f"{name}() got an unexpected keyword argument '{wrong[0].partition('=')[0]}'"
    if fault is None:
        return None
    return f"Passed invalid arguments: {fault}\n\nUsage:\n\n{usage(fun, function, given=given)}"


def usage(fun: str, function: Callable[..., object], *, given: int = 0) -> str:
    """Return the name of a runner, its parameters and its documentation as text, for the error message about wrong
    arguments. ``given``: number of leading parameters that are not shown.
    """
    signature = _signature(function, given)
    plain = [each.replace(annotation=inspect.Parameter.empty) for each in signature.parameters.values()]
    shown = signature.replace(parameters=plain, return_annotation=inspect.Signature.empty)
    return f"{fun}{shown}\n\n{inspect.getdoc(function) or ''}".rstrip()


def _signature(function: Callable[..., object], given: int) -> inspect.Signature:
    signature = inspect.signature(function)
    return signature.replace(parameters=list(signature.parameters.values())[given:])
