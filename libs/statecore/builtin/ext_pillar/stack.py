"""External pillar ``stack`` (PillarStack): pillar of a minion from YAML files that are merged in order. Each file may
name the strategy of its merge.
"""

from __future__ import annotations

import copy
import glob
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import jinja2

from statecore.model import yaml
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.substitution import segment
from statecore.model.text_lines import lines_of
from statecore.model.values import traverse
from statecore.render.filters import FILTERS, TESTS
from statecore.render.jinja import SaltFunctions
from statecore.render.jinja.closed import ClosedEnvironment, Limits
from statecore.render.jinja.tags import SerializerExtension
from statecore.render.jinja.variables import Copied

log = logging.getLogger(__name__)

#: Key that names the merge strategy, in a map or in the first item of a list.
_STRATEGY = "__"

_MERGE_LAST = "merge-last"


def ext_pillar(
    ctx: Context, minion_id: str, pillar: dict[str, object], *args: object, **kwargs: object
) -> dict[str, object]:
    """Return the pillar data merged from the YAML files that the configuration files list.

    args
        paths of configuration files
    kwargs
        ``grains:path``, ``pillar:path`` or ``opts:path``: a map of value to configuration file or files. The files of
        the value at this path are used. ``__env__`` is replaced by the pillarenv

    Raises CommandError if a file cannot be rendered, parsed or merged.
    """
    stack: dict[str, object] = {}
    for path in [*args, *_chosen(ctx, pillar, kwargs)]:
        if not Path(str(path)).is_file():
            log.info('Ignoring pillar stack cfg "%s": file does not exist', path)
            continue
        stack = _Layers(ctx, minion_id, pillar, str(path)).over(stack)
    return stack


def _chosen(ctx: Context, pillar: Mapping[str, object], choices: Mapping[str, object]) -> list[str]:
    """Return the paths of the configuration files that values of grains, pillar or options select. ``choices`` has the
    keyword arguments of the external pillar.
    """
    # The minion chooses the name of its pillarenv, which becomes a part of paths.
    env = segment(ctx.opts.get("pillarenv") or ctx.opts.get("saltenv") or "base", "the pillarenv")
    sources: Mapping[str, Mapping[str, object]] = {"pillar": pillar, "grains": ctx.grains, "opts": ctx.opts}
    found: list[str] = []
    for choice, files in choices.items():
        kind, _, path = choice.partition(":")
        if kind not in sources or not isinstance(files, Mapping):
            raise CommandError(
                f"its arguments are files, or `grains:PATH`, `pillar:PATH`, `opts:PATH` with a map of values, not '{choice}'"
            )
        chosen = {env if value == "__env__" else value: named for value, named in files.items()}
        try:
            named = chosen.get(traverse(sources[kind], path), [])
        except TypeError:
            # A list or a map cannot be a key.
            continue
        found += [str(file).replace("__env__", env) for file in (named if isinstance(named, list) else [named])]
    return found


_Merge = TypeVar("_Merge", bound=Callable[..., object])


