"""Files, directories and links as states (Salt's ``file`` state). Each reads, then plans; the engine applies."""

from __future__ import annotations

import difflib
import fnmatch
import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from statecore import managed_file
from statecore.context import Context
from statecore.errors import HostError, InvocationError, SlsError, StatecoreError, StateFailure
from statecore.managed_file import Attributes
from statecore.types import Outcome, Plan, Step

_NOTE = "Note: No changes made, actual changes may\nbe different due to other states."

#: Arguments of Salt that mean something on other systems, or that nothing here does yet; asking for them is refused.
_UNSUPPORTED = {"attrs": "file attributes", "win_owner": "Windows", "win_perms": "Windows", "win_deny_perms": "Windows"}

#: Where ``backup: minion`` keeps copies, below the minion's cache directory.
_BACKUPS = "file_backup"


class _Refused(Exception):
    """A plan that cannot be made; str() is the state's comment."""


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
        _refuse({"attrs": attrs, "selinux": selinux})
        place = _place(ctx, name, follow=follow_symlinks)
        if place.is_dir():
            raise _Refused(f"Specified target {name} is a directory")
        if not create and not os.path.lexists(place):
            return Plan.unchanged(f"File {name} is not present and is not set for creation")
        literal = _contents(ctx, contents, contents_pillar, contents_grains, contents_delimiter, allow_empty, source)
        wish, keep = _attributes(user, group, mode)
        spec = _Spec(saltenv or ctx.saltenv, template, context, defaults, encoding, encoding_errors, contents_newline)
        old = managed_file.read(place)
        if old is not None and not replace:
            return _attributes_alone(ctx, name, place, wish, "exists with proper permissions. No changes made.")
        if literal is None and not source:
            return _touch_only(ctx, name, place, old, wish, makedirs, dir_mode)
        new, source_mode = _wanted_bytes(
            ctx, spec, literal, source, name, skip_verify=skip_verify, source_hash=source_hash
        )
        if keep:
            wish = Attributes(wish.user, wish.group, source_mode)
        elif old is None and wish.mode is None and source and template:
            wish = Attributes(wish.user, wish.group, 0o644)
        write = _Write(ctx, name, place, old, new, wish, makedirs, dir_mode, str(backup or ""), show_changes, check_cmd)
        return write.plan()
    except (_Refused, InvocationError, HostError) as error:
        return Plan.failed(str(error))
    except SlsError as error:
        return Plan.failed(f"Unable to manage file: {error}")
    except OSError as error:
        return Plan.failed(f"Unable to manage file: {error.filename}: {error.strerror}")


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
        place = _place(ctx, name, follow=allow_symlink)
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
            exclude=_patterns(exclude_pat),
            follow=follow_symlinks,
            force=force,
            backupname=backupname,
            children_only=children_only,
        ).plan()
    except (_Refused, InvocationError, HostError) as error:
        return Plan.failed(str(error))


def absent(ctx: Context, name: str) -> Plan:
    """No file, link or directory of this name."""
    try:
        place = _place(ctx, name, follow=False)
    except (_Refused, HostError) as error:
        return Plan.failed(str(error))
    if str(Path(name)) == "/":
        return Plan.failed('Refusing to make "/" absent')
    if not os.path.lexists(place):
        return Plan.unchanged(f"File {name} is not present")
    kind = "directory" if place.is_dir() and not place.is_symlink() else "file"

    def work() -> Outcome:
        managed_file.remove(place)
        return Outcome(f"Removed {kind} {name}", {"removed": name})

    return Plan.change(f"{kind.title()} {name} is set for removal", (Step(f"remove {name}", work),), {"removed": name})


def exists(ctx: Context, name: str) -> Plan:
    """Fails unless there is something of this name."""
    try:
        there = _place(ctx, name).exists()
    except (_Refused, HostError) as error:
        return Plan.failed(str(error))
    return Plan.unchanged(f"Path {name} exists") if there else Plan.failed(f"Specified path {name} does not exist")


def missing(ctx: Context, name: str) -> Plan:
    """Fails if there is something of this name."""
    try:
        there = _place(ctx, name).exists()
    except (_Refused, HostError) as error:
        return Plan.failed(str(error))
    return Plan.failed(f"Specified path {name} exists") if there else Plan.unchanged(f"Path {name} is missing")


