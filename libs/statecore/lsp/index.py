"""The index of a workspace: facts of all files of the state trees and the pillar tree, kept current file by file.

A file is read again only when its content changes, and only its own entries are replaced. Open documents take the place
of their files. Only ``scan``, ``listed``, ``reread`` and ``close`` read the disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple

from statecore.analysis.sls_text.lines import Span
from statecore.host import beneath
from statecore.lsp.facts import Declaration, FileFacts, Reference, facts_of

#: Larger files (bytes) are not indexed: they are data, not SLS.
_LARGEST = 1_000_000

#: Endings of the files whose content is read. Of other files only the path is known.
READ = (".sls", ".jinja", ".jinja2", ".j2", ".yaml", ".yml", ".json", ".py")

#: Endings of files that are templates.
TEMPLATES = (".jinja", ".jinja2", ".j2")

#: Directories that are never a part of a tree.
_SKIPPED = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv"})


@dataclass(frozen=True, slots=True)
class Roots:
    """The directories of a workspace: state trees and pillar trees, by environment."""

    states: Mapping[str, Sequence[str]]
    pillar: Mapping[str, Sequence[str]] = field(default_factory=dict)
    state_top: str = "top.sls"
    #: False: a link that leads out of its directory is not read.
    follow_links: bool = True

    def directory_of(self, file: str) -> str:
        """Return the root directory with the longest path that holds a file; "" if none does."""
        listed = [each for envs in (self.states, self.pillar) for directories in envs.values() for each in directories]
        return max((each for each in listed if file.startswith(f"{each.rstrip('/')}/")), key=len, default="")


class InTree(NamedTuple):
    """Where a file belongs: the kind of its tree ("states" or "pillar"), the environment, and its path in the tree."""

    tree: str
    env: str
    path: str


class Place(NamedTuple):
    """A part of one line of a file."""

    file: str
    span: Span


@dataclass(slots=True)
class IndexedFile:
    """One indexed file: where it belongs, its text, and the facts about it."""

    at: InTree
    kind: str
    text: str
    facts: FileFacts


class TreeIndex:
    """Facts about all files of a workspace, and the tables in which names are looked up."""

    def __init__(self, roots: Roots) -> None:
        """Create an empty index of these directories. ``scan`` and ``update`` fill it."""
        self.roots = roots
        self.files: dict[str, IndexedFile] = {}
        #: Path on disk -> where it belongs, for every file of the trees, also those that are not read.
        self.known: dict[str, InTree] = {}
        self._stamps: dict[str, tuple[int, int]] = {}
        self._declared: dict[str, dict[str, list[Declaration]]] = {}
        self._uses: dict[tuple[str, str], dict[str, list[Reference]]] = {}
        self._keys: dict[str, dict[str, Span]] = {}
        #: Open documents, whose text on disk does not count.
        self._open: set[str] = set()

    # ------------------------------------------------------------------------------------------------------------ filling

    def scan(self) -> int:
        """Read the files that are new or changed on disk, and forget the missing ones. Return the number of files read."""
        listed = self.listed()
        for file in [each for each in self.known if each not in listed and each not in self._open]:
            self.remove(file)
        self.known |= listed
        return sum(self.reread(file) for file in listed)

    def listed(self) -> dict[str, InTree]:
        """Return the files of the trees on disk, and where each belongs. Nothing is read."""
        found: dict[str, InTree] = {}
        for tree, envs in (("states", self.roots.states), ("pillar", self.roots.pillar)):
            for env, directories in envs.items():
                for directory in directories:
                    for file, path in _walk(directory):
                        # A pillar tree below the state tree is a pillar tree.
                        if file not in found or tree == "pillar":
                            found[file] = InTree(tree, env, path)
        return found

    def reread(self, file: str) -> bool:
        """Read one file if it changed on disk. Return True if it was read. A file that is gone is forgotten."""
        if file in self._open:
            return False
        stamp = self._stamp(file)
        if stamp is None:
            self.remove(file)
            return False
        if self._stamps.get(file) == stamp or not file.endswith(READ):
            self.known.setdefault(file, self.place_of(file))
            return False
        self._stamps[file] = stamp
        if stamp[1] > _LARGEST or (text := self._text(file)) is None:
            self.known.setdefault(file, self.place_of(file))
            return False
        self.update(file, text)
        return True

    def _stamp(self, file: str) -> tuple[int, int] | None:
        """Return (mtime, size) of a file; None if it is gone, is no plain file, or is behind a link that is not followed."""
        opened = self._opened(file)
        if opened is None:
            return None
        with opened:
            info = os.fstat(opened.fileno())
        return (info.st_mtime_ns, info.st_size)

    def _text(self, file: str) -> str | None:
        """Return the text of a plain file of at most ``_LARGEST`` bytes; None for any other."""
        opened = self._opened(file)
        if opened is None:
            return None
        with opened, open(opened.fileno(), "rb", closefd=False) as buffered:
            try:
                data = buffered.read(_LARGEST + 1)
                return data.decode("utf-8").replace("\r\n", "\n") if len(data) <= _LARGEST else None
            except (OSError, UnicodeDecodeError):
                return None

    def _opened(self, file: str) -> BinaryIO | None:
        """Open a plain file; None for another one. Without followed links it lies in a root, also behind its links."""
        path = Path(file)
        root, rest, links = str(path.parent), path.name, beneath.Links.ANYWHERE
        if not self.roots.follow_links:
            root, links = self.roots.directory_of(file), beneath.Links.BENEATH
            if not root:
                return None
            rest = file[len(root.rstrip("/")) + 1 :]
        try:
            with beneath.directory(root) as top:
                return beneath.open_regular(top, rest, links=links, known_as=(root,))
        except (OSError, ValueError):
            return None

    def is_open(self, file: str) -> bool:
        """Return whether a file is an open document."""
        return file in self._open

    def open(self, file: str, text: str) -> None:
        """Take the text of an open document in place of the file's."""
        self._open.add(file)
        self.update(file, text)

    def close(self, file: str) -> None:
        """Take the file's own text again."""
        self._open.discard(file)
        self._stamps.pop(file, None)
        text = self._text(file)
        if text is None:
            self.remove(file)
        else:
            self.update(file, text)

    def update(self, file: str, text: str) -> None:
        """Index the text of one file. Nothing happens if the text is the one that is indexed."""
        indexed = self.files.get(file)
        if indexed is not None and indexed.text == text:
            return
        at = self.place_of(file)
        kind = kind_of(at, self.roots.state_top)
        facts = facts_of(text, kind)
        self._forget(file)
        self.known[file] = at
        self.files[file] = IndexedFile(at, kind, text, facts)
        for one in facts.declared():
            self._declared.setdefault(one.id, {}).setdefault(file, []).append(one)
            for state in one.states:
                if name := state.value("name"):
                    self._declared.setdefault(name, {}).setdefault(file, []).append(one)
        for reference in facts.references:
            name = self._absolute(reference, at)
            self._uses.setdefault((reference.kind, name), {}).setdefault(file, []).append(reference)
        for key, span in facts.keys.items():
            self._keys.setdefault(key, {})[file] = span

    def remove(self, file: str) -> None:
        """Forget a file that no longer exists."""
        self._forget(file)
        self.files.pop(file, None)
        self.known.pop(file, None)
        self._stamps.pop(file, None)

    def _forget(self, file: str) -> None:
        old = self.files.get(file)
        if old is None:
            return
        for one in old.facts.declared():
            for name in (one.id, *(state.value("name") for state in one.states)):
                if name in self._declared:
                    self._declared[name].pop(file, None)
                    if not self._declared[name]:
                        del self._declared[name]
        for reference in old.facts.references:
            key = (reference.kind, self._absolute(reference, old.at))
            if key in self._uses:
                self._uses[key].pop(file, None)
                if not self._uses[key]:
                    del self._uses[key]
        for key_path in old.facts.keys:
            if key_path in self._keys:
                self._keys[key_path].pop(file, None)
                if not self._keys[key_path]:
                    del self._keys[key_path]

    def place_of(self, file: str) -> InTree:
        """Return where a file belongs. A file outside all trees belongs to the tree "" with its base name as path."""
        if (known := self.known.get(file)) is not None:
            return known
        best: InTree | None = None
        for tree, envs in (("states", self.roots.states), ("pillar", self.roots.pillar)):
            for env, directories in envs.items():
                for directory in directories:
                    if file.startswith(f"{directory.rstrip('/')}/"):
                        path = file[len(directory.rstrip("/")) + 1 :]
                        if best is None or len(path) < len(best.path):
                            best = InTree(tree, env, path)
        return best or InTree("", "base", file.rpartition("/")[2])

    # ------------------------------------------------------------------------------------------------------------ look-ups

    def sls_names(self, tree: str) -> Iterator[tuple[str, str]]:
        """Yield (SLS reference, file) of a kind of tree ("states" or "pillar"), without top files."""
        for file, at in self.known.items():
            if at.tree == tree and at.path.endswith(".sls") and at.path != self.roots.state_top:
                yield reference(at.path), file

    def sls_file(self, sls: str, at: InTree) -> str | None:
        """Return the file of an SLS reference as written in another file; None if there is none."""
        wanted = absolute(sls, at)
        stem = wanted.replace(".", "/")
        for name in (f"{stem}.sls", f"{stem}/init.sls"):
            if file := self.tree_file(name, at):
                return file
        return None

    def tree_file(self, path: str, at: InTree) -> str | None:
        """Return the file on disk of a path in the same tree and environment; None if there is none."""
        envs = self.roots.pillar if at.tree == "pillar" else self.roots.states
        named = [at.env, *(env for env in envs if env != at.env)]
        for env in named:
            for directory in envs.get(env, ()):
                file = f"{directory.rstrip('/')}/{path}"
                if file in self.known:
                    return file
        return None

    def declarations(self, name: str) -> Iterator[tuple[str, Declaration]]:
        """Yield (file, declaration) of an ID, or of the states with this ``name``."""
        for file, listed in self._declared.get(name, {}).items():
            if self.files[file].at.tree != "pillar":
                yield from ((file, one) for one in listed)

    def declared_in(self) -> dict[str, list[str]]:
        """Map of ID or state name to the SLS references that declare it."""
        return {
            name: [reference(self.files[file].at.path) for file in files]
            for name, files in list(self._declared.items())
        }

    def uses(self, kind: str, name: str) -> Iterator[tuple[str, Reference]]:
        """Yield (file, reference) of all uses of a name. SLS references and template paths are absolute."""
        for file, listed in self._uses.get((kind, name), {}).items():
            yield from ((file, each) for each in listed)

    def used(self, kind: str) -> Iterator[str]:
        """Yield the names of one kind of reference that are used anywhere."""
        return (name for each, name in list(self._uses) if each == kind)

    def pillar_keys(self) -> Mapping[str, Mapping[str, Span]]:
        """Map of pillar key (joined by ":") to {file: place}."""
        return self._keys

    def includes_of(self, file: str) -> frozenset[str]:
        """Return the files that an SLS includes, directly or through others, and the file itself."""
        found = {file}
        todo = [file]
        while todo:
            indexed = self.files.get(todo.pop())
            for sls, _ in indexed.facts.includes if indexed else ():
                other = self.sls_file(sls, indexed.at) if indexed else None
                if other is not None and other not in found:
                    found.add(other)
                    todo.append(other)
        return frozenset(found)

    def _absolute(self, one: Reference, at: InTree) -> str:
        if one.kind == "sls":
            return f"{at.tree}:{absolute(one.name, at)}"
        if one.kind == "template":
            return template_path(one.name, at)
        return one.name


