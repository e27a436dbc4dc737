"""Checks whether the arguments of a call fit the parameters of an execution or state function, before the call.

The messages are those of Python's TypeError, because Salt shows these to its users.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType, MappingProxyType
from typing import NamedTuple

_PLAIN = frozenset({"str", "int", "float", "bool", "list", "Sequence", "Mapping", "dict", "None"})

#: Flags of code objects of functions with ``*args`` and with ``**kwargs``: ``inspect.CO_VARARGS``, ``CO_VARKEYWORDS``.
_CO_VARARGS, _CO_VARKEYWORDS = 0x04, 0x08

#: Matches the item type of a container's annotation.
_INSIDE = re.compile(r"\[.*?\]")


def _is_positional(parameter: inspect.Parameter) -> bool:
    return parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)


def _is_named(parameter: inspect.Parameter) -> bool:
    return _is_positional(parameter) or parameter.kind is parameter.KEYWORD_ONLY


class Parameters(NamedTuple):
    """The parameters of one function of a module, without the context parameter, prepared for fast checks of calls."""

    #: Parameter name -> True if it is required.
    named: Mapping[str, bool]
    takes_any: bool
    #: Names of the required parameters.
    required: tuple[str, ...] = ()
    #: Parameter name -> type names of its annotation (from ``_PLAIN``); only parameters that take plain data.
    plain: Mapping[str, frozenset[str]] = MappingProxyType({})

    #: Names of the parameters that may be passed positionally.
    positional: tuple[str, ...] = ()
    #: True if the function has ``*args``.
    takes_more: bool = False
    #: Names that ``**kwargs`` of a state function takes; None: any name, or there is no ``**kwargs``.
    options: frozenset[str] | None = None

    def takes(self, name: str) -> bool:
        """Return whether the function has an argument of this name, as a parameter or through ``**kwargs``."""
        return name in self.named or (self.takes_any and (self.options is None or name in self.options))

    @classmethod
    def of(cls, signature: inspect.Signature) -> Parameters:
        """Return the Parameters (names, required ones, ``*args``, ``**kwargs``) of a function's signature. The
        signature must no longer contain the context parameter ``ctx``.
        """
        parameters = signature.parameters.values()
        named = {each.name: each.default is each.empty for each in parameters if _is_named(each)}
        return cls(
            named,
            takes_any=any(each.kind is each.VAR_KEYWORD for each in parameters),
            required=tuple(name for name, must in named.items() if must),
            plain={each.name: kinds for each in parameters if (kinds := _plain(each.annotation))},
            positional=tuple(each.name for each in parameters if _is_positional(each)),
            takes_more=any(each.kind is each.VAR_POSITIONAL for each in parameters),
        )

    @classmethod
    def of_function(cls, function: Callable[..., object], given: int) -> Parameters | None:
        """Return the Parameters of a plain function without its first ``given`` parameters; None if only ``inspect``
        can read the function.

        Each job needs the parameters of its function. Importing ``inspect`` costs about 1 MB of memory, which most jobs
        avoid here.
        """
        if type(function) is not FunctionType or vars(function):
            # A wrapper has attributes (``__wrapped__``); ``inspect`` has to follow it.
            return None
        code, by_keyword = function.__code__, function.__kwdefaults__ or {}
        count = code.co_argcount
        if count < given:
            return None
        positional = code.co_varnames[given:count]
        optional = len(function.__defaults__ or ())
        must = max(0, count - optional - given)
        named = {name: at < must for at, name in enumerate(positional)}
        named |= {name: name not in by_keyword for name in code.co_varnames[count : count + code.co_kwonlyargcount]}
        annotations = function.__annotations__
        return cls(
            named,
            takes_any=bool(code.co_flags & _CO_VARKEYWORDS),
            required=tuple(name for name, needed in named.items() if needed),
            plain={name: kinds for name in named if (kinds := _plain(annotations.get(name)))},
            positional=positional,
            takes_more=bool(code.co_flags & _CO_VARARGS),
        )

    def fit(self, args: Sequence[object], kwargs: Mapping[str, object]) -> bool:
        """Return whether the arguments of a call fit the function.

        They fit if no required argument is missing, no argument is given twice, and there are not too many positional
        arguments.
        """
        if len(args) > len(self.positional) and not self.takes_more:
            return False
        filled = self.positional[: len(args)]
        return not any(name in kwargs for name in filled) and all(
            name in kwargs or name in filled for name in self.required
        )


def names_of(function: Callable[..., object]) -> frozenset[str]:
    """Return the names of a built-in function's parameters without its context parameter."""
    code = function.__code__
    return frozenset(code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount])