def touch(ctx: Context, name: str, atime: Any = None, mtime: Any = None, makedirs: bool = False) -> Plan:
    """A file of this name, with its times set (seconds since 1970; now where none are given)."""
    try:
        place = _place(ctx, name)
        times = None if atime is None and mtime is None else (float(atime or mtime), float(mtime or atime))
    except (_Refused, HostError) as error:
        return Plan.failed(str(error))
    except (TypeError, ValueError):
        return Plan.failed(f"atime and mtime are seconds since 1970, not {atime!r} and {mtime!r}")
    there = place.exists()
    kind = "directory" if place.is_dir() else "file"

    def work() -> Outcome:
        _need_parent(ctx, place, makedirs, Attributes())
        if not there:
            place.touch()
        os.utime(place, times)
        if there:
            return Outcome(f"Updated times on {kind} {name}", {"touched": name})
        return Outcome(f"Created empty file {name}", {"new": name})

    if there:
        return Plan.change(
            f"Times set to be updated on {kind} {name}", (Step(f"touch {name}", work),), {"touched": name}
        )
    return Plan.change(f"File {name} is set to be created", (Step(f"create {name}", work),), {"new": name})


def symlink(
    ctx: Context,
    name: str,
    target: str,
    force: bool = False,
    backupname: str | None = None,
    makedirs: bool = False,
    user: Any = None,
    group: Any = None,
    mode: Any = None,
    disallow_copy_and_unlink: bool = False,
    inherit_user_and_group: bool = False,
    follow_symlinks: bool = True,
    atomic: bool = False,
) -> Plan:
    """A symbolic link that points to ``target``."""
    try:
        place = _place(ctx, name, follow=False)
        wanted = Attributes(user, group)
        if place.is_symlink():
            now = str(place.readlink())
            if now == target:
                return _link_owner(ctx, name, place, wanted)
            return _make_link(
                ctx,
                name,
                place,
                target,
                wanted,
                makedirs,
                f"Link {name} target is set to be changed to {target}",
                "change",
            )
        if os.path.lexists(place):
            return _in_the_way(ctx, name, place, target, wanted, makedirs, force=force, backupname=backupname)
        would = f"Symlink {name} to {target} is set for creation"
        if not place.parent.is_dir() and not makedirs:
            would += f"\nDirectory {Path(name).parent} for symlink is not present"
        return _make_link(ctx, name, place, target, wanted, makedirs, would, "new")
    except (_Refused, HostError) as error:
        return Plan.failed(str(error))


def append(
    ctx: Context,
    name: str,
    text: Any = None,
    makedirs: bool = False,
    source: Any = None,
    source_hash: Any = None,
    template: str = "jinja",
    sources: Any = None,
    source_hashes: Any = None,
    defaults: Mapping[str, Any] | None = None,
    context: Mapping[str, Any] | None = None,
    ignore_whitespace: bool = True,
) -> Plan:
    """The file holds these lines; those that are missing are put at its end."""
    return _lines_at(
        ctx, name, text, source, sources, template, {**(defaults or {}), **(context or {})}, makedirs, ignore_whitespace
    )


def prepend(
    ctx: Context,
    name: str,
    text: Any = None,
    makedirs: bool = False,
    source: Any = None,
    source_hash: Any = None,
    template: str = "jinja",
    sources: Any = None,
    source_hashes: Any = None,
    defaults: Mapping[str, Any] | None = None,
    context: Mapping[str, Any] | None = None,
) -> Plan:
    """The file holds these lines; those that are missing are put before its first."""
    values = {**(defaults or {}), **(context or {})}
    return _lines_at(ctx, name, text, source, sources, template, values, makedirs, ignore_whitespace=True, at_end=False)


def replace(
    ctx: Context,
    name: str,
    pattern: str,
    repl: str,
    count: int = 0,
    flags: Any = 8,
    bufsize: Any = 1,
    append_if_not_found: bool = False,
    prepend_if_not_found: bool = False,
    not_found_content: str | None = None,
    backup: Any = ".bak",
    show_changes: bool = True,
    ignore_if_missing: bool = False,
    backslash_literal: bool = False,
) -> Plan:
    """Every match of a regular expression (``count``: the first so many) is replaced by ``repl``."""
    try:
        place = _place(ctx, name)
        if not place.is_file():
            text = f"{name}: file not found"
            return Plan.unchanged(text) if ignore_if_missing else Plan.failed(text)
        old = place.read_bytes()
        new = _substituted(old, pattern, repl, int(count), flags, backslash_literal=backslash_literal)
        if new == old and (append_if_not_found or prepend_if_not_found):
            new = _with_line(
                old, not_found_content if not_found_content is not None else repl, at_end=append_if_not_found
            )
    except (_Refused, HostError, InvocationError) as error:
        return Plan.failed(str(error))
    if new == old:
        return Plan.unchanged("No changes needed to be made")
    changes = {"diff": managed_file.unified(old, new) if show_changes else managed_file.HIDDEN_DIFF}

    def work() -> Outcome:
        if backup and isinstance(backup, str):
            managed_file.replace(ctx.host, place.with_name(place.name + backup), old, Attributes())
        managed_file.replace(ctx.host, place, new, Attributes())
        return Outcome("Changes were made", changes)

    return Plan.change("Changes would have been made", (Step(f"edit {name}", work),), changes)


