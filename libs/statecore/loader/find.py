"""Index of the module files that could have a module name, made without importing the files.

Each kind of modules has two sources: the package of built-in ("native") modules, such as ``statecore/builtin/modules``,
and directories of users' modules. The latter are the directories of an option (``module_dirs``) and the directory that
is synced from ``salt://_modules`` (``<extension dir>/modules``). A user's file comes before a built-in file, so it
replaces a built-in module of the same file name. The first look-up of a kind costs one listing of its directories.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import logging
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

log = logging.getLogger(__name__)

#: Kind -> package of native modules. Other kinds (renderers, matchers, ...) have users' files only.
NATIVE: Mapping[str, str] = {
    "modules": "statecore.builtin.modules",
    "states": "statecore.builtin.states",
    "grains": "statecore.builtin.grains",
    "pillar": "statecore.builtin.ext_pillar",
    "tops": "statecore.builtin.tops",
    "beacons": "statecore.builtin.beacons",
    "returners": "statecore.builtin.returners",
    "executors": "statecore.builtin.executors",
    "engines": "statecore.builtin.engines",
    "sdb": "statecore.builtin.sdb",
    "utils": "statecore.loader.compat.utils",
    "serializers": "statecore.loader.compat.serializers",
}

#: Kinds that few minions use, so ``preload`` does not import them.
RARE = frozenset({"beacons", "engines", "returners", "sdb", "utils", "serializers"})

#: Kinds whose native functions take no context.
PLAIN = frozenset({"utils", "serializers"})

#: Kind -> option that lists directories of users' modules, searched before the extension directory.
DIRECTORIES: Mapping[str, str] = {
    "modules": "module_dirs",
    "states": "states_dirs",
    "grains": "grains_dirs",
    "renderers": "render_dirs",
    "returners": "returner_dirs",
    "beacons": "beacons_dirs",
    "utils": "utils_dirs",
    "matchers": "matchers_dirs",
    "executors": "executor_dirs",
    "runners": "runner_dirs",
    "serializers": "serializers_dirs",
    "pillar": "pillar_dirs",
    "tops": "top_dirs",
    "fileserver": "fileserver_dirs",
    "sdb": "sdb_dirs",
    "engines": "engines_dirs",
}

#: Suffixes of users' modules that are not Python source. A source file of the same name takes precedence.
COMPILED = frozenset({".pyc", ".so", ".pyx", ".zip"})
_ENDS = sorted(importlib.machinery.EXTENSION_SUFFIXES, key=len, reverse=True)

#: Matches ``VIRTUAL = "pkg"`` and ``VIRTUAL: str = "pkg"`` in a native module's text, so that it need not be imported.
_VIRTUAL = re.compile(r"""^VIRTUAL\s*(?::[^=\n]*)?=\s*["']([^"'\n]+)["']""", re.MULTILINE)

#: Matches a text that a module of an extension assigns to a global name, such as ``__virtualname__ = "docker"``.
_CONSTANT = re.compile(r"""^\w+\s*(?::[^=\n]*)?=\s*[("'\[]+([\w.-]+)["'].*$""", re.MULTILINE)

#: Matches the body of a module's function ``__virtual__``.
_VIRTUAL_BODY = re.compile(r"^def __virtual__\(.*?(?=^\S)", re.MULTILINE | re.DOTALL)

_QUOTED = re.compile(r"""["']([\w.-]+)["']""")


class ModuleFile(NamedTuple):
    """One file that may contain a module of Salt: its kind ("modules", "states" ...), name and path."""

    kind: str
    #: File name without suffix; for a package the directory's name.
    stem: str
    path: Path
    native: bool
    #: True for a file of an installed extension (``extensions.py``).
    packaged: bool = False


@dataclass(slots=True)
class Index:
    """The module files of one kind ("modules", "states" ...) by file name: users' files, then those of extensions, then
    built-in files.
    """

    custom: Mapping[str, ModuleFile]
    native: Mapping[str, ModuleFile]
    packaged: Mapping[str, ModuleFile] = field(default_factory=dict)
    _texts: dict[Path, str] = field(default_factory=dict)
    _constants: dict[Path, frozenset[str]] = field(default_factory=dict)

    def __iter__(self) -> Iterator[ModuleFile]:
        for sources in (self.custom, self.packaged, self.native):
            yield from (sources[stem] for stem in sorted(sources))

    def without(self, stems: Collection[str]) -> Index:
        """Return this index without the module files whose file name (without suffix) is in ``stems``."""
        if not stems:
            return self
        custom, native, packaged = (
            {stem: source for stem, source in sources.items() if stem not in stems}
            for sources in (self.custom, self.native, self.packaged)
        )
        return Index(custom=custom, native=native, packaged=packaged)

    def candidates(self, name: str) -> Iterator[ModuleFile]:
        """Yield the module files that may have the module name ``name``, in the order to try them: users' files, then
        files of extensions, then built-in files.

        In each group the file called ``name`` comes first. The files whose text declares ``name`` as their virtual name
        follow, sorted by file name. The text of a file is read only when the iteration reaches the file.
        """
        yield from self._among(self.custom, name)
        yield from self._among(self.packaged, name)
        yield from self._among(self.native, name)

    def _among(self, sources: Mapping[str, ModuleFile], name: str) -> Iterator[ModuleFile]:
        if name in sources:
            yield sources[name]
        for stem in sorted(sources):
            if stem != name and self._claims(sources[stem], name):
                yield sources[stem]

    def _claims(self, source: ModuleFile, name: str) -> bool:
        """Return whether the module in this file may have the name ``name``, according to the file's text.

        The result may be wrongly True, because only the import decides. It is never wrongly False.
        """
        if source.path.suffix in COMPILED:
            return True
        if source.packaged:
            if source.path not in self._constants:
                self._constants[source.path] = _named_texts(_text(source.path))
            return name in self._constants[source.path]
        if source.native:
            return name in virtual_names(source.path)
        text = self._texts.get(source.path)
        if text is None:
            text = self._texts[source.path] = _text(source.path)
        # A user's __virtual__ may compute its return value, but the name appears in the file as a string literal.
        return f'"{name}"' in text or f"'{name}'" in text


def scan(kind: str, extension_dir: Path | None, more: Sequence[Path] = (), extensions: Sequence[Path] = ()) -> Index:
    """Return the Index of all module files of one kind ("modules", "states" ...). Only directories are listed; no file
    is read.

    ``more`` are directories of users' modules that are searched before the kind's directory in ``extension_dir``.
    ``extensions`` are directories of installed extensions. A missing directory counts as empty.
    """
    directories = [*more, *([extension_dir / kind] if extension_dir is not None else [])]
    custom: dict[str, ModuleFile] = {}
    for directory in reversed(directories):
        custom |= _files(kind, directory, native=False)
    packaged: dict[str, ModuleFile] = {}
    for directory in reversed(extensions):
        packaged |= _files(kind, directory, native=False, packaged=True)
    return Index(
        custom=custom,
        native=built_in(kind),
        packaged={stem: file for stem, file in packaged.items() if stem not in custom},
    )


@cache
def built_in(kind: str) -> Mapping[str, ModuleFile]:
    """Map of file name (without suffix) to the built-in ModuleFile of this name, for one kind of modules ("modules",
    "states" ...); {} if the kind has none. Do not change the map.

    The package of a running program does not change, so it is listed once a process.
    """
    return _files(kind, _package_dir(NATIVE[kind]), native=True) if kind in NATIVE else {}


@cache
def virtual_names(path: Path) -> frozenset[str]:
    """Return the virtual names (module names other than the file's) that the text of a built-in module file declares."""
    return frozenset(_VIRTUAL.findall(_text(path)))


def _package_dir(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(f"statecore is installed without its package {package}")
    return Path(next(iter(spec.submodule_search_locations)))


def _files(kind: str, directory: Path, *, native: bool, packaged: bool = False) -> dict[str, ModuleFile]:
    try:
        # Names and not paths: each job lists directories, and pathlib would take five times as long.
        names = sorted(os.listdir(directory))  # noqa: PTH208
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        log.warning("no modules from %s: %s", directory, error.strerror)
        return {}
    found: dict[str, ModuleFile] = {}
    others: dict[str, ModuleFile] = {}
    for name in names:
        if name.startswith(("_", ".")):
            continue
        stem, suffix = os.path.splitext(name)  # noqa: PTH122
        if suffix == ".py":
            found[stem] = ModuleFile(kind, stem, directory / name, native, packaged)
        elif suffix in COMPILED:
            # foo.cpython-311-x86_64-linux-gnu.so. A file for another Python version leaves a stem that is no identifier.
            stem = next(name.removesuffix(end) for end in (*_ENDS, suffix) if name.endswith(end))
            if not native and stem.isidentifier():
                others.setdefault(stem, ModuleFile(kind, stem, directory / name, native, packaged))
        elif (directory / name / "__init__.py").is_file():
            found.setdefault(name, ModuleFile(kind, name, directory / name / "__init__.py", native, packaged))
    return {**others, **found}


def _named_texts(text: str) -> frozenset[str]:
    """Return the texts that may be the virtual name of an extension's module: those that the file assigns to global
    names, and those in its function ``__virtual__``.
    """
    body = _VIRTUAL_BODY.search(f"{text}\n.")
    lines = [*(match.group() for match in _CONSTANT.finditer(text)), body.group() if body else ""]
    return frozenset(name for line in lines for name in _QUOTED.findall(line))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        # The file vanished or is unreadable. It has no virtual name; importing it by file name reports the error.
        return ""
