"""Utilities for SLS files: merging, rendering and serialising values, looking for files (Salt's ``slsutil`` module)."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Callable, Mapping
from typing import Any

import yaml

from statecore.context import Context
from statecore.errors import CommandError, InvocationError
from statecore.values import merge as _merge
from statecore.values import update as _update

_PARSERS: Mapping[str, Callable[[str], Any]] = {"yaml": yaml.safe_load, "json": json.loads, "text": lambda text: text}

_SERIALISERS: Mapping[str, Callable[..., str]] = {
    "yaml": lambda value, **options: yaml.safe_dump(value, **{"default_flow_style": False, **options}),
    "json": lambda value, **options: json.dumps(value, **options),
}


def update(
    ctx: Context,
    dest: Mapping[str, Any],
    upd: Mapping[str, Any],
    recursive_update: bool = True,
    merge_lists: bool = False,
) -> Any:
    """``upd`` merged over ``dest``."""
    return _update(dict(dest), upd, lists=merge_lists) if recursive_update else {**dest, **upd}


def merge(
    ctx: Context, obj_a: Any, obj_b: Any, strategy: str = "smart", renderer: str = "yaml", merge_lists: bool = False
) -> Any:
    """Two dicts as one: strategy recurse (smart), overwrite, aggregate, list or none.

    CLI Example:

        salt '*' slsutil.merge '{foo: Foo}' '{bar: Bar}'
    """
    return _merge(obj_a, obj_b, strategy, lists=merge_lists)


def merge_all(
    ctx: Context, lst: list[Any], strategy: str = "smart", renderer: str = "yaml", merge_lists: bool = False
) -> Any:
    """All dicts of a list as one, the later ones winning."""
    result: Any = {}
    for each in lst:
        result = _merge(result, each, strategy, lists=merge_lists)
    return result


def renderer(
    ctx: Context,
    path: str | None = None,
    string: str | None = None,
    default_renderer: str = "jinja|yaml",
    **kwargs: Any,
) -> Any:
    """A file (``salt://`` or of the host) or a string, rendered; further keyword arguments are names in the template.

    Raises InvocationError without exactly one of both, CommandError for a file that is not there.
    """
    if (path is None) == (string is None):
        raise InvocationError("Must pass one of 'path' or 'string'")
    saltenv = kwargs.pop("saltenv", ctx.saltenv)
    text = string if string is not None else _read(ctx, str(path), saltenv)
    names = {key: value for key, value in kwargs.items() if not key.startswith("__")}
    engines = default_renderer
    if text.startswith("#!"):
        first, _, text = text.partition("\n")
        engines = first[2:].strip()
    result: Any = text
    for engine in engines.split("|"):
        if engine in _PARSERS:
            result = _PARSERS[engine](result)
        else:
            result = ctx.templates.render(result, engine, names, saltenv=saltenv, source=str(path or ""))
    return result


def _read(ctx: Context, path: str, saltenv: str) -> str:
    if path.startswith("salt://"):
        cached = ctx.files.fetch(path.removeprefix("salt://"), saltenv)
        if cached is None:
            raise CommandError(f"No file {path} in environment '{saltenv}'")
        return cached.read_text(encoding="utf-8")
    try:
        return ctx.host.path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise CommandError(f"Cannot read {path}: {error.strerror}") from error


def serialize(ctx: Context, serializer: str, obj: Any, **mod_kwargs: Any) -> str:
    """A value as text, by "yaml" or "json"."""
    options = {key: value for key, value in mod_kwargs.items() if not key.startswith("__")}
    text: str = _of(_SERIALISERS, serializer)(obj, **options)
    return text


def deserialize(ctx: Context, serializer: str, stream_or_string: str, **mod_kwargs: Any) -> Any:
    """The value a text holds, by "yaml" or "json"."""
    return _of(_PARSERS, serializer)(stream_or_string)


def _of(table: Mapping[str, Callable[..., Any]], name: str) -> Callable[..., Any]:
    if name not in table:
        raise InvocationError(f"Unknown serializer '{name}'; there are {', '.join(sorted(table))}")
    return table[name]


def boolstr(ctx: Context, value: Any, true: str = "true", false: str = "false") -> str:
    """One of two texts, by whether the value means yes."""
    yes = value.strip().lower() in ("true", "yes", "on", "1") if isinstance(value, str) else bool(value)
    return true if yes else false


def file_exists(ctx: Context, path: str, saltenv: str = "base") -> bool:
    """Whether the state tree has this file."""
    return path in ctx.files.paths(saltenv, path)


def dir_exists(ctx: Context, path: str, saltenv: str = "base") -> bool:
    """Whether the state tree has this directory."""
    return path in ctx.files.dirs(saltenv, path)


def path_exists(ctx: Context, path: str, saltenv: str = "base") -> bool:
    """Whether the state tree has this file or directory."""
    return file_exists(ctx, path, saltenv) or dir_exists(ctx, path, saltenv)


def findup(ctx: Context, startpath: str, filenames: str | list[str], saltenv: str = "base") -> str:
    """The first of these files found in a directory of the state tree or above it. Raises CommandError when none is."""
    names = [filenames] if isinstance(filenames, str) else list(filenames)
    here = startpath.strip("/")
    while True:
        for name in names:
            candidate = posixpath.normpath(posixpath.join(here, name))
            if path_exists(ctx, candidate, saltenv):
                return candidate
        if not here:
            raise CommandError(f"File path(s) not found in {startpath} or above: {', '.join(names)}")
        here = posixpath.dirname(here)