def recurse(
    ctx: Context,
    name: str,
    source: Any,
    keep_source: bool = True,
    clean: bool = False,
    require: Any = None,
    user: Any = None,
    group: Any = None,
    dir_mode: Any = None,
    file_mode: Any = None,
    sym_mode: Any = None,
    template: str | None = None,
    context: Mapping[str, Any] | None = None,
    replace: bool = True,
    defaults: Mapping[str, Any] | None = None,
    include_empty: bool = False,
    backup: Any = "",
    include_pat: Any = None,
    exclude_pat: Any = None,
    maxdepth: int | None = None,
    keep_symlinks: bool = False,
    force_symlinks: bool = False,
    show_changes: bool = True,
    follow_symlinks: bool = True,
    saltenv: str | None = None,
) -> Plan:
    """A whole directory of the state tree below ``name``; ``clean`` removes what the tree does not have."""
    try:
        place = _place(ctx, name)
        if place.exists() and not place.is_dir():
            raise _Refused(f"The path {name} exists and is not a directory")
        tree = _Tree.find(
            ctx, source, saltenv or ctx.saltenv, include_pat, exclude_pat, maxdepth, keep_symlinks=keep_symlinks
        )
        parts = dict(_recurse_parts(ctx, name, tree, locals()))
    except (_Refused, HostError, InvocationError) as error:
        return Plan.failed(str(error))
    return _joined(ctx, name, place, parts, tree if clean else None)


# ------------------------------------------------------------------------------------------------------------------- content


@dataclass(frozen=True, slots=True)
class _Spec:
    """How a content is made."""

    saltenv: str
    template: str | None
    context: Mapping[str, Any] | None
    defaults: Mapping[str, Any] | None
    encoding: str | None
    encoding_errors: str
    newline: bool


def _contents(
    ctx: Context, contents: Any, from_pillar: Any, from_grains: Any, delimiter: str, allow_empty: bool, source: Any
) -> str | bytes | None:
    """The literal content, None when there is none of the three arguments."""
    given = {"contents": contents, "contents_pillar": from_pillar, "contents_grains": from_grains}
    named = [key for key, value in given.items() if value is not None]
    if not named:
        return None
    if len(named) > 1 or source:
        raise _Refused("Only one of 'source', 'contents', 'contents_pillar' and 'contents_grains' is permitted")
    value = contents
    if named[0] != "contents":
        function = "pillar.get" if named[0] == "contents_pillar" else "grains.get"
        names = given[named[0]]
        parts = [ctx.call(function, key, None, delimiter) for key in (names if isinstance(names, list) else [names])]
        if any(part is None for part in parts):
            raise _Refused(f"{named[0].removeprefix('contents_').title()} {names} does not exist")
        value = parts[0] if len(parts) == 1 else parts
    if isinstance(value, bytes):
        return value
    text = "\n".join(str(line).rstrip("\n") for line in value) if isinstance(value, list) else str(value)
    if not text and not allow_empty:
        raise _Refused(
            f"{named[0]} value would result in empty contents. Set allow_empty to True to allow the managed file to be empty."
        )
    return text


def _wanted_bytes(
    ctx: Context,
    spec: _Spec,
    literal: str | bytes | None,
    source: Any,
    name: str,
    *,
    skip_verify: bool,
    source_hash: str,
) -> tuple[bytes, int | None]:
    """The content that the file is to have, and the mode of its source."""
    if isinstance(literal, bytes):
        return literal, None
    if literal is not None:
        text = _rendered(ctx, spec, literal, "", name) if spec.template else literal
        if spec.newline and text and not text.endswith("\n"):
            text += "\n"
        return _encoded(text, spec), None
    address, place, source_mode = _source(ctx, source, spec.saltenv)
    data = place.read_bytes()
    if source_hash and not skip_verify:
        _verify(place, source_hash, address)
    if spec.template:
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise _Refused(
                f"Source file {address} is not UTF-8 text: byte {error.start}; templates are text"
            ) from error
        return _encoded(_rendered(ctx, spec, text, address, name), spec), source_mode
    if spec.encoding:
        return _encoded(data.decode(), spec), source_mode
    return data, source_mode


