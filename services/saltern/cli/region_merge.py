"""Merges what the masters of several regions say about one job into one answer. Pure: no socket and no clock.

A minion's key may be accepted in several regions, so that it can move. Each of these masters then waits for the minion, and the
minion returns to one of them. A return from any region counts before the silence of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum

from saltern.cli.return_printer import Absence


class ReturnKind(Enum):
    """What a minion's return is to the merged answer: the first one, the same once more, another result, or a return of a
    minion that the region did not name when it published the job.
    """

    FIRST = "first"
    REPEATED = "repeated"
    DIFFERENT = "different"
    UNNAMED = "unnamed"


#: States of a job on a silent minion, from the one that says most about the minion to the one that says least.
_TELLING = ("started", "delivered", "waiting", "cancelled", "lost", "expired", "offline", "expected")


class RegionMerge:
    """The minions of a job in several regions: which have returned, which may still return, and which are given up."""

    def __init__(self, regions: Iterable[str]) -> None:
        #: Regions whose master has not answered the publication yet.
        self._unpublished = set(regions)
        #: Minion -> regions in which it may still return.
        self._open: dict[str, set[str]] = {}
        #: Minion -> regions that named it when they published the job.
        self._named: dict[str, set[str]] = {}
        self._returned: dict[str, Mapping[str, object]] = {}
        self._absences: dict[str, list[Absence | None]] = {}
        #: Minions for which a return or an absence is still to come.
        self._unsettled: set[str] = set()
        #: Minions that the last region has just given up; kept, because a fleet of 10,000 is not searched at each event.
        self._waiting_for_nobody: set[str] = set()

    def published(self, region: str, minions: Iterable[str]) -> list[str]:
        """Record that the job was published to these minions of a region. Return those that no region has named before."""
        self._unpublished.discard(region)
        new = []
        for minion in minions:
            if minion not in self._open:
                self._open[minion] = set()
                new.append(minion)
                if minion not in self._returned:
                    self._unsettled.add(minion)
            self._open[minion].add(region)
            self._named.setdefault(minion, set()).add(region)
        return new

    def returned(self, region: str, minion: str, load: Mapping[str, object]) -> ReturnKind:
        """Record a minion's return that a region passed on. Return ReturnKind.FIRST if it is to be shown.

        A region cannot answer for a minion that it did not name: ReturnKind.UNNAMED, and nothing is recorded.
        """
        if region not in self._named.get(minion, ()):
            return ReturnKind.UNNAMED
        first = self._returned.setdefault(minion, load)
        self._unsettled.discard(minion)
        if first is load:
            return ReturnKind.FIRST
        same = all(first.get(name) == load.get(name) for name in ("return", "retcode"))
        return ReturnKind.REPEATED if same else ReturnKind.DIFFERENT

    def absent(self, region: str, minion: str, absence: Absence | None) -> None:
        """Record that a minion did not return in a region. ``absence``: the entry for it; None: it is not to be shown.

        A minion that the region did not name is ignored.
        """
        if region not in self._named.get(minion, ()):
            return
        self._absences.setdefault(minion, []).append(absence)
        self._close(region, minion)

    def ended(self, region: str) -> list[str]:
        """Record that a region sends nothing more. Return the sorted ids of the minions that were open there only or also
        there, and that have not returned in any region.
        """
        self._unpublished.discard(region)
        left = sorted(minion for minion, regions in self._open.items() if region in regions)
        for minion in left:
            self._close(region, minion)
        return [minion for minion in left if minion not in self._returned]

    def given_up(self) -> list[tuple[str, Absence | None]]:
        """Return each minion that no region waits for any more, with its entry, once: sorted (minion id, entry).

        The entry is that of the region that knows most about the minion. None: it is not to be shown. Nothing is given
        up before each region's master has answered the publication.
        """
        if self._unpublished:
            return []
        closed, self._waiting_for_nobody = self._waiting_for_nobody, set()
        found = sorted(name for name in closed & self._unsettled if not self._open[name] and name in self._absences)
        self._unsettled.difference_update(found)
        return [(minion, _most_telling(self._absences[minion])) for minion in found]

    def _close(self, region: str, minion: str) -> None:
        self._open[minion].discard(region)
        if not self._open[minion]:
            self._waiting_for_nobody.add(minion)

    @property
    def settled(self) -> bool:
        """Return whether each region has answered the publication, and each minion has returned or was given up."""
        return not self._unpublished and not self._unsettled


def _most_telling(absences: Iterable[Absence | None]) -> Absence | None:
    return min((absence for absence in absences if absence is not None), key=_order, default=None)


def _order(absence: Absence) -> tuple[int, bool, float]:
    state = str(absence.load.get("state"))
    rank = _TELLING.index(state) if state in _TELLING else len(_TELLING)
    known = absence.known
    age = known["age"] if known else None
    return rank, known is None or known["key"] != "accepted", float("inf") if age is None else age
