"""Decides from evidence whether a job was lost or ran twice during a chaos run. Does no I/O.

The evidence comes from four independent sources: the master's answers to the clients that published jobs; the journals that
jobs write themselves (one line at the start, one at the end); the data in Redis (results, and each job's state on each
minion); and the faults that were injected.
"""

from __future__ import annotations

import enum
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.plan import TO, Kind

#: Seconds beyond a job's own that its result may take with nothing broken, on a machine that has a lot of other work.
PROMPT = 30.0

#: Seconds that a fault is felt after its end: pauses before reconnects, a start, patience with a silent peer.
AFTERMATH = 20.0

#: The state of a job whose result is in the job cache.
RETURNED = "returned"

#: No job waits for these.
_ASIDE = frozenset({"eventpublisher", "reactor", "maintenance", "cli"})

#: How a minion loses what it runs.
_DEADLY = frozenset({Kind.KILL, Kind.CRASH})


@dataclass(frozen=True, slots=True)
class Made:
    """An injected fault with the times at which it really began and ended, in seconds since 1970."""

    victim: str
    kind: Kind
    began: float
    ended: float

    def touches(self, minion: str, minions: frozenset[str]) -> bool:
        """Return whether the fault can affect a job on this minion.

        Faults of other minions, and of roles that no job needs (such as the reactor), cannot.
        """
        ends = self.victim.split(TO)
        if any(end.rstrip("0123456789") in _ASIDE for end in ends):
            return False
        return ends[0] == minion or ends[0] not in minions


@dataclass(frozen=True, slots=True)
class Asked:
    """A job that a client tried to publish.

    ``jid`` is None if the client got no answer: such a job may be lost, but must not run twice.
    """

    token: str
    minions: frozenset[str]
    seconds: float
    asked: float
    jid: str | None = None
    #: When the JID was there.
    answered: float = 0.0
    #: Whether it waits for minions that are away.
    when_back: bool = False


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution of a job on a minion: when it began, and when it ended (None: never).

    ``nonce`` is a random text that the execution draws; the job's return value contains it.
    """

    nonce: str
    began: float
    ended: float | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """A minion's return of a job as the job cache has it: value, success, and the time at which it was first seen there."""

    value: Any
    success: bool
    #: When it was seen there first.
    seen: float


@dataclass(frozen=True)
class Evidence:
    """All that is known at the end of a chaos run: published jobs, executions, results, faults, minions, states of jobs."""

    asked: Sequence[Asked]
    #: (token, minion) -> in the order of the journal.
    executions: Mapping[tuple[str, str], Sequence[Execution]]
    #: (jid, minion).
    results: Mapping[tuple[str, str], Result]
    faults: Sequence[Made]
    minions: frozenset[str]
    stock: frozenset[str] = frozenset()
    #: jid -> minion that it was published for -> the state that the master knows it in. Of other jobs nothing is known.
    lives: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


class Word(enum.Enum):
    """The kind of a finding about one job on one minion: a broken promise, or a deviation that a fault explains."""

    LOST = "lost"
    TWICE = "run twice"
    #: A result that no execution of the job made.
    FOREIGN = "a result of no execution"
    #: It failed, and no fault explains it.
    FAILED = "failed without a reason"
    #: It came late, and no fault explains it.
    LATE = "late without a reason"
    #: Not meant for this minion.
    STRAY = "run by a minion that it was not for"
    #: The result says one thing, the job's life another.
    LIFE = "its life says otherwise"
    #: Not published for this minion, or published for it by mistake.
    TARGET = "published for others than it was meant for"
    #: A fault explains it: no finding.
    LATE_EXPLAINED = "late"
    INTERRUPTED = "interrupted"
    STOCK_MISSED = "missed by a stock minion"
    STOCK_AGAIN = "run again by a stock minion"


