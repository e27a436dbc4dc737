"""Slots: arguments that are computed when the state runs (``__slot__:salt:test.echo(x)``).

A slot is a whole text argument, or a text at most two levels deep in a list or map argument. ``.key.key`` behind the
call picks a part of the result; ``~ text`` appends to a text result. A malformed slot is left unchanged and logged, as
in Salt.

Source: docs/state-system.md#slots
"""

from __future__ import annotations

import ast
import logging
import re
from collections.abc import Mapping

from statecore.model.context import Context

log = logging.getLogger(__name__)

_PREFIX = "__slot__:"
_CALL = re.compile(
    r"^__slot__:salt:(?P<fun>[\w.]+)\((?P<args>.*)\)\s*(?P<path>(?:\.[\w-]+)*)\s*(?:~(?P<append>.*))?$", re.DOTALL
)
#: One argument of a slot's call. Commas outside quotes and brackets separate arguments.
_ARGUMENT = re.compile(r"""((?:[^,"'\[\](){}]|"[^"]*"|'[^']*'|[\[({][^\])}]*[\])}])+)""")


def resolve(args: list[object], kwargs: Mapping[str, object], ctx: Context) -> tuple[list[object], dict[str, object]]:
    """Return a state's arguments with each slot (``__slot__:salt:...``) replaced by the result of its function.

    Raises the errors of that function.
    """
    return [_value(item, ctx) for item in args], {key: _value(item, ctx) for key, item in kwargs.items()}


def _value(value: object, ctx: Context, depth: int = 0) -> object:
    if isinstance(value, str):
        return _slot(value, ctx) if value.startswith(_PREFIX) else value
    if isinstance(value, list) and depth < 2:
        return [_value(item, ctx, depth + 1) for item in value]
    if isinstance(value, dict) and depth < 2:
        return {key: _value(item, ctx, depth + 1) for key, item in value.items()}
    return value


def _slot(text: str, ctx: Context) -> object:
    match = _CALL.match(text)
    if match is None or not ctx.may(match["fun"]) or match["fun"] not in ctx.functions:
        log.warning("Malformed slot: %s", text)
        return text
    args, kwargs = _arguments(match["args"])
    result = ctx.call(match["fun"], *args, **kwargs)
    for key in filter(None, match["path"].split(".")):
        result = result.get(key) if isinstance(result, Mapping) else None
    if match["append"] is not None:
        if isinstance(result, str):
            return result + _unquoted(match["append"].strip())
        log.error("Ignoring slot append, slot result is not a string: %s", text)
    return result


def _arguments(text: str) -> tuple[list[object], dict[str, object]]:
    args: list[object] = []
    kwargs: dict[str, object] = {}
    for part in (found.strip() for found in _ARGUMENT.findall(text)):
        key, equals, value = part.partition("=")
        if equals and key.strip().isidentifier():
            kwargs[key.strip()] = _literal(value.strip())
        elif part:
            args.append(_literal(part))
    return args, kwargs


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'" else text


def _literal(text: str) -> object:
    if text[:1] in "[{(":
        try:
            return ast.literal_eval(text)
        except (ValueError, SyntaxError):
            return text
    return _unquoted(text)
