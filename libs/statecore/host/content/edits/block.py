"""A managed block of lines between two marker lines (``file.blockreplace``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from statecore.host.content.edits.text import compiled, line_end, lines
from statecore.model.errors import CommandError, InvocationError

START = "#-- start managed zone --"
END = "#-- end managed zone --"

_NOT_FOUND = "Cannot edit marked block. Markers were not found in file."


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A managed block of lines (``file.blockreplace``): its content, its marker lines, and its place in a file without
    the block.

    Raises InvocationError if several places are given, CommandError if the place is not a valid regular expression.
    """

    marker_start: str = START
    marker_end: str = END
    content: str = ""
    append_if_not_found: bool = False
    prepend_if_not_found: bool = False
    insert_before_match: object = None
    insert_after_match: object = None
    #: Whether the end marker gets a line of its own; None: only when the content does not end with a newline.
    append_newline: bool | None = None

    def __post_init__(self) -> None:
        places = ("append_if_not_found", "prepend_if_not_found", "insert_before_match", "insert_after_match")
        if sum(bool(getattr(self, place)) for place in places) > 1:
            raise InvocationError(f"Only one of {', '.join(places[:-1])}, and {places[-1]} is permitted")
        for place in places[2:]:
            value = getattr(self, place)
            if value and not isinstance(value, str):
                raise CommandError(f"RegEx expected in {place} parameter.")

    def put_into(self, text: str) -> str:
        """Return the text with the block's content replaced or added. Raises CommandError when there is no place for
        the block.
        """
        old = lines(text)
        end = (line_end(old[0]) if old else "") or "\n"
        end = end if end in ("\n", "\r\n") else "\n"
        new, found = self._in_place(old, end)
        return "".join(new if found else self._added(old, end))

    def _in_place(self, old: list[str], end: str) -> tuple[list[str], bool]:
        new: list[str] = []
        inside = found = False
        for line in old:
            if self.marker_start in line:
                inside = True
                new.append(line)
            elif not inside:
                new.append(line)
            elif self.marker_end in line:
                inside, found = False, True
                new += self._inner(end, line[line.index(self.marker_end) :])
        if inside:
            raise CommandError("Unterminated marked block. End of file reached before marker_end.")
        return new, found

    def _inner(self, end: str, end_line: str) -> Iterator[str]:

        last = end_line.rstrip("\r\n") + end
        *whole, rest = self.content.replace("\r\n", "\n").split("\n")
        yield from (line + end for line in whole)
        own_line = not self.content.endswith("\n") if self.append_newline is None else self.append_newline
        if own_line:
            yield rest + end
            yield last
        else:
            yield rest + last

    def _added(self, old: list[str], end: str) -> list[str]:
        block = [self.marker_start + end, *self._inner(end, self.marker_end)]
        if self.prepend_if_not_found:
            return block + old
        at = len(old) if self.append_if_not_found else self._match(old)
        before = old[:at]
        if before and not line_end(before[-1]):
            # Without a newline, the marker would become a part of the last line.
            before[-1] += end
        return before + block + old[at:]

    def _match(self, old: list[str]) -> int:
        """Return the number of the line before which the block is inserted: the first line that matches
        ``insert_before_match``, or the line after the first that matches ``insert_after_match``. Raise CommandError if
        no line matches.
        """
        pattern = self.insert_before_match or self.insert_after_match
        if not pattern:
            raise CommandError(_NOT_FOUND)
        meant = compiled(str(pattern))
        at = next((number for number, line in enumerate(old) if meant.search(line)), None)
        if at is None:
            raise CommandError(_NOT_FOUND)
        return at if self.insert_before_match else at + 1
