"""Finds and reads the files of a configuration: ``master`` or ``minion``, the files of ``default_include`` and of ``include``."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from statecore.model import yaml

#: Prefix of Salt's options that are joined into ``out_table``.
_TABLE = "out.table."

#: libyaml's loader, which is faster, if it is installed; both read the same language.


class ConfigError(Exception):
    """Raised when the configuration cannot be used.

    The message has a line for each error. A line names file and line (or the environment variable), the option, the reason and the
    nearest valid name.
    """


class PortTaken(ConfigError):
    """Raised when another process listens on a port of this one.

    That may pass, for example when an older process ends late. So the process ends with another exit code than for an
    unusable configuration, and its supervisor starts it again.
    """


class ConfigFile(NamedTuple):
    """One file of a configuration: its path and its map of option to value."""

    path: Path
    values: dict[str, Any]


def config_files(directory: Path, file_name: str) -> Iterator[ConfigFile]:
    """Yield the files of a configuration in the order in which they count: a later value replaces an earlier one.

    First the file ``file_name``, then the files of its option ``default_include`` (``master.d/*.conf``), then those of ``include``,
    each in the order of their names. A file that is included may include others. A relative glob is relative to the file that names
    it. Raise ConfigError for a file that cannot be read.
    """
    main = directory / file_name
    seen: set[Path] = {main}
    first = ConfigFile(main, read_file(main)) if _is_file(main) else ConfigFile(main, {})
    if first.values:
        yield first
    default = first.values.get("default_include", f"{file_name}.d/*.conf")
    for pattern in (*_patterns(default, main), *_patterns(first.values.get("include"), main)):
        yield from _included(directory, pattern, seen)


def include_folders(directory: Path, file_name: str, files: Iterable[ConfigFile]) -> set[Path]:
    """Return the folders in which the files of a configuration look for further ones: a new file there would count."""
    found = {directory / f"{file_name}.d"}
    for path, values in files:
        for name in ("default_include", "include"):
            found |= {(path.parent / pattern).parent for pattern in _patterns(values.get(name), path)}
    return {folder for folder in found if not glob.has_magic(str(folder))}


def _included(directory: Path, pattern: str, seen: set[Path]) -> Iterator[ConfigFile]:
    _check_listable((directory / pattern).parent)
    # Path.glob takes no absolute pattern.
    for name in sorted(glob.glob(str(directory / pattern))):  # noqa: PTH207
        path = Path(name)
        # A directory called x.conf was meant as a file.
        if path in seen or (path.suffix != ".conf" and path.is_dir()):
            continue
        seen.add(path)
        found = ConfigFile(path, read_file(path))
        yield found
        for more in _patterns(found.values.get("include"), path):
            yield from _included(path.parent, more, seen)


def _check_listable(folder: Path) -> None:
    """Raise ConfigError for a directory that exists and cannot be listed: its files would be missed in silence."""
    try:
        if not glob.has_magic(str(folder)):
            os.scandir(folder).close()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be read: {error.strerror}") from error


def _patterns(value: object, path: Path) -> list[str]:
    if not value:
        return []
    listed = value if isinstance(value, list) else [value]
    if not all(isinstance(each, str) for each in listed):
        raise ConfigError(f"{path}: include must be a path or a list of paths, not {value!r}")
    return [str(each) for each in listed]


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError as error:
        raise ConfigError(f"{error.filename}: cannot be read: {error.strerror}") from error


def read_file(path: Path) -> dict[str, Any]:
    """Return the map of option to value of a YAML file, {} for an empty one. Raise ConfigError if it cannot be read."""
    try:
        data = yaml.load(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except yaml.YamlFault as error:
        raise ConfigError(f"{path}: not valid YAML: {error.placed}") from error
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: must hold `option: value` lines, not a {type(data).__name__}")
    return data


def place(path: Path, name: str) -> str:
    """Return the position in the configuration that sets an option, as text such as ``file, line 3``, for an error message."""
    root = yaml.compose(path.read_bytes())
    lines = [key.start_mark.line + 1 for key, _ in root.value if key.value == str(name)] if root else []
    return f"{path}, line {lines[-1]}" if lines else str(path)


def with_table(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the option values with Salt's options ``out.table.NAME`` joined into the one option ``out_table``."""
    dotted = {name: value for name, value in values.items() if str(name).startswith(_TABLE)}
    if not dotted:
        return dict(values)
    rest = {name: value for name, value in values.items() if name not in dotted}
    table = rest.get("out_table")
    named = {name.removeprefix(_TABLE): value for name, value in dotted.items()}
    return rest | {"out_table": {**(table if isinstance(table, dict) else {}), **named}}