def reference(path: str) -> str:
    """Return the SLS reference of a path in a tree: ``web/init.sls`` is ``web``."""
    return path.removesuffix(".sls").removesuffix("/init").replace("/", ".")


def absolute(sls: str, at: InTree) -> str:
    """Return an SLS reference as written in a file (``.sub``, ``..common``) without leading dots."""
    bare = sls.lstrip(".")
    dots = len(sls) - len(bare)
    if not dots:
        return sls
    package = at.path.removesuffix(".sls").split("/")[:-1]
    kept = package[: len(package) - (dots - 1)] if dots > 1 else package
    return ".".join([*kept, bare]) if bare else ".".join(kept)


def template_path(path: str, at: InTree) -> str:
    """Return the path in the tree of an imported template; ``./x`` and ``../x`` are relative to the importing file."""
    if not path.startswith("."):
        return path.removeprefix("salt://")
    parts = at.path.split("/")[:-1]
    for part in path.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in (".", ""):
            parts.append(part)
    return "/".join(parts)


def kind_of(at: InTree, state_top: str = "top.sls") -> str:
    """Return how a file is read: "sls", "top", "pillar", "python" or "template"."""
    if at.path == state_top:
        return "top"
    if at.path.endswith(".sls"):
        return "pillar" if at.tree == "pillar" else "sls"
    return "python" if at.path.endswith(".py") else "template"


def _walk(directory: str) -> Iterator[tuple[str, str]]:
    """Yield (file, path below the directory) of the files of a tree. Links to directories are not followed."""
    base = directory.rstrip("/")
    for folder, directories, names in os.walk(base):
        directories[:] = sorted(each for each in directories if each not in _SKIPPED)
        for name in sorted(names):
            file = f"{folder}/{name}"
            yield file, file[len(base) + 1 :]


def spans(places: Iterable[Place]) -> list[Place]:
    """Return places without duplicates, sorted by file, line and column."""
    return sorted(set(places))
