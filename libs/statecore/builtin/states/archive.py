"""Salt's ``archive`` state: archives extracted into directories."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from statecore.host.content import atomic_file, digests, managed_file
from statecore.host.content.managed_file import Attributes
from statecore.host.rooted_path import lexists
from statecore.model.context import Context
from statecore.model.errors import CommandError, HostError, InvocationError
from statecore.model.types import Outcome, Plan, Step
from statecore.model.values import to_int
from statecore.sources import downloads, file_source
from statecore.sources.file_source import FileSource, FileVerification, Missing, Signers, WrongDigest
from statecore.system.hostfiles import archives

_STRIP = re.compile(r"^--strip(?:-components)?=(\d+)$")

#: Number of files that ``trim_output: True`` reports.
_TRIMMED = 100


@dataclass(frozen=True, slots=True)
class _Extraction:
    """The checked arguments of ``archive.extracted`` (target directory, format, owner, ...) and the local copy of the archive."""

    name: str
    source: str
    cached: Path
    form: str
    strip: int
    user: str | int | None
    group: str | int | None
    password: str | None
    modes: bool
    trim: int | None
    clean: bool
    clean_parent: bool
    owned: str | None
    #: File with the digest of the last extracted archive; None: not used.
    digest_file: Path | None = None


def extracted(
    ctx: Context,
    name: str,
    source: object,
    source_hash: str | None = None,
    source_hash_name: str | None = None,
    source_hash_update: bool = False,
    skip_files_list_verify: bool = False,
    skip_verify: bool = False,
    password: str | None = None,
    options: object = None,
    list_options: object = None,
    force: bool = False,
    overwrite: bool = False,
    clean: bool = False,
    clean_parent: bool = False,
    user: str | int | None = None,
    group: str | int | None = None,
    if_missing: str | None = None,
    trim_output: object = False,
    use_cmd_unzip: bool | None = None,
    extract_perms: bool = True,
    enforce_toplevel: bool = True,
    enforce_ownership_on: str | None = None,
    archive_format: str | None = None,
    use_etag: bool = False,
    signature: object = None,
    source_hash_sig: object = None,
    signed_by_any: object = None,
    signed_by_all: object = None,
    keyring: str | None = None,
    gnupghome: str | None = None,
    sig_backend: str = "gpg",
    keep_source: bool = True,
    keep: bool = True,
) -> Plan:
    """Extract an archive (tar or zip) into the directory ``name``.

    source
        ``salt://``, ``file://`` or ``http(s)://`` URL, or a path of the host; of a list, the first source that exists
    source_hash, source_hash_name, skip_verify, use_etag
        digest of the archive, as in ``file.managed``
    signature, source_hash_sig, signed_by_any, signed_by_all, keyring, gnupghome, sig_backend
        required signature of the archive, or of the file of digests, as in ``file.managed``
    source_hash_update
        True: extract again if the archive changed since the last extraction, even if ``if_missing`` exists
    skip_files_list_verify
        True: do not compare the extracted files if the archive is unchanged since the last extraction
    options
        ``--strip-components=N``. Other options of tar are refused.
    password
        password of a zip archive
    if_missing
        do nothing if this path exists
    enforce_toplevel
        False: accept archives with more than one entry at the top level
    overwrite
        True: extract always
    clean, clean_parent
        True: remove the archive's top-level entries before; remove the whole directory before
    force
        True: replace existing files of another type
    user, group, enforce_ownership_on
        owner and group of the extracted files; directory below ``name`` to which they apply
    trim_output
        number of extracted files to report; True: 100
    keep_source, keep
        False: remove the copy of an http(s) archive from the minion's cache
    """
    directory = f"{str(name).rstrip('/')}/"
    if refused := next(_refusals(ctx, directory, dict(locals())), None):
        return Plan.failed(refused)
    there = if_missing is not None and lexists(ctx.host.path(if_missing, follow=False))
    if there and not source_hash_update:
        return Plan.unchanged(f"Path {if_missing} exists")
    try:
        signers = Signers.of(signed_by_any, signed_by_all, keyring, gnupghome, sig_backend)
        wanted = FileVerification(
            str(source_hash or ""),
            source_hash_name,
            skip_verify,
            use_etag=use_etag,
            hash_signature=source_hash_sig,
            signers=signers,
        )
        remembers = bool(source_hash) and (source_hash_update or skip_files_list_verify)
        found_source = _source(ctx, source, wanted)
        address = found_source.address.removeprefix("file://")
        digest_file = _digest_file(ctx, directory, address) if remembers else None
        same = digest_file is not None and _is_last(digest_file, found_source.path)
        if skip_files_list_verify and same:
            return Plan.unchanged(
                f"Archive {downloads.shown(address)} existing source sum is the same as the expected one and "
                "skip_files_list_verify argument was set to True. Extraction is not needed"
            )
        updated = source_hash_update and digest_file is not None and digest_file.is_file() and not same
        if there and not updated:
            return Plan.unchanged(f"Path {if_missing} exists")
        if signature:
            _check_signature(ctx, signers, found_source, signature)
        form = _form(archive_format, address)
        _check_password(password, form, address, found_source.path)
        extraction = _Extraction(
            directory,
            downloads.shown(address),
            found_source.path,
            form,
            _strip(options, form),
            user,
            group,
            password,
            extract_perms,
            _TRIMMED if trim_output is True else to_int(trim_output) if trim_output else None,
            clean,
            clean_parent,
            enforce_ownership_on,
            digest_file,
        )
        found = archives.contents(extraction.cached, form, extraction.strip)
        if found.outside:
            # Refused here, before ``clean`` and ``force`` remove paths by the names of the archive.
            raise CommandError(
                f"{extraction.source} holds names outside of {directory}: {', '.join(found.outside[:5])}. "
                "Nothing was extracted or removed."
            )
        plan = _plan(
            ctx, extraction, found, force=force, overwrite=overwrite, updated=updated, enforce_toplevel=enforce_toplevel
        )
        return plan if keep_source and keep else _without_cached_copy(address, extraction, plan)
    except (CommandError, HostError, InvocationError, ValueError, OSError) as error:
        return Plan.failed(str(error))


def _refusals(ctx: Context, directory: str, given: Mapping[str, Any]) -> Iterator[str]:
    """Check the arguments of the state ``archive.extracted`` before any work, and yield a sentence for each one that
    cannot be used.

    ``directory``: the target directory, with a slash at its end. ``given``: {argument: value}.
    """
    for argument in ("list_options", "use_cmd_unzip"):
        if given[argument]:
            yield f"not supported: {argument}; archives are read here without a program"
    if given["skip_files_list_verify"] and given["skip_verify"]:
        yield 'Only one of "skip_files_list_verify" and "skip_verify" can be set to True'
    for argument in ("if_missing", "enforce_ownership_on"):
        if given[argument] is not None and not str(given[argument]).startswith("/"):
            yield f"Value for '{argument}' is not an absolute path"
    name, owned = given["name"], given["enforce_ownership_on"]
    if not str(name).startswith("/"):
        yield f"{name} is not an absolute path"
    if given["clean"] and given["clean_parent"]:
        yield "Only one of 'clean' and 'clean_parent' can be set to True"
    if ctx.host.path(directory).is_file():
        yield f"{name} exists and is not a directory"
    if owned and not f"{os.path.normpath(owned)}/".startswith(directory):
        yield f"Value for 'enforce_ownership_on' must be within {directory}"


def _check_password(password: str | None, form: str, address: str, archive: Path) -> None:
    """Raise CommandError if an archive of this form cannot have a password, or if it is encrypted and no password is
    given.
    """
    if password and form != "zip":
        raise CommandError("The 'password' argument is only supported for zip archives")
    if form == "zip" and not password and archives.encrypted(archive):
        raise CommandError(
            f"Archive {address} is password-protected, but no password was specified. "
            "Please set the 'password' argument."
        )


def _form(given: str | None, address: str) -> str:
    form = str(given or archives.guess(address.partition("?")[0]) or "").lower()
    if form not in ("tar", "zip"):
        raise CommandError(f"not supported: {form or 'an archive_format that cannot be guessed'}; tar and zip are")
    return form


def _check_signature(ctx: Context, signers: Signers, found: FileSource, signature: object) -> None:
    try:
        signers.check(ctx, found.path, signature, ctx.saltenv)
    except CommandError as error:
        file_source.forget(ctx, found.address, ctx.saltenv)
        raise CommandError(f"Failed verifying the source file's signature: {error}") from error


def _without_cached_copy(address: str, extraction: _Extraction, plan: Plan) -> Plan:
    """Return the plan of ``archive.extracted`` with a last step that removes the cached copy of an http(s) archive."""
    if not address.startswith(downloads.SCHEMES):
        return plan
    if not plan.steps:
        downloads.remove(extraction.cached)
        return plan

    def work() -> Outcome:
        downloads.remove(extraction.cached)
        return Outcome()

    return plan._replace(steps=(*plan.steps, Step(f"forget the copy of {extraction.source}", work)))


def _digest_file(ctx: Context, name: str, address: str) -> Path:
    """Return the path in the minion's cache that stores the digest of the last extracted archive of a directory."""
    key = hashlib.sha256(f"{name}\0{address}".encode()).hexdigest()
    return file_source.cache_of(ctx) / "archive_hash" / key


