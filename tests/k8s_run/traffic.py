"""An operator who never stops giving jobs, and counts them: for pods on podman, and for those of a cluster."""

from __future__ import annotations

import itertools
import re
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias

from tests.k8s_run.accounting import Accounts

#: Waits until a condition holds; fails the test after so many seconds, naming what was waited for.
Until: TypeAlias = Callable[[Callable[[], object], float, str], object]

#: Leaves its number on the host, where it shows how often it ran.
COUNTED = "echo {number} >>/var/tmp/ran"

#: Asks for results by the keys of Salt's own returner, in a worker's pod: all at once.
ASK = """
import json, redis, sys
url = open("/run/secrets/redis/url").read().strip()
store = redis.Redis.from_url(url, decode_responses=True)
print(json.dumps({jid: store.hgetall("ret:" + jid) for jid in json.load(sys.stdin)}))
"""


class Traffic:
    """Jobs, one after the other, until the context ends. ``command``: the words of a command of an operator."""

    def __init__(self, command: Callable[..., Sequence[str]], minions: Collection[str], until: Until) -> None:
        self.accounts = Accounts(minions)
        #: When each JID was printed, in seconds of the monotonic clock.
        self.times: list[float] = []
        self._command, self._until = command, until
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Traffic:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        number = 0
        while not self._stop.is_set():
            number += 1
            words = self._command("salt", "--async", "*", "cmd.run", COUNTED.format(number=number))
            try:
                done = subprocess.run(
                    words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False
                )
                found = re.search(r"\b\d{20}\b", done.stdout)
                said = done.stdout + done.stderr
            except subprocess.TimeoutExpired as error:
                found, said = None, str(error)
            if found:
                self.accounts.acknowledged[number] = found[0]
                self.times.append(time.monotonic())
            else:
                self.accounts.refused[number] = said
                # Where nobody answers at all, a loop would only count to thousands.
                self._stop.wait(0.5)

    def given(self) -> int:
        """How many jobs were acknowledged."""
        return len(self.accounts.acknowledged)

    def await_more(self, count: int) -> None:
        """Wait until so many more jobs are acknowledged."""
        goal = self.given() + count
        self._until(lambda: self.given() >= goal, 240, f"{count} more jobs acknowledged")

    def longest_pause(self, since: float) -> float:
        """Seconds between two acknowledged jobs, at most, of those after ``since`` (and the last one before it)."""
        before = [one for one in self.times if one <= since][-1:]
        after = [*before, *(one for one in self.times if one > since)]
        return max((late - early for early, late in itertools.pairwise(after)), default=0.0)

    def faults(
        self,
        returned: Mapping[str, Mapping[str, str]],
        ran: Mapping[str, Collection[int]],
        *,
        power_cut: bool = False,
    ) -> list[str]:
        """What is wrong, from the results in the job cache by JID, and the numbers found on hosts: see Accounts."""
        return self.accounts.faults(returned, ran, power_cut=power_cut)
