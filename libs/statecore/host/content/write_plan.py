"""Plan to give a file of the host a content, an owner and a mode. ``file.managed`` and other states that write files
use it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from statecore.host.content import backups, diffs, digests, managed_file
from statecore.host.content.diffs import Ignored
from statecore.host.content.managed_file import Attributes
from statecore.host.content.special_attributes import SpecialAttributes
from statecore.model.context import Context
from statecore.model.errors import HostError, StateFailure
from statecore.model.types import FileChange, Outcome, Plan, Step

#: Text that test mode adds to the comment of a managed file.
NOTE = "Note: No changes made, actual changes may\nbe different due to other states."

#: Directory of the backups of ``backup: minion``, below the minion's cachedir.
_BACKUPS = "file_backup"


def step(what: str, work: Callable[[], Outcome], file: FileChange | None = None) -> Step:
    """Return a step of a Salt state's plan that is described by ``what`` and calls ``work``.

    A HostError in ``work`` fails the state with the error's text as comment.
    """

    def run() -> Outcome:
        try:
            return work()
        except HostError as error:
            raise StateFailure(str(error)) from error

    return Step(what, run, file)


def ensure_parent(
    ctx: Context, real_path: Path, makedirs: bool, attributes: Attributes, why: str = "Parent directory not present"
) -> None:
    """Create the parent directory of a file if ``makedirs`` is True. If ``makedirs`` is False and the directory is
    missing, raise StateFailure with the comment ``why``.
    """
    if real_path.parent.is_dir():
        return
    if not makedirs:
        raise StateFailure(why)
    managed_file.make_directories(ctx.host, real_path.parent, attributes, ctx.host.root)


def parent_attributes(attributes: Attributes, dir_mode: object) -> Attributes:
    """Return the attributes of a new parent directory: the file's owner, and ``dir_mode`` or a mode derived from the
    file's mode.
    """
    mode = managed_file.parse_mode(dir_mode)
    if mode is None and attributes.mode is not None:
        mode = managed_file.directory_mode(attributes.mode)
    return Attributes(attributes.user, attributes.group, mode)


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """Content, owner, mode and other attributes that a Salt state demands for one file."""

    ctx: Context
    name: str
    #: Path to replace: the link itself when links are not followed.
    real_path: Path
    #: Path after resolving links.
    real: Path
    #: Contents: bytes, or the path of a large file; ``old`` is None when the file does not exist.
    old: bytes | Path | None
    new: bytes | Path
    attributes: Attributes
    makedirs: bool
    dir_mode: object
    backup: str
    show_changes: bool
    check_cmd: str | None = None
    #: Directory on the host, and suffix of the name, of the temporary file for ``check_cmd``.
    tmp_dir: str = ""
    tmp_ext: str = ""
    #: Whether the whole content of a new file is shown as its difference.
    new_file_diff: bool = False
    #: Changes to report, when the file changes, in place of those with the same keys.
    changes: Mapping[str, object] = field(default_factory=dict)
    #: Wanted chattr attributes and SELinux context.
    marks: SpecialAttributes | None = None
    #: Changes that trigger no requisites.
    ignored: Ignored = field(default_factory=Ignored)

    def plan(self) -> Plan:
        """Return the Salt state's plan that writes the file: one step, or no step if nothing differs.

        Raises HostError for attributes that the host does not support.
        """
        changes = self._changes()
        if not changes:
            right = f"{self.name} is in the correct state"
            return Plan.unchanged(f"File {right}", in_test=f"The file {right}")
        predicted = {"newfile": self.name} if self.old is None and not self._shows_all() else changes
        what, file = "set owner and mode of", None
        if "diff" in changes:
            what, file = "write", self._file()
        plan = Plan.change(
            f"The file {self.name} is set to be changed\n{NOTE}",
            (step(f"{what} {self.name}{self._large_content()}", lambda: self._apply(changes), file),),
            predicted,
        )
        quiet = changes.keys() == {"diff"} and self.old is not None and self.ignored.all_of(self.old, self.new)
        return plan._replace(skip_req=quiet)

    def _file(self) -> FileChange | None:

        if isinstance(self.old, Path) or isinstance(self.new, Path):
            return None
        return FileChange(self.name, self.old, self.new, self.show_changes)

    def _large_content(self) -> str:

        if not isinstance(self.new, Path):
            return ""
        return f" ({managed_file.size(self.new)} bytes, sha256 {digests.digest_of(self.new, 'sha256')})"

    def _changes(self) -> dict[str, object]:
        changes: dict[str, object] = {}
        if not managed_file.same(self.old, self.new):
            # The text "New file" is shown even without show_changes.
            shown = self.show_changes or self.old is None
            before = b"" if self._shows_all() else self.old
            changes["diff"] = diffs.unified(before, self.new) if shown else diffs.HIDDEN
        if self.real_path.is_symlink():
            return {"diff": "Replace symbolic link with regular file"} | changes
        if changes:
            changes |= self.changes
        if self.old is not None:
            borne = self.marks.changes() if self.marks else {}
            return changes | managed_file.attribute_changes(self.ctx.host, self.real_path, self.attributes) | borne
        if self.marks:
            self.marks.possible(self.real_path)
        return changes

    def _shows_all(self) -> bool:
        whole = self.old is None and self.new_file_diff and self.show_changes
        return whole and not isinstance(self.new, Path) and not diffs.is_binary(self.new)

    def _apply(self, planned: Mapping[str, object]) -> Outcome:
        ctx = self.ctx
        changes = dict(planned)
        ensure_parent(ctx, self.real_path, self.makedirs, parent_attributes(self.attributes, self.dir_mode))
        if self.check_cmd:
            self._check()
        kept = self.backup or str(ctx.opts.get("backup_mode") or "")
        if self.old is not None and kept in ("minion", "both"):
            backups.back_up(self.real, Path(str(ctx.opts.get("cachedir") or "/var/cache/salt/minion")) / _BACKUPS)
        there = self.old is not None and not self.real_path.is_symlink()
        if self.marks and there:
            self.marks.unseal()
        if "diff" in changes:
            managed_file.replace(ctx.host, self.real_path, self.new, self.attributes)
            if self.old is None:
                changes |= reported_attributes(ctx, self.attributes)
        else:
            managed_file.set_attributes(ctx.host, self.real_path, self.attributes)
        if self.marks:
            # For an existing file the planned changes compare with the old file, not with its replacement.
            put = self.marks.put()
            changes |= {} if there else put
        return Outcome(f"File {self.name} updated", changes)

    def _check(self) -> None:
        """Run ``check_cmd`` on a temporary file with the new content, before the real file changes. Raise StateFailure
        with the command's output if its exit code is not 0.
        """
        trial = f"{(self.tmp_dir or '/tmp').rstrip('/')}/.saltern-check-{os.urandom(6).hex()}{self.tmp_ext}"
        trial_path = self.ctx.host.path(trial)
        managed_file.make_directories(self.ctx.host, trial_path.parent, Attributes(), self.ctx.host.root)
        managed_file.replace(self.ctx.host, trial_path, self.new, Attributes(mode=0o600))
        try:
            result = self.ctx.call("cmd.run_all", f"{self.check_cmd} {trial}", python_shell=True, ignore_retcode=True)
        finally:
            trial_path.unlink(missing_ok=True)
        if result["retcode"]:
            output = result["stderr"] or result["stdout"]
            raise StateFailure(f"check_cmd execution failed\n{output}".rstrip())


def reported_attributes(ctx: Context, attributes: Attributes) -> dict[str, object]:
    """Map of the attributes of a new file that Salt reports as changes: "user" and "group" if they are not those of
    this process, "mode" if it is not 0600.
    """
    described: dict[str, object] = {}
    if attributes.user is not None and ctx.host.uid(attributes.user) != os.geteuid():
        described["user"] = attributes.user
    if attributes.group is not None and ctx.host.gid(attributes.group) != os.getegid():
        described["group"] = attributes.group
    if attributes.mode not in (None, 0o600):
        described["mode"] = managed_file.shown_mode(attributes.mode or 0)
    return described
