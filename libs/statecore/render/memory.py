"""Cache in memory of compiled templates and parsed YAML texts, shared by the renderings for many minions.

Both depend only on the text (and on Jinja's options), never on a minion. So pillar for a thousand minions compiles a
template once, and parses each different rendered text once. A changed file has another text, hence another key. The
cache is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from types import CodeType
from typing import Generic, TypeVar

#: Bound of each cache, in characters of text. The cached objects take about ten times as much memory.
_KEPT = 16_000_000

Made = TypeVar("Made")


class _Texts(Generic[Made]):
    """Bounded cache of objects made from texts. The oldest entry is removed first."""

    def __init__(self) -> None:
        self._made: dict[Hashable, tuple[int, Made]] = {}
        self._size = 0

    def get(self, key: Hashable, text: str, make: Callable[[], Made]) -> Made:
        """Return the cached object of ``key``, or make it from the text with ``make``.

        Exceptions of ``make`` are not cached.
        """
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
    """The render cache of one process, given to every tree that shares it."""

    def __init__(self) -> None:
        self._codes: _Texts[CodeType] = _Texts()
        self._documents: _Texts[object] = _Texts()

    def code(self, key: Hashable, text: str, make: Callable[[], CodeType]) -> CodeType:
        """Return the compiled code of a template. ``key`` must hold everything that the code depends on."""
        return self._codes.get(key, text, make)

    def document(self, text: str, make: Callable[[str], object]) -> object:
        """Return the data of a YAML text, as a copy that the caller may change."""
        return copied(self._documents.get(text, text, lambda: make(text)))


def copied(value: object) -> object:
    """Return a deep copy of maps, lists and sets. Other values that YAML makes are immutable and are shared."""
    if type(value) is dict:
        return {key: copied(each) if type(each) in _CONTAINERS else each for key, each in value.items()}
    if type(value) is list:
        return [copied(each) if type(each) in _CONTAINERS else each for each in value]
    return set(value) if type(value) is set else value


_CONTAINERS = frozenset({dict, list, set})
