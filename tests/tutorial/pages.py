"""Reads the tutorial's pages: the files that a reader writes, and the commands that the reader types with what they answer.

A page is Markdown. A sentence that begins with ``Write`` or ``Change`` and ends with a file's name in backquotes and a colon is
followed by a block with the file's content. A block of the kind ``console`` has commands behind ``$ ``, and below each command its
output. A line ``...`` stands for any lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

#: Directory that the pages show where the reader's checkout is.
SHOWN_DIRECTORY = "/home/you/saltern"

_FILE = re.compile(r"^.*\b(?:Write|Change)\s+`([^`]+)`[^`]*:$")
_FENCE = re.compile(r"^```(\w*)$")

#: Line that stands for any lines.
_ANY = "..."


@dataclass(frozen=True)
class WrittenFile:
    """A file that the reader writes. ``line``: of its block in the page, from 1."""

    path: str
    content: str
    line: int


@dataclass(frozen=True)
class Command:
    """A command that the reader types, and the lines that the page shows below it. ``line``: of the command in the page, from 1."""

    text: str
    shown: tuple[str, ...]
    line: int


Step = WrittenFile | Command


def read_steps(text: str) -> list[Step]:
    """Return what a reader of the page does, in order. Raise ValueError for a block of a file without a file's name."""
    return list(_steps(text.splitlines()))


def _steps(lines: Sequence[str]) -> Iterator[Step]:
    number = 0
    while number < len(lines):
        fence = _FENCE.match(lines[number])
        number += 1
        if fence is None:
            continue
        end = lines.index("```", number)
        body = lines[number:end]
        if fence[1] == "console":
            yield from _commands(body, number + 1)
        else:
            named = _FILE.match(_paragraph_before(lines, number - 1))
            if named is None:
                raise ValueError(f"line {number}: no sentence names the file of this block")
            yield WrittenFile(named[1], "\n".join(body) + "\n", number)
        number = end + 1


def _paragraph_before(lines: Sequence[str], number: int) -> str:
    """Return the paragraph above the line, joined to one line."""
    end = number
    while end and not lines[end - 1].strip():
        end -= 1
    start = end
    while start and lines[start - 1].strip():
        start -= 1
    return " ".join(lines[start:end])


def _commands(body: Sequence[str], first: int) -> Iterator[Command]:
    starts = [at for at, line in enumerate(body) if line.startswith("$ ")]
    for start, end in zip(starts, [*starts[1:], len(body)], strict=True):
        yield Command(body[start].removeprefix("$ "), tuple(body[start + 1 : end]), first + start)


#: What differs from run to run -> what stands for it in a comparison.
_VARYING: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), stands)
    for pattern, stands in (
        (r"\b20\d{18}\b", "JID"),
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(\+00:00|Z)?", "TIME"),
        (r"\b20\d\d, [A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d\.\d+", "TIME"),
        (r"\d\d:\d\d:\d\d\.\d+", "TIME"),
        (r"\b[\d.]+ +(ms|s)\b", "SECONDS"),
        (r"Total run time: +", "Total run time: "),
        (r"(Duration|Started): +", r"\1: "),
    )
)


def normalise(line: str) -> str:
    """Return a line of output with JIDs, times and durations replaced by words, and without white space at its end."""
    for pattern, stands in _VARYING:
        line = pattern.sub(stands, line)
    return line.rstrip()


def matches(shown: Sequence[str], actual: Sequence[str]) -> bool:
    """Return whether the output is what the page shows; ``...`` in the page stands for any number of lines."""
    wanted = _in_order([normalise(line) for line in shown])
    lines = _in_order([normalise(line) for line in actual])
    pieces: list[list[str]] = [[]]
    for line in wanted:
        if line == _ANY:
            pieces.append([])
        else:
            pieces[-1].append(line)
    first, *others = pieces
    if not others:
        return lines == first
    if lines[: len(first)] != first:
        return False
    at = len(first)
    last = others.pop()
    for piece in others:
        found = _found(piece, lines, at)
        if found is None:
            return False
        at = found + len(piece)
    return len(lines) - len(last) >= at and lines[len(lines) - len(last) :] == last


#: Line with which what one minion returned begins.
_MINION = re.compile(r"^[a-z][a-z0-9]*:$")


def _in_order(lines: Sequence[str]) -> list[str]:
    """Return the lines with the minions' returns in the order of names: they arrive in any order."""
    if not lines or not _MINION.match(lines[0]):
        return list(lines)
    starts = [at for at, line in enumerate(lines) if _MINION.match(line)]
    blocks = [lines[start:end] for start, end in zip(starts, [*starts[1:], len(lines)], strict=True)]
    return [line for block in sorted(blocks, key=lambda block: block[0]) for line in block]


def _found(piece: Sequence[str], lines: Sequence[str], start: int) -> int | None:
    wanted = list(piece)
    return next((at for at in range(start, len(lines) - len(piece) + 1) if lines[at : at + len(piece)] == wanted), None)


@dataclass
class Transcript:
    """What the commands of a page answered, by the line of the command in the page."""

    answers: dict[int, list[str]] = field(default_factory=dict)

    def rewritten(self, text: str) -> str:
        """Return the page with each answer that differs from what the page shows put in its place."""
        lines = text.splitlines()
        for command in reversed([step for step in read_steps(text) if isinstance(step, Command)]):
            answer = self.answers.get(command.line)
            if answer is not None and not matches(command.shown, answer):
                start = command.line
                lines[start : start + len(command.shown)] = [line.rstrip() for line in answer]
        return "\n".join(lines) + "\n"
