"""Reads the configuration files of a stock master, with file and line of each option."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from saltern.kit.command.command_line import CommandError, Exit
from statecore.host.content.guarded_tree import GuardedTree, RefusedFile
from statecore.model import yaml

#: Bytes of the longest file of a configuration that is read.
_MOST_BYTES = 16 * 1024 * 1024


class Option(NamedTuple):
    """One option of a stock master's configuration: name, value, and the file and line that set it."""

    path: Path
    line: int
    name: str
    value: object
    #: If the value is a map: key -> line.
    lines: Mapping[str, int] = {}

    @property
    def place(self) -> str:
        """Return the option's position as ``file:line``."""
        return f"{self.path}:{self.line}"


def read_options(directory: Path, name: str, *, outside: bool = False) -> list[Option]:
    """Return the options of the file ``<directory>/<name>``, of its includes, and of ``<name>.d/*.conf``.

    Later ones override earlier ones. ``outside``: also read files outside of ``directory``, which links and includes
    name. Raise CommandError with the position if a file is no YAML or no map, is no regular file, or is outside.
    """
    main = directory / name
    try:
        there = main.is_file()
        more = sorted((directory / f"{name}.d").glob("*.conf"))
    except OSError as error:
        raise CommandError(f"{main}: cannot be read: {error.strerror}") from error
    if not there:
        raise CommandError(f"{main}: does not exist; name the directory of the master's configuration", Exit.USAGE)
    read = _Files(directory, outside)
    found = list(_options(main, read))
    for option in list(found):
        if option.name == "include":
            found += _included(directory, option, read)
    for path in more:
        found += _options(path, read)
    return found


def read_plain(directory: Path, name: str, *, outside: bool = False) -> bytes:
    """Return the content of a file of a stock master's configuration directory; b"" if it does not exist. ``outside`` is
    as in ``read_options``. Raise CommandError if it cannot be read, is no regular file, or is a link to the outside.
    """
    try:
        return _Files(directory, outside).content(directory / name)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise CommandError(f"{directory / name}: {_why(error)}") from error


class _Files:
    """Reads files of a configuration directory that a stranger may have filled."""

    def __init__(self, directory: Path, outside: bool) -> None:
        self._directory = directory
        self._outside = outside

    def content(self, path: Path) -> bytes:
        """Return the content of a regular file. Raises OSError; RefusedFile for a file outside of the directory."""
        if path.is_relative_to(self._directory) and ".." not in path.parts:
            tree = GuardedTree(self._directory, links=self._outside)
        elif self._outside:
            tree = GuardedTree(path.parent)
        else:
            raise RefusedFile("is outside of the configuration directory", path)
        return tree.read(str(path.relative_to(tree.top)), _MOST_BYTES)


def _why(error: OSError) -> str:
    if isinstance(error, RefusedFile):
        return f"{error.strerror}; copy it to its place, or name --outside if you trust this configuration"
    return f"cannot be read: {error.strerror}"


def _included(directory: Path, option: Option, read: _Files) -> Iterator[Option]:
    patterns = option.value if isinstance(option.value, list) else [option.value]
    for pattern in map(str, patterns):
        base = Path("/") if pattern.startswith("/") else directory
        paths = sorted(base.glob(pattern.lstrip("/")))
        if not paths:
            raise CommandError(f"{option.place}: include: no file is {pattern}", Exit.CONFIG)
        for path in paths:
            yield from _options(path, read)


def _options(path: Path, read: _Files) -> Iterator[Option]:
    try:
        text = read.content(path)
        root, data = yaml.compose(text), yaml.load(text)
    except OSError as error:
        raise CommandError(f"{path}: {_why(error)}") from error
    except yaml.YamlFault as error:
        raise CommandError(f"{path}: not valid YAML: {error.placed}", Exit.CONFIG) from error
    if data is None:
        return
    if not isinstance(data, dict) or root is None:
        raise CommandError(f"{path}: must hold `option: value` lines, not a {type(data).__name__}", Exit.CONFIG)
    lines, below = _lines(root), {str(key.value): _lines(node) for key, node in root.value}
    for name, value in data.items():
        yield Option(path, lines.get(str(name), 1), str(name), value, below.get(str(name), {}))


def _lines(node: yaml.Node) -> dict[str, int]:
    if not isinstance(node, yaml.MappingNode):
        return {}
    return {str(key.value): key.start_mark.line + 1 for key, _ in node.value}


def joined(values: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """Return the option values of several files as one map: later values win, and maps are merged.

    Salt: salt/utils/dictupdate.py
    """
    result: dict[str, object] = {}
    for one in values:
        for name, value in one.items():
            before = result.get(name)
            if isinstance(before, dict) and isinstance(value, dict):
                result[name] = joined([before, value])
            else:
                result[name] = value
    return result
