"""Operations on the state of each job on each minion (delivered, started, returned, ...), stored in Redis: record the
states that minions report ("signs"), cancel jobs, find the jobs that a minion missed and those that wait for minions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from masterstore import keys, life_scripts, values
from masterstore.client import Client, text
from masterstore.errors import StoreCorrupt
from masterstore.life import LETTERS, UNDELIVERED, Life, State, born, read
from masterstore.record_mac import LOAD, PUBLICATION, Records, load_record

#: Milliseconds that the first sign of a job may take; it may wait in the minion's spool.
SIGN_GRACE_MS = 60_000

_STATES = {letter: state for state, letter in LETTERS.items()}

#: Letters of the states in which the minion has not received the job.
_UNDELIVERED = "".join(sorted(LETTERS[state] for state in UNDELIVERED))

#: A sign: JID, new state, milliseconds since 1970.
Sign = tuple[str, State | str, int]


@dataclass(frozen=True, slots=True)
class SignResult:
    """Result of recording a sign, a minion's report that a job reached a state there: whether the state changed,
    and the current state.
    """

    jid: str
    #: Whether the sign changed the state.
    moved: bool
    #: Current state; None for an unknown job or a job of other minions.
    state: State | None


@dataclass(frozen=True, slots=True)
class Settled:
    """Numbers of pairs of job and minion that were given up: expired (the minion did not get the job in time) and lost
    (the minion fell silent).
    """

    expired: int
    lost: int


class Lives:
    """The life of each job on each minion (its states, such as delivered or started), in Redis.

    All operations raise StoreUnavailable if Redis does not answer.
    """

    def __init__(self, client: Client, records: Records = Records()) -> None:  # noqa: B008 - it never changes
        self._client = client
        self._records = records
        register = client.redis.register_script
        self._sign, self._move_many = register(life_scripts.SIGN), register(life_scripts.MOVE_MANY)
        self._settle = register(life_scripts.SETTLE)
        self._missed, self._resend = register(life_scripts.MISSED), register(life_scripts.RESEND)

    def life(self, jid: str) -> dict[str, Life]:
        """Return {minion id: Life}: the states of the job so far on every minion that the job expects; {} for an
        unknown job.
        """
        with self._client.calling() as server:
            pipe = server.pipeline(transaction=True)
            pipe.smembers(keys.job_minions(jid))
            pipe.hgetall(keys.life(jid))
            pipe.hget(keys.job(jid), "created")
            expected, lives, created = pipe.execute()
        base = jid_ms(jid)
        at = int(created) if created and created.isdigit() else base
        if created and not created.isdigit():
            self._client.faults.report(keys.job(jid), f"created is no number: {text(created)!r}")
        return self.read_lives(jid, expected, lives, at)

    def read_lives(
        self, jid: str, expected: Iterable[bytes], written: Mapping[bytes, bytes], created_ms: int
    ) -> dict[str, Life]:
        """Return {minion id: Life} of a job, made from data that was read from Redis.

        ``expected``: ids of the job's minions. ``written``: {minion id: stored form of the Life}; a minion
        without one is in the state expected. ``created_ms``: time of the job's creation, milliseconds since 1970.
        A malformed form is reported to ``Faults`` (logged) and replaced by the state expected.
        """
        base, found = jid_ms(jid), {}
        for minion in sorted(expected):
            try:
                found[text(minion)] = read(text(written.get(minion, b"")), base, created_ms)
            except ValueError as error:
                self._client.faults.report(keys.life(jid), str(error))
                found[text(minion)] = born(created_ms)
        return found

    def sign(self, minion: str, signs: Sequence[Sign], now_ms: int) -> list[SignResult]:
        """Record the states that a minion reports for its jobs (``signs``: JID, reached state, milliseconds since
        1970) and its presence; return a SignResult for each, in order.

        A report that the table ``life.MOVES`` does not allow changes nothing. A minion whose report ``delivered`` is
        answered by ``cancelled`` or ``expired`` must not start the job. A time in the future, or before the previous
        state, is corrected. The caller checks that a minion reports only ``life.MINION_SIGNS``. Raises ValueError for
        an unknown state.
        """
        names: list[str] = []
        arguments: list[str | int] = [minion, now_ms]
        for jid, state, ms in signs:
            names += [keys.job(jid), keys.life(jid), keys.job_minions(jid)]
            arguments += [jid, LETTERS[State(state)], ms, jid_ms(jid)]
        with self._client.calling():
            faults, *answers = self._sign(keys=names, args=arguments)
        self._client.faults.of_script(faults)
        return [
            SignResult(jid, moved == 1, _STATES.get(text(state)))
            for (jid, _, _), (moved, state) in zip(signs, answers, strict=True)
        ]

    def cancel(self, jid: str, minions: Iterable[str] | None, now_ms: int) -> list[str]:
        """Cancel a job on these minions (None: on all). Return the sorted ids of the minions on which it was cancelled.

        Minions that have started the job are left out.
        """
        if minions is None:
            minions = [text(name) for name in self._client.call("smembers", keys.job_minions(jid))]
        return sorted(self.move(jid, State.CANCELLED, list(minions), now_ms))

    def not_again(self, jids: Sequence[str]) -> set[str]:
        """Return the JIDs of jobs that must not be published again: cancelled on any minion, or answered by all."""
        with self._client.calling() as server:
            pipe = server.pipeline(transaction=False)
            for jid in jids:
                pipe.hmget(keys.job(jid), State.CANCELLED.value, "expected", "answered")
            counts = pipe.execute(raise_on_error=False) if jids else []
        found = set()
        for jid, fields in zip(jids, counts, strict=True):
            if isinstance(fields, Exception):
                self._client.faults.report(keys.job(jid), str(fields))
                continue
            cancelled, expected, answered = (int(value) if (value or b"").isdigit() else 0 for value in fields)
            if cancelled or 0 < expected <= answered:
                found.add(jid)
        return found

    def move(self, jid: str, to: State, minions: Sequence[str], now_ms: int) -> list[str]:
        """Set the state of a job on these minions. Return the ids of the minions whose state changed.

        The state stays where the table ``life.MOVES`` does not allow the change. ``now_ms``: milliseconds since
        1970.
        """
        done: list[str] = []
        for at in range(0, len(minions), _BATCH):
            names = [keys.job(jid), keys.life(jid), keys.job_minions(jid)]
            with self._client.calling():
                faults, moved = self._move_many(
                    keys=names, args=[jid, LETTERS[to], now_ms, jid_ms(jid), *minions[at : at + _BATCH]]
                )
            self._client.faults.of_script(faults)
            done += map(text, moved)
        return done

    def missed(self, minion: str, after_ms: int, now_ms: int, limit: int = 100) -> list[dict[str, object]]:
        """Return the loads of the jobs that a minion missed, oldest first: published after ``after_ms``, not received,
        and still allowed to run.

        If there are more than ``limit``, the newest are returned. Each load has ``replay_until``, the time until which
        it may run. The minion is recorded in ``salt:signers``, as one that reports the states of its jobs. All times
        are milliseconds since 1970.
        """
        return self._loads(minion, after_ms, now_ms, max(1, limit))[-limit:]

    def waiting(self, minion: str, now_ms: int, *, offline: bool = False) -> list[dict[str, object]]:
        """Return the loads of jobs that wait for this minion (``salt --when-back``), oldest first.

        Each load has ``replay_until``, the time until which it may run, milliseconds since 1970. ``offline``:
        only jobs that were published while the minion was known to be away.
        """
        return self._loads(minion, 0, now_ms, 0, LETTERS[State.OFFLINE] if offline else _UNDELIVERED)

    def resend(self, minion: str, load: dict[str, object], now_ms: int, *, again: bool = False) -> bool:
        """Publish a waiting job again, to one minion that cannot ask for missed jobs. The state of the job on this
        minion is then ``expected``.

        Return False if nothing was published: another worker published it, or the job waits no longer. ``again``:
        publish it also if its state is ``expected`` already, because the minion has just started and may have lost an
        earlier publication.
        """
        also = LETTERS[State.EXPECTED] if again else ""
        jid = str(load["jid"])
        named = {"tgt": [minion], "tgt_type": "list", "expected": [minion], "recorded_ms": now_ms}
        entry = values.dumps({**load, **named})
        names = [keys.job(jid), keys.life(jid), keys.PUBLICATIONS]
        with self._client.calling():
            done, faults = self._resend(
                keys=names,
                args=[
                    *(jid, minion, now_ms, jid_ms(jid), keys.PUBLICATIONS_KEPT, entry, also),
                    self._records.code(PUBLICATION, entry),
                ],
            )
        self._client.faults.of_script(faults)
        return bool(done)

    def waiting_jobs(self, now_ms: int, limit: int = 1000) -> dict[str, int]:
        """Return {JID: time until which the job waits, milliseconds since 1970} of the jobs that wait for offline
        minions, earliest time first.
        """
        found = self._client.call("zrangebyscore", keys.WAITING, now_ms, "+inf", start=0, num=limit, withscores=True)
        return {text(jid): values.number(deadline, keys.WAITING) for jid, deadline in found}

    def settle(self, now_ms: int, silent_since_ms: int, *, limit: int = 500) -> Settled:
        """Give up jobs on minions for which the time to deliver the job or to hear of the minion is over. Return the
        numbers of expired and lost ones.

        A job becomes ``expired`` on a minion that was away and did not return in time, and on a minion that reports
        the states of its jobs, reported none of this job and may no longer start it. It becomes ``lost`` on a minion
        that had received the job and sent nothing since ``silent_since_ms``. On a minion that never reports states it
        stays ``expected``. At most ``limit`` due jobs are handled; the next call handles the rest. Times are
        milliseconds since 1970.
        """
        expired = lost = 0
        due = self._client.call("zrangebyscore", keys.DUE, "-inf", now_ms, start=0, num=limit)
        for jid in map(text, due):
            cursor = b"0"
            names = [keys.job(jid), keys.life(jid), keys.job_minions(jid), keys.DUE]
            while True:
                with self._client.calling():
                    faults, cursor, ran_out, fell_silent = self._settle(
                        keys=names, args=[jid, cursor, now_ms, jid_ms(jid), silent_since_ms, SIGN_GRACE_MS]
                    )
                self._client.faults.of_script(faults)
                expired, lost = expired + ran_out, lost + fell_silent
                if text(cursor) == "0":
                    break
        return Settled(expired, lost)

    def _loads(
        self, minion: str, after_ms: int, now_ms: int, limit: int, states: str = _UNDELIVERED
    ) -> list[dict[str, object]]:
        names = [keys.index("minion", minion), keys.WIDE_JOBS, keys.waiting_of(minion)]
        with self._client.calling():
            faults, *answers = self._missed(keys=names, args=[minion, after_ms, now_ms, limit, states])
        self._client.faults.of_script(faults)
        loads = []
        for jid, load, *kept, code in zip(*(answers[at::5] for at in range(5)), strict=True):
            key = keys.load(text(jid))
            try:
                replay_until, when_back_until = (values.number(each, key) for each in kept)
                record = load_record(text(jid), load, replay_until, when_back_until)
                self._records.check(LOAD, record, code, key)
                until = when_back_until if limit == 0 else replay_until
                found = values.loads_map(load, key) | {"replay_until": until}
                # Whose job it is, is for the job cache alone.
                found.pop("owner", None)
                loads.append(found)
            except StoreCorrupt as error:
                self._client.faults.report(error.key, str(error))
        return sorted(loads, key=lambda load: str(load.get("jid")))


#: Minions whose state one script call changes, at most.
_BATCH = 1000


def jid_ms(jid: str) -> int:
    """Return the time in a JID in milliseconds since 1970; 0 if its digits are not a time."""
    digits = jid[:20]
    if len(digits) < 20 or not (digits.isascii() and digits.isdecimal()):
        return 0
    # Slices are six times as fast as strptime, and this runs for each return.
    parts = (digits[:4], digits[4:6], digits[6:8], digits[8:10], digits[10:12], digits[12:14], digits[14:])
    try:
        return int(datetime(*map(int, parts), tzinfo=UTC).timestamp() * 1000)  # type: ignore[misc,arg-type]
    except ValueError:
        return 0
