"""When to look into the job cache beside the event bus: soon, and then less and less often."""

from __future__ import annotations

from dataclasses import dataclass

#: A pause is so many times the one before: what is found by a look is found after about half of its own time more.
_GROWTH = 1.5


@dataclass(frozen=True, slots=True)
class Pauses:
    """Seconds between two looks."""

    first: float
    longest: float


class Pace:
    """Times are seconds of one monotonic clock."""

    def __init__(self, pauses: Pauses, now: float) -> None:
        self._pauses = pauses
        self._pause = pauses.first
        #: When to look next.
        self.at = now + self._pause

    def heard(self, now: float) -> None:
        """The bus brought something: a look is put off. The pause stays what it is, as many short silences make a load, too."""
        self.at = now + self._pause

    def looked(self, now: float, *, found: bool) -> None:
        """After a look. ``found``: something that the bus had not brought; where it loses one, it will lose the next."""
        self._pause = self._pauses.first if found else min(self._pause * _GROWTH, self._pauses.longest)
        self.at = now + self._pause
