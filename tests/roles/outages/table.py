# ruff: noqa: E501 - a row of the table is read as a row
"""What happens while a part of the master is away: the rows of docs/operations/outages.md, each of which is a test.

A row says how the part is broken and mended, what an operator is told meanwhile, and which commands wait. Every row has in common
what the test holds it to: a job that was running when the part broke returns, the `salt` that waits for it prints what it returned,
and it is in the job cache afterwards; everything comes back by itself, and nothing ends or says a traceback.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import redis

from tests.chaos.field import Field
from tests.roles.outages import disk

Act = Callable[[Field], None]


@dataclass(frozen=True)
class Outage:
    """One row."""

    what: str
    begin: Act
    end: Act
    #: What goes on meanwhile, what waits, what is refused and with which words: for operators to read.
    works: str
    waits: str
    refused: str
    #: `salt web1 test.ping` meanwhile: "works"; "waits", and ends well once the outage is over; "silent": the job is published and
    #: the minion does not return in time; else what it is refused with, a part of the message.
    ping: str
    #: Whether an event that is fired meanwhile is answered, at the latest afterwards. None: it cannot be fired.
    event: bool | None = True
    #: Names of probes that say 503 meanwhile.
    unready: tuple[str, ...] = ()
    #: Whether the `salt` that waits for the running job must end meanwhile, without an event of it.
    unheard: bool = False
    #: Whether it needs a mount namespace, which only root makes.
    mounts: bool = False

    @property
    def line(self) -> str:
        """The row in the page."""
        return f"| {self.what} | {self.works} | {self.waits} | {self.refused} |"


def gone(*names: str) -> tuple[Act, Act]:
    """Processes that are killed, and started again."""

    def begin(field: Field) -> None:
        for name in names:
            field.kill_all_of(name)

    def end(field: Field) -> None:
        for name in names:
            field.relaunch(name)

    return begin, end


def apart(*links: str) -> tuple[Act, Act]:
    """A network between two roles that loses every packet; what was on its way comes when it is mended."""

    def begin(field: Field) -> None:
        for name in links:
            for link in field.links[name]:
                link.hold()

    def end(field: Field) -> None:
        for name in links:
            for link in field.links[name]:
                link.heal()

    return begin, end


def slow(seconds: float, *links: str) -> tuple[Act, Act]:
    """Bytes that take so much longer, each way."""

    def set_to(value: float) -> Act:
        def act(field: Field) -> None:
            for name in links:
                for link in field.links[name]:
                    link.slow(value)

        return act

    return set_to(seconds), set_to(0.0)


def _stopped(number: int, name: str = "redis") -> Act:
    return lambda field: field.processes[name].send_signal(number)


def _full(field: Field) -> None:
    field.redis_now().config_set("maxmemory", 1)


def _empty(field: Field) -> None:
    field.redis_now().config_set("maxmemory", 0)


def _disk_full(field: Field) -> None:
    """A snapshot that cannot be written: Redis then takes no writes, as when its disk is full."""
    server = field.redis_now()
    place = field.root / "no-disk"
    place.mkdir(exist_ok=True)
    server.config_set("dir", str(place))
    place.rmdir()
    server.config_set("save", "3600 1")
    server.set("salt:test", 1)
    server.bgsave()
    while server.info("persistence")["rdb_last_bgsave_status"] == "ok":
        pass


def _disk_free(field: Field) -> None:
    server = field.redis_now()
    place = Path(field.root / "redis")
    server.config_set("dir", str(place))
    server.config_set("save", "")
    try:
        server.delete("salt:test")
    except redis.ResponseError:
        # It believes its disk once a snapshot succeeded.
        server.bgsave()


REDIS_LINKS = tuple(f"{name}~redis" for name in ("mworker", "mworker2", "publisher", "reactor", "maintenance"))

#: What reads and writes Redis, and says so in its probe.
ON_REDIS = ("mworker", "publisher", "reactor", "maintenance")

_JOBS = "running jobs; minions keep their results"

OUTAGES: tuple[Outage, ...] = (
    Outage("Redis is killed", *gone("redis"), _JOBS, "results, events, publications", "`salt`, `salt-run`, `salt-key`: redis at URL does not answer", "does not answer", None, ON_REDIS),
    Outage("Redis hangs", _stopped(signal.SIGSTOP), _stopped(signal.SIGCONT), _JOBS, "results, events, publications", "the same, after 2 s", "does not answer: Timeout", None, ("mworker",)),
    Outage("Redis is full (`maxmemory`, noeviction)", _full, _empty, _JOBS + "; what only reads", "results, events", "what writes: redis at URL cannot serve now: OOM", "OOM", None, ON_REDIS),
    Outage("Redis cannot write a snapshot (MISCONF)", _disk_full, _disk_free, _JOBS + "; what only reads", "results, events", "what writes: redis at URL cannot serve now: MISCONF", "MISCONF", None, ON_REDIS),
    Outage("Redis' disk is full (a write of the append-only file fails)", disk.fill, disk.free, _JOBS + "; what only reads", "results, events", "what writes: redis at URL cannot serve now: MISCONF ... No space left on device", "No space left on device", None, ON_REDIS, mounts=True),
    Outage("Redis is slow (0.2 s a round trip)", *slow(0.1, *REDIS_LINKS), "everything, slower", "nothing", "nothing", "works"),
    Outage("network between all roles and Redis", *apart(*REDIS_LINKS), _JOBS, "results, events, publications", "`salt`, `salt-run`, `salt-key`: redis at URL does not answer: Timeout", "does not answer: Timeout", None, ("mworker",)),
    Outage("network between publisher and Redis", *apart("publisher~redis"), "all but new jobs", "new jobs, for `replay_window`", "nothing", "waits", True, ("publisher",)),
    Outage("network between reactor and Redis", *apart("reactor~redis"), "all but reactions", "events", "nothing", "works", True, ("reactor",)),
    Outage("network between maintenance and Redis", *apart("maintenance~redis"), "all but its chores", "rotation, expiry, schedule", "nothing", "works", True, ("maintenance",)),
    Outage("publisher is gone", *gone("publisher"), "results, `salt-run`, `salt-key`", "new jobs, for `replay_window`", "nothing", "waits"),
    Outage("reqserver is gone", *gone("reqserver"), _JOBS, "results, sign-ins; commands, for 30 s", "commands after 30 s: no answer from the master", "waits", None),
    Outage("all workers are gone", *gone("mworker", "mworker2"), _JOBS, "results, sign-ins; commands, for 5 s", "commands after 5 s: no worker is connected", "waits", None, ("reqserver",)),
    Outage("one worker of two is gone", *gone("mworker2"), "everything", "requests that it had in hand, for half a second; if its machine is gone, for `worker_silence`", "nothing", "works"),
    Outage("event publisher is gone", *gone("eventpublisher"), "jobs, results, reactions", "nothing; who follows events misses some", "nothing", "works", unheard=True),
    Outage("event publisher hangs", _stopped(signal.SIGSTOP, "eventpublisher"), _stopped(signal.SIGCONT, "eventpublisher"), "jobs, results, reactions", "who follows events, for those", "nothing", "works", unheard=True),
    Outage("reactor is gone", *gone("reactor"), "all but reactions", "events", "nothing", "works"),
    Outage("maintenance is gone", *gone("maintenance"), "all but its chores", "rotation, expiry, schedule", "nothing", "works"),
    Outage("network between workers and reqserver", *apart("mworker~reqserver", "mworker2~reqserver"), _JOBS, "results, sign-ins; commands, for 5 s", "commands after 5 s: no worker is connected", "waits", None),
    Outage("network between workers and event publisher", *apart("mworker~eventpublisher", "mworker2~eventpublisher"), "jobs, results, reactions", "nothing; who follows events misses some", "nothing", "works", unheard=True),
    Outage("network between reactor and reqserver", *apart("reactor~reqserver"), "all but reactions", "reactions", "nothing", "works"),
    Outage("network between `salt` and reqserver", *apart("cli~reqserver"), "all but this one's commands", "its commands, for 30 s", "after 30 s: no answer from the master", "waits", None),
    Outage("network between `salt` and event publisher", *apart("cli~eventpublisher"), "everything; `salt` reads results from the job cache", "nothing", "nothing", "works", unheard=True),
    Outage("network between a minion and reqserver", *apart("web1~reqserver"), "jobs reach it and run", "its results", "nothing", "waits"),
    Outage("network between a minion and publisher", *apart("web1~publisher"), "its running jobs and their results", "new jobs, for `replay_window`", "nothing", "waits"),
)  # fmt: skip