def _rendered(ctx: Context, spec: _Spec, text: str, address: str, name: str) -> str:
    values = {**(spec.defaults or {}), **(spec.context or {})}
    values |= {"name": name, "source": address}
    return ctx.templates.render(text, str(spec.template), values, saltenv=spec.saltenv, source=address)


def _encoded(text: str, spec: _Spec) -> bytes:
    try:
        return text.encode(spec.encoding or "utf-8", spec.encoding_errors)
    except (LookupError, UnicodeEncodeError) as error:
        raise _Refused(f"the content cannot be written as {spec.encoding}: {error}") from error


def _source(ctx: Context, source: Any, saltenv: str) -> tuple[str, Path, int | None]:
    """(address, local file, mode) of the first source that exists."""
    tried = []
    for entry in source if isinstance(source, list) else [source]:
        address = str(next(iter(entry)) if isinstance(entry, Mapping) else entry)
        if address.startswith(("http://", "https://", "ftp://", "s3://", "swift://")):
            raise _Refused(f"not supported: the source {address}; use salt://, file:// or a path of the host")
        env = address.partition("?saltenv=")[2] or saltenv
        path = address.partition("?")[0]
        if path.startswith("salt://"):
            relative = path.removeprefix("salt://")
            found = ctx.files.fetch(relative, env)
            if found is not None:
                return address, found, ctx.files.mode(relative, env)
        else:
            found = ctx.host.path(path.removeprefix("file://"))
            if found.is_file():
                return address, found, stat.S_IMODE(found.stat().st_mode)
        tried.append(address)
    if isinstance(source, list):
        raise _Refused(f"none of the specified sources were found: {', '.join(tried)} (in saltenv '{saltenv}')")
    raise _Refused(f"Source file {tried[0]} not found in saltenv '{saltenv}'")


def _verify(place: Path, source_hash: str, address: str) -> None:
    algorithm, _, digest = source_hash.partition("=") if "=" in source_hash else ("", "", source_hash)
    lengths = {32: "md5", 40: "sha1", 56: "sha224", 64: "sha256", 96: "sha384", 128: "sha512"}
    algorithm = algorithm or lengths.get(len(digest), "")
    if not algorithm:
        raise _Refused(f"source_hash '{source_hash}' is no digest; write algorithm=hexadecimal")
    found = _digest(place, algorithm)
    if found.lower() != digest.lower():
        raise _Refused(
            f"Specified {algorithm} checksum for {address} ({digest}) does not match actual checksum ({found})"
        )


def _digest(place: Path, algorithm: str) -> str:
    try:
        return hashlib.new(algorithm, place.read_bytes()).hexdigest()
    except ValueError as error:
        raise _Refused(f"there is no digest '{algorithm}'") from error


# --------------------------------------------------------------------------------------------------------------------- writing


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
            f"The file {self.name} is set to be changed\n{_NOTE}",
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
        _need_parent(ctx, self.place, self.makedirs, _parent_attributes(self.wish, self.dir_mode))
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
        f"The file {name} is set to be changed\n{_NOTE}", (Step(f"set owner and mode of {name}", work),), changes
    )


def _touch_only(
    ctx: Context, name: str, place: Path, old: bytes | None, wish: Attributes, makedirs: bool, dir_mode: Any
) -> Plan:
    """No content is asked for: the file need only be there."""
    if old is not None:
        return _attributes_alone(ctx, name, place, wish, "exists with proper permissions. No changes made.")

    def work() -> Outcome:
        _need_parent(ctx, place, makedirs, _parent_attributes(wish, dir_mode))
        managed_file.replace(ctx.host, place, b"", wish)
        return Outcome("Empty file", {"new": f"file {name} created"} | _told_attributes(wish, place))

    return Plan.change(
        f"The file {name} is set to be changed\n{_NOTE}", (Step(f"create {name}", work),), {"newfile": name}
    )


def _need_parent(ctx: Context, place: Path, makedirs: bool, wish: Attributes) -> None:
    if place.parent.is_dir():
        return
    if not makedirs:
        raise StateFailure("Parent directory not present")
    managed_file.make_directories(ctx.host, place.parent, wish, ctx.host.root)