def _is_last(digest_file: Path, archive: Path) -> bool:
    """Return True if an archive is the one that was extracted last: ``digest_file`` contains its digest."""
    try:
        return digest_file.read_text("utf-8") == digests.digest_of(archive, "sha256")
    except FileNotFoundError:
        return False


def _plan(
    ctx: Context,
    extraction: _Extraction,
    found: archives.Contents,
    *,
    force: bool,
    overwrite: bool,
    updated: bool,
    enforce_toplevel: bool,
) -> Plan:
    if enforce_toplevel and (len(found.top_dirs) > 1 or found.top_files):
        return Plan.failed(
            "Archive does not have a single top-level directory. To allow this archive to be extracted, set "
            f"'enforce_toplevel' to False. To avoid a '{extraction.form}-bomb' it may also be advisable to set a top-level "
            f"directory by adding it to the 'name' value (for example, setting 'name' to {extraction.name}some_dir instead of "
            f"{extraction.name})."
        )
    missing, wrong = _compared(ctx, extraction.name, found)
    if wrong and not extraction.clean and not extraction.clean_parent and not force:
        listed = "\n".join(f"- {each}" for each in wrong)
        return Plan.failed(
            f"The below paths (relative to {extraction.name}) exist, but are the incorrect type (file instead of directory, "
            "symlink instead of file, etc.). To proceed with extraction, set 'force' to True. Note that this will remove "
            f"these paths before extracting.\n\n{listed}"
        )
    steps = []
    why = ", due to absence of one or more files/dirs" if missing else ", due to source_hash update" if updated else ""
    if overwrite or missing or wrong or updated:

        def work() -> Outcome:
            return _extract(ctx, extraction, found, wrong, why)

        steps.append(Step(f"extract {extraction.source} to {extraction.name}", work))
    owner = Attributes(extraction.user, extraction.group)
    if not steps and any(
        managed_file.attribute_changes(ctx.host, place, owner) for place in _owned_paths(ctx, extraction, found)
    ):

        def own() -> Outcome:
            return Outcome("All files in archive are already present", _set_owner(ctx, extraction, found))

        would = "All files in archive are already present. Ownership would be updated on one or more files/directories."
        return Plan.change(would, [Step(f"set the owner of {extraction.name}", own)], {"updated ownership": True})
    if not steps:
        if extraction.digest_file is not None and not extraction.digest_file.is_file() and not ctx.test:
            # All files are present: remember this archive as the last extracted one.
            _write_digest(extraction.digest_file, extraction.cached)
        return Plan.unchanged("All files in archive are already present")
    cleaned = ", after cleaning destination path(s)" if extraction.clean else ""
    return Plan.change(f"Archive {extraction.source} would be extracted to {extraction.name}{cleaned}{why}", steps)


