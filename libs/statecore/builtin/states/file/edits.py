"""Parts of a file that somebody else may own: append, prepend, replace."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from statecore.builtin.states.file.content import Spec
from statecore.builtin.states.file.places import Refused, need_parent, place_of, step
from statecore.builtin.states.file.texts import texts_of
from statecore.host.content import diffs, managed_file
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
