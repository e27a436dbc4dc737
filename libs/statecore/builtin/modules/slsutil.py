"""Utilities for SLS files, which merge, render and serialize values and find files: Salt's ``slsutil`` execution
module.
"""

from __future__ import annotations

import configparser
import io
import json
import posixpath
import textwrap
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgpack

from statecore.model import tree_url, yaml
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.lazy import lazy_module
from statecore.model.values import STRATEGIES, is_yamlex
from statecore.model.values import merge as _merge
from statecore.model.values import update as _update

if TYPE_CHECKING:
    from statecore.loader.compat.serializers import yamlex
else:
    yamlex = lazy_module("statecore.loader.compat.serializers.yamlex")  # few trees use it

_TITLE = "THIS FILE IS MANAGED BY SALT - DO NOT EDIT"
_TEXT = (
    "The contents of this file are managed by Salt. Any changes to this file may be overwritten automatically and without"
    " warning."
)


def update(
    ctx: Context,
    dest: object,
    upd: Mapping[str, object],
    recursive_update: bool = True,
    merge_lists: bool = False,
) -> object:
    """Merge the map ``upd`` into the map ``dest``, which is changed and returned. Raise InvocationError for values that
    are not maps.

    CLI Example:

        salt '*' slsutil.update '{foo: Foo}' '{bar: Bar}'
    """
    if not isinstance(dest, Mapping) or not isinstance(upd, Mapping):
        raise InvocationError("Cannot update using non-dict types")
    if recursive_update:
        return _update(dest, upd, lists=merge_lists)  # type: ignore[arg-type]
    dest.update(upd)  # type: ignore[attr-defined]
    return dest


def merge(
    ctx: Context,
    obj_a: object,
    obj_b: object,
    strategy: str = "smart",
    renderer: str = "yaml",
    merge_lists: bool = False,
) -> object:
    """Return two maps merged into a new map. ``strategy`` is recurse (as smart), overwrite, aggregate, list or none;
    an unknown strategy counts as recurse.

    CLI Example:

        salt '*' slsutil.merge '{foo: Foo}' '{bar: Bar}'
    """
    if strategy == "smart" and is_yamlex(renderer):
        strategy = "aggregate"
    # Salt merges by its usual strategy where it does not know the one that is named.
    return _merge(obj_a, obj_b, strategy if strategy in STRATEGIES else "recurse", lists=merge_lists)


def merge_all(
    ctx: Context, lst: list[object], strategy: str = "smart", renderer: str = "yaml", merge_lists: bool = False
) -> object:
    """Return all maps of a list merged into one. A later map wins over an earlier one.

    CLI Example:

        salt '*' slsutil.merge_all '[{foo: Foo}, {foo: Bar}]'
    """
    result: object = {}
    for each in lst:
        result = merge(ctx, result, each, strategy, renderer, merge_lists)
    return result


def renderer(
    ctx: Context,
    path: str | None = None,
    string: str | None = None,
    default_renderer: str = "jinja|yaml",
    **kwargs: Any,
) -> object:
    """Render a file (``salt://`` or of the host) or a string with the renderers in its first line, else with
    ``default_renderer``. Return the data.

    Further keyword arguments, and the entries of the map ``context``, are variables in the template. Raises
    InvocationError unless exactly one of ``path`` and ``string`` is given, CommandError for a missing file, SlsError
    for a render error.

    CLI Example:

        salt '*' slsutil.renderer salt://path/to/file
        salt '*' slsutil.renderer string='Hello, {{ name }}.' default_renderer=jinja name=world
    """
    if not path and not string:
        raise InvocationError("Must pass path or string.")
    if path and string:
        raise InvocationError("Must not pass both path and string.")
    saltenv = kwargs.pop("saltenv", ctx.saltenv)
    text = string if string else _read(ctx, str(path), saltenv)
    names = {key: value for key, value in kwargs.items() if not key.startswith("__") and key != "context"}
    # An empty file gives {} with every renderer.
    if not text.strip():
        return {}
    named = {**names, **(kwargs.get("context") or {})}
    return ctx.templates.data(text, default_renderer, named, saltenv=saltenv, source=str(path or ""))


