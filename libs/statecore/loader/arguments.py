"""Whether a call fits a function, told before it is made, in Python's own words (which are what Salt's users see)."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType, MappingProxyType
from typing import Any, NamedTuple

_PLAIN = frozenset({"str", "int", "float", "bool", "list", "Sequence", "Mapping", "dict", "None"})

#: Flags of the code of a function with ``*args`` and with ``**kwargs``, as ``inspect`` has them.
_CO_VARARGS, _CO_VARKEYWORDS = 0x04, 0x08

#: What a list is of.
_INSIDE = re.compile(r"\[.*?\]")


def _is_positional(parameter: inspect.Parameter) -> bool:
    return parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)


def _is_named(parameter: inspect.Parameter) -> bool:
    return _is_positional(parameter) or parameter.kind is parameter.KEYWORD_ONLY


class Parameters(NamedTuple):
    """What a function takes, in the form in which every call asks for it."""

    #: Name -> whether a caller must give it.
    named: Mapping[str, bool]
    takes_any: bool
    #: Those that a caller must give.
    required: tuple[str, ...] = ()
    #: Name -> what its annotation says it is, of those that take nothing but plain data: some of ``_PLAIN``.
    plain: Mapping[str, frozenset[str]] = MappingProxyType({})

    #: Those that may be given by their place.
    by_place: tuple[str, ...] = ()
    #: Whether more may be given by place.
    takes_more: bool = False

    @classmethod
    def of(cls, signature: inspect.Signature) -> Parameters:
        """Those of a signature from which ctx is left out already."""
        parameters = signature.parameters.values()
        named = {each.name: each.default is each.empty for each in parameters if _is_named(each)}
        return cls(
            named,
            takes_any=any(each.kind is each.VAR_KEYWORD for each in parameters),
            required=tuple(name for name, must in named.items() if must),
            plain={each.name: kinds for each in parameters if (kinds := _plain(each.annotation))},
            by_place=tuple(each.name for each in parameters if _is_positional(each)),
            takes_more=any(each.kind is each.VAR_POSITIONAL for each in parameters),
        )

    @classmethod
    def of_function(cls, function: Callable[..., Any], given: int) -> Parameters | None:
        """The same of a plain function, of which the first ``given`` are filled in already; None: its signature is to be asked.

        Each job asks it of its function, and ``inspect`` is a megabyte that most of them can do without.
        """
        if type(function) is not FunctionType or vars(function):
            # What wraps another says so in an attribute.
            return None
        code, by_keyword = function.__code__, function.__kwdefaults__ or {}
        count = code.co_argcount
        if count < given:
            return None
        by_place = code.co_varnames[given:count]
        optional = len(function.__defaults__ or ())
        must = max(0, count - optional - given)
        named = {name: at < must for at, name in enumerate(by_place)}
        named |= {name: name not in by_keyword for name in code.co_varnames[count : count + code.co_kwonlyargcount]}
        annotations = function.__annotations__
        return cls(
            named,
            takes_any=bool(code.co_flags & _CO_VARKEYWORDS),
            required=tuple(name for name, needed in named.items() if needed),
            plain={name: kinds for name in named if (kinds := _plain(annotations.get(name)))},
            by_place=by_place,
            takes_more=bool(code.co_flags & _CO_VARARGS),
        )

    def fit(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        """Whether ``misfit`` has nothing to say."""
        if len(args) > len(self.by_place) and not self.takes_more:
            return False
        filled = self.by_place[: len(args)]
        return not any(name in kwargs for name in filled) and all(
            name in kwargs or name in filled for name in self.required
        )


def _plain(annotation: Any) -> frozenset[str]:
    """What an annotation (its text, as native modules have it) allows, where it allows nothing but plain data."""
    if not isinstance(annotation, str):
        return frozenset()
    kinds = frozenset(part.strip() for part in _INSIDE.sub("", annotation).split("|"))
    return kinds if kinds <= _PLAIN else frozenset()


def accepted(parameters: Parameters, kwargs: Mapping[str, Any], *, native: bool = False) -> dict[str, Any]:
    """The keyword arguments without the publication's (``__pub_*``), unless the function takes any.

    ``native``: it is one of ours, which look at nothing of the publication but who sent it (``__pub_id``).
    """
    if parameters.takes_any:
        return {key: value for key, value in kwargs.items() if not native or key == "__pub_id" or key[:6] != "__pub_"}
    return {key: value for key, value in kwargs.items() if not key.startswith("__")}


def unknown(parameters: Parameters, kwargs: Mapping[str, Any]) -> list[str]:
    """Keyword arguments that the function does not take, as ``key=value``."""
    if parameters.takes_any:
        return []
    return [f"{key}={value}" for key, value in kwargs.items() if key not in parameters.named]


def misfit(name: str, signature: inspect.Signature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
    """What is wrong with the arguments, None when they fit. Unknown keywords are ``unknown``'s to tell."""
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
