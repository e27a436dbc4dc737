"""Reads the configuration files of a stock master, with file and line of each option."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from saltern.kit.command.command_line import CommandError, Exit
from statecore.model import yaml


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


def read_options(directory: Path, name: str) -> list[Option]:
    """Return the options of the file ``<directory>/<name>``, of its includes, and of ``<name>.d/*.conf``.

    Later ones override earlier ones. Raise CommandError with the position if a file is no YAML or no map.
    """
    main = directory / name
    try:
        there = main.is_file()
        more = sorted((directory / f"{name}.d").glob("*.conf"))
    except OSError as error:
        raise CommandError(f"{main}: cannot be read: {error.strerror}") from error
    if not there:
        raise CommandError(f"{main}: does not exist; name the directory of the master's configuration", Exit.USAGE)
    found = list(_options(main))
    for option in list(found):
        if option.name == "include":
            found += _included(directory, option)
    for path in more:
        found += _options(path)
    return found


def _included(directory: Path, option: Option) -> Iterator[Option]:
    patterns = option.value if isinstance(option.value, list) else [option.value]
    for pattern in map(str, patterns):
        base = Path("/") if pattern.startswith("/") else directory
        paths = sorted(base.glob(pattern.lstrip("/")))
        if not paths:
            raise CommandError(f"{option.place}: include: no file is {pattern}", Exit.CONFIG)
        for path in paths:
            yield from _options(path)


def _options(path: Path) -> Iterator[Option]:
    try:
        text = path.read_bytes()
        root, data = yaml.compose(text), yaml.load(text)
    except OSError as error:
        raise CommandError(f"{path}: cannot be read: {error.strerror}") from error
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
