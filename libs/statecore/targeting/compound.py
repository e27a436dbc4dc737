"""Grammar of compound targets: words, ``and``, ``or``, ``not`` and parentheses. The module ``match`` gives words
their meaning.

Source: docs/protocol.md#target-types
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from statecore.model.errors import TargetError

OPERATORS = frozenset({"and", "or", "not", "(", ")"})

#: Most parentheses inside each other.
_DEEPEST = 50

#: Type of the matched subjects.
T = TypeVar("T")


def words_of(expression: str) -> list[str]:
    """Return the list of words of a compound target ("G@os:Debian and not E@web.*").

    A parenthesis is a word of its own, unless it belongs to an expression such as ``E@(a|b)``.
    """
    words: list[str] = []
    for piece in expression.split():
        words.extend(_loosened(piece))
    return words


def compile_words(words: Sequence[str], meaning: Callable[[str], Callable[[T], bool]]) -> Callable[[T], bool]:
    """Return a function that tells if a minion matches the words of a compound target.

    ``meaning`` returns such a function for one word that is not an operator. Raises TargetError if an operator, a word
    or a closing parenthesis is missing.
    """
    return _CompoundParser(words, meaning).parse()


def _loosened(piece: str) -> list[str]:
    """Return a piece of a compound target as words: each unbalanced parenthesis at its ends becomes a word, so
    ``(G@a:b`` becomes two words. ``E@web(1|2)`` stays one word, because its parentheses are balanced.
    """
    core = piece.lstrip("(")
    front = len(piece) - len(core)
    surplus = core.count(")") - core.count("(")
    back = min(max(surplus, 0), len(core) - len(core.rstrip(")")))
    core = core[: len(core) - back]
    return [*"(" * front, *([core] if core else []), *")" * back]


class _CompoundParser(Generic[T]):
    """Recursive descent parser. Precedence, lowest first: ``or``, ``and``, ``not``, words and parentheses."""

    def __init__(self, words: Sequence[str], meaning: Callable[[str], Callable[[T], bool]]) -> None:
        self._words = words
        self._meaning = meaning
        self._at = 0
        self._depth = 0

    def parse(self) -> Callable[[T], bool]:
        matcher = self._or()
        if self._at < len(self._words):
            raise TargetError(
                f"'{self._words[self._at]}' is not expected in '{' '.join(self._words)}': and, or, not go between"
            )
        return matcher

    def _peek(self) -> str:
        return self._words[self._at] if self._at < len(self._words) else ""

    def _or(self) -> Callable[[T], bool]:
        arms = [self._and()]
        while self._peek() == "or":
            self._at += 1
            arms.append(self._and())
        return arms[0] if len(arms) == 1 else lambda subject: any(arm(subject) for arm in arms)

    def _and(self) -> Callable[[T], bool]:
        arms = [self._not()]
        while self._peek() == "and":
            self._at += 1
            arms.append(self._not())
        return arms[0] if len(arms) == 1 else lambda subject: all(arm(subject) for arm in arms)

    def _not(self) -> Callable[[T], bool]:
        negative = False
        while self._peek() == "not":
            self._at += 1
            negative = not negative
        matcher = self._primary()
        return (lambda subject: not matcher(subject)) if negative else matcher

    def _primary(self) -> Callable[[T], bool]:
        word = self._peek()
        if word in ("", "and", "or", ")"):
            raise TargetError(
                f"a target is missing {f'before {word!r}' if word else 'at the end'} in '{' '.join(self._words)}'"
            )
        self._at += 1
        if word == "(":
            self._depth += 1
            if self._depth > _DEEPEST:
                raise TargetError(f"a target has more than {_DEEPEST} parentheses inside each other")
            matcher = self._or()
            self._depth -= 1
            if self._peek() != ")":
                raise TargetError(f"a closing parenthesis is missing in '{' '.join(self._words)}'")
            self._at += 1
            return matcher
        return self._meaning(word)