#: Words that say nothing bad.
EXPLAINED = (Word.LATE_EXPLAINED, Word.INTERRUPTED, Word.STOCK_MISSED, Word.STOCK_AGAIN)

#: So many examples of each of these are shown.
_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding about one job on one minion: its kind, the job's token and JID, the minion, and the details as text."""

    word: Word
    token: str
    minion: str
    jid: str | None
    why: str = ""

    def __str__(self) -> str:
        return f"{self.word.value}: {self.token} on {self.minion}, JID {self.jid or 'never told'}" + (
            f": {self.why}" if self.why else ""
        )


@dataclass(frozen=True)
class Account:
    """The result of a chaos run: numbers of acknowledged jobs, expected results and executions, and all findings."""

    acknowledged: int
    #: Pairs of an acknowledged job and a minion.
    owed: int
    executed: int
    findings: Sequence[Finding] = field(default_factory=tuple)

    @property
    def broken(self) -> list[Finding]:
        """Return the findings that break a promise: all except those that a fault explains."""
        return [one for one in self.findings if one.word not in EXPLAINED]

    def _of(self, word: Word) -> list[Finding]:
        return [one for one in self.findings if one.word is word]

    def count(self, word: Word) -> int:
        """Return the number of findings of this kind."""
        return len(self._of(word))

    def last_line(self) -> str:
        """Return the last line of the report: ``acknowledged N, lost N, run twice N``."""
        return f"acknowledged {self.acknowledged}, lost {self.count(Word.LOST)}, run twice {self.count(Word.TWICE)}"

    def __str__(self) -> str:
        counts = Counter(one.word.value for one in self.findings)
        rows = [f"{self.acknowledged} jobs acknowledged, {self.owed} results owed, {self.executed} executions"]
        rows += [f"{count} times {word}" for word, count in sorted(counts.items())]
        rows += [str(one) for word in EXPLAINED for one in self._of(word)[:_SHOWN]]
        rows += [f"FOUND {one}" for one in self.broken]
        return "\n".join(rows)


def account(evidence: Evidence) -> Account:
    """Check every published job against the evidence, and return the Account of the run."""
    answered = [one for one in evidence.asked if one.jid is not None]
    return Account(
        len(answered),
        sum(len(one.minions) for one in answered),
        sum(len(runs) for runs in evidence.executions.values()),
        tuple(finding for one in evidence.asked for finding in _job(one, evidence)) + tuple(_strays(evidence)),
    )


def _strays(evidence: Evidence) -> Iterator[Finding]:
    known = {one.token: one for one in evidence.asked}
    for token, minion in sorted(evidence.executions):
        asked = known.get(token)
        if asked is None or minion not in asked.minions:
            yield Finding(Word.STRAY, token, minion, asked.jid if asked else None)


def _job(asked: Asked, evidence: Evidence) -> Iterator[Finding]:
    for minion in sorted(asked.minions):
        runs = evidence.executions.get((asked.token, minion), ())
        yield from _runs(asked, minion, runs, evidence)
        if asked.jid is not None:
            yield from _answer(asked, asked.jid, minion, runs, evidence)
    if asked.jid is not None and asked.jid in evidence.lives:
        yield from _lives(asked, evidence.lives[asked.jid], evidence)


def _lives(asked: Asked, lives: Mapping[str, str], evidence: Evidence) -> Iterator[Finding]:
    for minion in sorted(asked.minions ^ set(lives)):
        yield Finding(Word.TARGET, asked.token, minion, asked.jid)
    for minion in sorted(asked.minions & set(lives)):
        there = (asked.jid, minion) in evidence.results
        if there != (lives[minion] == RETURNED):
            said = "there is a result" if there else "there is no result"
            yield Finding(Word.LIFE, asked.token, minion, asked.jid, f"{said}, and its life says {lives[minion]}")


