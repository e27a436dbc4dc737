"""``salt --progress``: one line on the terminal that tells how far a job is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

#: Characters of the bar itself.
_WIDTH = 30


@dataclass
class Progress:
    """Counts returns; draws over its own last line while that is the last on the terminal."""

    say: Callable[[str], object]
    expected: int = 0
    returned: int = 0
    failed: int = 0
    silent: int = 0

    def expect(self, minions: int) -> None:
        """So many more minions are to return."""
        self.expected += minions
        self._draw()

    def came(self, *, failed: bool) -> None:
        """A minion returned."""
        self.returned += 1
        self.failed += failed
        self._draw()

    def lost(self) -> None:
        """A minion will not return."""
        self.silent += 1
        self._draw()

    def line(self) -> str:
        """The bar as text."""
        done = self.returned + self.silent
        filled = _WIDTH * done // self.expected if self.expected else 0
        bar = "#" * filled + "-" * (_WIDTH - filled)
        running = self.expected - done
        return f"[{bar}] {self.returned}/{self.expected} returned, {self.failed} failed, {running} running"

    def clear(self) -> None:
        """Makes room for a return, or for the end."""
        if self.expected:
            self.say("\r\033[K")

    def _draw(self) -> None:
        self.say(f"\r\033[K{self.line()}")
