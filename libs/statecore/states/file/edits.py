"""Parts of a file that somebody else may own: append, prepend, replace."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from statecore import managed_file
from statecore.context import Context
from statecore.errors import HostError, InvocationError, SlsError
from statecore.managed_file import Attributes
from statecore.states.file.content import find_source
from statecore.states.file.places import Refused, need_parent, place_of
from statecore.types import Outcome, Plan, Step


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
        place = place_of(ctx, name)
        if not place.is_file():
            text = f"{name}: file not found"
            return Plan.unchanged(text) if ignore_if_missing else Plan.failed(text)
        old = place.read_bytes()
        new = _substituted(old, pattern, repl, int(count), flags, backslash_literal=backslash_literal)
        if new == old and (append_if_not_found or prepend_if_not_found):
            new = _with_line(
                old, not_found_content if not_found_content is not None else repl, at_end=append_if_not_found
            )
    except (Refused, HostError, InvocationError) as error:
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
        place = place_of(ctx, name)
        wanted = _wanted_lines(ctx, text, source, sources, template, values)
        old = managed_file.read(place)
        now = (old or b"").decode("utf-8", "surrogateescape")
    except (Refused, HostError) as error:
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
        need_parent(ctx, place, makedirs, Attributes())
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
        raise Refused("Need to specify one of: text, source, sources")
    lines: list[str] = []
    for entry in addresses:
        address, place, _ = find_source(ctx, entry, ctx.saltenv)
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
        raise Refused(f"pattern '{pattern}' with repl '{repl}': {error}") from error


def _flags(flags: Any) -> int:
    if isinstance(flags, int):
        # Salt's default, 8, is MULTILINE; bytes cannot be matched as UNICODE.
        return flags & ~re.UNICODE
    total = 0
    for name in flags if isinstance(flags, list) else [flags]:
        flag = getattr(re, str(name).upper(), None)
        if not isinstance(flag, re.RegexFlag):
            raise Refused(f"'{name}' is no flag of regular expressions, such as MULTILINE or IGNORECASE")
        total |= int(flag)
    return total & ~re.UNICODE


def _with_line(data: bytes, line: str, *, at_end: bool) -> bytes:
    content = str(line).encode()
    if content in data.splitlines():
        return data
    if at_end:
        return data + (b"" if not data or data.endswith(b"\n") else b"\n") + content + b"\n"
    return content + b"\n" + data