def _runs(asked: Asked, minion: str, runs: Sequence[Execution], evidence: Evidence) -> Iterator[Finding]:
    if len(runs) < 2:
        return
    times = ", ".join(f"{run.began - asked.asked:.1f} s after it was asked for" for run in runs)
    again = minion in evidence.stock and all(
        _may_be_sent_again(asked, minion, one, other, evidence) for one, other in itertools.pairwise(runs)
    )
    word = Word.STOCK_AGAIN if again else Word.TWICE
    yield Finding(word, asked.token, minion, asked.jid, times)


def _may_be_sent_again(asked: Asked, minion: str, one: Execution, other: Execution, evidence: Evidence) -> bool:
    """Return whether the master had a reason to send a job to a stock minion twice, and the minion had forgotten that it ran it."""
    between = [made for made in evidence.faults if made.began <= other.began and made.ended + AFTERMATH >= one.began]
    # What it knows of its jobs ends with it.
    forgot = any(
        made.victim == minion and made.kind in _DEADLY for made in evidence.faults if _within(made, one, other)
    )
    # Minions that come from a publisher which is gone, or back to it, are sent the jobs of the last seconds again.
    moved = any(made.victim.rstrip("0123456789") == "publisher" and made.kind in _DEADLY for made in between)
    result = evidence.results.get((asked.jid or "", minion))
    known = result is not None and result.seen + AFTERMATH < other.began
    return forgot and (moved or (asked.when_back and not known))


def _within(made: Made, one: Execution, other: Execution) -> bool:
    return one.began <= made.ended and made.began <= other.began


def _answer(asked: Asked, jid: str, minion: str, runs: Sequence[Execution], evidence: Evidence) -> Iterator[Finding]:
    result = evidence.results.get((jid, minion))
    if result is None:
        yield _missing(asked, minion, runs, evidence)
        return
    nonces = {run.nonce for run in runs}
    if result.success:
        if not isinstance(result.value, Mapping) or result.value.get("nonce") not in nonces:
            yield Finding(Word.FOREIGN, asked.token, minion, jid, f"{str(result.value)[:200]!r}, executions {nonces}")
    else:
        fatal = [
            made
            for made in _near(asked.asked, result.seen, minion, evidence)
            if made.victim == minion and made.kind in _DEADLY
        ]
        word = Word.INTERRUPTED if fatal else Word.FAILED
        yield Finding(word, asked.token, minion, jid, f"{str(result.value)[:300]!r}; {_named(fatal)}")
    took = result.seen - asked.answered - asked.seconds
    if took > PROMPT:
        faults = _near(asked.asked, result.seen, minion, evidence)
        word = Word.LATE_EXPLAINED if faults else Word.LATE
        yield Finding(word, asked.token, minion, jid, f"{took:.1f} s; {_named(faults)}")


def _missing(asked: Asked, minion: str, runs: Sequence[Execution], evidence: Evidence) -> Finding:
    how = "never begun" if not runs else "begun" if runs[-1].ended is None else "run to its end"
    if minion in evidence.stock and (runs or not asked.when_back):
        # What it does not hear, what it has in hand when it is killed and what it gives up to return, no master can know.
        faults = _near(asked.asked, asked.answered + asked.seconds, minion, evidence)
        if faults:
            return Finding(Word.STOCK_MISSED, asked.token, minion, asked.jid, f"{how}; {_named(faults)}")
    return Finding(Word.LOST, asked.token, minion, asked.jid, f"{how}, and no result")


def _near(began: float, ended: float, minion: str, evidence: Evidence) -> list[Made]:
    """Return the faults that may have affected a job of this minion between two times (seconds since 1970)."""
    return [
        made
        for made in evidence.faults
        if made.began <= ended and made.ended + AFTERMATH >= began and made.touches(minion, evidence.minions)
    ]


def _named(faults: Sequence[Made]) -> str:
    shown = [f"{made.kind.value} {made.victim}" for made in faults[-4:]]
    return "after " + ", ".join(shown) if shown else "nothing was broken"
