"""``salt.utils.args`` for users' modules: parses command-line arguments and inspects the signatures of functions."""

from __future__ import annotations

import fnmatch
import inspect
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypedDict

from statecore.loader.compat.utils.data import is_true
from statecore.loader.compat.utils.yaml import YAMLError, safe_load
from statecore.model.errors import InvocationError

#: ``name=value``, but not ``name==value``.
KWARG_REGEX = re.compile(r"^([^\d\W][\w.-]*)=(?!=)(.*)$", re.UNICODE)


class ArgSpec(NamedTuple):
    """Arguments of a function, in the form of Python's old ``inspect.getargspec``: (args, varargs, keywords, defaults)."""

    args: list[str]
    varargs: str | None
    keywords: str | None
    defaults: tuple[object, ...] | None


def clean_kwargs(**kwargs: object) -> dict[str, object]:
    """Return the keyword arguments whose name does not start with ``__`` (such as ``__pub_jid``) as a map."""
    return {key: value for key, value in kwargs.items() if not key.startswith("__")}


def invalid_kwargs(invalid_kwargs: Mapping[str, object], raise_exc: bool = True) -> str | None:
    """Raise InvocationError that lists the given invalid keyword arguments. Without ``raise_exc``, return its message
    instead.

    Return None if the map ``invalid_kwargs`` is empty.
    """
    if not invalid_kwargs:
        return None
    listed = ", ".join(f"{key}={value}" for key, value in invalid_kwargs.items())
    text = f"The following keyword arguments are not valid: {listed}"
    if raise_exc:
        raise InvocationError(text)
    return text


def split_input(val: object, mapper: Callable[[object], object] | None = None) -> list[object]:
    """Return a text split at commas, or a list unchanged. If ``mapper`` is given, it is applied to each item."""
    values = val if isinstance(val, list) else [part.strip() for part in str(val).split(",")]
    return [mapper(value) if mapper else value for value in values]


def parse_kwarg(string_: str) -> tuple[str | None, str | None]:
    """Return (name, value) of a text ``name=value``; (None, None) for other texts."""
    match = KWARG_REGEX.match(string_)
    return (match[1], match[2]) if match else (None, None)


def yamlify_arg(arg: object) -> object:
    """Return the value of one command-line word, read as YAML: a number, a bool, None or text.

    A word in brackets or braces is a list or map. Words with tabs or newlines, and values that are not text, are
    returned unchanged.
    """
    if not isinstance(arg, str) or arg.strip() in ("", "---", "...") or any(char in arg for char in "\t\r\n"):
        return arg
    if "_" in arg and all(char in "0123456789_" for char in arg.strip()):
        return arg
    if arg == "None":
        return None
    try:
        value = safe_load(arg)
    except (YAMLError, ValueError):
        return arg
    if "#" in arg:
        return arg if value is None or isinstance(value, str) else value
    if isinstance(value, dict):
        return value if arg.startswith("{") else arg
    if isinstance(value, list):
        return value if arg.startswith("[") else arg
    if (value == "" and arg in ("|", "!")) or (value is None and arg == "!"):
        return arg
    return value if value is None or isinstance(value, float | int | str) else arg


def parse_input(args: Iterable[object], condition: bool = True, no_parse: Sequence[str] | None = None) -> object:
    """Return command-line words as a list of values, read as YAML. Words ``name=value`` become one map at the end of
    the list.

    If ``condition`` is false, return (positional values, {name: value}). Values of the names in ``no_parse`` stay text.
    """
    positional: list[object] = []
    keywords: dict[str, object] = {}
    for arg in args:
        name, value = parse_kwarg(arg) if isinstance(arg, str) else (None, None)
        if name is not None:
            keywords[name] = value if name in (no_parse or ()) else yamlify_arg(value)
        elif isinstance(arg, dict) and arg.get("__kwarg__") is True:
            keywords |= {key: item for key, item in arg.items() if key != "__kwarg__"}
        else:
            positional.append(yamlify_arg(arg))
    return condition_input(positional, keywords) if condition else (positional, keywords)


