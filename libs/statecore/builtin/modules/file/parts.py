"""Parts of files by their offset, whole files by their old copies, and edits that are older than ``replace``."""

from __future__ import annotations

import fnmatch
import os
import re
import shlex
from pathlib import Path
from typing import Any

from statecore.builtin.modules.file.paths import bytes_of, existing
from statecore.host.content import backups, managed_file
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError

#: Letters of ``psed`` -> what they are to a regular expression.
_LETTERS = {"I": re.IGNORECASE, "L": re.LOCALE, "M": re.MULTILINE, "S": re.DOTALL, "U": re.UNICODE, "X": re.VERBOSE}


def seek_read(ctx: Context, path: str, size: int, offset: int) -> bytes:
    """So many bytes of a file from an offset on."""
    with existing(ctx, path).open("rb") as file:
        file.seek(int(offset))
        return file.read(int(size))


def seek_write(ctx: Context, path: str, data: str | bytes, offset: int) -> int:
    """Puts bytes over those of a file from an offset on; how many."""
    raw = data.encode() if isinstance(data, str) else data
    with existing(ctx, path).open("r+b") as file:
        file.seek(int(offset))
        count = file.write(raw)
        file.flush()
        os.fsync(file.fileno())
    return count


def truncate(ctx: Context, path: str, length: int) -> None:
    """Makes a file so many bytes long."""
    with existing(ctx, path).open("r+b") as file:
        file.truncate(int(length))


def contains_glob(ctx: Context, path: str, glob_expr: str) -> bool:
    """Whether all of a file matches a glob."""
    place = ctx.host.path(path)
    return place.is_file() and fnmatch.fnmatchcase(place.read_text("utf-8", "replace"), glob_expr)


def sed(
    ctx: Context,
    path: str,
    before: str,
    after: str,
    limit: str = "",
    backup: str = ".bak",
    options: str = "-r -e",
    flags: str = "g",
    escape_all: bool = False,
    negate_match: bool = False,
) -> Any:
    """The host's sed replaces what a pattern matches; the result of the program, False where there is no such file."""
    if not ctx.host.path(path).exists():
        return False
    where = f"/{_slashed(limit, escape_all)}/ " if limit else ""
    command = (
        f"{where}{'!' if negate_match else ''}s/{_slashed(before, escape_all)}/{_slashed(after, escape_all)}/{flags}"
    )
    return _run(ctx, ["sed", f"-i{backup or ''}", *shlex.split(options), command, path])


def sed_contains(ctx: Context, path: str, text: str, limit: str = "", flags: str = "g") -> bool:
    """Whether the host's sed finds a pattern in a file."""
    if not ctx.host.path(path).exists():
        return False
    where = f"/{_slashed(limit)}/ " if limit else ""
    told = _run(ctx, ["sed", "-n", "-r", "-e", f"{where}s/{_slashed(text)}/$/p{flags}", path])
    return bool(told["stdout"])


def psed(
    ctx: Context,
    path: str,
    before: str,
    after: str,
    limit: str = "",
    backup: str = ".bak",
    flags: str = "gMS",
    escape_all: bool = False,
    multi: bool = False,
) -> None:
    """Replaces what a regular expression matches, as sed would. ``file.replace`` does it better; ``multi``: line by line."""
    old = bytes_of(ctx, path).decode("utf-8", "surrogateescape")
    if unknown := set(flags) - {"g", *_LETTERS}:
        raise InvocationError(f"flags are letters of g{''.join(_LETTERS)}, not {''.join(sorted(unknown))}")
    bits = sum(_LETTERS[letter] for letter in set(flags) if letter != "g")
    try:
        pattern = re.compile(re.escape(str(before)) if escape_all else str(before), bits)
        text = "".join(re.split(str(limit), old)[1:]) if limit else old
        parts = text.splitlines(keepends=True) if multi else [text]
        new = "".join(pattern.sub(str(after), part, count=0 if "g" in flags else 1) for part in parts)
    except (re.error, IndexError, ValueError) as error:
        raise InvocationError(f"'{before}' cannot be replaced by '{after}': {error}") from error
    place = ctx.host.path(path)
    managed_file.keep_beside(ctx.host, place, str(backup))
    managed_file.replace(ctx.host, place, new.encode("utf-8", "surrogateescape"), Attributes())


