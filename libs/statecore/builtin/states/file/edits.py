"""Parts of a file that somebody else may own: append, prepend, replace."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from statecore.builtin.states.file.arguments import Refused, need_parent, place_of, step
from statecore.builtin.states.file.content import Accumulators, Spec, texts_of
from statecore.host.content import diffs, managed_file
from statecore.host.content.edits import comments, text
from statecore.host.content.edits.block import END, START, Block
from statecore.host.content.edits.comments import Pattern
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.errors import CommandError, HostError, InvocationError, SlsError
from statecore.model.types import FileChange, Outcome, Plan


def append(
    ctx: Context,
    name: str,
    text: Any = None,
    makedirs: bool = False,
    source: Any = None,
    source_hash: Any = None,
    template: str = "jinja",
    sources: list[Any] | None = None,
    source_hashes: Any = None,
    defaults: Mapping[str, Any] | None = None,
    context: Mapping[str, Any] | None = None,
    ignore_whitespace: bool = True,
    show_changes: bool = True,
) -> Plan:
    """The file holds this text; each text of a list that is missing is put at its end, whole."""
    try:
        spec = Spec(ctx.saltenv, template, context, defaults)
        texts = _texts(ctx, spec, name, text, source, sources, source_hash, source_hashes)
        place, old = _found(ctx, name)
    except (Refused, HostError, SlsError) as error:
        return Plan.failed(str(error))
    lacking = [one for one in texts if not _present(one, old or "", ignore_whitespace)]
    lines = [line for one in lacking for line in one.splitlines()]
    now = old or ""
    gap = "" if not now or now.endswith("\n") else "\n"
    new = now + gap + "".join(f"{line}\n" for line in lines)
    diff = "\n".join(difflib.unified_diff(now.splitlines(), new.splitlines()))
    return _Addition(ctx, name, place, makedirs, "Appended", len(lines), show_changes).plan(old, new, diff)


def prepend(
    ctx: Context,
    name: str,
    text: Any = None,
    makedirs: bool = False,
    source: Any = None,
    source_hash: Any = None,
    template: str = "jinja",
    sources: list[Any] | None = None,
    source_hashes: Any = None,
    defaults: Mapping[str, Any] | None = None,
    context: Mapping[str, Any] | None = None,
    header: bool | None = None,
    show_changes: bool = True,
) -> Plan:
    """The file holds this text; each text of a list that is missing is put before its first line, whole.

    header
        the file begins with the text: one that is there already, but further down, does not count
    """
    try:
        spec = Spec(ctx.saltenv, template, context, defaults)
        texts = _texts(ctx, spec, name, text, source, sources, source_hash, source_hashes)
        place, old = _found(ctx, name)
    except (Refused, HostError, SlsError) as error:
        return Plan.failed(str(error))
    now = old or ""
    lines = [line for one in texts if header or not _present(one, now, True) for line in one.splitlines()]
    if header and now.splitlines()[: len(lines)] == lines:
        lines = []
    new = "".join(f"{line}\n" for line in lines) + now
    diff = "".join(difflib.unified_diff(now.splitlines(keepends=True), new.splitlines(keepends=True)))
    return _Addition(ctx, name, place, makedirs, "Prepended", len(lines), show_changes).plan(old, new, diff)


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
    encoding: str | None = None,
) -> Plan:
    """Every match of a regular expression (``count``: the first so many) is replaced by ``repl``.

    encoding
        of the file; left out: the pattern and what is put in are UTF-8, the rest is as it is
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
        place = place_of(ctx, name)
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
    ctx: Context, name: str, regex: str, char: str = "#", backup: Any = ".bak", ignore_missing: bool = False
) -> Plan:
    """The lines that begin with what a regular expression matches are comments.

    char
        what makes a line a comment
    backup
        suffix of the old file's copy; False keeps none
    ignore_missing
        a file without such lines is right too
    """
    try:
        pattern = Pattern(str(regex), str(char))
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