def _read(ctx: Context, path: str, saltenv: str) -> str:
    if tree_url.is_tree_url(path):
        name, named = tree_url.split(path)
        cached = ctx.files.fetch(name, named or saltenv)
        if cached is None or not cached.is_file():
            raise CommandError(f"No file {path} in environment '{saltenv}'")
        place = cached
    else:
        place = ctx.host.path(path.removeprefix("file://"))
    try:
        return place.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise CommandError(f"{path} is not UTF-8 text: byte {error.start}") from error
    except OSError as error:
        raise CommandError(f"Cannot read {path}: {error.strerror}") from error


# ----------------------------------------------------------------------------------------- serializers


def _to_yaml(value: object, **options: Any) -> str:
    text: str = yaml.dump(value, **{"default_flow_style": None, **options})
    return text.removesuffix("\n").removesuffix("\n...")


def _to_ini(value: Any, **options: object) -> str:
    parser = configparser.RawConfigParser()
    for section, body in dict(value).items():
        if section != "DEFAULT":
            parser.add_section(section)
        for key, entry in dict(body).items():
            parser.set(section, key, str(entry).replace("\n", "\n\t"))
    out = io.StringIO()
    parser.write(out)
    return out.getvalue()


def _of_ini(text: str, **options: object) -> dict[str, dict[str, str]]:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(text)
    return {section: dict(parser.items(section)) for section in parser.sections()}


def _of_toml(text: str, **options: object) -> dict[str, object]:
    import tomllib  # few formulas use it

    return tomllib.loads(text)


_SERIALISERS: Mapping[str, Callable[..., object]] = {
    "configparser": _to_ini,
    "json": lambda value, **options: json.dumps(value, **{"ensure_ascii": False, **options}),
    "msgpack": lambda value, **options: msgpack.packb(value, **options),
    "yaml": _to_yaml,
    "yamlex": lambda value, **options: yamlex.serialize(value, **options),
}

_PARSERS: Mapping[str, Callable[..., object]] = {
    "configparser": _of_ini,
    "json": lambda text, **options: json.loads(text, **options),
    "msgpack": lambda data, **options: msgpack.unpackb(data, **{"raw": False, **options}),
    "toml": _of_toml,
    "yaml": lambda text, **options: yaml.load(text),
    "yamlex": lambda text, **options: yamlex.deserialize(text, **options),
}


def serialize(ctx: Context, serializer: str, obj: object, **mod_kwargs: object) -> object:
    """Return a value serialized as text (bytes for "msgpack"), by configparser, json, msgpack, yaml or yamlex. Raise
    CommandError if the value cannot be serialized.

    CLI Example:

        salt '*' slsutil.serialize json obj="{'foo': 'Foo!'}"
    """
    return _converted(_SERIALISERS, serializer, "serialize", obj, mod_kwargs)


def deserialize(ctx: Context, serializer: str, stream_or_string: object, **mod_kwargs: object) -> object:
    """Return the value of a text, parsed by configparser, json, msgpack, toml, yaml or yamlex. Raise CommandError if the text
    cannot be parsed.

    CLI Example:

        salt '*' slsutil.deserialize json '{"foo": "Foo!"}'
    """
    return _converted(_PARSERS, serializer, "deserialize", stream_or_string, mod_kwargs)


def _converted(
    table: Mapping[str, Callable[..., object]], name: str, verb: str, value: object, given: Mapping[str, object]
) -> object:
    if name not in table:
        if name in _PARSERS:
            raise CommandError(f"Serializer '{name}' does not implement {verb}.")
        raise CommandError(f"Serializer '{name}' not found. There are {', '.join(sorted(table))}.")
    options = {key: option for key, option in given.items() if not key.startswith("__")}
    try:
        return table[name](value, **options)
    except (
        ValueError,
        TypeError,
        yaml.YAMLError,
        yaml.YamlFault,
        configparser.Error,
        msgpack.UnpackException,
    ) as error:
        raise CommandError(f"{name} cannot {verb} this: {error}") from error