def _parent_attributes(wish: Attributes, dir_mode: Any) -> Attributes:
    mode = managed_file.parse_mode(dir_mode)
    if mode is None and wish.mode is not None:
        mode = managed_file.directory_mode(wish.mode)
    return Attributes(wish.user, wish.group, mode)


def _attributes(user: Any, group: Any, mode: Any) -> tuple[Attributes, bool]:
    """Wanted attributes, and whether the mode is the source's own."""
    if mode == "keep":
        return Attributes(user, group), True
    return Attributes(user, group, managed_file.parse_mode(mode)), False


def _place(ctx: Context, name: str, *, follow: bool = True) -> Path:
    if not name:
        raise _Refused("Destination file name is missing")
    if not str(name).startswith("/"):
        raise _Refused(f"Specified file {name} is not an absolute path")
    return ctx.host.path(str(name), follow=follow)


def _refuse(given: Mapping[str, Any]) -> None:
    for argument, value in given.items():
        if value:
            raise _Refused(f"not supported: {argument} ({_UNSUPPORTED.get(argument, 'nothing here sets it')})")


# ----------------------------------------------------------------------------------------------------------------- directories


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
            aside = _place(self._ctx, self._options.backupname, follow=False)
            if os.path.lexists(aside) and not self._options.force:
                raise _Refused(f"File exists where the backup target {self._options.backupname} should go")

            def move() -> Outcome:
                self._place.rename(aside)
                return Outcome("", {"backup": f"Existing file moved to {self._options.backupname}"})

            return Step(f"move {self._name} aside", move)
        if not self._options.force:
            kind = "symlink" if self._place.is_symlink() else "file"
            raise _Refused(f"Specified location {self._name} exists and is a {kind}")

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
        for path, depth, is_dir in _walk(self._place):
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
        keep = _managed_elsewhere(self._ctx, self._name)
        found = []
        for path, _, _ in _walk(self._place):
            shown = self._shown(path)
            relative = shown[len(self._name.rstrip("/")) + 1 :]
            if shown in keep or any(fnmatch.fnmatchcase(relative, pattern) for pattern in self._options.exclude):
                continue
            found.append((path, shown))
        return found

    def _shown(self, path: Path) -> str:
        return f"{self._name.rstrip('/')}/{path.relative_to(self._place).as_posix()}"


def _managed_elsewhere(ctx: Context, name: str) -> set[str]:
    """Names below a directory that this run's file states manage, with the directories on the way to them."""
    keep: set[str] = set()
    top = Path(name)
    for low in ctx.lowstate:
        path = Path(str(low.get("name", "")))
        if (
            low.get("state") == "file"
            and low.get("fun") not in ("absent", "missing")
            and path != top
            and path.is_relative_to(top)
        ):
            keep |= {str(one) for one in (path, *path.parents) if one.is_relative_to(top)}
            if low.get("fun") == "recurse":
                keep |= {str(path)}
    return keep


def _walk(top: Path) -> Iterator[tuple[Path, int, bool]]:
    """(path, depth from 0, whether it is a directory), parents first; links are not followed."""
    for place, names, files in os.walk(top):
        here = Path(place)
        depth = len(here.relative_to(top).parts)
        for entry in sorted(files):
            yield here / entry, depth, False
        for entry in sorted(names):
            yield here / entry, depth, not (here / entry).is_symlink()


def _recurse_words(recurse: Any) -> frozenset[str]:
    if recurse in (None, False):
        return frozenset()
    known = {"user", "group", "mode", "ignore_files", "ignore_dirs", "silent"}
    if not isinstance(recurse, list) or not set(map(str, recurse)) <= known:
        raise _Refused(f"recurse must be a list of {', '.join(sorted(known))}, not {recurse!r}")
    return frozenset(map(str, recurse))