def uncomment(ctx: Context, name: str, regex: str, char: str = "#", backup: Any = ".bak") -> Plan:
    """The comments that hold what a regular expression matches are lines.

    char
        what makes a line a comment
    backup
        suffix of the old file's copy; False keeps none
    """
    try:
        pattern = Pattern(str(regex), str(char))
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
    source: Any = None,
    source_hash: Any = None,
    template: str = "jinja",
    sources: list[Any] | None = None,
    source_hashes: Any = None,
    defaults: Mapping[str, Any] | None = None,
    context: Mapping[str, Any] | None = None,
    content: str = "",
    append_if_not_found: bool = False,
    prepend_if_not_found: bool = False,
    backup: Any = ".bak",
    show_changes: bool = True,
    append_newline: bool | None = None,
    insert_before_match: Any = None,
    insert_after_match: Any = None,
) -> Plan:
    """What stands between two marked lines: the content, what ``file.accumulated`` content, the texts of sources.

    append_if_not_found, prepend_if_not_found, insert_before_match, insert_after_match
        where the block is put when its markers are not there; the last two are regular expressions for a line
    append_newline
        whether the end marker gets a line of its own; left out: unless the content ends its last line itself
    backup
        suffix of the old file's copy; False keeps none
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
    """Lines put into a file."""

    ctx: Context
    name: str
    place: Path
    makedirs: bool
    verb: str
    count: int
    show_changes: bool

    def plan(self, old: str | None, new: str, diff: str) -> Plan:
        """Writes ``new``, unless it is what is there."""
        if new == (old or ""):
            return Plan.unchanged(f"File {self.name} is in correct state")
        changes = {"diff": diff if self.show_changes else diffs.HIDDEN}
        content = new.encode("utf-8", "surrogateescape")

        def work() -> Outcome:
            need_parent(self.ctx, self.place, self.makedirs, Attributes(), f"{self.name}: file not found")
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
    """Where the file is, and its text; bytes that are no text come through unharmed."""
    place = place_of(ctx, name)
    old = managed_file.read(place, name)
    return place, None if old is None else old.decode("utf-8", "surrogateescape")


def _texts(
    ctx: Context, spec: Spec, name: str, text: Any, source: Any, sources: Any, source_hash: Any, source_hashes: Any
) -> list[str]:
    """The texts that the file is to hold, each whole."""
    if text is not None:
        return [str(one) for one in (text if isinstance(text, list | tuple) else [text])]
    if not (source or sources):
        raise Refused("Need to specify one of: text, source, sources")
    return texts_of(ctx, spec, name, source, sources, source_hash, source_hashes)


def _present(text: str, now: str, ignore_whitespace: bool) -> bool:
    """Whether whole lines of a file hold the text: in full, or with any space, or none, between its words."""
    pattern = r"\s*".join(map(re.escape, text.split())) if ignore_whitespace else re.escape(text.rstrip("\n"))
    space = r"\s*" if ignore_whitespace else ""
    return re.search(f"^{space}{pattern}{space}$", now, re.MULTILINE) is not None


@dataclass(frozen=True, slots=True)
class Target:
    """The file, and what it holds."""

    ctx: Context
    name: str
    place: Path
    old: bytes

    @classmethod
    def of(cls, ctx: Context, name: str) -> Target:
        """The file of this name. Raises Refused when there is none, HostError when it is no regular file."""
        place = place_of(ctx, name)
        old = managed_file.read(place, name)
        if old is None:
            raise Refused(f"{name}: file not found")
        return cls(ctx, name, place, old)

    @property
    def text(self) -> str:
        """Its text. Raises InvocationError for a binary file."""
        return text.decoded(self.old, self.name)

    def diff(self, new: str, *, shown: bool = True) -> str | bool:
        """What an edit changes; True where nobody is to see it."""
        return diffs.unified(self.old, text.encoded(new)) if shown else True

    def write(
        self,
        new: str,
        would: str,
        did: str,
        changes: Mapping[str, Any],
        *,
        predicted: Mapping[str, Any] | None = None,
        backup: str = "",
        shown: bool = True,
    ) -> Plan:
        """A plan that writes the new text; ``backup`` is the suffix of the old one's copy, "" for none."""
        content = text.encoded(new)

        def work() -> Outcome:
            need_parent(self.ctx, self.place, False, Attributes(), f"{self.name} not writable: it has no directory")
            if backup:
                managed_file.keep_beside(self.ctx.host, self.place, backup)
            managed_file.replace(self.ctx.host, self.place, content, Attributes())
            return Outcome(did, changes)

        write = step(f"edit {self.name}", work, FileChange(self.name, self.old, content, shown))
        return Plan.change(would, (write,), changes if predicted is None else predicted)


def _suffix(backup: Any) -> str:
    """The suffix of the old file's copy, as ``backup`` gives it."""
    return str(backup) if backup else ""


def _written(target: Target, new: str, did: str, backup: Any) -> Plan:
    if new == target.text:
        return Plan.unchanged(did)
    would = f"File {target.name} is set to be updated"
    changes = {"diff": target.diff(new)}
    return target.write(new, would, did, changes, predicted={target.name: "updated"}, backup=_suffix(backup))