def _extract(ctx: Context, extraction: _Extraction, found: archives.Contents, wrong: list[str], why: str) -> Outcome:
    target = ctx.host.path(extraction.name)
    changes: dict[str, object] = {}
    removed = []
    if extraction.clean_parent and target.exists():
        managed_file.remove(target)
        changes["removed"] = f"Directory {extraction.name} was removed prior to the extraction"
    for each in (*found.top_dirs, *found.top_files) if extraction.clean else wrong:
        place = ctx.host.path(f"{extraction.name}{each}".rstrip("/"), follow=False)
        if lexists(place):
            managed_file.remove(place)
            removed.append(f"{extraction.name}{each}")
    if removed:
        changes["removed"] = removed
    if not target.is_dir():
        managed_file.make_directories(ctx.host, target, Attributes(extraction.user), ctx.host.root)
        changes["directories_created"] = [extraction.name]
    try:
        names = archives.extract(
            extraction.cached,
            extraction.form,
            target,
            strip=extraction.strip,
            password=extraction.password,
            modes=extraction.modes,
        )
    except CommandError as error:
        return Outcome(str(error), changes, ok=False)
    changes |= _set_owner(ctx, extraction, found)
    if extraction.digest_file is not None:
        # Written last, so that an interrupted extraction is repeated.
        _write_digest(extraction.digest_file, extraction.cached)
    changes["extracted_files"] = names[: extraction.trim]
    comment = f"{extraction.source} extracted to {extraction.name}{why}"
    return Outcome(
        comment + (f". Output was trimmed to {extraction.trim} number of lines" if extraction.trim is not None else ""),
        changes,
    )


