"""``file.managed``: one file with a content, an owner and a mode."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from statecore import managed_file
from statecore.context import Context
from statecore.errors import HostError, InvocationError, SlsError, StateFailure
from statecore.managed_file import Attributes
from statecore.states.file.content import Spec, literal_content, wanted_bytes
from statecore.states.file.places import NOTE, Refused, attributes, need_parent, parent_attributes, place_of, refuse
from statecore.types import Outcome, Plan, Step

#: Where ``backup: minion`` keeps copies, below the minion's cache directory.
_BACKUPS = "file_backup"


def managed(
    ctx: Context,
    name: str,
    source: Any = None,
    source_hash: str = "",
    source_hash_name: str | None = None,
    keep_source: bool = True,
    user: Any = None,
    group: Any = None,
    mode: Any = None,
    attrs: Any = None,
    template: str | None = None,
    makedirs: bool = False,
    dir_mode: Any = None,
    context: Mapping[str, Any] | None = None,
    replace: bool = True,
    defaults: Mapping[str, Any] | None = None,
    backup: Any = "",
    show_changes: bool = True,
    create: bool = True,
    contents: Any = None,
    tmp_dir: str = "",
    tmp_ext: str = "",
    contents_pillar: Any = None,
    contents_grains: Any = None,
    contents_newline: bool = True,
    contents_delimiter: str = ":",
    encoding: str | None = None,
    encoding_errors: str = "strict",
    allow_empty: bool = True,
    follow_symlinks: bool = True,
    check_cmd: str | None = None,
    skip_verify: bool = False,
    selinux: Any = None,
    saltenv: str | None = None,
) -> Plan:
    """A file with this content, owner and mode.

    source
        salt://, file:// or a path of the host, or a list of which the first that exists is taken
    contents, contents_pillar, contents_grains
        the content itself, or where it is
    mode
        octal digits, or ``keep``: the source's own
    """
    try:
        refuse({"attrs": attrs, "selinux": selinux})
        place = place_of(ctx, name, follow=follow_symlinks)
        if place.is_dir():
            raise Refused(f"Specified target {name} is a directory")
        if not create and not os.path.lexists(place):
            return Plan.unchanged(f"File {name} is not present and is not set for creation")
        literal = literal_content(
            ctx, contents, contents_pillar, contents_grains, contents_delimiter, allow_empty, source
        )
        wish, keep = attributes(user, group, mode)
        spec = Spec(saltenv or ctx.saltenv, template, context, defaults, encoding, encoding_errors, contents_newline)
        old = managed_file.read(place)
        if old is not None and not replace:
            return _attributes_alone(ctx, name, place, wish, "exists with proper permissions. No changes made.")
        if literal is None and not source:
            return _touch_only(ctx, name, place, old, wish, makedirs, dir_mode)
        new, source_mode = wanted_bytes(
            ctx, spec, literal, source, name, skip_verify=skip_verify, source_hash=source_hash
        )
        if keep:
            wish = Attributes(wish.user, wish.group, source_mode)
        elif old is None and wish.mode is None and source and template:
            wish = Attributes(wish.user, wish.group, 0o644)
        write = _Write(ctx, name, place, old, new, wish, makedirs, dir_mode, str(backup or ""), show_changes, check_cmd)
        return write.plan()
    except (Refused, InvocationError, HostError) as error:
        return Plan.failed(str(error))
    except SlsError as error:
        return Plan.failed(f"Unable to manage file: {error}")
    except OSError as error:
        return Plan.failed(f"Unable to manage file: {error.filename}: {error.strerror}")


@dataclass(frozen=True, slots=True)
class _Write:
    """One file to be brought to a content and attributes."""

    ctx: Context
    name: str
    place: Path
    old: bytes | None
    new: bytes
    wish: Attributes
    makedirs: bool
    dir_mode: Any
    backup: str
    show_changes: bool
    check_cmd: str | None = None

    def plan(self) -> Plan:
        """Nothing, or one step."""
        changes = self._changes()
        if not changes:
            return Plan.unchanged(f"File {self.name} is in the correct state")
        predicted = {"newfile": self.name} if self.old is None else changes
        what = "write" if self.new != self.old else "set owner and mode of"
        return Plan.change(
            f"The file {self.name} is set to be changed\n{NOTE}",
            (Step(f"{what} {self.name}", self._apply),),
            predicted,
        )

    def _changes(self) -> dict[str, Any]:
        changes: dict[str, Any] = {}
        if self.old != self.new:
            changes["diff"] = (
                managed_file.unified(self.old, self.new) if self.show_changes else managed_file.HIDDEN_DIFF
            )
        if self.old is not None:
            return changes | managed_file.attribute_changes(self.ctx.host, self.place, self.wish)
        return changes

    def _apply(self) -> Outcome:
        ctx = self.ctx
        changes = self._changes()
        need_parent(ctx, self.place, self.makedirs, parent_attributes(self.wish, self.dir_mode))
        if self.check_cmd:
            self._check()
        if self.old is not None and self.backup in ("minion", "both"):
            managed_file.back_up(self.place, Path(str(ctx.opts.get("cachedir") or "/var/cache/salt/minion")) / _BACKUPS)
        if self.old != self.new:
            managed_file.replace(ctx.host, self.place, self.new, self.wish)
            if self.old is None:
                changes |= _told_attributes(self.wish, self.place)
        else:
            managed_file.set_attributes(ctx.host, self.place, self.wish)
        return Outcome(f"File {self.name} updated", changes)

    def _check(self) -> None:
        """The check command sees the new content in a file of its own, before the real one is touched."""
        trial = f"/tmp/.saltern-check-{os.urandom(6).hex()}"
        place = self.ctx.host.path(trial)
        managed_file.make_directories(self.ctx.host, place.parent, Attributes(), self.ctx.host.root)
        managed_file.replace(self.ctx.host, place, self.new, Attributes(mode=0o600))
        try:
            result = self.ctx.call("cmd.run_all", f"{self.check_cmd} {trial}", python_shell=True, ignore_retcode=True)
        finally:
            place.unlink(missing_ok=True)
        if result["retcode"]:
            said = result["stderr"] or result["stdout"]
            raise StateFailure(f"check_cmd execution failed\n{said}".rstrip())


def _told_attributes(wish: Attributes, place: Path) -> dict[str, Any]:
    """What Salt tells of a new file's attributes: those that were asked for and that the process would not have made so."""
    return {"mode": managed_file.shown_mode(wish.mode)} if wish.mode is not None else {}


