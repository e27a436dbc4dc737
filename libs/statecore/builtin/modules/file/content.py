"""Functions of the ``file`` module that read, search, write and compare the content of files."""

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
from statecore.model.text_lines import lines_of
from statecore.sources.file_source import FileVerification, find


def read(ctx: Context, path: str, binary: bool = False) -> object:
    """Return the content of a file as text, or with ``binary`` as bytes. Raise CommandError if the file does not
    exist.
    """
    data = bytes_of(ctx, path)
    return data if binary else data.decode("utf-8", "replace")


def write(ctx: Context, path: str, *args: object, **kwargs: object) -> str:
    """Replace the content of a file by the given lines. Return the sentence ``Wrote N lines to "PATH"``."""
    lines = _lines(args, kwargs)
    managed_file.replace(ctx.host, ctx.host.path(path), "".join(f"{line}\n" for line in lines).encode(), Attributes())
    return f'Wrote {len(lines)} lines to "{path}"'


def append(ctx: Context, path: str, *args: object, **kwargs: object) -> str:
    """Append the given lines to a file. Return the sentence ``Wrote N lines to "PATH"``."""
    lines = _lines(args, kwargs)
    real_path = ctx.host.path(path)
    old = managed_file.read(real_path, path) or b""
    gap = b"" if not old or old.endswith(b"\n") else b"\n"
    managed_file.replace(ctx.host, real_path, old + gap + "".join(f"{line}\n" for line in lines).encode(), Attributes())
    return f'Wrote {len(lines)} lines to "{path}"'


def prepend(ctx: Context, path: str, *args: object, **kwargs: object) -> str:
    """Insert the given lines before the first line of a file. Return the sentence ``Prepended N lines to "PATH"``."""
    lines = _lines(args, kwargs)
    real_path = ctx.host.path(path)
    old = managed_file.read(real_path, path) or b""
    managed_file.replace(ctx.host, real_path, "".join(f"{line}\n" for line in lines).encode() + old, Attributes())
    return f'Prepended {len(lines)} lines to "{path}"'


def contains(ctx: Context, path: str, text: str) -> bool:
    """Return whether a file contains the text; False if the file does not exist. White space around ``text`` is
    ignored.
    """
    if not _is_file(ctx, path):
        return False
    return str(text).strip() in ctx.host.path(path).read_text("utf-8", "replace")


def contains_regex(ctx: Context, path: str, regex: str, lchar: str = "") -> bool:
    """Return whether a line of a file matches a regular expression. Return False if the file does not exist.

    lchar
        characters to strip from the beginning of each line before matching
    """
    pattern = _compiled(regex, 0)
    skipped = lchar.encode()
    lines = lines_of(ctx.host.path(path).read_bytes()) if _is_file(ctx, path) else []
    return any(pattern.search(line.lstrip(skipped) if skipped else line) for line in lines)


def contains_glob(ctx: Context, path: str, glob_expr: str) -> bool:
    """Return whether the whole content of a file matches a glob. Return False if the file does not exist."""
    if not _is_file(ctx, path):
        return False
    return fnmatch.fnmatchcase(ctx.host.path(path).read_text("utf-8", "replace"), glob_expr)


def _is_file(ctx: Context, path: str) -> bool:
    """Return whether the host has a regular file at a path; False for a path that is not absolute."""
    return str(path).startswith("/") and ctx.host.path(path).is_file()


def search(
    ctx: Context,
    path: str,
    pattern: str,
    flags: object = 8,
    bufsize: object = 1,
    ignore_if_missing: bool = False,
    multiline: bool = False,
) -> bool:
    """Return whether a regular expression matches anywhere in a file. The whole file is searched at once.

    flags
        names of flags of Python's ``re`` module, or their sum; 8 is MULTILINE
    bufsize
        accepted, without effect
    ignore_if_missing
        True: return False if the file does not exist, instead of raising CommandError
    multiline
        True: ``^`` and ``$`` match at every line
    """
    real_path = ctx.host.path(path)
    if ignore_if_missing and not real_path.is_file():
        return False
    own = _flags(flags) | (re.MULTILINE if multiline else 0)
    return _compiled(pattern, own).search(bytes_of(ctx, path)) is not None