def _compared(ctx: Context, name: str, found: archives.Contents) -> tuple[bool, list[str]]:
    """Return (True if a member of the archive is missing below the directory ``name``, list of members that exist there
    as another type of file than in the archive).
    """
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


def _owned_paths(ctx: Context, extraction: _Extraction, found: archives.Contents) -> list[Path]:
    """List of the paths that must have the wanted owner and group: those extracted members that exist."""
    if not extraction.user and not extraction.group:
        return []
    tops = (
        [extraction.owned]
        if extraction.owned
        else [f"{extraction.name}{each}" for each in (*found.top_dirs, *found.top_files, *found.top_links)]
    )
    places = []
    for top in tops:
        place = ctx.host.path(top.rstrip("/"), follow=False)
        if lexists(place):
            places += [place, *(place.rglob("*") if place.is_dir() and not place.is_symlink() else ())]
    return places


def _set_owner(ctx: Context, extraction: _Extraction, found: archives.Contents) -> dict[str, object]:
    wanted = Attributes(extraction.user, extraction.group)
    done = False
    for place in _owned_paths(ctx, extraction, found):
        if managed_file.attribute_changes(ctx.host, place, wanted):
            managed_file.set_attributes(ctx.host, place, wanted)
            done = True
    return {"updated ownership": True} if done else {}


def _write_digest(digest_file: Path, archive: Path) -> None:
    digest_file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file.replacement(digest_file) as new:
        new.write_text(digests.digest_of(archive, "sha256"), "utf-8")


def _source(ctx: Context, source: object, wanted: FileVerification) -> FileSource:
    given = source if isinstance(source, list) else [source]
    addresses = [str(next(iter(each)) if isinstance(each, dict) else each) for each in given]
    try:
        return file_source.find(ctx, source, ctx.saltenv, addresses[0] if addresses else "", wanted)
    except Missing as error:
        if not addresses[0].startswith("salt://"):
            raise HostError(f"Source file '{addresses[0].removeprefix('file://')}' does not exist") from error
        raise HostError(f"Source file {', '.join(addresses)} not found in saltenv '{ctx.saltenv}'") from error
    except WrongDigest as error:
        shown = ", ".join(map(downloads.shown, addresses))
        raise CommandError(f"{shown} does not match the desired source_hash {error.wanted}") from error


def _strip(options: object, form: str) -> int:
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
