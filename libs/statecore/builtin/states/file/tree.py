"""Directory walks: the files of the state tree that ``recurse`` copies, and the host's entries that ``clean`` removes."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

from statecore.builtin.states.file.arguments import Refused
from statecore.host import rooted_path
from statecore.model import tree_url
from statecore.model.context import Context
from statecore.model.values import to_int

#: ``file`` functions that manage no file: ``clean`` keeps nothing for them.
_MANAGE_NOTHING = frozenset({"absent", "missing", "exists"})


@dataclass(frozen=True, slots=True)
class Tree:
    """The files, directories and links of one or several directories of the state tree, as ``file.recurse`` copies
    them.

    Paths are relative to the directory.
    """

    #: Path -> ``salt://`` URL of its source.
    files: Mapping[str, str]
    dirs: tuple[str, ...]
    empty: tuple[str, ...]
    links: Mapping[str, str]

    @classmethod
    def of(cls, ctx: Context, given: Mapping[str, object]) -> Tree:
        """Return the files that ``file.recurse`` copies: of the first source that exists, or with ``merge`` of all
        sources.

        Raises Refused if no source exists, or if a source is not a ``salt://`` URL.
        """
        source = given["source"]
        tried = [str(one) for one in (source if isinstance(source, list) else [source])]
        found: list[Tree] = []
        for address in tried:
            if not tree_url.is_tree_url(address):
                raise Refused(f"Recurse failed: Invalid source '{address}' (must be a salt:// URI)")
            path, named = tree_url.split(address)
            env = named or str(given.get("saltenv") or ctx.saltenv)
            top = path.strip("/")
            prefix = f"{top}/" if top else ""
            if (given.get("merge") or not found) and (ctx.files.paths(env, prefix) or top in ctx.files.dirs(env)):
                found.append(cls._filtered(ctx, env, prefix, given))
        if found:
            return reduce(cls._merged_with, found)
        saltenv = given.get("saltenv") or ctx.saltenv
        raise Refused(
            f"Recurse failed: none of the specified sources were found: {', '.join(tried)} (in saltenv '{saltenv}')"
        )

    @classmethod
    def _filtered(cls, ctx: Context, env: str, prefix: str, given: Mapping[str, object]) -> Tree:
        maxdepth = given.get("maxdepth")

        def wanted(path: str) -> bool:
            if maxdepth is not None and path.count("/") > to_int(maxdepth):
                return False
            return selected(path, given.get("include_pat"), given.get("exclude_pat"))

        found = ctx.files.symlinks(env, prefix) if given.get("keep_symlinks") else {}
        links = {path[len(prefix) :]: target for path, target in found.items() if wanted(path[len(prefix) :])}
        files = [path[len(prefix) :] for path in ctx.files.paths(env, prefix)]
        through = tuple(f"{path[len(prefix) :]}/" for path in found)
        kept = {
            path: f"salt://{prefix}{path}?saltenv={env}"
            for path in files
            if wanted(path) and path not in links and not (through and path.startswith(through))
        }
        empty = [path[len(prefix) :] for path in ctx.files.empty_dirs(env, prefix)]
        return cls(kept, _parents(kept), tuple(path for path in empty if wanted(path)), links)

    def _merged_with(self, other: Tree) -> Tree:
        """Return this tree with the entries of another tree added; this tree's entries take precedence."""
        taken = {*self.files, *self.links}
        inside = {*self.dirs, *self.empty}

        def free(path: str) -> bool:
            return path not in inside and taken.isdisjoint({path, *map(str, Path(path).parents)})

        files = {**self.files, **{path: source for path, source in other.files.items() if free(path)}}
        links = {**self.links, **{path: target for path, target in other.links.items() if free(path)}}
        empty = (*self.empty, *(path for path in other.empty if free(path)))
        dirs = _parents(files)
        return Tree(files, dirs, tuple(path for path in empty if path not in dirs), links)

    def names(self) -> Iterator[str]:
        """Yield every relative path of the copied tree except empty directories."""
        yield from self.dirs
        yield from self.files
        yield from self.links


def _parents(paths: Iterable[str]) -> tuple[str, ...]:

    return tuple(sorted({str(parent) for path in paths for parent in Path(path).parents if str(parent) != "."}))


def selected(path: str, include: object, exclude: object) -> bool:
    """Return True if the arguments ``include_pat`` and ``exclude_pat`` of ``file.recurse`` select a relative path.

    Patterns: globs, or regular expressions after ``E@``.
    """
    included = include is None or any(_matches(path, pattern) for pattern in _patterns(include))
    return included and not any(_matches(path, pattern) for pattern in _patterns(exclude))


def walk(top: Path) -> Iterator[tuple[Path, int, bool]]:
    """Yield (path, depth from 0, True for a directory) of everything below the directory ``top``, parents first.

    Links are not followed.
    """
    for here, names, files in rooted_path.walk(top):
        depth = len(here.relative_to(top).parts)
        for entry in sorted(files):
            yield here / entry, depth, False
        for entry in sorted(names):
            yield here / entry, depth, not (here / entry).is_symlink()


def unmanaged_entries(
    ctx: Context, name: str, place: Path, own: Collection[str] = (), exclude: object = None
) -> list[str]:
    """List of the paths below a host directory that ``clean`` removes, parents first: those that no state of this run
    manages.

    Salt keeps only entries that required states manage. Here entries of all states are kept; otherwise these states
    would undo each other. Below a directory that a required state manages, everything is kept, as in Salt. Parents of
    kept entries are kept too.
    """
    if not place.is_dir():
        return []
    below = {f"{name.rstrip('/')}/{path.relative_to(place).as_posix()}": path for path, _, _ in walk(place)}
    keep = {path for path in below if not selected(path[len(name.rstrip("/")) + 1 :], None, exclude)} | set(own)
    required = {str(each.get("file")) for each in ctx.low.get("require") or () if isinstance(each, Mapping)}
    for low in ctx.lowstate:
        if (
            low.get("state") == "file"
            and low.get("fun") not in _MANAGE_NOTHING
            and Path(str(low["name"])) != Path(name)
        ):
            keep |= _kept_for(ctx, low, below, whole=bool(required & {low["name"], low["__id__"]}))
    keep |= {str(parent) for path in keep for parent in Path(path).parents}
    return [path for path in below if path not in keep]


def _inside(path: str, top: str) -> bool:
    return Path(path) != Path(top) and Path(path).is_relative_to(top)


def _kept_for(ctx: Context, low: Mapping[str, object], below: Collection[str], *, whole: bool) -> set[str]:
    top = str(low["name"]).rstrip("/")
    found = {top}
    if low["fun"] == "recurse":
        try:
            tree = Tree.of(ctx, low)
        except Refused:
            # The other state reports this failure itself.
            return found
        found |= {f"{top}/{path}" for path in tree.names()}
    elif whole:
        found |= {path for path in below if path.startswith(f"{top}/")}
    return found


def _matches(path: str, pattern: str) -> bool:
    if pattern.startswith("E@"):
        try:
            return re.search(pattern[2:], path) is not None
        except re.error as error:
            raise Refused(f"'{pattern}' is not a valid regular expression: {error}") from error
    return fnmatch.fnmatchcase(path, pattern)


def _patterns(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    return tuple(str(pattern) for pattern in value) if isinstance(value, list) else (str(value),)
