"""Edits of a part of a file: append, prepend, replace, comment, uncomment, and blocks between two markers."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from statecore.builtin.states.file.arguments import Refused, ensure_parent, local_path, step
from statecore.builtin.states.file.content import Accumulators, Spec, texts_of
from statecore.host.content import diffs, managed_file
from statecore.host.content.edits import comments, text
from statecore.host.content.edits.block import END, START, Block
from statecore.host.content.edits.comments import CommentPattern
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.errors import CommandError, HostError, InvocationError, SlsError
from statecore.model.text_lines import lines_of
from statecore.model.types import FileChange, Outcome, Plan


def append(
    ctx: Context,
    name: str,
    text: object = None,
    makedirs: bool = False,
    source: object = None,
    source_hash: object = None,
    template: str = "jinja",
    sources: list[object] | None = None,
    source_hashes: object = None,
    defaults: Mapping[str, object] | None = None,
    context: Mapping[str, object] | None = None,
    ignore_whitespace: bool = True,
    show_changes: bool = True,
) -> Plan:
    """Append text to a file. Texts of a list that the file already contains as whole lines are not added again.

    source, sources
        files with the text, in place of ``text``; rendered with ``template``, ``defaults`` and ``context``
    source_hash, source_hashes
        digests that the sources must have
    ignore_whitespace
        True: text that differs only in white space counts as present
    makedirs
        True: create missing parent directories
    show_changes
        False: report no diff
    """
    try:
        spec = Spec(ctx.saltenv, template, context, defaults)
        texts = _texts(ctx, spec, name, text, source, sources, source_hash, source_hashes)
        place, old = _found(ctx, name)
    except (Refused, HostError, SlsError) as error:
        return Plan.failed(str(error))
    lacking = [one for one in texts if not _present(one, old or "", ignore_whitespace)]
    lines = [line for one in lacking for line in lines_of(one)]
    now = old or ""
    gap = "" if not now or now.endswith("\n") else "\n"
    new = now + gap + "".join(f"{line}\n" for line in lines)
    diff = "\n".join(difflib.unified_diff(lines_of(now), lines_of(new)))
    return _Addition(ctx, name, place, makedirs, "Appended", len(lines), show_changes).plan(old, new, diff)


def prepend(
    ctx: Context,
    name: str,
    text: object = None,
    makedirs: bool = False,
    source: object = None,
    source_hash: object = None,
    template: str = "jinja",
    sources: list[object] | None = None,
    source_hashes: object = None,
    defaults: Mapping[str, object] | None = None,
    context: Mapping[str, object] | None = None,
    header: bool | None = None,
    show_changes: bool = True,
) -> Plan:
    """Insert text before the first line of a file. Texts of a list that the file already contains are not added again.

    header
        True: the file must begin with the text; a copy further down in the file does not count
    source, sources, source_hash, source_hashes, template, defaults, context, makedirs, show_changes
        as in ``file.append``
    """
    try:
        spec = Spec(ctx.saltenv, template, context, defaults)
        texts = _texts(ctx, spec, name, text, source, sources, source_hash, source_hashes)
        place, old = _found(ctx, name)
    except (Refused, HostError, SlsError) as error:
        return Plan.failed(str(error))
    now = old or ""
    lines = [line for one in texts if header or not _present(one, now, True) for line in lines_of(one)]
    if header and lines_of(now)[: len(lines)] == lines:
        lines = []
    new = "".join(f"{line}\n" for line in lines) + now
    diff = "".join(difflib.unified_diff(lines_of(now, keepends=True), lines_of(new, keepends=True)))
    return _Addition(ctx, name, place, makedirs, "Prepended", len(lines), show_changes).plan(old, new, diff)


def replace(
    ctx: Context,
    name: str,
    pattern: str,
    repl: str,
    count: int = 0,
    flags: object = 8,
    bufsize: object = 1,
    append_if_not_found: bool = False,
    prepend_if_not_found: bool = False,
    not_found_content: str | None = None,
    backup: object = ".bak",
    show_changes: bool = True,
    ignore_if_missing: bool = False,
    backslash_literal: bool = False,
    encoding: str | None = None,
) -> Plan:
    """Replace every match of the regular expression ``pattern`` in a file by ``repl``.

    count
        maximum number of replacements; 0: all
    flags
        flags of Python's ``re`` module, as names or a number; default: MULTILINE
    append_if_not_found, prepend_if_not_found
        True: add ``not_found_content`` (default: ``repl``) at the end, or the beginning, if nothing matches
    backup
        suffix of the old file's copy; False: no copy
    ignore_if_missing
        True: a missing file is no failure
    backslash_literal
        True: backslashes in ``repl`` have no special meaning
    encoding
        encoding of the file. By default the pattern and the new text are UTF-8, and all other bytes stay unchanged.
    """
    options = {
        "count": count,
        "flags": flags,
        "append_if_not_found": append_if_not_found,
        "prepend_if_not_found": prepend_if_not_found,
        "not_found_content": not_found_content,
        "backup": backup,
        "show_changes": show_changes,
        "ignore_if_missing": ignore_if_missing,
        "backslash_literal": backslash_literal,
        "encoding": encoding,
    }
    try:
        place = local_path(ctx, name)
        if not place.is_file() and not ignore_if_missing:
            raise Refused(f"{name}: file not found")
        diff = ctx.call("file.replace", name, pattern, repl, dry_run=True, **options)
    except (Refused, CommandError, InvocationError) as error:
        return Plan.failed(str(error))
    if not diff:
        return Plan.unchanged("No changes needed to be made")

    def work() -> Outcome:
        return Outcome("Changes were made", {"diff": ctx.call("file.replace", name, pattern, repl, **options)})

    return Plan.change("Changes would have been made", (step(f"edit {name}", work),), {"diff": diff})


def comment(
    ctx: Context, name: str, regex: str, char: str = "#", backup: object = ".bak", ignore_missing: bool = False
) -> Plan:
    """Comment out the lines that match a regular expression.

    regex
        regular expression for the beginning of the lines
    char
        text that starts a comment
    backup
        suffix of the old file's copy; False: no copy
    ignore_missing
        True: a file without matching lines is no failure
    """
    try:
        pattern = CommentPattern(str(regex), str(char))
        target = Target.of(ctx, name)
        old = target.text
        if not pattern.has_line(old):
            if pattern.has_comment(old):
                return Plan.unchanged("Pattern already commented")
            if ignore_missing:
                return Plan.unchanged("Pattern not found and ignore_missing set to True")
            raise Refused(f"{pattern.bare}: Pattern not found")
        new = comments.commented(old, pattern)
        if not pattern.has_comment(new):
            raise Refused("Expected commented lines not found")
    except (Refused, HostError, InvocationError) as error:
        return Plan.failed(str(error))
    return _written(target, new, "Commented lines successfully", backup)


def uncomment(ctx: Context, name: str, regex: str, char: str = "#", backup: object = ".bak") -> Plan:
    """Uncomment the commented lines that match a regular expression.

    regex
        regular expression for the line without its comment character
    char
        text that starts a comment
    backup
        suffix of the old file's copy; False: no copy
    """
    try:
        pattern = CommentPattern(str(regex), str(char))
        target = Target.of(ctx, name)
        old = target.text
        if not pattern.has_spaced_comment(old):
            if pattern.has_indented_line(old):
                return Plan.unchanged("Pattern already uncommented")
            raise Refused(f"{regex}: Pattern not found")
        new = comments.uncommented(old, pattern)
        if not pattern.has_indented_line(new):
            raise Refused("Expected uncommented lines not found")
    except (Refused, HostError, InvocationError) as error:
        return Plan.failed(str(error))
    return _written(target, new, "Uncommented lines successfully", backup)


def blockreplace(
    ctx: Context,
    name: str,
    marker_start: str = START,
    marker_end: str = END,
    source: object = None,
    source_hash: object = None,
    template: str = "jinja",
    sources: list[object] | None = None,
    source_hashes: object = None,
    defaults: Mapping[str, object] | None = None,
    context: Mapping[str, object] | None = None,
    content: str = "",
    append_if_not_found: bool = False,
    prepend_if_not_found: bool = False,
    backup: object = ".bak",
    show_changes: bool = True,
    append_newline: bool | None = None,
    insert_before_match: object = None,
    insert_after_match: object = None,
) -> Plan:
    """Set the text between two marker lines of a file: ``content``, texts of ``file.accumulated``, and texts of
    sources.

    marker_start, marker_end
        text of the lines before and after the block
    append_if_not_found, prepend_if_not_found
        True: add the block at the end, or the beginning, if the markers are missing
    insert_before_match, insert_after_match
        regular expression for the line before, or after, which a missing block is inserted
    append_newline
        True: put a line end after the content. Default: only if the content does not end with one.
    backup
        suffix of the old file's copy; False: no copy
    source, sources, source_hash, source_hashes, template, defaults, context, show_changes
        as in ``file.append``
    """
    try:
        spec = Spec(ctx.saltenv, template, context, defaults)
        target = Target.of(ctx, name)
        whole = "\n".join([*([str(content)] if content != "" else []), *Accumulators.for_state(ctx, name)])
        if source or sources:
            whole += "".join(texts_of(ctx, spec, name, source, sources, source_hash, source_hashes))
        old = target.text
        new = Block(
            marker_start=str(marker_start),
            marker_end=str(marker_end),
            content=whole,
            append_if_not_found=append_if_not_found,
            prepend_if_not_found=prepend_if_not_found,
            insert_before_match=insert_before_match,
            insert_after_match=insert_after_match,
            append_newline=append_newline,
        ).put_into(old)
    except (Refused, SlsError) as error:
        return Plan.failed(str(error))
    except (CommandError, InvocationError) as error:
        return Plan.failed(f"Encountered error managing block: {error}. See the log for details.")
    if new == old:
        return Plan.unchanged("No changes needed to be made")
    changes = {"diff": target.diff(new, shown=show_changes)}
    return target.write(
        new, "Changes would be made", "Changes were made", changes, backup=_suffix(backup), shown=show_changes
    )


@dataclass(frozen=True, slots=True)
class _Addition:
    """Lines that ``file.append`` or ``file.prepend`` adds to a file, and the words of its comment."""

    ctx: Context
    name: str
    place: Path
    makedirs: bool
    verb: str
    count: int
    show_changes: bool

    def plan(self, old: str | None, new: str, diff: str) -> Plan:
        """Return a plan that writes the text ``new`` to the file; a plan without a step if it equals the ``old`` text."""
        if new == (old or ""):
            return Plan.unchanged(f"File {self.name} is in correct state")
        changes = {"diff": diff if self.show_changes else diffs.HIDDEN}
        content = new.encode("utf-8", "surrogateescape")

        def work() -> Outcome:
            ensure_parent(self.ctx, self.place, self.makedirs, Attributes(), f"{self.name}: file not found")
            managed_file.replace(self.ctx.host, self.place, content, Attributes())
            return Outcome(f"{self.verb} {self.count} lines", changes)

        before = None if old is None else old.encode("utf-8", "surrogateescape")
        write = step(
            f"add {self.count} lines to {self.name}", work, FileChange(self.name, before, content, self.show_changes)
        )
        if old is None:
            return Plan.change(f"File {self.name} is set to be created", (write,), {"new": self.name})
        return Plan.change(f"File {self.name} is set to be updated", (write,), changes)


def _found(ctx: Context, name: str) -> tuple[Path, str | None]:
    """Return (path of the file ``name`` for this process, its text or None if it does not exist).

    Bytes that are not UTF-8 survive a round trip.
    """
    place = local_path(ctx, name)
    old = managed_file.read(place, name)
    return place, None if old is None else old.decode("utf-8", "surrogateescape")


def _texts(
    ctx: Context,
    spec: Spec,
    name: str,
    text: object,
    source: object,
    sources: object,
    source_hash: object,
    source_hashes: object,
) -> list[str]:
    """Return the list of texts that a state adds to a file, from ``text`` or from its sources. Raises Refused if no
    argument gives one.
    """
    if text is not None:
        return [str(one) for one in (text if isinstance(text, list | tuple) else [text])]
    if not (source or sources):
        raise Refused("Need to specify one of: text, source, sources")
    return texts_of(ctx, spec, name, source, sources, source_hash, source_hashes)


def _present(text: str, now: str, ignore_whitespace: bool) -> bool:
    """Return True if the text ``now`` of a file contains ``text`` as whole lines.

    ``ignore_whitespace``: white space between words may differ.
    """
    pattern = r"\s*".join(map(re.escape, text.split())) if ignore_whitespace else re.escape(text.rstrip("\n"))
    space = r"\s*" if ignore_whitespace else ""
    return re.search(f"^{space}{pattern}{space}$", now, re.MULTILINE) is not None


@dataclass(frozen=True, slots=True)
class Target:
    """An existing file to be edited. It is read once and written once; a backup copy is optional."""

    ctx: Context
    name: str
    place: Path
    old: bytes

    @classmethod
    def of(cls, ctx: Context, name: str) -> Target:
        """Read the file ``name`` of the host and return it as target of an edit. Raises Refused if it does not exist,
        HostError if it is not a regular file.
        """
        place = local_path(ctx, name)
        old = managed_file.read(place, name)
        if old is None:
            raise Refused(f"{name}: file not found")
        return cls(ctx, name, place, old)

    @property
    def text(self) -> str:
        """Text of the file to be edited. Raises InvocationError for a binary file."""
        return text.decoded(self.old, self.name)

    def diff(self, new: str, *, shown: bool = True) -> str | bool:
        """Return the unified diff from the file's text to the new text; True in place of the diff if ``shown`` is
        False.
        """
        return diffs.unified(self.old, text.encoded(new)) if shown else True

    def write(
        self,
        new: str,
        would: str,
        did: str,
        changes: Mapping[str, object],
        *,
        predicted: Mapping[str, object] | None = None,
        backup: str = "",
        shown: bool = True,
    ) -> Plan:
        """Return a plan that replaces the file's text by ``new``.

        ``would`` and ``did`` are the comments of test mode and of a run; ``predicted`` the changes in test mode, if
        they differ from
        ``changes``; ``backup`` the suffix of the old file's copy, "" for no copy.
        """
        content = text.encoded(new)

        def work() -> Outcome:
            ensure_parent(self.ctx, self.place, False, Attributes(), f"{self.name} not writable: it has no directory")
            if backup:
                managed_file.copy_beside(self.ctx.host, self.place, backup)
            managed_file.replace(self.ctx.host, self.place, content, Attributes())
            return Outcome(did, changes)

        write = step(f"edit {self.name}", work, FileChange(self.name, self.old, content, shown))
        return Plan.change(would, (write,), changes if predicted is None else predicted)


def _suffix(backup: object) -> str:

    return str(backup) if backup else ""


def _written(target: Target, new: str, did: str, backup: object) -> Plan:
    if new == target.text:
        return Plan.unchanged(did)
    would = f"File {target.name} is set to be updated"
    changes = {"diff": target.diff(new)}
    return target.write(new, would, did, changes, predicted={target.name: "updated"}, backup=_suffix(backup))
