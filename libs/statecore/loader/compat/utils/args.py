"""``salt.utils.args``."""

from __future__ import annotations

import fnmatch
import inspect
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from statecore.loader.compat.utils.data import is_true
from statecore.loader.compat.utils.yaml import YAMLError, safe_load
from statecore.model.errors import InvocationError

#: ``name=value``, but not ``name==value``.
KWARG_REGEX = re.compile(r"^([^\d\W][\w.-]*)=(?!=)(.*)$", re.UNICODE)


class ArgSpec(NamedTuple):
    """What a function takes."""

    args: list[str]
    varargs: str | None
    keywords: str | None
    defaults: tuple[Any, ...] | None


def clean_kwargs(**kwargs: Any) -> dict[str, Any]:
    """Keyword arguments without the publication's."""
    return {key: value for key, value in kwargs.items() if not key.startswith("__")}


def invalid_kwargs(invalid_kwargs: Mapping[str, Any], raise_exc: bool = True) -> str | None:
    """Says that arguments are not valid: raises InvocationError, or returns the sentence."""
    if not invalid_kwargs:
        return None
    listed = ", ".join(f"{key}={value}" for key, value in invalid_kwargs.items())
    text = f"The following keyword arguments are not valid: {listed}"
    if raise_exc:
        raise InvocationError(text)
    return text


def split_input(val: Any, mapper: Callable[[Any], Any] | None = None) -> list[Any]:
    """A list of a list, or of text with commas; each value through ``mapper``."""
    values = val if isinstance(val, list) else [part.strip() for part in str(val).split(",")]
    return [mapper(value) if mapper else value for value in values]


def parse_kwarg(string_: str) -> tuple[str | None, str | None]:
    """Name and value of ``name=value``, (None, None) for other texts."""
    match = KWARG_REGEX.match(string_)
    return (match[1], match[2]) if match else (None, None)


def yamlify_arg(arg: Any) -> Any:
    """What a word of a command line means: a scalar, or a map or list where its brackets say so."""
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


def parse_input(args: Iterable[Any], condition: bool = True, no_parse: Sequence[str] | None = None) -> Any:
    """Words of a command line as a list whose last entry, where there are any, holds the keyword arguments.

    Without ``condition``: (positional, keywords). Of the names in ``no_parse`` values stay text.
    """
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    for arg in args:
        name, value = parse_kwarg(arg) if isinstance(arg, str) else (None, None)
        if name is not None:
            keywords[name] = value if name in (no_parse or ()) else yamlify_arg(value)
        elif isinstance(arg, dict) and arg.get("__kwarg__") is True:
            keywords |= {key: item for key, item in arg.items() if key != "__kwarg__"}
        else:
            positional.append(yamlify_arg(arg))
    return condition_input(positional, keywords) if condition else (positional, keywords)


def condition_input(args: Iterable[Any], kwargs: Mapping[str, Any] | None) -> list[Any]:
    """Arguments as a publication carries them: large numbers as text, keywords in a map of their own."""
    given = [str(arg) if isinstance(arg, int) and arg.bit_length() > 64 else arg for arg in args]
    return [*given, {"__kwarg__": True, **kwargs}] if kwargs else given


def get_function_argspec(func: Callable[..., Any], is_class_method: bool | None = None) -> ArgSpec:
    """What a function takes; of a decorated one, the function itself. Raises TypeError for what cannot be called."""
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


def arg_lookup(fun: Callable[..., Any], aspec: ArgSpec | None = None) -> dict[str, Any]:
    """``{"args": names that must be given, "kwargs": name -> default}`` of a function."""
    spec = aspec or get_function_argspec(fun)
    defaults = dict(zip(spec.args[::-1], (spec.defaults or ())[::-1], strict=False))
    return {"kwargs": defaults, "args": [name for name in spec.args if name not in defaults]}


def argspec_report(functions: Mapping[str, Callable[..., Any]], module: str = "") -> dict[str, dict[str, Any]]:
    """Name -> signature, of the functions of a module or those that match a glob."""
    names = (
        fnmatch.filter(functions, module)
        if "*" in module or "." in module
        else [name for name in functions if name.startswith(f"{module}.")]
    )
    found = {}
    for name in names:
        spec = get_function_argspec(functions[name])
        found[name] = {
            "args": spec.args or None,
            "defaults": spec.defaults,
            "varargs": True if spec.varargs else None,
            "kwargs": True if spec.keywords else None,
        }
    return found


def shlex_split(s: Any, **kwargs: Any) -> Any:
    """The words of a text, as a shell has them; what is no text stays as it is."""
    return shlex.split(s, **kwargs) if isinstance(s, str) else s


def test_mode(**kwargs: Any) -> bool:
    """Whether an argument ``test``, in any case, is true."""
    return any(name.lower() == "test" and is_true(value) for name, value in kwargs.items())


def parse_function(s: str) -> tuple[str | None, list[str] | None, dict[str, str] | None]:
    """Name, arguments and keywords of ``module.function(1, a=b)``, values as text; three times None for other texts."""
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
