"""``file.directory``: a directory with owner and mode; optionally recursive, optionally cleaned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from statecore.builtin.states.file.arguments import Refused, local_path, refuse_windows, step
from statecore.builtin.states.file.tree import unmanaged_entries, walk
from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.host.rooted_path import lexists
from statecore.model.context import Context
from statecore.model.errors import HostError, InvocationError, StateFailure
from statecore.model.types import Outcome, Plan, Step

#: Allowed values in ``recurse``, in the order of Salt's message.
_RECURSE = ("user", "group", "mode", "ignore_files", "ignore_dirs", "silent")


def directory(
    ctx: Context,
    name: str,
    user: str | int | None = None,
    group: str | int | None = None,
    recurse: object = None,
    max_depth: int | None = None,
    dir_mode: object = None,
    file_mode: object = None,
    makedirs: bool = False,
    clean: bool = False,
    require: object = None,
    exclude_pat: object = None,
    follow_symlinks: bool = False,
    force: bool = False,
    backupname: str | None = None,
    allow_symlink: bool = True,
    children_only: bool = False,
    mode: object = None,
    win_owner: object = None,
    win_perms: object = None,
    win_deny_perms: object = None,
    win_inheritance: bool = True,
    win_perms_reset: bool = False,
) -> Plan:
    """Create a directory and set its owner and mode.

    recurse
        list of attributes to set on all entries below: user, group, mode; with ignore_files or ignore_dirs to skip
        these, and
        silent to report no single changes
    max_depth
        number of levels that ``recurse`` descends; 0: only direct entries
    dir_mode, mode
        mode of the directory, in octal digits; with ``recurse`` also of directories below
    file_mode
        mode of the files below, with ``recurse``
    clean
        True: remove every entry that no state of this run manages. ``exclude_pat``: glob, or regular expression after
        ``E@``,
        of entries to keep.
    follow_symlinks
        True: set owner and mode of a link's target, not of the link
    force, backupname
        a file at this path is removed; or renamed to ``backupname``
    allow_symlink
        False: a symbolic link to a directory is replaced by a directory
    children_only
        True: set attributes only of the entries below, not of the directory itself
    """
    try:
        refuse_windows(locals())
        path = name.rstrip("/") or name
        return _Directory(
            ctx=ctx,
            name=path,
            place=local_path(ctx, path, follow=False),
            real=local_path(ctx, path),
            wanted=Attributes(user, group, managed_file.parse_mode(dir_mode if dir_mode is not None else mode)),
            file_mode=managed_file.parse_mode(file_mode or (dir_mode if dir_mode is not None else mode)),
            recurse=_recurse_words(recurse),
            max_depth=max_depth,
            makedirs=makedirs,
            clean=clean,
            exclude=exclude_pat,
            follow=follow_symlinks,
            allow_link=allow_symlink,
            force=force,
            backupname=backupname,
            children_only=children_only,
        ).plan()
    except (Refused, InvocationError, HostError) as error:
        return Plan.failed(str(error))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Directory:
    """The arguments of ``file.directory`` after checks, and the steps that make the directory."""

    ctx: Context
    name: str
    #: Path of the name itself, which may be a symbolic link.
    place: Path
    #: The path after links are followed.
    real: Path
    wanted: Attributes
    file_mode: int | None
    recurse: frozenset[str]
    max_depth: int | None
    makedirs: bool
    clean: bool
    exclude: object
    follow: bool
    allow_link: bool
    force: bool
    backupname: str | None
    children_only: bool

    def plan(self) -> Plan:
        """Return the plan of ``file.directory``, with one step each to create the directory, change attributes, and
        remove unmanaged entries.
        """
        if not self._there():
            return self._new()
        known = step("check that owner and group exist", self._know_owner)
        changes: dict[str, dict[str, object]] = {}
        mends: list[Step] = []
        for path, shown, attributes in self._below():
            differs = managed_file.attribute_changes(self.ctx.host, path, attributes)
            if differs:
                changes[shown] = differs
                mends.append(
                    step(f"set owner and mode of {shown}", self._fix_attributes(path, attributes, shown, differs))
                )
        gone = unmanaged_entries(self.ctx, self.name, self.real, (), self.exclude) if self.clean else []
        changes |= {path: {"removed": "Removed due to clean"} for path in gone}
        if not changes:
            return Plan.unchanged(f"The directory {self.name} is in the correct state")
        steps = [known, *mends]
        if mends and "silent" in self.recurse:
            steps.append(Step("silence changes", lambda: Outcome("", {"recursion": "Changes silenced"})))
        if gone:
            steps.append(step(f"clean {self.name}", lambda: self._cleaned(gone)))
        else:
            shown = f"{self.name}/*" if self.children_only else self.name
            steps.append(Step("report the result", lambda: Outcome(f"Directory {shown} updated")))
        return Plan.change(_would(changes), steps, changes)

    def _there(self) -> bool:
        return self.real.is_dir() and (self.allow_link or not self.place.is_symlink())

    def _new(self) -> Plan:
        changes: dict[str, dict[str, object]] = {self.name: {"directory": "new"}}
        make = step(f"make the directory {self.name}", self._make)
        if not lexists(self.place):
            return Plan.change(_would(changes), (make,), changes)
        room = self._make_room()
        if self.backupname:
            would = f"{self.name} would be backed up and replaced with a new directory"
            reported = {"backup": f"{self.name} would be renamed to {self.backupname}"}
            return Plan.change(would, (room, make), {**reported, **changes})
        return Plan.change(
            _would(changes), (room, make), {"forced": f"{self._kind()} would be forcibly replaced", **changes}
        )

    def _make_room(self) -> Step:
        if self.backupname:
            aside = local_path(self.ctx, self.backupname, follow=False)
            if lexists(aside) and not self.force:
                raise Refused(f"File exists where the backup target {self.backupname} should go")

            def move() -> Outcome:
                if lexists(aside):
                    managed_file.remove(aside)
                self.place.rename(aside)
                return Outcome("", {"backup": f"{self.name} renamed to {self.backupname}"})

            return step(f"move {self.name} aside", move)
        if not self.force:
            raise Refused(f"Specified location {self.name} exists and is a {self._kind().lower()}")

        reported = {"forced": f"{self._kind()} was forcibly replaced"}

        def clear() -> Outcome:
            managed_file.remove(self.place)
            return Outcome("", reported)

        return step(f"remove {self.name}", clear)

    def _kind(self) -> str:
        return "Symlink" if self.place.is_symlink() else "File"

    def _make(self) -> Outcome:
        if not self.place.parent.is_dir() and not self.makedirs:
            raise StateFailure(f"No directory to create {self.name} in")
        managed_file.make_directories(self.ctx.host, self.place, self.wanted, self.ctx.host.root)
        return Outcome("", {self.name: {"directory": "new"}})

    def _know_owner(self) -> Outcome:
        managed_file.check_owner(self.ctx.host, self.wanted)
        return Outcome()

    def _fix_attributes(
        self, path: Path, attributes: Attributes, shown: str, differs: Mapping[str, object]
    ) -> Callable[[], Outcome]:
        def work() -> Outcome:
            managed_file.set_attributes(self.ctx.host, path, attributes)
            return Outcome("", {} if "silent" in self.recurse else {shown: dict(differs)})

        return work

    def _cleaned(self, gone: list[str]) -> Outcome:
        removed = []
        for path in gone:
            place = self.ctx.host.path(path, follow=False)
            # Entries below a removed directory are already gone.
            if lexists(place):
                managed_file.remove(place)
                removed.append(path)
        reported: dict[str, object] = {path: {"removed": "Removed due to clean"} for path in gone}
        return Outcome(f"Files cleaned from directory {self.name}", reported | {"removed": removed})

    def _below(self) -> Iterator[tuple[Path, str, Attributes]]:
        """Yield (this process's path, host path, wanted attributes) of all files and directories that ``recurse``
        reaches; the directory itself is last.
        """
        if self.recurse:
            for path, depth, is_dir in walk(self.real):
                if self.max_depth is not None and depth >= self.max_depth:
                    continue
                if ("ignore_dirs" if is_dir else "ignore_files") not in self.recurse:
                    shown = f"{self.name.rstrip('/')}/{path.relative_to(self.real).as_posix()}"
                    yield self._followed(path, shown), shown, self._inside(is_dir)
        if not self.children_only:
            yield self.real if self.follow else self.place, self.name, self.wanted

    def _followed(self, path: Path, shown: str) -> Path:
        if self.follow and path.is_symlink():
            target = self.ctx.host.path(shown)
            # A dangling link has only its own attributes.
            return target if target.exists() else path
        return path

    def _inside(self, is_dir: bool) -> Attributes:
        mode = self.wanted.mode if is_dir else self.file_mode
        return Attributes(
            self.wanted.user if "user" in self.recurse else None,
            self.wanted.group if "group" in self.recurse else None,
            mode if "mode" in self.recurse else None,
        )


def _would(changes: Mapping[str, Mapping[str, object]]) -> str:
    lines = [f"{path}: {kind} - {value}\n" for path, change in changes.items() for kind, value in change.items()]
    return "".join(["The following files will be changed:\n", *lines])


def _recurse_words(recurse: object) -> frozenset[str]:
    if recurse in (None, False):
        return frozenset()
    if not isinstance(recurse, list):
        raise Refused('"recurse" must be formed as a list of strings')
    if not set(map(str, recurse)) <= set(_RECURSE):
        words = ", ".join(f'"{word}"' for word in _RECURSE)
        raise Refused(f'Types for "recurse" limited to {words}.')
    return frozenset(map(str, recurse))
