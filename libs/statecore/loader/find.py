"""Which files could serve a name: an index of file names, made without importing anything.

Two sources per kind: the package of native modules (``statecore/builtin/modules``) and the directories of users' modules: those
of an option (``module_dirs``), and the one that was synced from ``salt://_modules`` (``<extension dir>/modules``). A user's
file is looked at before a native one, so it replaces a built-in of the same name (docs/state-system.md#custom-modules).
Start-up costs one directory listing for each kind asked for.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import logging
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

log = logging.getLogger(__name__)

#: Kind -> our own package of that kind; other kinds (renderers, matchers, ...) have users' files only.
NATIVE: Mapping[str, str] = {
    "modules": "statecore.builtin.modules",
    "states": "statecore.builtin.states",
    "grains": "statecore.builtin.grains",
    "pillar": "statecore.builtin.ext_pillar",
    "tops": "statecore.builtin.tops",
    "beacons": "statecore.builtin.beacons",
    "returners": "statecore.builtin.returners",
    "executors": "statecore.builtin.executors",
    "utils": "statecore.loader.compat.utils",
    "serializers": "statecore.loader.compat.serializers",
}

#: Kinds that few minions use: nothing is shared with the jobs to come by importing them early.
RARE = frozenset({"beacons", "returners", "utils", "serializers"})

#: Kinds whose native functions take no context.
PLAIN = frozenset({"utils", "serializers"})

#: Kind -> option with directories that hold modules of the kind, looked at before the extension directory.
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
}

#: Ends of users' files that are no source, and yet modules. Source goes before them.
COMPILED = frozenset({".pyc", ".so", ".pyx", ".zip"})
_ENDS = sorted(importlib.machinery.EXTENSION_SUFFIXES, key=len, reverse=True)

#: ``VIRTUAL = "pkg"`` and ``VIRTUAL: str = "pkg"``, read from the text so that finding a name imports nothing else.
_VIRTUAL = re.compile(r"""^VIRTUAL\s*(?::[^=\n]*)?=\s*["']([^"'\n]+)["']""", re.MULTILINE)


class ModuleFile(NamedTuple):
    """One file that may hold a module."""

    kind: str
    #: File name without its end; a package's directory name.
    stem: str
    path: Path
    native: bool


@dataclass(slots=True)
class Index:
    """The files of one kind, users' first."""

    custom: dict[str, ModuleFile]
    native: dict[str, ModuleFile]
    _texts: dict[Path, str] = field(default_factory=dict)

    def __iter__(self) -> Iterator[ModuleFile]:
        yield from (self.custom[stem] for stem in sorted(self.custom))
        yield from (self.native[stem] for stem in sorted(self.native))

    def without(self, stems: Collection[str]) -> Index:
        """The same but for the files of these names."""
        if not stems:
            return self
        custom, native = (
            {stem: source for stem, source in sources.items() if stem not in stems}
            for sources in (self.custom, self.native)
        )
        return Index(custom=custom, native=native)

    def candidates(self, name: str) -> Iterator[ModuleFile]:
        """Files that may serve ``name``, in the order they are to be tried: users' files before native ones, and among
        each the file of that very name before those that claim it as their virtual name, by file name. Files are
        read for their claims only as far as the iterator is drawn."""
        yield from self._among(self.custom, name)
        yield from self._among(self.native, name)

    def _among(self, sources: Mapping[str, ModuleFile], name: str) -> Iterator[ModuleFile]:
        if name in sources:
            yield sources[name]
        for stem in sorted(sources):
            if stem != name and self._claims(sources[stem], name):
                yield sources[stem]

    def _claims(self, source: ModuleFile, name: str) -> bool:
        """Whether the text could make the module serve ``name``. May say yes in vain (the import decides), never no."""
        if source.path.suffix in COMPILED:
            return True
        text = self._texts.get(source.path)
        if text is None:
            text = self._texts[source.path] = _text(source.path)
        if source.native:
            return name in _VIRTUAL.findall(text)
        # A user's __virtual__ may compute its answer, but the name it returns stands in the file as a literal.
        return f'"{name}"' in text or f"'{name}'" in text


def scan(kind: str, extension_dir: Path | None, more: Sequence[Path] = ()) -> Index:
    """The index of one kind. ``more``: directories that come before that of the kind in ``extension_dir``. A missing
    directory is an empty one."""
    native = _files(kind, _package_dir(NATIVE[kind]), native=True) if kind in NATIVE else {}
    directories = [*more, *([extension_dir / kind] if extension_dir is not None else [])]
    custom: dict[str, ModuleFile] = {}
    for directory in reversed(directories):
        custom |= _files(kind, directory, native=False)
    return Index(custom=custom, native=native)


def _package_dir(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(f"statecore is installed without its package {package}")
    return Path(next(iter(spec.submodule_search_locations)))


def _files(kind: str, directory: Path, *, native: bool) -> dict[str, ModuleFile]:
    found: dict[str, ModuleFile] = {}
    try:
        paths = sorted(directory.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return found
    except OSError as error:
        log.warning("no modules from %s: %s", directory, error.strerror)
        return found
    others: dict[str, ModuleFile] = {}
    for path in paths:
        if path.name.startswith(("_", ".")):
            continue
        if path.suffix == ".py":
            found[path.stem] = ModuleFile(kind, path.stem, path, native)
        elif path.suffix in COMPILED:
            # foo.cpython-311-x86_64-linux-gnu.so; of another Python's, what is left is no name.
            stem = next(path.name.removesuffix(end) for end in (*_ENDS, path.suffix) if path.name.endswith(end))
            if not native and stem.isidentifier():
                others.setdefault(stem, ModuleFile(kind, stem, path, native))
        elif (path / "__init__.py").is_file():
            found.setdefault(path.name, ModuleFile(kind, path.name, path / "__init__.py", native))
    return {**others, **found}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        # Gone or unreadable between listing and reading: it claims nothing; asked for by file name, its import says why.
        return ""
