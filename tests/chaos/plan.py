"""Plans which jobs a chaos run publishes and which faults it injects, and when. Does no I/O: a seed gives the same plan everywhere.

Victims are drawn like cards from a deck: each has a fault before any has its second, so that a short run, too, breaks all
roles. Faults of different victims overlap; one victim has one fault at a time.
"""

from __future__ import annotations

import enum
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice


class Kind(enum.Enum):
    """The kind of a fault: what happens to a process or link until the fault ends."""

    #: All of its processes are killed at once, as a container is; started again at the end.
    KILL = "kill -9"
    #: Its main process alone is killed: what that had begun goes on. Started again at the end.
    CRASH = "kill -9 of the main process"
    #: All of its processes stand still, and go on at the end.
    STOP = "SIGSTOP"
    #: A link drops everything in silence; at the end it arrives after all.
    HOLD = "partition"
    #: The same, but what was on its way is lost.
    LOSE = "partition, then reset"
    #: A link resets each connection.
    CUT = "resets"
    #: Everything on a link takes long.
    SLOW = "slow"


#: What joins the ends of a link in its name.
TO = "~"

#: Seconds between the beginnings of two rotations among faults, and without any at the beginning.
ROTATION_REST = 10.0

#: Seconds that a slow link adds in each direction.
SLOWNESS = 0.3

#: Seconds that a victim has for itself between two faults.
_REST = 1.0

#: Seconds after a failover in which the old master becomes a replica: Sentinels take ten for one that was stopped. Until then
#: there is no replica, so nothing is acknowledged.
FAILOVER_REST = 10.0

#: (seconds at least, at most, how often of a hundred).
_Lengths = tuple[tuple[float, float, int], ...]

#: A blink, longer than heartbeats and silences, longer than patience.
_LENGTHS: _Lengths = ((0.2, 2.0, 50), (2.0, 7.0, 38), (7.0, 12.0, 12))

#: The same for a process with a replica: a blink, or a failover, which takes some three seconds. Longer faults show nothing more:
#: without a replica nothing is acknowledged until the process is back.
_FAILOVER_LENGTHS: _Lengths = ((0.2, 2.0, 25), (4.0, 6.0, 50), (6.0, 9.0, 25))


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """A planned fault: kind, victim, its beginning ``at`` (seconds from the start of the run), and its length in seconds."""

    at: float
    lasts: float
    victim: str
    kind: Kind

    @property
    def end(self) -> float:
        """The time at which the fault ends, in seconds from the start of the run."""
        return self.at + self.lasts

    def __str__(self) -> str:
        return f"{self.at:6.1f} s  {self.kind.value} {self.victim} for {self.lasts:.1f} s"


class Way(enum.Enum):
    """The way in which a job is published: by a control request, by the command ``salt --async``, or with ``--when-back``."""

    #: A request of the control port, as the commands send it.
    CONTROL = "control"
    #: The command ``salt --async``, in a process of its own.
    COMMAND = "salt --async"
    #: As CONTROL; the job waits for minions that are away (``--when-back``).
    WAITING = "control, --when-back"


@dataclass(frozen=True, slots=True)
class Ask:
    """A planned job: when it is published, its target, its duration and size. ``token`` identifies it before it has a JID."""

    at: float
    token: str
    tgt: str | tuple[str, ...]
    tgt_type: str
    minions: frozenset[str]
    #: Seconds that it works.
    seconds: float
    #: Bytes that it returns beside.
    size: int
    way: Way

    def __str__(self) -> str:
        what = f"{self.seconds:g} s, {self.size} bytes, by {self.way.value}"
        return f"{self.at:6.1f} s  {self.token} for {self.tgt} ({self.tgt_type}, {len(self.minions)} minions): {what}"


