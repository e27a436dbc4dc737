"""``salt --batch``: at most N minions of the target work at a time.

Each step of the batch is a job of its own. When a minion returns, the next minion starts. A minion that does not answer the ping at
the start gets no job. The class Window is pure; ``run_batch`` drives it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from saltern.kit.jobs.returns import retcode_of
from saltern.kit.jobs.watch import JobWatch, Returns
from saltern.kit.links.answers import PublishAnswer

#: Publishes (target, target type, function, arguments) and returns the master's answer.
Publish = Callable[[object, str, object, list[object]], PublishAnswer]

#: Starts to follow a published job; takes the master's answer and the receiver of the returns.
Follow = Callable[[PublishAnswer, Returns], None]


def batch_size(text: str, minions: int) -> int:
    """Return the number of minions that work at a time, at least 1.

    ``text`` is a number ("3") or a percentage of ``minions`` ("25%"). Raises ValueError for any other text.
    """
    if text.endswith("%"):
        share = float(text[:-1]) * minions / 100
        if not math.isfinite(share):
            raise ValueError(text)
        size = math.ceil(share) if share < 1 else int(share)
    else:
        size = int(text)
    if size < 1:
        raise ValueError(text)
    return size


class Window:
    """The queue of the minions of a batch, of which at most ``size`` work at a time."""

    def __init__(self, minions: Iterable[str], size: int) -> None:
        self._waiting = deque(minions)
        self._size = size
        self._working: set[str] = set()

    def admit(self) -> list[str]:
        """Return the ids of the minions that may start now, and count these minions as working."""
        room = self._size - len(self._working)
        admitted = [self._waiting.popleft() for _ in range(min(room, len(self._waiting)))]
        self._working.update(admitted)
        return admitted

    def leave(self, minion: str) -> None:
        """Record that a minion of the batch has returned or was silent: it no longer counts as working, and another
        may start.
        """
        self._working.discard(minion)

    def close(self) -> None:
        """Drop the minions of the batch that have not started; minions that work now continue."""
        self._waiting.clear()


class _Pings:
    def __init__(self) -> None:
        self.alive: list[str] = []
        self.silent: list[str] = []

    def add(self, minion: str, load: Mapping[str, object]) -> None:
        self.alive.append(minion)

    def add_silent(self, minion: str, jid: str) -> None:
        self.silent.append(minion)


class _Steps:
    """Receives the returns of a batch. When a minion has returned or was silent, it publishes the job to the
    next minions.
    """

    def __init__(
        self,
        window: Window,
        start: Callable[[list[str], _Steps], None],
        shown: Returns,
        failhard: bool,
        pause: Callable[[Callable[[], None]], None] | None,
    ) -> None:
        self._window = window
        self._start = start
        self._shown = shown
        self._failhard = failhard
        self._pause = pause

    def add(self, minion: str, load: Mapping[str, object]) -> None:
        self._shown.add(minion, load)
        if self._failhard and retcode_of(load):
            self._window.close()
        self._go_on(minion)

    def add_silent(self, minion: str, jid: str) -> None:
        self._shown.add_silent(minion, jid)
        if self._failhard:
            self._window.close()
        self._go_on(minion)

    def _go_on(self, minion: str) -> None:
        def leave() -> None:
            self._window.leave(minion)
            self.admit()

        if self._pause is None:
            leave()
        else:
            self._pause(leave)

    def admit(self) -> None:
        minions = self._window.admit()
        if minions:
            self._start(minions, self)


def run_batch(
    call: tuple[object, str, object, list[object]],
    size: str,
    publish: Publish,
    watch: JobWatch,
    follow: Follow,
    shown: Returns,
    say: Callable[[str], None],
    *,
    failhard: bool,
    wait: float = 0,
    expect: Callable[[int], None] | None = None,
    tell_steps: bool = True,
) -> bool:
    """Run a job on at most ``size`` minions of the target at a time; return False if the target matched no
    minion.

    ``call``: (target, target type, function, arguments). ``size``: a number or a percentage of the minions
    that answer a ping. ``publish`` publishes a job, ``follow`` makes ``watch`` pass the job's returns to a
    receiver, ``shown`` receives the returns of the batch. ``failhard``: start no further minions after a
    failure. ``wait``: seconds between a minion's return and the start of the next one. ``expect`` is called
    with the number of minions that get the job. ``say`` gets a line of text for each minion that does not
    answer the ping, and with ``tell_steps`` for each step.
    """
    tgt, tgt_type, fun, arg = call
    ping = publish(tgt, tgt_type, "test.ping", [])
    if not ping["jid"]:
        return False
    pings = _Pings()
    follow(ping, pings)
    watch.run()
    for minion in pings.silent:
        say(f"Minion {minion} did not respond. No job will be sent.")

    def start(minions: list[str], steps: _Steps) -> None:
        if tell_steps:
            say(f"\nExecuting run on {minions}\n")
        job = publish(minions, "list", fun, arg)
        if job["jid"]:
            follow(job, steps)
        else:
            # The keys of these minions were deleted since the ping.
            for minion in minions:
                steps.add_silent(minion, "")

    if pings.alive:
        if expect is not None:
            expect(len(pings.alive))
        window = Window(sorted(pings.alive), batch_size(size, len(pings.alive)))
        pause = partial(watch.call_later, wait) if wait else None
        _Steps(window, start, shown, failhard, pause).admit()
        watch.run()
    return True