def replace(
    ctx: Context,
    path: str,
    pattern: str,
    repl: str,
    count: int = 0,
    flags: object = 8,
    bufsize: object = 1,
    append_if_not_found: bool = False,
    prepend_if_not_found: bool = False,
    not_found_content: str | None = None,
    backup: object = ".bak",
    dry_run: bool = False,
    search_only: bool = False,
    show_changes: bool = True,
    ignore_if_missing: bool = False,
    backslash_literal: bool = False,
    encoding: str | None = None,
    preserve_inode: bool = True,
) -> object:
    """Replace all matches of a regular expression in a file. Return the diff as text, "" without a change.

    count
        number of replacements; 0 replaces all
    flags
        names of flags of Python's ``re`` module, or their sum; 8 is MULTILINE
    bufsize, preserve_inode
        accepted, without effect
    append_if_not_found, prepend_if_not_found
        if nothing matches, add ``not_found_content`` (default: ``repl``) as a line at the end or the beginning
    backup
        suffix of the copy that is kept of the old file; False keeps no copy
    dry_run
        True: write nothing
    search_only
        True: only return whether the expression matches
    show_changes
        False: return whether the content changes, instead of the diff
    ignore_if_missing
        True: return "" (or False) if the file does not exist, instead of raising CommandError
    backslash_literal
        True: backslashes in ``repl`` have no special meaning
    encoding
        encoding of the file: the expression then matches characters. Without it, the expression matches bytes
    """
    real_path = ctx.host.path(path)
    if ignore_if_missing and not real_path.is_file():
        return "" if show_changes and not search_only else False
    old = bytes_of(ctx, path)
    # With an encoding, match characters, so that a dot is one letter. Without one, match bytes: the file need not be
    # text.
    compiled: re.Pattern[Any] = _compiled(pattern, flags) if encoding is None else _of_text(pattern, flags)
    searched: Any = old if encoding is None else _decoded(old, encoding, path)
    if search_only:
        return compiled.search(searched) is not None
    replacement: str | bytes = str(repl).encode() if encoding is None else str(repl)
    try:
        made, matched = compiled.subn(
            (lambda _: replacement) if backslash_literal else replacement, searched, count=count
        )
    except (re.error, IndexError) as error:
        raise InvocationError(f"'{repl}' is not a valid replacement for '{pattern}': {error}") from error
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
            managed_file.copy_beside(ctx.host, real_path, backup)
        managed_file.replace(ctx.host, real_path, new, Attributes())
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
    """Return ``size`` bytes of a file, starting at byte ``offset``. Raise CommandError if the file does not exist."""
    with existing(ctx, path).open("rb") as file:
        file.seek(int(offset))
        return file.read(int(size))


def seek_write(ctx: Context, path: str, data: str | bytes, offset: int) -> int:
    """Overwrite the bytes of a file from byte ``offset`` with ``data``. Return the number of bytes written. Raise
    CommandError if the file does not exist.
    """
    raw = data.encode() if isinstance(data, str) else data
    with existing(ctx, path).open("r+b") as file:
        file.seek(int(offset))
        count = file.write(raw)
        file.flush()
        os.fsync(file.fileno())
    return count


def truncate(ctx: Context, path: str, length: int) -> None:
    """Cut or extend a file to ``length`` bytes. Return None. Raise CommandError if the file does not exist."""
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
    ignore_comment_characters: object = None,
) -> object:
    """Return the unified diff of two files, "" if they are equal. Each file is a path, ``salt://...`` or a URL.

    show_filenames
        False: leave the file names out of the diff
    show_changes
        False: return a sentence that the files differ, instead of the diff
    template
        True: hide the diff if the minion's option ``obfuscate_templates`` is set
    source_hash_file1, source_hash_file2
        digests that the files are verified against
    ignore_ordering, ignore_whitespace, ignore_comment_characters
        if one is given, return the pair (whether other differences exist, diff)
    """
    pairs = ((file1, source_hash_file1), (file2, source_hash_file2))
    paths = [
        find(ctx, name, saltenv, name, FileVerification(str(digest or ""), skip_verify=not digest)).path
        for name, digest in pairs
    ]
    old, new = (managed_file.source(each) for each in paths)
    ignored = Ignored.of(ignore_ordering, ignore_whitespace, ignore_comment_characters)
    if managed_file.same(old, new):
        return (False, "") if ignored else ""
    if template and ctx.opts.get("obfuscate_templates"):
        shown = "<Obfuscated Template>"
    elif show_changes:
        shown = diffs.unified(old, new, *((file1, file2) if show_filenames else ()))
    else:
        shown = diffs.HIDDEN
    return (not ignored.all_of(old, new), shown) if ignored else shown


def _lines(args: tuple[object, ...], kwargs: dict[str, object]) -> list[str]:
    given = kwargs.get("args", args)
    flat = given if isinstance(given, list | tuple) else [given]
    return [str(line) for part in flat for line in (part if isinstance(part, list) else [part])]


def _with_line(data: bytes, content: bytes, *, at_end: bool) -> bytes:
    """Return the bytes of a file with ``content`` as a line at the beginning or the end. Return the bytes unchanged if
    they have this line.
    """
    if re.search(rb"^" + re.escape(content) + rb"$", data, re.MULTILINE):
        return data
    if at_end:
        return data + (b"" if not data or data.endswith(b"\n") else b"\n") + content + b"\n"
    return content + b"\n" + data


def _compiled(pattern: str, flags: object) -> re.Pattern[bytes]:
    """Return the regular expression compiled for bytes, because a file may hold any bytes. Raise InvocationError if the
    expression is invalid.
    """
    try:
        return re.compile(str(pattern).encode(), _flags(flags))
    except re.error as error:
        raise InvocationError(f"'{pattern}' is not a valid regular expression: {error}") from error


def _of_text(pattern: str, flags: object) -> re.Pattern[str]:
    try:
        return re.compile(str(pattern), _flags(flags))
    except re.error as error:
        raise InvocationError(f"'{pattern}' is not a valid regular expression: {error}") from error


def _flags(flags: object) -> int:
    """Convert flags of Python's ``re`` module, given as a number or as names, to a number. The flag UNICODE is dropped,
    because the patterns may be bytes. Raise CommandError for an unknown name.
    """
    if isinstance(flags, int):
        return flags & ~re.UNICODE
    total = 0
    for name in flags if isinstance(flags, list) else [flags]:
        flag = getattr(re, str(name).upper(), None)
        if not isinstance(flag, re.RegexFlag):
            raise CommandError(f"Invalid re flag given: {name}")
        total |= int(flag)
    return total & ~re.UNICODE
