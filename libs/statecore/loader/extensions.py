"""Salt extensions: installed Python packages such as ``saltext.docker`` that declare entry points of the group
``salt.loader``.

A package has one directory for each kind of modules (``modules``, ``states``, ``runners`` ...). Its files are loaded
unmodified. They come after users' files and before built-in files. Entry points are read from the files
``entry_points.txt`` beside the installed packages; a package is imported only if its entry point is a function.
Source: docs/modules.md#extensions
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from statecore.loader.find import DIRECTORIES
from statecore.model.text_lines import lines_of

log = logging.getLogger(__name__)

_GROUP = "[salt.loader]"

#: Option of a kind of modules -> the kind. Entry points of the old form have the option's name.
_KINDS: Mapping[str, str] = {option: kind for kind, option in DIRECTORIES.items()}


class Extension(NamedTuple):
    """One entry point of the group ``salt.loader``: its name, and its value (the package or function that it names)."""

    name: str
    #: Package (``saltext.docker``), or function (``saltext.docker:directories``).
    value: str
    #: Directory of the distribution's metadata, such as ``.../saltext_docker-1.0.0.dist-info``.
    metadata: str

    @property
    def package(self) -> str:
        """Name of the Python package that the entry point names."""
        return self.value.partition(":")[0]

    def __str__(self) -> str:
        name, _, version = Path(self.metadata).stem.partition("-")
        return f"{name} {version}".rstrip()


def installed() -> tuple[Extension, ...]:
    """Return the entry points of all extensions that are installed for this Python, in the order of ``sys.path``.

    The directories of ``sys.path`` are listed again if they changed. Of two entry points with the same value the first
    is returned.
    """
    found: dict[str, Extension] = {}
    for directory in sys.path:
        # An empty entry is the working directory, whose files nobody installed.
        if not directory:
            continue
        try:
            changed = os.stat(directory).st_mtime_ns  # noqa: PTH116
        except OSError:
            continue
        for each in _in_directory(directory, changed):
            found.setdefault(each.value, each)
    return tuple(found.values())


def directories(kind: str) -> list[Path]:
    """Return the directories of all installed extensions that have modules of one kind ("modules", "states" ...).

    An extension that cannot be used is logged as an error and left out.
    """
    found: list[Path] = []
    for extension in installed():
        try:
            paths = list(_directories(extension, kind))
        except Exception:
            log.exception("extension %s (%s) is left out", extension, extension.value)
            continue
        found.extend(path for path in paths if path not in found and path.is_dir())
    return found


@lru_cache(maxsize=64)
def _in_directory(directory: str, changed: int) -> tuple[Extension, ...]:
    """Return the entry points of the distributions in one directory of ``sys.path``.

    ``changed`` is the directory's modification time. It is part of the cache key.
    """
    try:
        # pathlib would take three times as long, at each start of a command.
        names = os.listdir(directory)  # noqa: PTH208
    except OSError:
        return ()
    found: list[Extension] = []
    for path in sorted(os.path.join(directory, name) for name in names if name.endswith((".dist-info", ".egg-info"))):
        try:
            with open(os.path.join(path, "entry_points.txt"), encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError):
            # Most distributions have no entry points.
            continue
        if _GROUP in text:
            found.extend(Extension(entry, value, path) for entry, value in _entries(text))
    return tuple(found)


def _entries(text: str) -> Iterator[tuple[str, str]]:
    """Yield (name, value) of each entry point of the group ``salt.loader`` in the text of an ``entry_points.txt``."""
    group = ""
    for line in lines_of(text):
        line = line.strip()
        if line.startswith("["):
            group = line
        elif group == _GROUP and "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            # "package:function [extra]": the name in brackets is an optional feature of the distribution.
            yield name.strip(), value.partition("[")[0].replace(" ", "")


def _directories(extension: Extension, kind: str) -> Iterable[Path]:
    """Return the directories that an extension names for one kind of modules; they may be missing."""
    package, _, function = extension.value.partition(":")
    if not function:
        spec = importlib.util.find_spec(package)
        if spec is None:
            raise ModuleNotFoundError(f"its entry point names the package {package}, which is not installed")
        return [Path(place) / kind for place in spec.submodule_search_locations or ()]
    call: Callable[[], object] = getattr(importlib.import_module(package), function)
    named = call()
    if isinstance(named, Mapping):
        named = named.get(kind, ())
    elif _KINDS.get(extension.name) != kind:
        return ()
    if isinstance(named, str) or not isinstance(named, Iterable):
        raise ValueError(f"{extension.value} must return a list of directories for {kind}, not {named!r}")
    return [Path(str(each)) for each in named]
