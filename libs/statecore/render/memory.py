"""Cache in memory of compiled templates and parsed YAML texts, shared by the renderings for many minions.

Both depend only on the text (and on Jinja's options), never on a minion. So the pillar of a thousand minions compiles
each template once, and parses each different rendered text once. A changed file has another text, hence another key.
The size of the cache is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from types import CodeType
from typing import Generic, TypeVar

#: Bound of each cache, in characters of text. The cached objects take about ten times as much memory.
_KEPT = 16_000_000

Made = TypeVar("Made")


class _Texts(Generic[Made]):
    """Bounded cache of objects that are made from texts (compiled templates, YAML data). The oldest object is removed first."""

    def __init__(self) -> None:
        self._made: dict[Hashable, tuple[int, Made]] = {}
        self._size = 0

    def get(self, key: Hashable, text: str, make: Callable[[], Made]) -> Made:
        """Return the cached object of ``key``. If there is none, make the object with ``make``, cache it and return
        it.

        ``text`` is the text that the object is made from; its length counts for the cache's bound. Exceptions of
        ``make`` are passed on, and nothing is cached.
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
    """Cache of compiled templates and parsed YAML texts in one process, shared by many state trees."""

    def __init__(self) -> None:
        self._codes: _Texts[CodeType] = _Texts()
        self._documents: _Texts[object] = _Texts()

    def code(self, key: Hashable, text: str, make: Callable[[], CodeType]) -> CodeType:
        """Return the compiled code of a template, from the cache or made with ``make``.

        ``key`` must contain everything that the code depends on: text, name and Jinja's options.
        """
        return self._codes.get(key, text, make)

    def document(self, text: str, make: Callable[[str], object]) -> object:
        """Return the data of a YAML text, from the cache or made with ``make``. The data is a copy that the caller may
        change.
        """
        return copied(self._documents.get(text, text, lambda: make(text)))


def copied(value: object) -> object:
    """Return a deep copy of nested maps, lists and sets. Other values of YAML documents cannot change, so they are not
    copied.
    """
    if type(value) is dict:
        return {key: copied(each) if type(each) in _CONTAINERS else each for key, each in value.items()}
    if type(value) is list:
        return [copied(each) if type(each) in _CONTAINERS else each for each in value]
    return set(value) if type(value) is set else value


_CONTAINERS = frozenset({dict, list, set})
