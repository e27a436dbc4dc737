"""What is in files: read, searched, written, edited."""

from __future__ import annotations

import fnmatch
import os
import re
from typing import Any

from statecore.builtin.modules.file.paths import bytes_of, existing
from statecore.host.content import diffs, managed_file
from statecore.host.content.diffs import Ignored
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.sources.file_source import FileVerification, find


def read(ctx: Context, path: str, binary: bool = False) -> Any:
    """The content of a file."""
    data = bytes_of(ctx, path)
    return data if binary else data.decode("utf-8", "replace")


def write(ctx: Context, path: str, *args: Any, **kwargs: Any) -> str:
    """Puts lines in place of a file's content."""
    lines = _lines(args, kwargs)
    managed_file.replace(ctx.host, ctx.host.path(path), "".join(f"{line}\n" for line in lines).encode(), Attributes())
    return f'Wrote {len(lines)} lines to "{path}"'


def append(ctx: Context, path: str, *args: Any, **kwargs: Any) -> str:
    """Puts lines at the end of a file."""
    lines = _lines(args, kwargs)
    place = ctx.host.path(path)
    old = managed_file.read(place, path) or b""
    gap = b"" if not old or old.endswith(b"\n") else b"\n"
    managed_file.replace(ctx.host, place, old + gap + "".join(f"{line}\n" for line in lines).encode(), Attributes())
    return f'Wrote {len(lines)} lines to "{path}"'


def prepend(ctx: Context, path: str, *args: Any, **kwargs: Any) -> str:
    """Puts lines before a file's first line."""
    lines = _lines(args, kwargs)
    place = ctx.host.path(path)
    old = managed_file.read(place, path) or b""
    managed_file.replace(ctx.host, place, "".join(f"{line}\n" for line in lines).encode() + old, Attributes())
    return f'Prepended {len(lines)} lines to "{path}"'


def contains(ctx: Context, path: str, text: str) -> bool:
    """Whether a file has a text in one of its lines, surrounding space aside."""
    place = ctx.host.path(path)
    return place.is_file() and str(text).strip() in place.read_text("utf-8", "replace")


def contains_regex(ctx: Context, path: str, regex: str, lchar: str = "") -> bool:
    """Whether a line of a file matches a regular expression."""
    place = ctx.host.path(path)
    pattern = _compiled(regex, 0)
    skipped = lchar.encode()
    return place.is_file() and any(
        pattern.search(line.lstrip(skipped) if skipped else line) for line in place.read_bytes().splitlines()
    )


def contains_glob(ctx: Context, path: str, glob_expr: str) -> bool:
    """Whether all of a file matches a glob."""
    place = ctx.host.path(path)
    return place.is_file() and fnmatch.fnmatchcase(place.read_text("utf-8", "replace"), glob_expr)


def search(
    ctx: Context,
    path: str,
    pattern: str,
    flags: Any = 8,
    bufsize: Any = 1,
    ignore_if_missing: bool = False,
    multiline: bool = False,
) -> bool:
    """Whether a file matches a regular expression, which always sees all of it. ``multiline``: ^ and $ mean lines."""
    place = ctx.host.path(path)
    if ignore_if_missing and not place.is_file():
        return False
    own = _flags(flags) | (re.MULTILINE if multiline else 0)
    return _compiled(pattern, own).search(bytes_of(ctx, path)) is not None


def replace(
    ctx: Context,
    path: str,
    pattern: str,
    repl: str,
    count: int = 0,
    flags: Any = 8,
    bufsize: Any = 1,
    append_if_not_found: bool = False,
    prepend_if_not_found: bool = False,
    not_found_content: str | None = None,
    backup: Any = ".bak",
    dry_run: bool = False,
    search_only: bool = False,
    show_changes: bool = True,
    ignore_if_missing: bool = False,
    backslash_literal: bool = False,
    encoding: str | None = None,
    preserve_inode: bool = True,
) -> Any:
    """Replaces what a regular expression matches; returns the diff, "" when there is nothing to do.

    search_only
        only says whether anything matches
    show_changes
        False: returns whether there was something to do
    encoding
        of the file, of which then the text is searched, and not the bytes
    """
    place = ctx.host.path(path)
    if ignore_if_missing and not place.is_file():
        return "" if show_changes and not search_only else False
    old = bytes_of(ctx, path)
    # Where the encoding is known it is the text that is searched, so that a dot is one letter; else a file need not be text.
    compiled: re.Pattern[Any] = _compiled(pattern, flags) if encoding is None else _of_text(pattern, flags)
    searched: Any = old if encoding is None else _decoded(old, encoding, path)
    if search_only:
        return compiled.search(searched) is not None
    put: Any = str(repl).encode() if encoding is None else str(repl)
    try:
        made, matched = compiled.subn((lambda _: put) if backslash_literal else put, searched, count=count)
    except (re.error, IndexError) as error:
        raise InvocationError(f"'{repl}' is no replacement for '{pattern}': {error}") from error
    new = made if encoding is None else _encoded(made, encoding, path)
    if not matched and (append_if_not_found or prepend_if_not_found):
        content = str(not_found_content if not_found_content is not None else repl)
        if encoding is None:
            new = _with_line(old, content.encode(), at_end=append_if_not_found)
        else:
            new = _with_line(made.encode(), content.encode(), at_end=append_if_not_found)
            new = _encoded(new.decode(), encoding, path)
    if new != old and not dry_run:
        if backup and isinstance(backup, str):
            managed_file.keep_beside(ctx.host, place, backup)
        managed_file.replace(ctx.host, place, new, Attributes())
    if not show_changes:
        return new != old
    if encoding is not None:
        old, new = searched.encode(), _decoded(new, encoding, path).encode()
    return diffs.unified(old, new) if new != old else ""


