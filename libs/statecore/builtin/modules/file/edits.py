"""Functions of the ``file`` module that edit text files: line, blockreplace, comment, uncomment, psed."""

from __future__ import annotations

import re
import time

from statecore.builtin.modules.file.paths import bytes_of
from statecore.host.content import diffs, managed_file
from statecore.host.content.edits import comments, text
from statecore.host.content.edits.block import END, START, Block
from statecore.host.content.edits.comments import CommentPattern
from statecore.host.content.edits.single_line import Line
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.text_lines import lines_of

#: Letter of ``psed``'s argument ``flags`` -> flag of Python's ``re`` module.
_LETTERS = {"I": re.IGNORECASE, "L": re.LOCALE, "M": re.MULTILINE, "S": re.DOTALL, "U": re.UNICODE, "X": re.VERBOSE}


def line(
    ctx: Context,
    path: str,
    content: object = None,
    match: str | None = None,
    mode: str | None = None,
    location: str | None = None,
    before: str | None = None,
    after: str | None = None,
    show_changes: bool = True,
    backup: bool = False,
    quiet: bool = False,
    indent: bool = True,
) -> object:
    """Ensure, insert, replace or delete one line of a file. Return the diff as text, or with ``show_changes=False``
    True; False without a change. Raise CommandError if the file does not exist.

    In test mode nothing is written.

    quiet
        True: return False if the file does not exist, instead of raising CommandError
    """
    if not ctx.host.path(path).is_file():
        if quiet:
            return False
        raise CommandError(f'File "{path}" does not exists or is not a file.')
    edit = Line.of(locals())
    old = text.decoded(bytes_of(ctx, path), path)
    new = edit.put_into(old)
    if new != old and not ctx.test:
        _write(ctx, path, new, f".{time.strftime('%Y-%m-%d-%H-%M-%S')}" if backup else "")
    return _diff(old, new, show_changes) if new != old else False


def blockreplace(
    ctx: Context,
    path: str,
    marker_start: str = START,
    marker_end: str = END,
    content: str = "",
    append_if_not_found: bool = False,
    prepend_if_not_found: bool = False,
    backup: object = ".bak",
    dry_run: bool = False,
    show_changes: bool = True,
    append_newline: bool | None = False,
    insert_before_match: str | None = None,
    insert_after_match: str | None = None,
) -> object:
    """Replace the text between two marker lines of a file. Return the diff as text, or with ``show_changes=False``
    whether the text changed. Raise CommandError if the file does not exist.
    """
    block = Block(
        marker_start=marker_start,
        marker_end=marker_end,
        content=content,
        append_if_not_found=append_if_not_found,
        prepend_if_not_found=prepend_if_not_found,
        insert_before_match=insert_before_match,
        insert_after_match=insert_after_match,
        append_newline=append_newline,
    )
    old = text.decoded(bytes_of(ctx, path), path)
    new = block.put_into(old)
    if new != old and not dry_run:
        _write(ctx, path, new, str(backup) if backup else "")
    return _diff(old, new, show_changes)


def comment(ctx: Context, path: str, regex: str, char: str = "#", backup: object = ".bak") -> object:
    """Comment out each line of a file that starts with a match of the regular expression. Return the diff of these
    lines, or False without a change.
    """
    return comment_line(ctx, path, regex, char, True, backup)


def uncomment(ctx: Context, path: str, regex: str, char: str = "#", backup: object = ".bak") -> object:
    """Remove the comment character from each commented line of a file that matches the regular expression. Return the
    diff of these lines, or False without a change.
    """
    return comment_line(ctx, path, regex, char, False, backup)


def comment_line(
    ctx: Context, path: str, regex: str, char: str = "#", cmnt: bool = True, backup: object = ".bak"
) -> object:
    """Comment out the lines that match a regular expression, as ``file.comment`` does, or with ``cmnt=False`` uncomment
    them, as ``file.uncomment`` does. Return the diff of these lines, or False without a change.
    """
    pattern = CommentPattern(regex, char)
    old = text.decoded(bytes_of(ctx, path), path)
    new = comments.commented(old, pattern) if cmnt else comments.uncommented(old, pattern)
    if new == old:
        return False
    _write(ctx, path, new, str(backup) if backup else "")
    changed = [pair for pair in zip(text.lines(old), text.lines(new), strict=True) if pair[0] != pair[1]]
    return _diff("".join(pair[0] for pair in changed), "".join(pair[1] for pair in changed), True)


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
    """Replace matches of a regular expression in a file, in the manner of sed. Return None. Raise CommandError if the
    file does not exist. ``file.replace`` is the better function.

    limit
        regular expression: only the text after its first match is kept and changed
    flags
        letters: g (all matches instead of one), I, L, M, S, U, X (flags of Python's ``re`` module)
    escape_all
        True: ``before`` is plain text, not an expression
    multi
        True: match line by line
    """
    old = bytes_of(ctx, path).decode("utf-8", "surrogateescape")
    if unknown := set(flags) - {"g", *_LETTERS}:
        raise InvocationError(f"flags are letters of g{''.join(_LETTERS)}, not {''.join(sorted(unknown))}")
    bits = sum(_LETTERS[letter] for letter in set(flags) if letter != "g")
    try:
        pattern = re.compile(re.escape(str(before)) if escape_all else str(before), bits)
        text = "".join(re.split(str(limit), old)[1:]) if limit else old
        parts = lines_of(text, keepends=True) if multi else [text]
        new = "".join(pattern.sub(str(after), part, count=0 if "g" in flags else 1) for part in parts)
    except (re.error, IndexError, ValueError) as error:
        raise InvocationError(f"'{before}' cannot be replaced by '{after}': {error}") from error
    real_path = ctx.host.path(path)
    managed_file.copy_beside(ctx.host, real_path, str(backup))
    managed_file.replace(ctx.host, real_path, new.encode("utf-8", "surrogateescape"), Attributes())


def _write(ctx: Context, path: str, new: str, backup: str) -> None:
    real_path = ctx.host.path(path)
    if backup:
        managed_file.copy_beside(ctx.host, real_path, backup)
    managed_file.replace(ctx.host, real_path, text.encoded(new), Attributes())


def _diff(old: str, new: str, show_changes: bool) -> object:
    if not show_changes:
        return new != old
    return diffs.unified(text.encoded(old), text.encoded(new)) if new != old else ""
