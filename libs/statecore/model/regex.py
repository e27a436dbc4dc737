r"""Regular expressions of a tree or an option over data that a minion sent: they run in RE2, whose time grows with the text,
wherever RE2 gives the result of the module ``re``.

An expression is read by Python's own parser and written again in RE2's syntax, construct by construct, so that no
difference in syntax counts. The module ``re`` runs the expression in these cases, in which RE2 would refuse it or could give
another result:

- lookaround, back references, conditions, atomic groups, possessive quantifiers, repetitions above 1000;
- ``\b`` over a text that is not ASCII; ``ignorecase`` over a text with one of the four letters that Unicode folds to ``i``,
  ``k`` and ``s``, or for an expression that is not ASCII;
- ``$`` over a text that ends with a newline and has a second one, ``\B`` over an empty text;
- for groups: the repetition of something that can be empty; for ``sub``: an expression that can match the empty text;
- an expression that cannot take long in ``re`` over a text of this length, because ``re`` is then faster: its repetitions are
  few, and each repeats one character;
- an expression and a text for which RE2 could take seconds, because RE2 cannot be interrupted;
- the package google-re2 is not installed.

There an expression can backtrack; only a limit of CPU time (``time_limit.computing_limit``) then ends it.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from types import ModuleType
from typing import Any

#: Most bytes that RE2 may take for one expression. A larger one is run by ``re``.
_MOST_MEMORY = 1 << 23

#: Largest product of the size of RE2's program and the text's characters: about a second where RE2 is slowest.
_MOST_STEPS = 30_000_000

#: Most steps that ``re`` may take for an expression whose repetitions each repeat one character: about ten milliseconds.
_FEW_STEPS = 1_000_000

_ASCII = 128

#: Letters that equal ``i``, ``k`` or ``s`` where case is ignored; the engines differ in them.
_FOLDED = frozenset("\u0130\u0131\u017f\u212a")

#: Name of a category in Python's parser -> whether a character is in it.
_CATEGORIES: Mapping[str, Callable[[str], bool]] = {
    "CATEGORY_DIGIT": str.isdecimal,
    "CATEGORY_SPACE": str.isspace,
    "CATEGORY_WORD": lambda text: text.isalnum() or text == "_",
}

#: A reference to a group in the replacement text of ``sub``.
_REFERENCE = re.compile(r"\\(?:g<([A-Za-z_][A-Za-z_0-9]*|[0-9]{1,3})>|([1-9][0-9]?)(?![0-9]))")


class _NotLinear(Exception):
    """Raised for an expression that RE2 does not have, or that could mean something else there."""


class Expression:
    """A compiled regular expression. It has the results of a pattern of the module ``re``."""

    def __init__(self, pattern: str, flags: int = 0) -> None:
        """Compile ``pattern`` with flags of the module ``re``. Raises re.error if it is not valid, and what else
        ``re.compile`` raises (RecursionError, OverflowError).
        """
        self._pattern, self._flags = pattern, flags
        self._python = re.compile(pattern, flags)
        #: Exponent of the number of steps of ``re`` in the length of a text; None: there is no such exponent.
        self._power = _power(pattern, flags)
        #: (text is not ASCII, text ends with a newline) -> RE2's form of the expression for such texts.
        self._forms: dict[tuple[bool, bool], _Linear | None] = {}

    def match(self, text: str) -> object:
        """Return an object if the expression matches at the beginning of the text, else None."""
        text = _plain(text)
        linear = self._for(text)
        return self._python.match(text) if linear is None else linear.engine.match(text)

    def fullmatch(self, text: str) -> object:
        """Return an object if the expression matches the whole text, else None."""
        text = _plain(text)
        linear = self._for(text)
        return self._python.fullmatch(text) if linear is None else linear.engine.fullmatch(text)

    def groups_of_match(self, text: str) -> tuple[object, ...] | None:
        """Return the groups of a match at the beginning of the text, or (the match,) if the expression has no groups.
        None: no match.
        """
        text = _plain(text)
        linear = self._for(text)
        return _groups(self._python.match(text) if linear is None or not linear.groups else linear.engine.match(text))

    def groups_of_search(self, text: str) -> tuple[object, ...] | None:
        """Return the groups of the first match anywhere in the text, or (the match,) if the expression has no groups.
        None: no match.
        """
        text = _plain(text)
        linear = self._for(text)
        return _groups(self._python.search(text) if linear is None or not linear.groups else linear.engine.search(text))

    def sub(self, replacement: str, text: str) -> str:
        """Return the text with each match replaced. ``replacement`` may refer to groups, as in ``re.sub``.

        Raises re.error for a malformed replacement.
        """
        text = _plain(text)
        linear = self._for(text)
        parts = None if linear is None or not linear.replaces else _parts(self._python, replacement)
        if linear is None or parts is None:
            return self._python.sub(replacement, text)
        pieces, end = [], 0
        for found in linear.engine.finditer(text):
            pieces.append(text[end : found.start()])
            pieces += [part if isinstance(part, str) else found.group(part) or "" for part in parts]
            end = found.end()
        return "".join((*pieces, text[end:]))

    def _for(self, text: str) -> _Linear | None:
        """Return RE2's form of the expression if it has ``re``'s result for this text; None: ``re`` must run it."""
        if self._power is not None and len(text) ** self._power <= _FEW_STEPS:
            return None
        kind = not text.isascii(), text.endswith("\n")
        if kind not in self._forms:
            self._forms[kind] = _linear(self._pattern, self._flags, *kind)
        linear = self._forms[kind]
        return linear if linear is not None and linear.fits(text) else None


def expression(pattern: str, flags: int = 0) -> Expression:
    """Return the Expression of a pattern and flags of the module ``re``. The last 256 are kept. Raises re.error."""
    return _kept(pattern, int(flags)) if isinstance(pattern, str) else Expression(pattern, flags)


@lru_cache(maxsize=256)
def _kept(pattern: str, flags: int) -> Expression:
    return Expression(pattern, flags)


def _plain(text: str) -> str:
    """Return a text of exactly the type str, as ``re`` returns it from a subclass such as Markup. Raises TypeError."""
    if not isinstance(text, str):
        raise TypeError(f"expected string or bytes-like object, got {type(text).__name__!r}")
    return str.__str__(text)


def _groups(found: Any) -> tuple[object, ...] | None:
    return (found.groups() or (found.group(),)) if found else None


def _parts(pattern: re.Pattern[str], replacement: str) -> list[str | int] | None:
    """Return the replacement text of ``sub`` as texts and numbers of groups; None if it has anything else after a
    backslash.
    """
    parts: list[str | int] = []
    end = 0
    for found in _REFERENCE.finditer(replacement):
        name, number = found.groups()
        group = number or name
        known = int(group) if group.isdigit() else pattern.groupindex.get(group, -1)
        if not 0 <= known <= pattern.groups:
            return None
        parts += [replacement[end : found.start()], known]
        end = found.end()
    parts.append(replacement[end:])
    return None if any(isinstance(part, str) and "\\" in part for part in parts) else parts


# ------------------------------------------------------------------------------------------------------------ translation


@dataclass
class _Linear:
    """An expression compiled by RE2 for texts of one kind, and the conditions under which it has the results of ``re``."""

    #: Whether the texts are not ASCII; whether they end with a newline.
    wide: bool
    line: bool
    #: Pattern of google-re2, which has no types.
    engine: Any = None
    #: Case is ignored; ``$`` is used outside of the mode ``multiline``; ``\\B`` is used.
    folds: bool = False
    ends: bool = False
    not_empty: bool = False
    #: The groups are those of ``re``, and so are the matches of ``sub``.
    groups: bool = True
    replaces: bool = True
    size: int = 0

    def fits(self, text: str) -> bool:
        """Return whether RE2 gives the result of ``re`` for this text, in a moment."""
        return (
            self.size * len(text) <= _MOST_STEPS
            and not (self.wide and self.folds and not _FOLDED.isdisjoint(text))
            and not (self.ends and self.line and "\n" in text[:-1])
            and not (self.not_empty and not text)
            and (not self.wide or _is_unicode(text))
        )


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _linear(pattern: str, flags: int, wide: bool, line: bool) -> _Linear | None:
    engine = _engine()
    if engine is None or not isinstance(pattern, str):
        return None
    made = _Linear(wide, line)
    try:
        tree = _parser().parse(pattern, flags)
        text = _Writer(made).sequence(tree, tree.state.flags)
        options = engine.Options()
        options.log_errors = False
        options.max_mem = _MOST_MEMORY
        made.engine = engine.compile(text, options)
    except (_NotLinear, UnicodeError, engine.error):
        return None
    made.replaces = made.groups and tree.getwidth()[0] > 0
    made.size = made.engine.programsize
    return made


#: Items of a parsed expression that match one character, and those that match a position.
_SINGLE = frozenset({"LITERAL", "NOT_LITERAL", "ANY", "IN", "AT"})


def _power(pattern: str, flags: int) -> int | None:
    """Return the exponent p for which ``re`` takes at most about len(text)**p steps; None if a repetition repeats anything but
    one character: it may then backtrack without end.
    """
    if not isinstance(pattern, str):
        return None
    repeats = _repeats(_parser().parse(pattern, flags))
    # A search begins at each character of the text.
    return None if repeats is None else repeats + 1


def _repeats(items: Iterable[tuple[object, Any]]) -> int | None:
    """Return how many repetitions of one character the items of a parsed expression have; None for anything else than these,
    single characters and groups.
    """
    count = 0
    for item, value in items:
        kind = str(item)
        if kind in ("MAX_REPEAT", "MIN_REPEAT"):
            inner = list(value[2])
            if len(inner) != 1 or str(inner[0][0]) not in _SINGLE:
                return None
            # A fixed number of characters leaves nothing to try again.
            count += value[0] != value[1]
        elif kind == "SUBPATTERN":
            nested = _repeats(value[3])
            if nested is None:
                return None
            count += nested
        elif kind == "BRANCH":
            for branch in value[1]:
                nested = _repeats(branch)
                if nested is None:
                    return None
                count += nested + 1
        elif kind not in _SINGLE:
            return None
    return count


@cache
def _category(name: str, wide: bool, negated: bool) -> str:
    """Return the characters of a category (``CATEGORY_DIGIT``) as items of a class of RE2. ``wide``: of Unicode as this
    Python knows it, which takes a tenth of a second the first time; else of ASCII. ``negated``: all other characters.
    """
    inside = _CATEGORIES[name]
    ranges: list[list[int]] = []
    for code in range(sys.maxunicode + 1 if wide else _ASCII):
        if inside(chr(code)) is not negated:
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join(rf"\x{{{first:x}}}-\x{{{last:x}}}" for first, last in ranges)


@cache
def _engine() -> Any:
    """Return the module re2 (google-re2); None if it is not installed."""
    try:
        # Imported at the first expression: it takes 4.4 MB.
        return importlib.import_module("re2")
    except ImportError:
        return None


@cache
def _parser() -> Any:
    """Return the parser of the module ``re``, in which Python names no public interface for the parsed expression."""
    parser: ModuleType = importlib.import_module("re._parser")
    return parser


@dataclass
class _Writer:
    """Writes a parsed expression in RE2's syntax, and notes in ``linear`` what it depends on. Methods raise _NotLinear."""

    linear: _Linear

    def sequence(self, items: Iterable[tuple[object, Any]], flags: int) -> str:
        """Return the items of a parsed expression, one after the other. ``flags``: those that hold there."""
        if flags & (re.LOCALE | re.DEBUG):
            raise _NotLinear
        return "".join(self._item(str(kind), value, flags) for kind, value in items)

    def _item(self, kind: str, value: Any, flags: int) -> str:
        match kind:
            case "LITERAL":
                return self._cased(self._character(value, flags), flags)
            case "NOT_LITERAL":
                return self._cased(f"[^{self._character(value, flags)}]", flags)
            case "ANY":
                return "(?s:.)" if flags & re.DOTALL else r"[^\n]"
            case "IN":
                return self._class(value, flags)
            case "AT":
                return self._position(str(value), flags)
            case "BRANCH":
                return "(?:" + "|".join(self.sequence(branch, flags) for branch in value[1]) + ")"
            case "SUBPATTERN":
                group, more, less, inner = value
                text = self.sequence(inner, (flags | more) & ~less)
                return f"(?:{text})" if group is None else f"({text})"
            case "MAX_REPEAT" | "MIN_REPEAT":
                return self._repeat(value, flags, "?" if kind == "MIN_REPEAT" else "")
            case _:
                raise _NotLinear

    def _repeat(self, value: Any, flags: int, lazy: str) -> str:
        least, most, inner = value
        if inner.getwidth()[0] == 0:
            # The engines differ in whether an empty round counts, and so in what the groups hold.
            self.linear.groups = False
        unlimited = most is _parser().MAXREPEAT
        times = f"{least}," if unlimited else f"{least},{most}"
        short = {(0, True): "*", (1, True): "+"}.get((least, unlimited), f"{{{times}}}")
        return f"(?:{self.sequence(inner, flags)}){short}{lazy}"

    def _position(self, name: str, flags: int) -> str:
        match name:
            case "AT_BEGINNING":
                return "(?m:^)" if flags & re.MULTILINE else r"\A"
            case "AT_BEGINNING_STRING":
                return r"\A"
            case "AT_END" if flags & re.MULTILINE:
                return "(?m:$)"
            case "AT_END":
                self.linear.ends = True
                # Before the one newline of the text, or behind it.
                return "(?m:$)" if self.linear.line else r"\z"
            case "AT_END_STRING":
                return r"\z"
            case "AT_BOUNDARY" if not self.linear.wide:
                return r"\b"
            case "AT_NON_BOUNDARY" if not self.linear.wide:
                self.linear.not_empty = True
                return r"\B"
            case _:
                raise _NotLinear

    def _class(self, items: Iterable[tuple[object, Any]], flags: int) -> str:
        negated = False
        letters, categories = [], []
        for kind, value in items:
            match str(kind):
                case "NEGATE":
                    negated = True
                case "LITERAL":
                    letters.append(self._character(value, flags))
                case "RANGE":
                    letters.append(f"{self._character(value[0], flags)}-{self._character(value[1], flags)}")
                case "CATEGORY":
                    categories.append(self._category(str(value), flags))
                case _:
                    raise _NotLinear
        if not flags & re.IGNORECASE or not letters:
            return f"[{'^' if negated else ''}{''.join((*letters, *categories))}]"
        if not categories:
            return self._cased(f"[{'^' if negated else ''}{''.join(letters)}]", flags)
        if negated:
            raise _NotLinear
        # Case is ignored for letters alone: RE2 would add letters to a category.
        own, rest = self._cased(f"[{''.join(letters)}]", flags), "".join(categories)
        return f"(?:{own}|[{rest}])"

    def _category(self, name: str, flags: int) -> str:
        plain = name.replace("CATEGORY_NOT_", "CATEGORY_")
        if plain not in _CATEGORIES or (self.linear.wide and flags & re.ASCII):
            raise _NotLinear
        return _category(plain, self.linear.wide, plain != name)

    def _character(self, code: int, flags: int) -> str:
        if 0xD800 <= code <= 0xDFFF or (flags & re.IGNORECASE and code >= _ASCII):
            raise _NotLinear
        return rf"\x{{{code:x}}}"

    def _cased(self, text: str, flags: int) -> str:
        if not flags & re.IGNORECASE:
            return text
        self.linear.folds = True
        return f"(?i:{text})"