def _decoded(data: bytes, encoding: str, path: str) -> str:
    try:
        return data.decode(encoding)
    except (LookupError, UnicodeError) as error:
        raise CommandError(f"{path}: {error}") from error


def _encoded(text: str, encoding: str, path: str) -> bytes:
    try:
        return text.encode(encoding)
    except (LookupError, UnicodeError) as error:
        raise CommandError(f"{path}: {error}") from error


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


def get_diff(
    ctx: Context,
    file1: str,
    file2: str,
    saltenv: str = "base",
    show_filenames: bool = True,
    show_changes: bool = True,
    template: bool = False,
    source_hash_file1: str | None = None,
    source_hash_file2: str | None = None,
    ignore_ordering: bool = False,
    ignore_whitespace: bool = False,
    ignore_comment_characters: Any = None,
) -> Any:
    """The difference of two files: of the host, of the tree, or of a server; "" for none.

    show_filenames, show_changes
        whether the difference names the files; False: only that there is one
    template
        with the option ``obfuscate_templates`` only that there is one
    ignore_ordering, ignore_whitespace, ignore_comment_characters
        with one of them the answer is (whether anything else changed, the difference)
    """
    pairs = ((file1, source_hash_file1), (file2, source_hash_file2))
    places = [
        find(ctx, name, saltenv, name, FileVerification(str(digest or ""), skip_verify=not digest)).path
        for name, digest in pairs
    ]
    old, new = (managed_file.source(place) for place in places)
    ignored = Ignored.of(ignore_ordering, ignore_whitespace, ignore_comment_characters)
    if managed_file.same(old, new):
        return (False, "") if ignored else ""
    if template and ctx.opts.get("obfuscate_templates"):
        told = "<Obfuscated Template>"
    elif show_changes:
        told = diffs.unified(old, new, *((file1, file2) if show_filenames else ()))
    else:
        told = diffs.HIDDEN
    return (not ignored.all_of(old, new), told) if ignored else told


def _lines(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    given = kwargs.get("args", args)
    flat = given if isinstance(given, list | tuple) else [given]
    return [str(line) for part in flat for line in (part if isinstance(part, list) else [part])]


def _with_line(data: bytes, content: bytes, *, at_end: bool) -> bytes:
    """The bytes with a line, or lines, at one end, unless they have them."""
    if re.search(rb"^" + re.escape(content) + rb"$", data, re.MULTILINE):
        return data
    if at_end:
        return data + (b"" if not data or data.endswith(b"\n") else b"\n") + content + b"\n"
    return content + b"\n" + data


def _compiled(pattern: str, flags: Any) -> re.Pattern[bytes]:
    """A pattern for bytes, as in Salt: a file need not be text."""
    try:
        return re.compile(str(pattern).encode(), _flags(flags))
    except re.error as error:
        raise InvocationError(f"'{pattern}' is no regular expression: {error}") from error


def _of_text(pattern: str, flags: Any) -> re.Pattern[str]:
    try:
        return re.compile(str(pattern), _flags(flags))
    except re.error as error:
        raise InvocationError(f"'{pattern}' is no regular expression: {error}") from error


def _flags(flags: Any) -> int:
    """Flags by number (8, Salt's default, is MULTILINE) or by names."""
    if isinstance(flags, int):
        return flags & ~re.UNICODE
    total = 0
    for name in flags if isinstance(flags, list) else [flags]:
        flag = getattr(re, str(name).upper(), None)
        if not isinstance(flag, re.RegexFlag):
            raise CommandError(f"Invalid re flag given: {name}")
        total |= int(flag)
    return total & ~re.UNICODE