def _patterns(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    return tuple(str(pattern) for pattern in value) if isinstance(value, list) else (str(value),)


# ----------------------------------------------------------------------------------------------------------------------- links


def _link_owner(ctx: Context, name: str, place: Path, wanted: Attributes) -> Plan:
    found = place.lstat()
    user, group = ctx.host.user_name(found.st_uid), ctx.host.group_name(found.st_gid)
    changes = managed_file.attribute_changes(ctx.host, place, wanted)
    if not changes:
        return Plan.unchanged(f"Symlink {name} is present and owned by {user}:{group}")
    owner = f"{wanted.user or user}:{wanted.group or group}"

    def work() -> Outcome:
        managed_file.set_attributes(ctx.host, place, wanted)
        return Outcome(f"Set ownership of symlink {name} to {owner}", {"ownership": owner})

    would = f"Ownership of symlink {name} would be set to {owner}"
    return Plan.change(would, (Step(f"set the owner of {name}", work),), {"ownership": owner})


def _make_link(
    ctx: Context, name: str, place: Path, target: str, wanted: Attributes, makedirs: bool, would: str, kind: str
) -> Plan:
    def work() -> Outcome:
        if not place.parent.is_dir():
            if not makedirs:
                raise StateFailure(f"Directory {Path(name).parent} for symlink is not present")
            managed_file.make_directories(ctx.host, place.parent, wanted, ctx.host.root)
        # Made aside and renamed: there is never a moment without the link.
        aside = place.with_name(f".{place.name}.saltern-{os.urandom(6).hex()}")
        try:
            aside.symlink_to(target)
            managed_file.set_attributes(ctx.host, aside, wanted)
            aside.replace(place)
        except OSError as error:
            raise StateFailure(f"Unable to create new symlink {name} -> {target}: {error.strerror}") from error
        finally:
            aside.unlink(missing_ok=True)
        return Outcome(f"Created new symlink {name} -> {target}", {"new": name})

    return Plan.change(would, (Step(f"link {name} to {target}", work),), {kind: name})


def _in_the_way(
    ctx: Context,
    name: str,
    place: Path,
    target: str,
    wanted: Attributes,
    makedirs: bool,
    *,
    force: bool,
    backupname: str | None,
) -> Plan:
    kind = "Directory" if place.is_dir() else "File"
    link = _make_link(ctx, name, place, target, wanted, makedirs, "", "new")
    if backupname:
        aside = _place(
            ctx, backupname if backupname.startswith("/") else str(Path(name).parent / backupname), follow=False
        )
        if os.path.lexists(aside) and not force:
            raise _Refused(f"Symlink & backup dest exists and Force not set. {name} -> {target} - backup: {backupname}")

        def move() -> Outcome:
            place.rename(aside)
            return Outcome("", {"moved": f"File {name} moved to backup {backupname}"})

        would = f"{name} exists and is set to be moved to {backupname}\nSymlink {name} to {target} is set for creation"
        return Plan.change(would, (Step(f"move {name} aside", move), *link.steps), {"new": name})
    if not force:
        raise _Refused(f"{kind} exists where the symlink {name} should be. Did you mean to use force?")

    def clear() -> Outcome:
        managed_file.remove(place)
        return Outcome("", {"forced": "Symlink was forcibly replaced"})

    would = f"The file or directory {name} is set for removal to make way for a new symlink targeting {target}"
    return Plan.change(would, (Step(f"remove {name}", clear), *link.steps), {"forced": "Symlink was forcibly replaced"})


# ----------------------------------------------------------------------------------------------------------------------- lines


def _lines_at(
    ctx: Context,
    name: str,
    text: Any,
    source: Any,
    sources: Any,
    template: str,
    values: Mapping[str, Any],
    makedirs: bool,
    ignore_whitespace: bool,
    at_end: bool = True,
) -> Plan:
    try:
        place = _place(ctx, name)
        wanted = _wanted_lines(ctx, text, source, sources, template, values)
        old = managed_file.read(place)
        now = (old or b"").decode("utf-8", "surrogateescape")
    except (_Refused, HostError) as error:
        return Plan.failed(str(error))
    except (SlsError, IsADirectoryError) as error:
        return Plan.failed(f"Unable to edit {name}: {error}")
    have = {_squeezed(line, ignore_whitespace) for line in now.splitlines()}
    lacking = [line for line in wanted if _squeezed(line, ignore_whitespace) not in have or (not line and old is None)]
    if not lacking:
        return Plan.unchanged(f"File {name} is in correct state")
    lines = now.splitlines()
    after = [*lines, *lacking] if at_end else [*lacking, *lines]
    new = "".join(f"{line}\n" for line in after).encode("utf-8", "surrogateescape")
    diff = {"diff": _line_diff(lines, after)}
    verb = "Appended" if at_end else "Prepended"

    def work() -> Outcome:
        _need_parent(ctx, place, makedirs, Attributes())
        managed_file.replace(ctx.host, place, new, Attributes())
        return Outcome(f"{verb} {len(lacking)} lines", diff)

    step = Step(f"add {len(lacking)} lines to {name}", work)
    if old is None:
        return Plan.change(f"File {name} is set to be created", (step,), {"new": name})
    return Plan.change(f"File {name} is set to be updated", (step,), diff)


def _wanted_lines(
    ctx: Context, text: Any, source: Any, sources: Any, template: str, values: Mapping[str, Any]
) -> list[str]:
    if text is not None:
        return [
            line for part in (text if isinstance(text, list) else [text]) for line in str(part).rstrip("\n").split("\n")
        ]
    addresses = sources if sources else [source] if source else []
    if not addresses:
        raise _Refused("Need to specify one of: text, source, sources")
    lines: list[str] = []
    for entry in addresses:
        address, place, _ = _source(ctx, entry, ctx.saltenv)
        content = place.read_text("utf-8")
        rendered = (
            ctx.templates.render(content, template, values, saltenv=ctx.saltenv, source=address)
            if template
            else content
        )
        lines += rendered.splitlines()
    return lines


def _squeezed(line: str, ignore_whitespace: bool) -> str:
    return " ".join(line.split()) if ignore_whitespace else line


def _line_diff(old: Sequence[str], new: Sequence[str]) -> str:
    return "\n".join(difflib.unified_diff(list(old), list(new)))


def _substituted(data: bytes, pattern: str, repl: str, count: int, flags: Any, *, backslash_literal: bool) -> bytes:
    try:
        compiled = re.compile(str(pattern).encode(), _flags(flags))
        replacement = str(repl).encode()
        return compiled.sub((lambda match: replacement) if backslash_literal else replacement, data, count=count)
    except (re.error, IndexError) as error:
        raise _Refused(f"pattern '{pattern}' with repl '{repl}': {error}") from error


def _flags(flags: Any) -> int:
    if isinstance(flags, int):
        # Salt's default, 8, is MULTILINE; bytes cannot be matched as UNICODE.
        return flags & ~re.UNICODE
    total = 0
    for name in flags if isinstance(flags, list) else [flags]:
        flag = getattr(re, str(name).upper(), None)
        if not isinstance(flag, re.RegexFlag):
            raise _Refused(f"'{name}' is no flag of regular expressions, such as MULTILINE or IGNORECASE")
        total |= int(flag)
    return total & ~re.UNICODE


def _with_line(data: bytes, line: str, *, at_end: bool) -> bytes:
    content = str(line).encode()
    if content in data.splitlines():
        return data
    if at_end:
        return data + (b"" if not data or data.endswith(b"\n") else b"\n") + content + b"\n"
    return content + b"\n" + data


# --------------------------------------------------------------------------------------------------------------------- recurse


@dataclass(frozen=True, slots=True)
class _Tree:
    """A directory of the state tree, as far as ``recurse`` wants it; paths are relative to it."""

    top: str
    saltenv: str
    files: tuple[str, ...]
    dirs: tuple[str, ...]
    empty: tuple[str, ...]
    links: Mapping[str, str]

    @classmethod
    def find(
        cls,
        ctx: Context,
        source: Any,
        saltenv: str,
        include: Any,
        exclude: Any,
        maxdepth: int | None,
        *,
        keep_symlinks: bool,
    ) -> _Tree:
        """The first source that exists."""
        tried = [str(one) for one in (source if isinstance(source, list) else [source])]
        for address in tried:
            if not address.startswith("salt://"):
                raise _Refused(f"Invalid source '{address}' (must be a salt:// URI)")
            env = address.partition("?saltenv=")[2] or saltenv
            top = address.removeprefix("salt://").partition("?")[0].strip("/")
            prefix = f"{top}/" if top else ""
            paths = [path[len(prefix) :] for path in ctx.files.paths(env, prefix)]
            dirs = [path[len(prefix) :] for path in ctx.files.dirs(env, prefix)]
            if not paths and not dirs and top not in ctx.files.dirs(env):
                continue

            def wanted(path: str) -> bool:
                deep = maxdepth is not None and path.count("/") > int(maxdepth)
                return not deep and _wanted(path, include, exclude)

            links = (
                {path[len(prefix) :]: to for path, to in ctx.files.symlinks(env, prefix).items()}
                if keep_symlinks
                else {}
            )
            kept = tuple(path for path in paths if wanted(path) and path not in links)
            empty = tuple(path[len(prefix) :] for path in ctx.files.empty_dirs(env, prefix))
            below = sorted({str(parent) for path in kept for parent in Path(path).parents if str(parent) != "."})
            return cls(top, env, kept, tuple(below), empty, links)
        raise _Refused(
            f"Recurse failed: none of the specified sources were found: {', '.join(tried)} (in saltenv '{saltenv}')"
        )


def _wanted(path: str, include: Any, exclude: Any) -> bool:
    included = include is None or any(_pattern_matches(path, pattern) for pattern in _patterns(include))
    return included and not any(_pattern_matches(path, pattern) for pattern in _patterns(exclude))


def _pattern_matches(path: str, pattern: str) -> bool:
    if pattern.startswith("E@"):
        try:
            return re.search(pattern[2:], path) is not None
        except re.error as error:
            raise _Refused(f"'{pattern}' is no regular expression: {error}") from error
    return fnmatch.fnmatchcase(path, pattern)


def _recurse_parts(ctx: Context, name: str, tree: _Tree, given: Mapping[str, Any]) -> Iterator[tuple[str, Plan]]:
    """(path of the host, plan) for the directory, each directory in it, each file, each link."""
    top = name.rstrip("/")
    owner = {"user": given["user"], "group": given["group"]}
    dirs = {"dir_mode": given["dir_mode"], "makedirs": True, **owner}
    yield name, directory(ctx, name, **dirs)
    for relative in (*tree.dirs, *(tree.empty if given["include_empty"] else ())):
        yield f"{top}/{relative}", directory(ctx, f"{top}/{relative}", **dirs)
    for relative in tree.files:
        yield (
            f"{top}/{relative}",
            managed(
                ctx,
                f"{top}/{relative}",
                source=f"salt://{tree.top}/{relative}" if tree.top else f"salt://{relative}",
                mode=given["file_mode"] if given["file_mode"] is not None else "0644",
                dir_mode=given["dir_mode"],
                makedirs=True,
                template=given["template"],
                context=given["context"],
                defaults=given["defaults"],
                replace=given["replace"],
                backup=given["backup"],
                show_changes=given["show_changes"],
                follow_symlinks=given["follow_symlinks"],
                saltenv=tree.saltenv,
                **owner,
            ),
        )
    for relative, target in tree.links.items():
        yield (
            f"{top}/{relative}",
            symlink(ctx, f"{top}/{relative}", target, force=given["force_symlinks"], makedirs=True, **owner),
        )


def _joined(ctx: Context, name: str, place: Path, parts: Mapping[str, Plan], clean: _Tree | None) -> Plan:
    """One plan of many: its changes are theirs by path."""
    failed = {path: plan.comment for path, plan in parts.items() if not plan.steps and not plan.result}
    if failed:
        return Plan.failed("\n".join(f"#### {path} ####\n{why}" for path, why in failed.items()))
    steps: list[Step] = []
    changes: dict[str, Any] = {}
    lines: list[str] = []
    for path, plan in parts.items():
        if plan.steps:
            changes[path] = dict(plan.changes)
            lines.append(f"#### {path} ####\n{plan.comment}")
            steps += [Step(step.what, _nested(path, step)) for step in plan.steps]
    for path in _not_in_tree(ctx, name, place, parts) if clean is not None else ():
        changes.setdefault("removed", []).append(path)
        lines.append(f"#### removed ####\n{path}")
        steps.append(Step(f"remove {path}", _removal(ctx.host.path(path, follow=False), path)))
    if not steps:
        return Plan.unchanged(f"The directory {name} is in the correct state")
    steps.append(Step("say so", lambda: Outcome(f"Recursively updated {name}")))
    return Plan.change("\n\n".join(lines), steps, changes)


def _nested(path: str, step: Step) -> Callable[[], Outcome]:
    def work() -> Outcome:
        try:
            outcome = step.run()
        except StatecoreError as error:
            raise StateFailure(f"#### {path} ####\n{error}") from error
        return Outcome(
            "" if outcome.ok else outcome.comment, {path: dict(outcome.changes)} if outcome.changes else {}, outcome.ok
        )

    return work


def _removal(place: Path, path: str) -> Callable[[], Outcome]:
    def work() -> Outcome:
        if os.path.lexists(place):
            managed_file.remove(place)
        return Outcome("", {"removed": [path]})

    return work


def _not_in_tree(ctx: Context, name: str, place: Path, parts: Mapping[str, Plan]) -> list[str]:
    """What ``clean`` removes: what neither the tree nor another state has. A directory stands for all that is in it."""
    keep = set(parts) | _managed_elsewhere(ctx, name)
    keep |= {str(parent) for path in keep for parent in Path(path).parents}
    found: list[str] = []
    if not place.is_dir():
        return found
    for path, _, _ in _walk(place):
        shown = f"{name.rstrip('/')}/{path.relative_to(place).as_posix()}"
        if shown not in keep and not any(shown.startswith(f"{gone}/") for gone in found):
            found.append(shown)
    return found