class _Layers:
    """The YAML files that one configuration file of the external pillar ``stack`` lists; merges them over a pillar."""

    def __init__(self, ctx: Context, minion_id: str, pillar: Mapping[str, object], path: str) -> None:
        self._path = path
        self._directory = Path(path).parent
        self._roots = _directories(ctx.opts)
        #: Texts among the grains that a list of files would read as several names or as a pattern.
        self._unsafe = {text: _safe(text) for text in _texts(ctx.grains) if _safe(text) != text}
        self._listing = False
        salt = SaltFunctions(ctx.functions)
        self._templates = ClosedEnvironment(
            limits=Limits.of(ctx.opts),
            functions=salt,
            loader=jinja2.FileSystemLoader(self._directory),
            extensions=["jinja2.ext.do", SerializerExtension],
            finalize=self._printed,
        )
        self._templates.filters.update(FILTERS)
        self._templates.tests.update(TESTS)
        self._templates.globals.update(
            {
                "__opts__": Copied(ctx.opts),
                "__salt__": salt,
                "__grains__": Copied(ctx.grains),
                "__stack__": {"traverse": traverse, "cfg_path": path},
                "minion_id": minion_id,
                "pillar": Copied(pillar),
                "pillarenv": ctx.opts.get("pillarenv"),
            }
        )

    def over(self, stack: dict[str, object]) -> dict[str, object]:
        """Return the pillar data ``stack`` with each listed YAML file merged over it, in order. Raises CommandError if
        a file cannot be rendered, parsed or merged.
        """
        for item in self._items(stack):
            # A pattern may be absolute or contain `..`, which pathlib's glob does not allow.
            paths = sorted(glob.glob(str(self._directory / item)))  # noqa: PTH207
            if not paths:
                log.info('Ignoring pillar stack template "%s": nothing in "%s" has this name', item, self._directory)
            for path in paths:
                layer = self._layer(path, stack)
                if isinstance(layer, dict):
                    try:
                        stack = merged(stack, layer)
                    except CommandError as error:
                        raise CommandError(f"{path}: {error}") from error
        return stack

    def _items(self, stack: dict[str, object]) -> Iterator[str]:
        """Yield the patterns of files that the configuration file lists for this minion. Raises CommandError for a pattern
        that leads to a directory which the file does not name itself.
        """
        self._listing = True
        try:
            text = self._rendered(self._path, stack=stack)
        finally:
            self._listing = False
        named = [*self._roots, *_named_outside(Path(self._path).read_text("utf-8"))]
        for item in _listed(text):
            if not item.strip():
                continue
            outside = item.startswith("/") or ".." in item.split("/")
            if outside and not any(_begins(item, start) for start in named):
                raise CommandError(
                    f"{self._path}: {ascii(item)[:120]} leads to a directory that the file does not name; "
                    "write the directory as a text, without a grain in it"
                )
            yield item

    def _printed(self, value: object) -> object:
        """Return what ``{{ value }}`` prints. In a list of files, texts of grains have no line ends and no wildcards: the
        minion chooses its grains, and would choose the files of others by them.
        """
        if not self._listing or not self._unsafe or isinstance(value, jinja2.Undefined):
            return value
        text = str(value)
        for unsafe, safe in self._unsafe.items():
            text = text.replace(unsafe, safe)
        return text

    def _layer(self, path: str, stack: dict[str, object]) -> object:
        text = self._rendered(path, stack=stack, ymlpath=path)
        try:
            return yaml.load(text, yaml.SLS)
        except yaml.YamlFault as fault:
            raise CommandError(f"Stack pillar yaml parsing error in {path}, line {fault.line} as rendered") from fault

    def _rendered(self, path: str, **names: object) -> str:
        name = Path(os.path.relpath(path, self._directory)).as_posix()
        try:
            return self._templates.get_template(name).render(**names)
        except Exception as error:
            log.exception("pillar stack: %s", path)
            line = f":{_line(error)}" if _line(error) else ""
            kind = type(error).__name__
            raise CommandError(f"Stack pillar template render error in {path}{line}: {kind}: {error}") from error


def _texts(value: object) -> Iterator[str]:
    """Yield the texts in grains, at any depth, also those that are keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(key)
            yield from _texts(item)
    elif isinstance(value, list | tuple | set):
        for item in value:
            yield from _texts(item)


def _safe(text: str) -> str:
    """Return a text of one line, in which glob's wildcards stand for themselves."""
    return glob.escape("".join(character if character.isprintable() else " " for character in text))


#: A path in the text of a configuration file that is absolute or has ``..``, up to the first variable or wildcard.
_OUTSIDE = re.compile(r"(?<![\w./}-])(?:/|\.\./|[\w.-]+(?:/[\w.-]+)*/\.\./)[^\s'\"{}*?\[\],;%]*")


def _named_outside(text: str) -> list[str]:
    """Return the beginnings of paths outside of the stack's directory that the text of a configuration file names."""
    return [found[0] for found in _OUTSIDE.finditer(text)]


def _directories(opts: Mapping[str, object]) -> list[str]:
    """Return the directories of ``pillar_roots`` and ``file_roots``, which a template may print."""
    options = [opts.get(name) for name in ("pillar_roots", "file_roots")]
    roots = [root for option in options if isinstance(option, Mapping) for root in option.values()]
    return [f"{directory}/" for root in roots if isinstance(root, list | tuple) for directory in root]


