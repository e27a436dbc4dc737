"""Runs ``saltern rotate`` during a chaos run, and measures for how long no job was answered meanwhile.

A probe publishes one job after the other and waits for its return. The time without answers of a rotation is the longest time
between two answers, from the moment that its command starts to three seconds after its end.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import zmq

from saltern.kit.config.master import MasterOptions
from saltern.kit.links.control import ControlClient, ControlError, ControlTimeout
from saltern.kit.links.sockets import LinkKeys
from tests.roles.lab import Answer

#: Seconds that a probe's job has for its return, and the pause between two looks.
_PATIENCE, _LOOK = 5.0, 0.03

#: Seconds after a rotation that still count as its time.
_AFTER = 3.0

#: Seconds until a command that could not go on is run again, and how often.
_PAUSE, _TRIES = 2.0, 40

#: Seconds that one command may take: it waits for minions that are away.
_LONGEST = 180.0


@dataclass(frozen=True, slots=True)
class Rotated:
    """A rotation that was run: its arguments, times in monotonic seconds, number of tries, and whether it ended."""

    words: tuple[str, ...]
    began: float
    ended: float
    #: How often the command was run until it ended with 0.
    tries: int
    done: bool
    #: Whether nothing else was broken then.
    calm: bool

    @property
    def name(self) -> str:
        """The arguments of ``saltern rotate`` as one text, without ``--patience``."""
        return " ".join(self.words).partition(" --patience")[0]


class Probe:
    """Publishes one job after the other until it is closed, and stores in ``answers`` when each returned (monotonic seconds)."""

    def __init__(self, options: MasterOptions, keys: LinkKeys, minions: Sequence[str]) -> None:
        self.answers: list[float] = []
        self._options, self._keys, self._minions = options, keys, minions
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="probe", daemon=True)

    def start(self) -> None:
        """Start the thread that publishes jobs."""
        self._thread.start()

    def close(self) -> None:
        """Stop publishing jobs and wait for the thread to end."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        client = ControlClient(context, self._options, self._keys)
        for minion in itertools.cycle(self._minions):
            if self._ended.is_set():
                break
            try:
                self._ask(client, minion)
            except (ControlError, ControlTimeout):
                self._ended.wait(_LOOK)
        client.close()
        context.term()

    def _ask(self, client: ControlClient, minion: str) -> None:
        job = client.call("publish", timeout=_PATIENCE, tgt=minion, tgt_type="glob", fun="test.ping", arg=[])
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline and not self._ended.is_set():
            if minion in client.call("job_returns", timeout=_PATIENCE, jid=job["jid"]):
                self.answers.append(time.monotonic())
                return
            self._ended.wait(_LOOK)

    def longest(self, began: float, ended: float) -> float:
        """Return the longest time in seconds between two answers that overlaps the time from ``began`` to ``ended``."""
        before = max((at for at in self.answers if at <= began), default=began)
        after = min((at for at in self.answers if at >= ended), default=time.monotonic())
        times = [before, *(at for at in self.answers if began < at < ended), after]
        return max(later - earlier for earlier, later in itertools.pairwise(times))


def rotate(run: Callable[..., Answer], words: tuple[str, ...], *, calm: bool, say: Callable[[str], None]) -> Rotated:
    """Run ``saltern rotate`` repeatedly until its exit code is 0, and return a Rotated; ``done`` is False after the last try."""
    began, pause = time.monotonic(), threading.Event()
    for tries in range(1, _TRIES + 1):
        answer = run("saltern", "rotate", *words, seconds=_LONGEST)
        if answer.code == 0:
            return Rotated(words, began, time.monotonic(), tries, True, calm)
        say(f"rotation {' '.join(words)}: {answer.err.strip() or answer.out.strip()}")
        pause.wait(_PAUSE)
    return Rotated(words, began, time.monotonic(), _TRIES, False, calm)


def table(rotated: Sequence[Rotated], probe: Probe) -> Iterator[str]:
    """Yield the lines of a table: for each rotation the number of runs and the longest time without answers."""
    yield f"{'rotation':<24} {'done':>5} {'runs':>5} {'seconds':>8} {'without answers, nothing broken':>32} {'among faults':>13}"
    for name in dict.fromkeys(one.name for one in rotated):
        those = [one for one in rotated if one.name == name]
        longest = max(one.ended - one.began for one in those)
        calm, broken = (
            max((probe.longest(one.began, one.ended + _AFTER) for one in those if one.calm is wanted), default=None)
            for wanted in (True, False)
        )
        done, runs = sum(one.done for one in those), sum(one.tries for one in those)
        yield f"{name:<24} {done:>5} {runs:>5} {longest:>8.1f} {_seconds(calm):>32} {_seconds(broken):>13}"


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} s"
