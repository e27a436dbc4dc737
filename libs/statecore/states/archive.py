"""What archives hold, taken out (Salt's ``archive`` state)."""

from __future__ import annotations

import os
import re
import shlex
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from statecore import managed_file
from statecore.context import Context
from statecore.errors import CommandError, HostError, InvocationError
from statecore.hostfiles import archives
from statecore.managed_file import Attributes
from statecore.rooted_path import lexists
from statecore.types import Outcome, Plan, Step

_STRIP = re.compile(r"^--strip(?:-components)?=(\d+)$")

#: Lines of output that ``trim_output: True`` keeps.
_TRIMMED = 100


@dataclass(frozen=True, slots=True)
class _Wish:
    """What is asked for, checked."""

    name: str
    source: str
    cached: Path
    form: str
    strip: int
    user: Any
    group: Any
    password: str | None
    modes: bool
    trim: int | None
    clean: bool
    clean_parent: bool
    owned: str | None


def extracted(
    ctx: Context,
    name: str,
    source: Any,
    source_hash: str | None = None,
    source_hash_name: str | None = None,
    source_hash_update: bool = False,
    skip_files_list_verify: bool = False,
    skip_verify: bool = False,
    password: str | None = None,
    options: Any = None,
    list_options: Any = None,
    force: bool = False,
    overwrite: bool = False,
    clean: bool = False,
    clean_parent: bool = False,
    user: Any = None,
    group: Any = None,
    if_missing: str | None = None,
    trim_output: Any = False,
    use_cmd_unzip: bool | None = None,
    extract_perms: bool = True,
    enforce_toplevel: bool = True,
    enforce_ownership_on: str | None = None,
    archive_format: str | None = None,
    use_etag: bool = False,
    signature: Any = None,
    source_hash_sig: Any = None,
    keep_source: bool = True,
    keep: bool = True,
) -> Plan:
    """A directory that holds what an archive (tar or zip) holds.

    source
        salt://, file:// or a path of the host, or a list of which the first that exists is taken
    options
        ``--strip-components=N``; another option of tar is refused
    if_missing
        nothing is done where this path exists
    enforce_toplevel
        False also takes archives with more than one name at the top
    overwrite, clean, clean_parent, force
        take out in any case; remove the top names first; the directory itself; whatever is of another type
    """
    refused = {
        "list_options": list_options,
        "signature": signature,
        "source_hash_sig": source_hash_sig,
        "skip_files_list_verify": skip_files_list_verify,
        "source_hash_update": source_hash_update,
        "use_etag": use_etag,
    }
    if given := [argument for argument, value in refused.items() if value]:
        return Plan.failed(f"not supported: {', '.join(given)}")
    for argument, path in (("if_missing", if_missing), ("enforce_ownership_on", enforce_ownership_on)):
        if path is not None and not str(path).startswith("/"):
            return Plan.failed(f"Value for '{argument}' is not an absolute path")
    if not str(name).startswith("/"):
        return Plan.failed(f"{name} is not an absolute path")
    if clean and clean_parent:
        return Plan.failed("Only one of 'clean' and 'clean_parent' can be set to True")
    directory = f"{str(name).rstrip('/')}/"
    if ctx.host.path(directory).is_file():
        return Plan.failed(f"{name} exists and is not a directory")
    if enforce_ownership_on and not f"{os.path.normpath(enforce_ownership_on)}/".startswith(directory):
        return Plan.failed(f"Value for 'enforce_ownership_on' must be within {directory}")
    if if_missing is not None and lexists(ctx.host.path(if_missing, follow=False)):
        return Plan.unchanged(f"Path {if_missing} exists")
    try:
        address, cached = _source(ctx, source)
        form = str(archive_format or archives.guess(address) or "").lower()
        if form not in ("tar", "zip"):
            return Plan.failed(f"not supported: {form or 'an archive_format that cannot be guessed'}; tar and zip are")
        if password and form != "zip":
            return Plan.failed("The 'password' argument is only supported for zip archives")
        if form == "zip" and not password and archives.encrypted(cached):
            return Plan.failed(
                f"Archive {address} is password-protected, but no password was specified. "
                "Please set the 'password' argument."
            )
        if source_hash and not skip_verify:
            _verify(ctx, cached, address, source_hash, source_hash_name)
        wish = _Wish(
            directory,
            address,
            cached,
            form,
            _strip(options, form),
            user,
            group,
            password,
            extract_perms,
            _TRIMMED if trim_output is True else int(trim_output) if trim_output else None,
            clean,
            clean_parent,
            enforce_ownership_on,
        )
        found = archives.contents(cached, form, wish.strip)
        return _plan(ctx, wish, found, force=force, overwrite=overwrite, enforce_toplevel=enforce_toplevel)
    except (CommandError, InvocationError, ValueError, OSError) as error:
        return Plan.failed(str(error))