def _plain(annotation: object) -> frozenset[str]:
    """Return the names of the types in a parameter's annotation, such as {"str", "None"} for "str | None". The set is
    empty if the annotation has a type that is not plain data.
    """
    if not isinstance(annotation, str):
        return frozenset()
    kinds = frozenset(part.strip() for part in _INSIDE.sub("", annotation).split("|"))
    return kinds if kinds <= _PLAIN else frozenset()


def accepted(parameters: Parameters, kwargs: Mapping[str, object], *, native: bool = False) -> dict[str, object]:
    """Return the keyword arguments of a call that the function accepts; keys that start with ``__`` are left out.

    If the function has ``**kwargs``, these keys are passed on as well. For a built-in function (``native``) the keys of
    the publication (``__pub_*``) are left out except ``__pub_id``, the minion id of the sender.
    """
    if parameters.takes_any:
        return {key: value for key, value in kwargs.items() if not native or key == "__pub_id" or key[:6] != "__pub_"}
    return {key: value for key, value in kwargs.items() if not key.startswith("__")}


def unknown(parameters: Parameters, kwargs: Mapping[str, object]) -> list[str]:
    """Return the keyword arguments of a call that the function does not have, each as the text ``key=value``."""
    if parameters.takes_any:
        return []
    return [f"{key}={value}" for key, value in kwargs.items() if key not in parameters.named]


def misfit(name: str, signature: inspect.Signature, args: Sequence[object], kwargs: Mapping[str, object]) -> str | None:
    """Return the message of Python's TypeError for a call whose arguments do not fit the function; None if they fit.

    ``name`` is the function's name in the message. Unknown keyword arguments are not reported.
    """
    parameters = list(signature.parameters.values())
    positional = [each for each in parameters if _is_positional(each)]
    star = any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in parameters)
    if len(args) > len(positional) and not star:
        return _too_many(name, positional, len(args))
    filled = {each.name for each in positional[: len(args)]}
    for key in kwargs:
        if key in filled:
            return f"{name}() got multiple values for argument '{key}'"
    missing = [
        each
        for each in parameters
        if each.default is inspect.Parameter.empty
        and each.kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        and each.name not in filled
        and each.name not in kwargs
    ]
    if not missing:
        return None
    kind = "positional" if _is_positional(missing[0]) else "keyword-only"
    plural = "" if len(missing) == 1 else "s"
    return (
        f"{name}() missing {len(missing)} required {kind} argument{plural}: {_listed([each.name for each in missing])}"
    )


def _too_many(name: str, positional: Sequence[inspect.Parameter], given: int) -> str:
    optional = any(each.default is not inspect.Parameter.empty for each in positional)
    least = sum(each.default is inspect.Parameter.empty for each in positional)
    takes = f"from {least} to {len(positional)}" if optional else str(len(positional))
    plural = "" if takes == "1" else "s"
    return f"{name}() takes {takes} positional argument{plural} but {given} {'was' if given == 1 else 'were'} given"


def _listed(names: Sequence[str]) -> str:
    quoted = [f"'{name}'" for name in names]
    if len(quoted) < 3:
        return " and ".join(quoted)
    return ", ".join(quoted[:-1]) + f", and {quoted[-1]}"