# ------------------------------------------------------------------------------------------------ text


def banner(
    ctx: Context,
    width: int = 72,
    commentchar: str = "#",
    borderchar: str = "#",
    blockstart: str | None = None,
    blockend: str | None = None,
    title: str | None = None,
    text: str | None = None,
    newline: bool = False,
) -> str:
    """Return a comment in a box of ``borderchar``, for the top of a managed file. Raise InvocationError if ``width`` is
    too small.

    CLI Example:

        salt '*' slsutil.banner title='Managed' width=60
    """
    left, right = commentchar.rstrip(), commentchar.strip()
    inner = width - len(left) - len(right) - 2
    if inner <= 0:
        raise InvocationError("Width is too small to render banner")
    border = commentchar + borderchar[:1] * (width - len(left) - len(right)) + right
    space = commentchar + " " * (width - len(commentchar) * 2) + commentchar
    wrapper = textwrap.TextWrapper(width=inner)
    titles = wrapper.wrap(_TITLE if title is None else title)
    lines = wrapper.wrap(_TEXT if text is None else text)
    box = [
        *([] if blockstart is None else [blockstart]),
        border,
        space,
        *(f"{left} {line.center(inner)} {right}" for line in titles),
        space,
        *(f"{left} {line:<{inner}} {right}" for line in lines),
        border,
        *([] if blockend is None else [blockend]),
    ]
    return "\n".join(box) + ("\n" if newline else "")


def boolstr(ctx: Context, value: object, true: str = "true", false: str = "false") -> str:
    """Return the text ``true`` if Python treats the value as true, else the text ``false``.

    CLI Example:

        salt '*' slsutil.boolstr True yes no
    """
    return true if value else false


# ----------------------------------------------------------------------------------------------- files


def file_exists(ctx: Context, path: str, saltenv: str = "base") -> bool:
    """Return whether the state tree has the file ``path``.

    CLI Example:

        salt '*' slsutil.file_exists nginx/defaults.yaml
    """
    return path in ctx.files.paths(saltenv, path)


def dir_exists(ctx: Context, path: str, saltenv: str = "base") -> bool:
    """Return whether the state tree has the directory ``path``.

    CLI Example:

        salt '*' slsutil.dir_exists nginx/files
    """
    return path in ctx.files.dirs(saltenv, path)


def path_exists(ctx: Context, path: str, saltenv: str = "base") -> bool:
    """Return whether the state tree has the file or directory ``path``.

    CLI Example:

        salt '*' slsutil.path_exists nginx/defaults.yaml
    """
    return file_exists(ctx, path, saltenv) or dir_exists(ctx, path, saltenv)


def findup(ctx: Context, startpath: str, filenames: object, saltenv: str = "base") -> str:
    """Return the path of the first of ``filenames`` (files or directories) that exists in a directory of the state tree
    or in one above it.

    ``startpath`` is a directory or a file of the tree. Raise InvocationError for a start that is not in the tree,
    CommandError when nothing is found.

    CLI Example:

        salt '*' slsutil.findup formulas/shared/nginx map.jinja
    """
    here = posixpath.normpath(startpath) if startpath else ""
    if here and not path_exists(ctx, here, saltenv):
        raise InvocationError(f"Starting path not found in the state tree: {here}")
    names = [filenames] if isinstance(filenames, str) else filenames
    if not isinstance(names, list):
        raise InvocationError("Filenames argument must be a string or list of strings")
    while True:
        for name in names:
            candidate = posixpath.normpath(posixpath.join(here, str(name)))
            if path_exists(ctx, candidate, saltenv):
                return candidate
        if not here:
            raise CommandError(
                f"File pattern(s) not found in path ancestry: {', '.join(map(str, names))} of {startpath or '/'}"
            )
        here = posixpath.dirname(here)