@dataclass(frozen=True)
class Cast:
    """The processes, minions and links that faults may hit. A link has the name ``one~other``."""

    processes: tuple[str, ...]
    minions: tuple[str, ...]
    #: Stock minions among them: their jobs cannot outlive their main process.
    stock: frozenset[str]
    links: tuple[str, ...]
    minion_links: tuple[str, ...]
    #: Minions by the grain ``shelf``.
    shelves: Mapping[str, tuple[str, ...]]
    #: Processes among them with a replica that replaces them: most of their faults last long enough for a failover.
    replicated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rotation:
    """A planned ``saltern rotate`` with these arguments.

    It begins ``at`` (seconds from the start of the run), or when the rotation before has ended.
    """

    at: float
    words: tuple[str, ...]
    #: Whether it begins before the first fault.
    calm: bool

    def __str__(self) -> str:
        return f"{self.at:6.1f} s  rotate {' '.join(self.words)}"


@dataclass(frozen=True)
class Plan:
    """The plan of a chaos run: its seed, length in seconds, faults, jobs and rotations."""

    seed: int
    seconds: float
    faults: tuple[Fault, ...]
    asks: tuple[Ask, ...]
    rotations: tuple[Rotation, ...] = ()

    def __str__(self) -> str:
        everything: tuple[Fault | Ask | Rotation, ...] = (*self.faults, *self.asks, *self.rotations)
        rows = sorted((one.at, str(one)) for one in everything)
        return "\n".join([f"plan of seed {self.seed} for {self.seconds:g} s", *(text for _, text in rows)])


def make_plan(
    seed: int,
    seconds: float,
    cast: Cast,
    *,
    executions: float = 4.0,
    faults: float = 0.6,
    quiet: float = 1.0,
    rotations: Sequence[tuple[str, ...]] = (),
    calm: float = 0.0,
) -> Plan:
    """Return the plan that this seed gives. ``executions`` and ``faults``: average numbers in a second.

    The first ``quiet`` seconds have no fault. ``rotations``: arguments of ``saltern rotate``. Each runs once in the first
    ``calm`` seconds, which have no fault and are added to ``seconds``, and repeatedly among the faults.
    """
    made = tuple(_faults(random.Random(f"faults {seed}"), seconds, cast, faults, quiet))
    later = tuple(replace(fault, at=fault.at + calm) for fault in made)
    asks = tuple(_asks(random.Random(f"asks {seed}"), calm + seconds, cast, executions))
    turns = tuple(_rotations(random.Random(f"rotations {seed}"), calm, calm + seconds, rotations))
    return Plan(seed, calm + seconds, later, asks, turns)


def _rotations(rng: random.Random, calm: float, seconds: float, each: Sequence[tuple[str, ...]]) -> Iterator[Rotation]:
    if not each:
        return
    if calm:
        # The first seconds show what the probe sees without any rotation.
        step = (calm - ROTATION_REST) / len(each)
        yield from (Rotation(ROTATION_REST + number * step, words, True) for number, words in enumerate(each))
    now = calm + ROTATION_REST
    while now < seconds - ROTATION_REST:
        for words in rng.sample(each, len(each)):
            if now < seconds - ROTATION_REST:
                yield Rotation(now, words, False)
            now += ROTATION_REST


def _dealt(rng: random.Random, cards: Sequence[tuple[str, Kind]]) -> Iterator[tuple[str, Kind]]:
    """Yield (victim, kind of fault) pairs without end: all of them in random order, then all of them again."""
    while True:
        yield from rng.sample(cards, len(cards))


@dataclass(frozen=True, slots=True)
class _Group:
    """Victims that have faults of the same kinds and lengths. ``weight``: how often the next fault is one of theirs."""

    weight: int
    victims: Sequence[str]
    kinds: tuple[Kind, ...]
    lengths: _Lengths = _LENGTHS
    #: Seconds that a victim has for itself after such a fault.
    rest: float = _REST