def _begins(item: str, start: str) -> bool:
    """Return whether a path is ``start``, or below it without ``..``. ``/`` and ``../`` alone are not enough."""
    if start == "/" or not item.startswith(start):
        return False
    rest = item[len(start) :]
    return ".." not in rest.split("/") and (not rest or start.endswith("/") or "/" not in rest or rest.startswith("/"))


def _line(error: BaseException) -> int:
    """Return the line number in the template at which a rendering error happened; 0 if the error names none."""
    found = getattr(error, "lineno", 0) or 0
    traceback = error.__traceback__
    while traceback is not None:
        if "__jinja_exception__" in traceback.tb_frame.f_globals:
            found = traceback.tb_lineno
        traceback = traceback.tb_next
    return int(found)


def _listed(text: str) -> list[str]:
    """Return the file names in the text of a configuration file: the items of a YAML list, else its lines."""
    try:
        data = yaml.load(text, yaml.SLS)
    except yaml.YamlFault:
        return lines_of(text)
    return [str(item) for item in data] if isinstance(data, list) else lines_of(text)


def merged(stack: dict[str, object], layer: dict[str, object]) -> dict[str, object]:
    """Merge the map ``layer`` over the map ``stack`` with the strategy that ``layer`` names, and return the new map.
    Raises CommandError for an unknown strategy.
    """
    strategy = layer.get(_STRATEGY, _MERGE_LAST)
    own = {key: value for key, value in layer.items() if key != _STRATEGY}
    return _lookup(strategy, _MAPS)(stack, own)


def _map_last(stack: dict[str, object], layer: dict[str, object]) -> dict[str, object]:
    found = dict(stack)
    for key, value in layer.items():
        found[key] = _over(stack[key], value) if key in stack else _clean(value)
    return found


def _map_first(stack: dict[str, object], layer: dict[str, object]) -> dict[str, object]:
    found = dict(stack)
    for key, value in layer.items():
        # merge-last with the two values swapped.
        found[key] = _over(_clean(value), stack[key]) if key in stack else _clean(value)
    return found


def _map_removed(stack: dict[str, object], layer: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in stack.items() if key not in layer}


def _map_overwritten(stack: dict[str, object], layer: dict[str, object]) -> dict[str, object]:
    return {key: _clean(value) for key, value in layer.items()}


#: Strategy -> function of (lower map, upper map) that returns the merged map.
_MAPS: Mapping[str, Callable[[dict[str, object], dict[str, object]], dict[str, object]]] = {
    "overwrite": _map_overwritten,
    "merge-first": _map_first,
    _MERGE_LAST: _map_last,
    "remove": _map_removed,
}

#: Strategy -> function of (lower list, upper list) that returns the merged list.
_LISTS: Mapping[str, Callable[[list[object], list[object]], list[object]]] = {
    "overwrite": lambda stack, layer: layer,
    "merge-first": lambda stack, layer: layer + stack,
    _MERGE_LAST: lambda stack, layer: stack + layer,
    "remove": lambda stack, layer: [item for item in stack if item not in layer],
}


def _over(under: object, value: object) -> object:
    """Return the result of merging ``value`` over the lower value ``under``. A value of a different type replaces the
    lower value.
    """
    if type(under) is not type(value):
        return _clean(value)
    if isinstance(value, dict) and isinstance(under, dict):
        return merged(under, value)
    if isinstance(value, list) and isinstance(under, list):
        named = bool(value) and isinstance(value[0], dict) and _STRATEGY in value[0]
        strategy, items = (value[0][_STRATEGY], value[1:]) if named else (_MERGE_LAST, value)
        return _lookup(strategy, _LISTS)(under, items)
    return value


def _clean(value: object) -> object:
    """Return a copy of pillar data without the keys and list items that only name a merge strategy."""
    if isinstance(value, dict):
        return {key: _clean(each) for key, each in value.items() if key != _STRATEGY}
    if isinstance(value, list) and value and isinstance(value[0], dict) and _STRATEGY in value[0]:
        return copy.deepcopy(value[1:])
    return copy.deepcopy(value)


def _lookup(strategy: object, table: Mapping[str, _Merge]) -> _Merge:
    found = table.get(strategy) if isinstance(strategy, str) else None
    if found is None:
        raise CommandError(f'Unknown strategy "{strategy}", should be one of {", ".join(table)}')
    return found