def grep(ctx: Context, path: str, pattern: str, *opts: Any) -> Any:
    """The host's grep over a file, or those that a glob means; the result of the program. Each option by itself."""
    words = [shlex.split(str(each)) for each in opts]
    if several := [" ".join(each) for each in words if len(each) > 1]:
        raise InvocationError(f"one option at a time: {several[0]}")
    top, name = path.rpartition("/")[::2]
    found = [path]
    if any(letter in name for letter in "*?["):
        directory = ctx.host.path(top or "/")
        names = [entry.name for entry in directory.iterdir()] if directory.is_dir() else []
        found = [f"{top}/{each}" for each in sorted(names) if fnmatch.fnmatchcase(each, name)] or found
    return _run(ctx, ["grep", *(word for each in words for word in each), pattern, *found])


def patch(ctx: Context, originalfile: str, patchfile: str, options: str = "", dry_run: bool = False) -> Any:
    """The host's patch applies a file of the host to a file, or to those below a directory; the result of the program."""
    words = ["patch", *shlex.split(options), *(["--dry-run"] if dry_run else [])]
    if not {"-N", "--forward"} & set(words):
        words.append("--forward")
    if not any(word == "-r" or word.startswith("--reject-file") for word in words):
        words.append("--reject-file=-")
    words += ["-i", patchfile]
    if not ctx.host.path(originalfile).is_dir():
        return _run(ctx, [*words, originalfile])
    stripped = any(word.startswith(("-p", "--strip=")) for word in words[1:])
    return _run(ctx, [*words, "-d", originalfile, *([] if stripped else ["--strip=0"])])


def list_backups(ctx: Context, path: str, limit: int | None = None) -> dict[int, dict[str, Any]]:
    """The copies that ``backup: minion`` kept of a file, the newest first: Backup Time, Size, Location."""
    found = backups.kept_of(ctx.host.path(path), _cache(ctx))[: None if limit is None else int(limit)]
    return {
        number: {"Backup Time": each.shown, "Size": each.place.stat().st_size, "Location": str(each.place)}
        for number, each in enumerate(found)
    }


def list_backup(ctx: Context, path: str, limit: int | None = None) -> dict[int, dict[str, Any]]:
    """``list_backups``."""
    return list_backups(ctx, path, limit)


def list_backups_dir(ctx: Context, path: str, limit: int | None = None) -> dict[str, dict[int, dict[str, Any]]]:
    """The copies of all files in a directory (its name ends in a slash, or is that of a file in it), by name."""
    directory = path.rpartition("/")[0] or "/"
    names = backups.names_in(ctx.host.path(directory), _cache(ctx))
    return {name: list_backups(ctx, f"{directory.rstrip('/')}/{name}", limit) for name in names}


def restore_backup(ctx: Context, path: str, backup_id: Any) -> dict[str, Any]:
    """Puts a copy of ``list_backups`` in place of the file, of which a copy is kept first; result and comment."""
    found = _chosen(ctx, path, backup_id)
    if isinstance(found, str):
        return {"result": False, "comment": found}
    place = ctx.host.path(path)
    if place.is_file():
        backups.back_up(place, _cache(ctx))
    managed_file.replace(ctx.host, place, found, Attributes())
    return {"result": True, "comment": f"Successfully restored {found} to {path}"}


def delete_backup(ctx: Context, path: str, backup_id: Any) -> dict[str, Any]:
    """Removes a copy of ``list_backups``; result and comment."""
    found = _chosen(ctx, path, backup_id)
    if isinstance(found, str):
        return {"result": False, "comment": found}
    try:
        found.unlink()
    except OSError as error:
        return {"result": False, "comment": f"Unable to remove {found}: {error.strerror}"}
    return {"result": True, "comment": f"Successfully removed {found}"}


def remove_backup(ctx: Context, path: str, backup_id: Any) -> dict[str, Any]:
    """``delete_backup``."""
    return delete_backup(ctx, path, backup_id)


def _chosen(ctx: Context, path: str, backup_id: Any) -> Path | str:
    """A copy by its number, or why there is none."""
    if not str(backup_id).isdecimal():
        return f"Invalid backup_id '{backup_id}'"
    found = backups.kept_of(ctx.host.path(path), _cache(ctx))
    number = int(backup_id)
    return found[number].place if number < len(found) else f"backup_id '{backup_id}' does not exist for {path}"


def _cache(ctx: Context) -> Path:
    return Path(str(ctx.opts.get("cachedir") or "/var/cache/salt/minion")) / "file_backup"


def _run(ctx: Context, words: list[str]) -> Any:
    if ctx.host.which(words[0]) is None:
        raise CommandError(f"{words[0]} executable not found. Is the distribution's {words[0]} package installed?")
    return ctx.call("cmd.run_all", words, python_shell=False, ignore_retcode=True)


def _slashed(text: str, escape_all: bool = False) -> str:
    """A pattern as it stands between the slashes of sed."""
    plain = str(text).replace("/", "\\/")
    return re.sub(r"([\^.\[$()|*+?{])", r"\\\1", plain) if escape_all else plain