def _plan(
    ctx: Context, wish: _Wish, found: archives.Contents, *, force: bool, overwrite: bool, enforce_toplevel: bool
) -> Plan:
    if enforce_toplevel and (len(found.top_dirs) > 1 or found.top_files):
        return Plan.failed(
            "Archive does not have a single top-level directory. To allow this archive to be extracted, set "
            f"'enforce_toplevel' to False. To avoid a '{wish.form}-bomb' it may also be advisable to set a top-level "
            f"directory by adding it to the 'name' value (for example, setting 'name' to {wish.name}some_dir instead of "
            f"{wish.name})."
        )
    missing, wrong = _compared(ctx, wish.name, found)
    if wrong and not wish.clean and not wish.clean_parent and not force:
        listed = "\n".join(f"- {each}" for each in wrong)
        return Plan.failed(
            f"The below paths (relative to {wish.name}) exist, but are the incorrect type (file instead of directory, "
            "symlink instead of file, etc.). To proceed with extraction, set 'force' to True. Note that this will remove "
            f"these paths before extracting.\n\n{listed}"
        )
    steps = []
    why = ", due to absence of one or more files/dirs" if missing else ""
    if overwrite or missing or wrong:

        def work() -> Outcome:
            return _extract(ctx, wish, found, wrong, why)

        steps.append(Step(f"extract {wish.source} to {wish.name}", work))
    owner = Attributes(wish.user, wish.group)
    if not steps and any(managed_file.attribute_changes(ctx.host, place, owner) for place in _owned(ctx, wish, found)):

        def own() -> Outcome:
            return Outcome("All files in archive are already present", _own(ctx, wish, found))

        would = "All files in archive are already present. Ownership would be updated on one or more files/directories."
        return Plan.change(would, [Step(f"set the owner of {wish.name}", own)], {"updated ownership": True})
    if not steps:
        return Plan.unchanged("All files in archive are already present")
    cleaned = ", after cleaning destination path(s)" if wish.clean else ""
    return Plan.change(f"Archive {wish.source} would be extracted to {wish.name}{cleaned}{why}", steps)


def _extract(ctx: Context, wish: _Wish, found: archives.Contents, wrong: list[str], why: str) -> Outcome:
    target = ctx.host.path(wish.name)
    changes: dict[str, Any] = {}
    removed = []
    if wish.clean_parent and target.exists():
        managed_file.remove(target)
        changes["removed"] = f"Directory {wish.name} was removed prior to the extraction"
    for each in (*found.top_dirs, *found.top_files) if wish.clean else wrong:
        place = ctx.host.path(f"{wish.name}{each}".rstrip("/"), follow=False)
        if lexists(place):
            managed_file.remove(place)
            removed.append(f"{wish.name}{each}")
    if removed:
        changes["removed"] = removed
    if not target.is_dir():
        managed_file.make_directories(ctx.host, target, Attributes(wish.user), ctx.host.root)
        changes["directories_created"] = [wish.name]
    try:
        names = archives.extract(
            wish.cached, wish.form, target, strip=wish.strip, password=wish.password, modes=wish.modes
        )
    except CommandError as error:
        return Outcome(str(error), changes, ok=False)
    changes |= _own(ctx, wish, found)
    changes["extracted_files"] = names[: wish.trim]
    told = f"{wish.source} extracted to {wish.name}{why}"
    return Outcome(
        told + (f". Output was trimmed to {wish.trim} number of lines" if wish.trim is not None else ""), changes
    )