def _attributes_alone(ctx: Context, name: str, place: Path, wish: Attributes, fine: str) -> Plan:
    changes = managed_file.attribute_changes(ctx.host, place, wish)
    if not changes:
        return Plan.unchanged(f"File {name} {fine}")

    def work() -> Outcome:
        managed_file.set_attributes(ctx.host, place, wish)
        return Outcome(f"File {name} updated", changes)

    return Plan.change(
        f"The file {name} is set to be changed\n{NOTE}", (Step(f"set owner and mode of {name}", work),), changes
    )


def _touch_only(
    ctx: Context, name: str, place: Path, old: bytes | None, wish: Attributes, makedirs: bool, dir_mode: Any
) -> Plan:
    """No content is asked for: the file need only be there."""
    if old is not None:
        return _attributes_alone(ctx, name, place, wish, "exists with proper permissions. No changes made.")

    def work() -> Outcome:
        need_parent(ctx, place, makedirs, parent_attributes(wish, dir_mode))
        managed_file.replace(ctx.host, place, b"", wish)
        return Outcome("Empty file", {"new": f"file {name} created"} | _told_attributes(wish, place))

    return Plan.change(
        f"The file {name} is set to be changed\n{NOTE}", (Step(f"create {name}", work),), {"newfile": name}
    )