def condition_input(args: Iterable[object], kwargs: Mapping[str, object] | None) -> list[object]:
    """Return a call's arguments as the list of a publication: integers above 64 bits as text, keyword arguments in one
    map at the end.
    """
    given = [str(arg) if isinstance(arg, int) and arg.bit_length() > 64 else arg for arg in args]
    return [*given, {"__kwarg__": True, **kwargs}] if kwargs else given


def get_function_argspec(func: Callable[..., object], is_class_method: bool | None = None) -> ArgSpec:
    """Return (args, varargs, keywords, defaults) of a function; for a decorated function those of the inner function.

    With ``is_class_method`` the first argument is left out. Raise TypeError if ``func`` is not callable.
    """
    if not callable(func):
        raise TypeError(f"{func} is not a callable")
    parameters = list(inspect.signature(inspect.unwrap(func)).parameters.values())
    named = [each for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
    return ArgSpec(
        [each.name for each in named][1 if is_class_method else 0 :],
        next((each.name for each in parameters if each.kind is each.VAR_POSITIONAL), None),
        next((each.name for each in parameters if each.kind is each.VAR_KEYWORD), None),
        tuple(each.default for each in named if each.default is not each.empty) or None,
    )


def arg_lookup(fun: Callable[..., object], aspec: ArgSpec | None = None) -> dict[str, object]:
    """Return {"args": names of the required arguments, "kwargs": {name: default}} of a function."""
    spec = aspec or get_function_argspec(fun)
    defaults = dict(zip(spec.args[::-1], (spec.defaults or ())[::-1], strict=False))
    return {"kwargs": defaults, "args": [name for name in spec.args if name not in defaults]}


class _Report(TypedDict):
    """The signature of one function as ``sys.argspec`` shows it: a map with args, defaults, varargs and kwargs."""

    args: list[str] | None
    defaults: tuple[object, ...] | None
    varargs: bool | None
    kwargs: bool | None


def argspec_report(functions: Mapping[str, Callable[..., object]], module: str = "") -> dict[str, _Report]:
    """Map of function name to signature (a map with args, defaults, varargs and kwargs), for the functions of one
    module, or those whose name matches the glob ``module``.
    """
    names = (
        fnmatch.filter(functions, module)
        if "*" in module or "." in module
        else [name for name in functions if name.startswith(f"{module}.")]
    )
    found: dict[str, _Report] = {}
    for name in names:
        spec = get_function_argspec(functions[name])
        found[name] = {
            "args": spec.args or None,
            "defaults": spec.defaults,
            "varargs": True if spec.varargs else None,
            "kwargs": True if spec.keywords else None,
        }
    return found


def shlex_split(s: object, **kwargs: bool) -> object:
    """Return the list of words that a shell would make of a text. Values that are not text are returned unchanged."""
    return shlex.split(s, **kwargs) if isinstance(s, str) else s


def test_mode(**kwargs: object) -> bool:
    """Return whether a keyword argument called ``test``, in upper or lower case, is true."""
    return any(name.lower() == "test" and is_true(value) for name, value in kwargs.items())


def parse_function(s: str) -> tuple[str | None, list[str] | None, dict[str, str] | None]:
    """Return (name, arguments, keyword arguments) of a text ``module.function(1, a=b)``. All values are text.

    Return (None, None, None) for other texts.
    """
    match = re.fullmatch(r"\s*([\w.]+)\s*\((.*)\)\s*", s, re.DOTALL)
    if match is None:
        return None, None, None
    words = shlex.shlex(match[2], posix=True)
    words.whitespace, words.whitespace_split, words.commenters = ",", True, ""
    positional: list[str] = []
    keywords: dict[str, str] = {}
    for word in (word.strip() for word in words):
        name, value = parse_kwarg(word)
        if name is not None:
            keywords[name] = value or ""
        else:
            positional.append(word)
    return match[1], positional, keywords
