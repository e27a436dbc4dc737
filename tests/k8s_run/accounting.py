"""Jobs against their results: what was promised to an operator, and what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field


@dataclass
class Accounts:
    """What an operator was told, and what is found afterwards. A job is known by its number, which it leaves on every host."""

    minions: Collection[str]
    #: JIDs that were printed, by the number of the job.
    acknowledged: dict[int, str] = field(default_factory=dict)
    #: Commands that ended without a JID: nothing is promised, and nothing is known.
    refused: dict[int, str] = field(default_factory=dict)

    def faults(
        self,
        returned: Mapping[str, Mapping[str, str]],
        ran: Mapping[str, Collection[int]],
        *,
        power_cut: bool = False,
    ) -> list[str]:
        """What is wrong. ``returned``: each minion's result by JID; ``ran``: the numbers found on a host, each as often as it ran.

        ``power_cut``: a host lost power. A job that its minion had begun is not run again: its result says JobKilled.
        """
        found = []
        for number, jid in sorted(self.acknowledged.items()):
            found += [
                f"job {number} ({jid}): no result of {minion}"
                for minion in self.minions
                if minion not in returned.get(jid, ())
            ]
        for minion in self.minions:
            times = Counter(ran.get(minion, ()))
            for number, jid in sorted(self.acknowledged.items()):
                result = returned.get(jid, {}).get(minion, "")
                if not times[number] and not (power_cut and "JobKilled: " in result):
                    found.append(f"job {number}: never ran on {minion}, which said {result[:300]}")
            found += [
                f"job {number}: ran {count} times on {minion}" for number, count in sorted(times.items()) if count > 1
            ]
            found += [
                f"job {number}: ran on {minion}, and nobody gave it"
                for number in sorted(times.keys() - self.acknowledged.keys() - self.refused.keys())
            ]
        return found
