"""What the store found in Redis that it cannot read, and went on without."""

from __future__ import annotations

from collections.abc import Callable, Iterable

#: Keys that are remembered, so that each is told once.
_REMEMBERED = 1000


class Faults:
    """Counts what was stepped over, and tells of each key once."""

    def __init__(self) -> None:
        #: How often something was stepped over.
        self.total = 0
        #: Key -> why it cannot be read, of those found last.
        self.known: dict[str, str] = {}
        #: Told of a key when it is found for the first time: (key, why).
        self.tell: Callable[[str, str], None] = _nobody
        #: Told each time.
        self.count: Callable[[], None] = _nothing

    def report(self, key: str, why: str) -> None:
        """Something at this key was stepped over."""
        self.total += 1
        self.count()
        if key not in self.known:
            if len(self.known) >= _REMEMBERED:
                self.known.pop(next(iter(self.known)))
            self.known[key] = why
            self.tell(key, why)

    def of_script(self, names: Iterable[bytes]) -> None:
        """Keys that a script stepped over."""
        for name in names:
            self.report(
                name.decode("utf-8", "surrogateescape"), "another type than the store writes there, or no number in it"
            )


def _nobody(key: str, why: str) -> None:
    """Nobody listens."""


def _nothing() -> None:
    """Nobody counts."""
