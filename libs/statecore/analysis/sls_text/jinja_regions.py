"""Find the Jinja tags of a text, also of a half-typed text: where each tag begins and ends, and what it defines.

Jinja's own parser stops at the first mistake. This reader goes on: a tag without its end reaches to the end of its line.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple


class TagKind(StrEnum):
    """Kind of a Jinja tag, by its opening characters."""

    STATEMENT = "{%"
    OUTPUT = "{{"
    COMMENT = "{#"


_ENDS = {TagKind.STATEMENT: "%}", TagKind.OUTPUT: "}}", TagKind.COMMENT: "#}"}

#: Longest comment or statement of several lines, in characters, that an unfinished tag may be taken for.
_LONGEST = 20_000

_OPENING = re.compile(r"\{[%{#]")
_RAW = re.compile(r"\s*raw\b")
_END_RAW = re.compile(r"\{%[-+]?\s*endraw\s*[-+]?%\}")
_QUOTED = re.compile(r"'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"")


class Tag(NamedTuple):
    """One Jinja tag of a text: its kind and its offsets, delimiters included."""

    kind: TagKind
    start: int
    end: int
    #: False: the tag has no end yet.
    closed: bool

    def inside(self, offset: int) -> bool:
        """Return whether a cursor at this offset is between the delimiters."""
        return self.start + 2 <= offset <= (self.end - 2 if self.closed else self.end)


class Definition(NamedTuple):
    """A name that a Jinja statement defines (``set``, ``for``, ``macro``, ``import``), and the offsets of the name."""

    name: str
    start: int
    end: int
    #: "set", "for", "macro", "import" or "load".
    how: str
    #: Text of the statement, such as ``macro user(name, uid)``.
    text: str


class Import(NamedTuple):
    """One template that a Jinja statement imports or includes: its path as written, and the offsets of the path."""

    #: "from", "import", "include", "extends", "import_yaml", "import_json" or "import_text".
    verb: str
    path: str
    start: int
    end: int
    #: Names that ``from`` imports: (name there, name here, offset of the name there).
    names: tuple[tuple[str, str, int], ...] = ()


def tags(text: str) -> list[Tag]:
    """Return the Jinja tags of a text, in their order. Tags inside ``raw`` blocks are not listed."""
    found: list[Tag] = []
    at = 0
    while (opening := _OPENING.search(text, at)) is not None:
        tag = _tag(text, opening.start())
        found.append(tag)
        at = tag.end
        if tag.kind is TagKind.STATEMENT and _RAW.match(
            text, tag.start + 2 + (text[tag.start + 2 : tag.start + 3] in "-+")
        ):
            end = _END_RAW.search(text, tag.end)
            at = end.start() if end else len(text)
    return found


def _tag(text: str, start: int) -> Tag:
    kind = TagKind(text[start : start + 2])
    end = _ENDS[kind]
    if kind is TagKind.COMMENT:
        stop = text.find(end, start + 2, start + _LONGEST)
        return _open(text, start, kind) if stop < 0 else Tag(kind, start, stop + 2, True)
    at = start + 2
    limit = min(len(text), start + _LONGEST)
    while at < limit:
        char = text[at]
        if char in "'\"":
            quoted = _QUOTED.match(text, at)
            at = quoted.end() if quoted else at + 1
        elif text.startswith(end, at):
            # ``{{ {'a': {}} }}``: the tag ends at the last of several closing braces.
            while kind is TagKind.OUTPUT and text.startswith("}", at + 2):
                at += 1
            return Tag(kind, start, at + 2, True)
        elif _OPENING.match(text, at):
            return _open(text, start, kind)
        else:
            at += 1
    return _open(text, start, kind)


def _open(text: str, start: int, kind: TagKind) -> Tag:
    line = text.find("\n", start)
    return Tag(kind, start, len(text) if line < 0 else line, False)


def tag_at(found: Sequence[Tag], offset: int) -> Tag | None:
    """Return the Jinja tag of ``found`` (sorted by place) between whose delimiters the character ``offset`` stands; None
    if it stands in none.
    """
    at = bisect_right(found, offset, key=lambda tag: tag.start) - 1
    return found[at] if at >= 0 and found[at].inside(offset) else None


_IDENTIFIER = r"[A-Za-z_]\w*"
_SET = re.compile(rf"[-+]?\s*set\s+({_IDENTIFIER}(?:\s*,\s*{_IDENTIFIER})*)\s*(?:=|[-+]?%\}}|\||$)")
_FOR = re.compile(rf"[-+]?\s*for\s+\(?\s*({_IDENTIFIER}(?:\s*,\s*{_IDENTIFIER})*)\s*\)?\s+in\b")
_MACRO = re.compile(rf"[-+]?\s*macro\s+({_IDENTIFIER})\s*(\([^)]*\)?)?")
_LOAD = re.compile(rf"[-+]?\s*load_(?:yaml|json|text)\s+as\s+({_IDENTIFIER})")
_IMPORT = re.compile(rf"[-+]?\s*(import(?:_yaml|_json|_text)?)\s+(['\"])([^'\"\n]*)(?:\2(?:\s+as\s+({_IDENTIFIER}))?)?")
_FROM = re.compile(r"[-+]?\s*(from)\s+(['\"])([^'\"\n]*)(?:\2(?:\s+import\s+(?P<names>[^%]*))?)?")
_INCLUDE = re.compile(r"[-+]?\s*(include|extends)\s+(['\"])([^'\"\n]*)")
_NAME_IN_FROM = re.compile(rf"({_IDENTIFIER})(?:\s+as\s+({_IDENTIFIER}))?")
_WITH = re.compile(r"\bwith(?:out)?\s+context\b")
_WORD = re.compile(_IDENTIFIER)


def definitions(text: str, found: Sequence[Tag]) -> Iterator[Definition]:
    """Yield the names that the statements of a template define, in the order of the text."""
    for tag in found:
        if tag.kind is not TagKind.STATEMENT:
            continue
        at, whole = tag.start + 2, text[tag.start + 2 : tag.end]
        said = " ".join(whole.removesuffix("%}").strip("-+ \n").split())
        for how, pattern in (("set", _SET), ("for", _FOR), ("load", _LOAD)):
            if match := pattern.match(whole):
                for word in _WORD.finditer(match[1]):
                    start = at + match.start(1) + word.start()
                    yield Definition(word[0], start, start + len(word[0]), how, said)
        if match := _MACRO.match(whole):
            yield Definition(match[1], at + match.start(1), at + match.end(1), "macro", said)
            first = at + (match.start(2) if match[2] else 0)
            for word in _WORD.finditer(re.sub(r"=[^,)]*", lambda default: " " * len(default[0]), match[2] or "")):
                yield Definition(word[0], first + word.start(), first + word.end(), "argument", said)
        if (match := _IMPORT.match(whole)) and match[4]:
            yield Definition(match[4], at + match.start(4), at + match.end(4), "import", said)
        for one in _from_names(whole, at):
            yield Definition(one[1], one[2], one[2] + len(one[0]), "import", said)


def imports(text: str, found: Sequence[Tag]) -> Iterator[Import]:
    """Yield the templates that the statements of a template import or include, in the order of the text."""
    for tag in found:
        if tag.kind is not TagKind.STATEMENT:
            continue
        at, whole = tag.start + 2, text[tag.start + 2 : tag.end]
        for pattern in (_FROM, _IMPORT, _INCLUDE):
            if match := pattern.match(whole):
                names = tuple(_from_names(whole, at)) if pattern is _FROM else ()
                yield Import(match[1], match[3], at + match.start(3), at + match.end(3), names)
                break


def _from_names(whole: str, at: int) -> Iterator[tuple[str, str, int]]:
    match = _FROM.match(whole)
    if match is None or not match["names"]:
        return
    listed = _WITH.sub(lambda words: " " * len(words[0]), match["names"])
    for name in _NAME_IN_FROM.finditer(listed):
        yield name[1], name[2] or name[1], at + match.start("names") + name.start(1)


def is_statement_line(line: str) -> bool:
    """Return whether a line holds Jinja statements or comments and nothing else."""
    stripped = line.strip()
    return stripped.startswith(("{%", "{#")) and stripped.endswith(("%}", "#}"))
