"""``file.directory``: a directory, with what is in it where that is asked for."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from statecore import managed_file
from statecore.context import Context
from statecore.errors import HostError, InvocationError, StateFailure
from statecore.managed_file import Attributes
from statecore.states.file.places import Refused, managed_elsewhere, patterns, place_of, walk
from statecore.types import Outcome, Plan, Step


def directory(
    ctx: Context,
    name: str,
    user: Any = None,
    group: Any = None,
    recurse: Any = None,
    max_depth: int | None = None,
    dir_mode: Any = None,
    file_mode: Any = None,
    makedirs: bool = False,
    clean: bool = False,
    require: Any = None,
    exclude_pat: Any = None,
    follow_symlinks: bool = False,
    force: bool = False,
    backupname: str | None = None,
    allow_symlink: bool = True,
    children_only: bool = False,
    mode: Any = None,
) -> Plan:
    """A directory with this owner and mode; ``recurse`` gives them to what is in it, ``clean`` removes what nobody manages."""
    try:
        place = place_of(ctx, name, follow=allow_symlink)
        wanted = Attributes(user, group, managed_file.parse_mode(dir_mode if dir_mode is not None else mode))
        return _Directory(
            ctx,
            name,
            place,
            wanted,
            file_mode=managed_file.parse_mode(file_mode),
            recurse=_recurse_words(recurse),
            max_depth=max_depth,
            makedirs=makedirs,
            clean=clean,
            exclude=patterns(exclude_pat),
            follow=follow_symlinks,
            force=force,
            backupname=backupname,
            children_only=children_only,
        ).plan()
    except (Refused, InvocationError, HostError) as error:
        return Plan.failed(str(error))


@dataclass(frozen=True, slots=True, kw_only=True)
class _DirectoryOptions:
    file_mode: int | None
    recurse: frozenset[str]
    max_depth: int | None
    makedirs: bool
    clean: bool
    exclude: tuple[str, ...]
    follow: bool
    force: bool
    backupname: str | None
    children_only: bool


class _Directory:
    """A directory to be brought to attributes, with what is in it where that is asked for."""

    def __init__(self, ctx: Context, name: str, place: Path, wanted: Attributes, **options: Any) -> None:
        self._ctx, self._name, self._place, self._wanted = ctx, name, place, wanted
        self._options = _DirectoryOptions(**options)

    def plan(self) -> Plan:
        """Makes it, mends it, cleans it: one step each."""
        steps: list[Step] = []
        changes: dict[str, dict[str, Any]] = {}
        if os.path.lexists(self._place) and not self._place.is_dir():
            steps.append(self._make_room())
        if not self._place.is_dir():
            changes[self._name] = {"directory": "new"}
            steps.append(Step(f"make the directory {self._name}", self._make))
        else:
            for path, shown, wish in self._below():
                differs = managed_file.attribute_changes(self._ctx.host, path, wish)
                if differs:
                    changes[shown] = differs
                    steps.append(Step(f"set owner and mode of {shown}", self._mend(path, wish, shown, differs)))
            for path, shown in self._dirt():
                changes[shown] = {"removed": "Removed due to clean"}
                steps.append(Step(f"remove {shown}", self._remove(path, shown)))
        if not steps:
            return Plan.unchanged(f"The directory {self._name} is in the correct state")
        lines = [f"{path}: {kind} - {value}" for path, change in changes.items() for kind, value in change.items()]
        would = "The following files will be changed:\n" + "".join(f"{line}\n" for line in lines)
        return Plan.change(would, (*steps, Step("say so", self._said(changes))), changes)

    def _said(self, changes: Mapping[str, Any]) -> Callable[[], Outcome]:
        made = any("directory" in change for change in changes.values())
        return lambda: Outcome("" if made else f"Directory {self._name} updated")

    def _make_room(self) -> Step:
        if self._options.backupname:
            aside = place_of(self._ctx, self._options.backupname, follow=False)
            if os.path.lexists(aside) and not self._options.force:
                raise Refused(f"File exists where the backup target {self._options.backupname} should go")

            def move() -> Outcome:
                self._place.rename(aside)
                return Outcome("", {"backup": f"Existing file moved to {self._options.backupname}"})

            return Step(f"move {self._name} aside", move)
        if not self._options.force:
            kind = "symlink" if self._place.is_symlink() else "file"
            raise Refused(f"Specified location {self._name} exists and is a {kind}")

        def clear() -> Outcome:
            managed_file.remove(self._place)
            return Outcome("", {"forced": "File was forcibly replaced"})

        return Step(f"remove {self._name}", clear)

    def _make(self) -> Outcome:
        if not self._place.parent.is_dir() and not self._options.makedirs:
            raise StateFailure(f"No directory to create {self._name} in")
        managed_file.make_directories(self._ctx.host, self._place, self._wanted, self._ctx.host.root)
        return Outcome("", {self._name: {"directory": "new"}})

    def _mend(self, path: Path, wish: Attributes, shown: str, differs: Mapping[str, Any]) -> Callable[[], Outcome]:
        def work() -> Outcome:
            managed_file.set_attributes(self._ctx.host, path, wish)
            return Outcome("", {shown: dict(differs)})

        return work

    def _remove(self, path: Path, shown: str) -> Callable[[], Outcome]:
        def work() -> Outcome:
            if os.path.lexists(path):
                managed_file.remove(path)
            return Outcome("", {shown: {"removed": "Removed due to clean"}})

        return work

    def _below(self) -> Iterator[tuple[Path, str, Attributes]]:
        """The directory itself, then what ``recurse`` reaches: (our path, the host's, wanted attributes)."""
        options, wanted = self._options, self._wanted
        if not options.children_only:
            yield self._place, self._name, wanted
        if not options.recurse:
            return
        owner = Attributes(
            wanted.user if "user" in options.recurse else None, wanted.group if "group" in options.recurse else None
        )
        for path, depth, is_dir in walk(self._place):
            if options.max_depth is not None and depth > options.max_depth:
                continue
            if (is_dir and "ignore_dirs" in options.recurse) or (not is_dir and "ignore_files" in options.recurse):
                continue
            mode = (wanted.mode if is_dir else options.file_mode) if "mode" in options.recurse else None
            yield path, self._shown(path), Attributes(owner.user, owner.group, mode)

    def _dirt(self) -> list[tuple[Path, str]]:
        """What ``clean`` removes: everything below that no other state of this run manages."""
        if not self._options.clean:
            return []
        keep = managed_elsewhere(self._ctx, self._name)
        found = []
        for path, _, _ in walk(self._place):
            shown = self._shown(path)
            relative = shown[len(self._name.rstrip("/")) + 1 :]
            if shown in keep or any(fnmatch.fnmatchcase(relative, pattern) for pattern in self._options.exclude):
                continue
            found.append((path, shown))
        return found

    def _shown(self, path: Path) -> str:
        return f"{self._name.rstrip('/')}/{path.relative_to(self._place).as_posix()}"


def _recurse_words(recurse: Any) -> frozenset[str]:
    if recurse in (None, False):
        return frozenset()
    known = {"user", "group", "mode", "ignore_files", "ignore_dirs", "silent"}
    if not isinstance(recurse, list) or not set(map(str, recurse)) <= known:
        raise Refused(f"recurse must be a list of {', '.join(sorted(known))}, not {recurse!r}")
    return frozenset(map(str, recurse))
