"""Edit of one line of a text: ensure, insert, replace, delete (``file.line``)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from statecore.host.content.edits.text import compiled, line_end, lines, with_unix_ends
from statecore.model.errors import CommandError, InvocationError
from statecore.model.text_lines import lines_of

LOCATIONS = ("start", "end")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Arguments of ``file.line``: the content, the mode and the place of the line. Raises CommandError for an
    unknown mode.
    """

    content: str | None = None
    match: str | None = None
    mode: str | None = None
    location: str | None = None
    before: str | None = None
    after: str | None = None
    indent: bool = True

    @classmethod
    def of(cls, given: Mapping[str, object]) -> Line:
        """Return the Line for a map of the argument names of ``file.line`` to their values. Raises CommandError for an unknown
        mode.
        """
        texts = ("content", "match", "mode", "location", "before", "after")
        edit = {name: None if given[name] is None else str(given[name]) for name in texts}
        mode = edit.pop("mode")
        return cls(**edit, mode=mode and mode.lower(), indent=bool(given["indent"]))

    def __post_init__(self) -> None:
        if self.mode is None:
            raise CommandError("Mode was not defined. How to process the file?")
        if self.mode not in _MODES:
            raise CommandError(f'Unknown mode: "{self.mode}"')
        if self.content is None and self.mode != "delete":
            raise CommandError("Content can only be empty if mode is ['delete']")
        if self.location is not None and self.location not in LOCATIONS:
            raise InvocationError(f"location is one of {', '.join(LOCATIONS)}, not '{self.location}'")

    def put_into(self, text: str) -> str:
        """Return the text of a file with the line inserted, replaced or deleted, as the mode demands.

        Raises CommandError if the place of the line is missing or ambiguous.
        """
        plain, end = with_unix_ends(text)
        old = lines(plain)
        if not old and self.mode in ("delete", "replace"):
            return text
        new = _MODES[str(self.mode)](self, old)
        whole = "".join(_ended(new, closed=bool(old) and line_end(old[-1]) != ""))
        return text if whole == plain else whole.replace("\n", end)

    def found(self, old: list[str], wanted: str | None) -> list[str]:
        """Return the lines of ``old`` that contain the text ``wanted``, or match it as a regular expression; [] if
        ``wanted`` is empty.
        """
        if not wanted:
            return []
        meant = compiled(wanted, re.DOTALL)
        return [line for line in old if meant.search(line) or wanted in line]

    def one(self, old: list[str], name: str) -> int | None:
        """Return the number of the only line that the argument ``before`` or ``after`` matches; None without a match.

        Raises CommandError if several lines match.
        """
        found = self.found(old, getattr(self, name))
        if len(found) > 1:
            raise CommandError(f'Found more than expected occurrences in "{name}" expression')
        return old.index(found[0]) if found else None

    def like(self, model: str) -> str:
        """Return the wanted content with the indentation of another line of the file (``model``)."""
        content = str(self.content)
        if not self.indent:
            return content
        return model[: len(model) - len(model.lstrip("\t "))] + content.lstrip()

    def stands(self, old: list[str], start: int, model: str) -> bool:
        """Return True if the file's lines ``old`` have the wanted content at the index ``start``.

        The indentation may be that of the content or that of the line ``model``.
        """
        count = max(len(lines_of(str(self.content))), 1)
        there = "".join(old[start : start + count]).rstrip("\n") if start >= 0 else None
        return there in (str(self.content).rstrip("\r\n"), self.like(model).rstrip("\r\n"))

    def stands_before(self, old: list[str], number: int, model: str) -> bool:
        """Return True if the file's lines ``old`` have the wanted content directly before the index ``number``."""
        return self.stands(old, number - max(len(lines_of(str(self.content))), 1), model)

    def target(self) -> str | None:
        """The expression that finds the line to replace or delete: the argument ``match``, else the content."""
        if not self.match and self.before is None and self.after is None:
            return self.content
        return self.match


def _delete(edit: Line, old: list[str]) -> list[str]:
    found = edit.found(old, edit.target())
    return [line for line in old if line != found[0]] if found else old


def _replace(edit: Line, old: list[str]) -> list[str]:
    found = edit.found(old, edit.target())
    if not found:
        return old
    at = old.index(found[0])
    return [*old[:at], edit.like(old[at]), *old[at + 1 :]]


def _insert(edit: Line, old: list[str]) -> list[str]:
    if edit.location is not None:
        return _at_an_end(edit, old)
    if edit.before is None and edit.after is None:
        raise CommandError('On insert either "location" or "before/after" conditions are required.')
    before, after = edit.one(old, "before"), edit.one(old, "after")
    if before is not None:
        return _in_front(edit, old, before, old[before])
    if after is None:
        raise CommandError("Neither before or after was found in file")
    return _behind(edit, old, after)


def _ensure(edit: Line, old: list[str]) -> list[str]:
    before, after = edit.one(old, "before"), edit.one(old, "after")
    if before is not None and after is not None:
        return _between(edit, old, after, before)
    if before is not None:
        return _in_front(edit, old, before, old[before - 1] if before else "")
    if after is not None:
        return _behind(edit, old, after)
    raise CommandError("Wrong conditions? Unable to ensure line without knowing where to put it before and/or after.")


def _between(edit: Line, old: list[str], after: int, before: int) -> list[str]:
    if any(line.strip() == str(edit.content).strip() for line in old[after + 1 : before]):
        return old
    if before - after not in (1, 2):
        raise CommandError('Found more than one line between boundaries "before" and "after".')
    return [*old[: after + 1], edit.like(old[after]), *old[before:]]


def _in_front(edit: Line, old: list[str], before: int, model: str) -> list[str]:
    if edit.stands_before(old, before, model):
        return old
    return [*old[:before], edit.like(model), *old[before:]]


def _behind(edit: Line, old: list[str], after: int) -> list[str]:
    if edit.stands(old, after + 1, old[after]):
        return old
    return [*old[: after + 1], edit.like(old[after]), *old[after + 1 :]]


def _at_an_end(edit: Line, old: list[str]) -> list[str]:
    last = old[-1] if old else ""
    if edit.location == "start":
        return old if edit.stands(old, 0, "") else [f"{str(edit.content).rstrip()}\n", *old]
    return old if edit.stands_before(old, len(old), last) else [*old, edit.like(last)]


_MODES: Mapping[str, Callable[[Line, list[str]], list[str]]] = {
    "insert": _insert,
    "ensure": _ensure,
    "delete": _delete,
    "replace": _replace,
}


def _ended(new: list[str], *, closed: bool) -> list[str]:

    last = len(new) - 1
    return [
        line if line_end(line) or (number == last and not closed) else f"{line.rstrip()}\n"
        for number, line in enumerate(new)
    ]