def _compared(ctx: Context, name: str, found: archives.Contents) -> tuple[bool, list[str]]:
    """(whether anything is missing, what is there but of another type)."""
    missing, wrong = False, []
    for names, fits in (
        (found.dirs, stat.S_ISDIR),
        (found.files, lambda mode: not stat.S_ISLNK(mode) and not stat.S_ISDIR(mode)),
        (found.links, stat.S_ISLNK),
    ):
        for each in names:
            try:
                mode = ctx.host.path(f"{name}{each}".rstrip("/"), follow=False).lstat().st_mode
            except (FileNotFoundError, NotADirectoryError):
                missing = True
                continue
            if not fits(mode):
                wrong.append(each)
    return missing, wrong


def _owned(ctx: Context, wish: _Wish, found: archives.Contents) -> list[Path]:
    """What is to have the wanted owner, as far as it is there."""
    if not wish.user and not wish.group:
        return []
    tops = (
        [wish.owned]
        if wish.owned
        else [f"{wish.name}{each}" for each in (*found.top_dirs, *found.top_files, *found.top_links)]
    )
    places = []
    for top in tops:
        place = ctx.host.path(top.rstrip("/"), follow=False)
        if lexists(place):
            places += [place, *(place.rglob("*") if place.is_dir() and not place.is_symlink() else ())]
    return places


def _own(ctx: Context, wish: _Wish, found: archives.Contents) -> dict[str, Any]:
    wanted = Attributes(wish.user, wish.group)
    done = False
    for place in _owned(ctx, wish, found):
        if managed_file.attribute_changes(ctx.host, place, wanted):
            managed_file.set_attributes(ctx.host, place, wanted)
            done = True
    return {"updated ownership": True} if done else {}


def _source(ctx: Context, source: Any) -> tuple[str, Path]:
    given = source if isinstance(source, list) else [source]
    addresses = [str(next(iter(each)) if isinstance(each, dict) else each) for each in given]
    for address in addresses:
        if place := ctx.call("cp.cache_file", address):
            # What is on the host is read there, not by a path that somebody may swap.
            own = (
                ctx.host.path(address.removeprefix("file://")) if address.startswith(("/", "file://")) else Path(place)
            )
            return address.removeprefix("file://"), own
    if len(addresses) == 1 and not addresses[0].startswith("salt://"):
        raise HostError(f"Source file '{addresses[0].removeprefix('file://')}' does not exist")
    raise HostError(f"Source file {', '.join(addresses)} not found in saltenv '{ctx.saltenv}'")


def _strip(options: Any, form: str) -> int:
    words = [word for word in shlex.split(str(options or "")) if word not in ("v", "-v", "--verbose")]
    joined = re.sub(r"(--strip(?:-components)?) (\d+)", r"\1=\2", " ".join(words)).split()
    found = [_STRIP.match(word) for word in joined]
    if form == "zip" and joined:
        raise InvocationError(f"not supported: options {options} of zip archives")
    if unknown := [
        word for word, match in zip(joined, found, strict=True) if match is None and word not in ("z", "j", "J")
    ]:
        raise InvocationError(f"not supported: options {' '.join(unknown)}; --strip-components=N is")
    return max((int(match[1]) for match in found if match), default=0)


def _verify(ctx: Context, cached: Path, address: str, source_hash: str, hash_name: str | None) -> None:
    text = source_hash
    if source_hash.startswith(("salt://", "file://", "/")):
        listed = ctx.call("cp.get_file_str", source_hash)
        if listed is False:
            raise CommandError(f"the source_hash {source_hash} does not exist")
        rows = [line.split() for line in str(listed).splitlines() if line.split()]
        wanted = (hash_name or address).rpartition("/")[2]
        named = [row for row in rows if len(row) > 1 and row[-1].lstrip("*").rpartition("/")[2] == wanted]
        if not named and len(rows) != 1:
            raise CommandError(f"{source_hash} has no digest of {wanted}")
        text = (named or rows)[0][0]
    algorithm, digest = managed_file.parse_digest(text)
    if managed_file.digest(cached, algorithm) != digest:
        raise CommandError(f"{address} does not match the desired source_hash {digest}")