def _faults(rng: random.Random, seconds: float, cast: Cast, rate: float, quiet: float) -> Iterator[Fault]:
    hands = [
        (group, _dealt(rng, [(victim, kind) for victim in group.victims for kind in group.kinds]))
        for group in _groups(cast)
        if group.victims
    ]
    weights = [group.weight for group, _ in hands]
    free: dict[str, float] = {}
    now = quiet
    while now < seconds:
        ((group, hand),) = rng.choices(hands, weights)
        # Somebody of the same kind who has no fault just now, if there is one.
        for victim, kind in islice(hand, 50):
            if free.get(victim, 0.0) <= now:
                lasts = min(_length(rng, group.lengths), seconds - now)
                free[victim] = now + lasts + group.rest
                yield Fault(now, lasts, victim, kind)
                break
        now += rng.uniform(0.2, 1.8) / rate


def _groups(cast: Cast) -> tuple[_Group, ...]:
    ours = [minion for minion in cast.minions if minion not in cast.stock]
    single = [process for process in cast.processes if process not in cast.replicated]
    redis_links = [link for link in cast.links if link.endswith(f"{TO}redis")]
    return (
        _Group(35, single, (Kind.KILL, Kind.STOP)),
        _Group(20, ours, (Kind.KILL, Kind.CRASH, Kind.STOP)),
        _Group(4, sorted(cast.stock), (Kind.KILL, Kind.STOP)),
        _Group(20, cast.links, (Kind.HOLD, Kind.LOSE, Kind.CUT)),
        _Group(5, redis_links, (Kind.SLOW,)),
        _Group(16, cast.minion_links, (Kind.HOLD, Kind.LOSE, Kind.CUT)),
        _Group(20, cast.replicated, (Kind.KILL, Kind.STOP), _FAILOVER_LENGTHS, FAILOVER_REST),
    )


def _length(rng: random.Random, lengths: _Lengths) -> float:
    ((least, most, _),) = rng.choices(lengths, [often for _, _, often in lengths])
    return rng.uniform(least, most)


def _asks(rng: random.Random, seconds: float, cast: Cast, rate: float) -> Iterator[Ask]:
    now, number = 0.2, 0
    while now < seconds:
        number += 1
        (target,) = rng.choices([target for _, target in _TARGETS], [often for often, _ in _TARGETS])
        tgt, tgt_type, minions = target(rng, cast)
        yield Ask(
            now,
            f"job{number:04d}",
            tgt,
            tgt_type,
            frozenset(minions),
            rng.choice((0.0, 0.0, 0.0, 0.5, 2.0, 5.0)),
            rng.choice((0, 0, 0, 2_000, 200_000)),
            _WAYS[number % len(_WAYS)],
        )
        now += max(0.2, len(minions) / rate) * rng.uniform(0.5, 1.5)


#: In turn.
_WAYS = (Way.COMMAND, Way.CONTROL, Way.WAITING, Way.CONTROL, Way.WAITING, Way.CONTROL)

Target = tuple[str | tuple[str, ...], str, Sequence[str]]


def _one(rng: random.Random, cast: Cast) -> Target:
    minion = rng.choice(cast.minions)
    return minion, "glob", [minion]


def _some(rng: random.Random, cast: Cast) -> Target:
    minions = tuple(sorted(rng.sample(cast.minions, min(4, len(cast.minions)))))
    return minions, "list", minions


def _either(rng: random.Random, cast: Cast) -> Target:
    minions = sorted(rng.sample(cast.minions, min(3, len(cast.minions))))
    return "|".join(minions), "pcre", minions


def _shelf(rng: random.Random, cast: Cast) -> Target:
    shelf = rng.choice(sorted(cast.shelves))
    return f"shelf:{shelf}", "grain", cast.shelves[shelf]


def _all(rng: random.Random, cast: Cast) -> Target:
    return "*", "glob", cast.minions


_TARGETS: tuple[tuple[int, Callable[[random.Random, Cast], Target]], ...] = (
    (40, _one),
    (25, _some),
    (15, _either),
    (12, _shelf),
    (8, _all),
)
