"""What renderings have in common over minions and time: texts that were compiled or parsed once.

Both depend on the text alone (and on Jinja's options), never on a minion, so nothing that a template looks at has to be
known: pillar for a thousand minions compiles a template once, and parses what it renders to once for each result that
differs. What is kept is bounded; files may change at any time, as their new text is another.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from types import CodeType
from typing import Any, Generic, TypeVar

#: Characters of texts that are kept of each kind; what they were made into takes about ten times as much memory.
_KEPT = 16_000_000

Made = TypeVar("Made")


class _Texts(Generic[Made]):
    """What was made of texts, the oldest given up first."""

    def __init__(self) -> None:
        self._made: dict[Hashable, tuple[int, Made]] = {}
        self._size = 0

    def get(self, key: Hashable, text: str, make: Callable[[], Made]) -> Made:
        """What is made of a text; what ``make`` raises is not kept."""
        known = self._made.get(key)
        if known is not None:
            return known[1]
        made = make()
        if len(text) <= _KEPT // 10:
            self._made[key] = (len(text), made)
            self._size += len(text)
            while self._size > _KEPT:
                oldest = next(iter(self._made))
                self._size -= self._made.pop(oldest)[0]
        return made


class RenderMemory:
    """One for a process; handed to every tree that shares in it."""

    def __init__(self) -> None:
        self._codes: _Texts[CodeType] = _Texts()
        self._documents: _Texts[Any] = _Texts()

    def code(self, key: Hashable, text: str, make: Callable[[], CodeType]) -> CodeType:
        """The code of a template. ``key``: all that it depends on."""
        return self._codes.get(key, text, make)

    def document(self, text: str, make: Callable[[str], Any]) -> Any:
        """The data of a YAML text; a copy that the caller may change."""
        return copied(self._documents.get(text, text, lambda: make(text)))


def copied(value: Any) -> Any:
    """Maps and lists anew; what YAML makes besides cannot be changed."""
    kind = type(value)
    if kind is dict:
        return {key: copied(each) if type(each) in _CONTAINERS else each for key, each in value.items()}
    if kind is list:
        return [copied(each) if type(each) in _CONTAINERS else each for each in value]
    return set(value) if kind is set else value


_CONTAINERS = frozenset({dict, list, set})
