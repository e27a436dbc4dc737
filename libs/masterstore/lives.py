"""Verbs on the life of jobs: what minions sign, what is called off, what a minion missed or comes back for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from masterstore import keys, life_scripts, values
from masterstore.client import Client, text
from masterstore.errors import StoreCorrupt
from masterstore.life import LETTERS, UNDELIVERED, Life, State, born, read

#: Milliseconds that a first sign of a job may take: it may lie in a spool, or be on its way.
SIGN_GRACE_MS = 60_000

_STATES = {letter: state for state, letter in LETTERS.items()}

#: Letters of the states in which a job was not taken by the minion.
_UNDELIVERED = "".join(sorted(LETTERS[state] for state in UNDELIVERED))

#: A sign: JID, the state that it leads to, milliseconds since 1970.
Sign = tuple[str, State | str, int]


@dataclass(frozen=True, slots=True)
class SignResult:
    """What became of a sign."""

    jid: str
    #: Whether it led to its state.
    moved: bool
    #: The state now; None for a job that is not known, or not this minion's.
    state: State | None


@dataclass(frozen=True, slots=True)
class Settled:
    """What looking after jobs came to: how many lives were given up."""

    expired: int
    lost: int


class Lives:
    """Verbs on lives. All raise StoreUnavailable when Redis is away."""

    def __init__(self, client: Client) -> None:
        self._client = client
        register = client.redis.register_script
        self._sign, self._move_many = register(life_scripts.SIGN), register(life_scripts.MOVE_MANY)
        self._settle = register(life_scripts.SETTLE)
        self._missed, self._resend = register(life_scripts.MISSED), register(life_scripts.RESEND)

    def life(self, jid: str) -> dict[str, Life]:
        """{minion: its life} of every minion that the job expects; empty for an unknown job."""
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
        """{minion: its life} of what Redis gave. One that cannot be read is a fault, and as if nothing had been heard."""
        base, found = jid_ms(jid), {}
        for minion in sorted(expected):
            try:
                found[text(minion)] = read(text(written.get(minion, b"")), base, created_ms)
            except ValueError as error:
                self._client.faults.report(keys.life(jid), str(error))
                found[text(minion)] = born(created_ms)
        return found

    def sign(self, minion: str, signs: Sequence[Sign], now_ms: int) -> list[SignResult]:
        """What a minion says of its jobs, in this order; the answers too. One round trip, and a sign of presence.

        A sign that the table does not allow changes nothing, and the answer says which state the job is in: a minion that gets
        ``cancelled`` or ``expired`` for ``delivered`` does not start. A time in the future, or before the step before, is moved to
        there. Who signs a state from outside lets through those of ``life.MINION_SIGNS`` only. Raises ValueError for no state.
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
        """Calls a job off on these minions, or on all; those on which that was done, sorted: they had not begun."""
        if minions is None:
            minions = [text(name) for name in self._client.call("smembers", keys.job_minions(jid))]
        return sorted(self.move(jid, State.CANCELLED, list(minions), now_ms))

    def not_again(self, jids: Sequence[str]) -> set[str]:
        """Those of the jobs that were called off on any minion, or that every minion has answered."""
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
        """Leads a job on these minions to a state; those that the table let."""
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

    def missed(self, minion: str, after_ms: int, now_ms: int, limit: int = 100) -> list[dict[str, Any]]:
        """Loads of jobs for a minion, published after that time, that it did not take and may still: the newest, oldest first.

        Each has ``replay_until`` (milliseconds since 1970). Who asks is known to sign from now on (``salt:signers``).
        """
        return self._loads(minion, after_ms, now_ms, max(1, limit))[-limit:]

    def waiting(self, minion: str, now_ms: int, *, offline: bool = False) -> list[dict[str, Any]]:
        """Loads of jobs that wait for this minion (published with ``when_back``), oldest first, each with ``replay_until``.

        ``offline``: only those of which it is known that they were not sent to it.
        """
        return self._loads(minion, 0, now_ms, 0, LETTERS[State.OFFLINE] if offline else _UNDELIVERED)

    def resend(self, minion: str, load: dict[str, Any], now_ms: int, *, again: bool = False) -> bool:
        """Publishes a job that waits for a minion again, to it alone; False when another worker did, or it no longer waits.

        For minions that cannot ask for what they missed. The job is ``expected`` of it from then on. ``again``: also where that is
        so already. The minion has just started: whatever was sent before, it has not heard, or does not know any more.
        """
        also = LETTERS[State.EXPECTED] if again else ""
        jid = str(load["jid"])
        entry = values.dumps({**load, "tgt": [minion], "tgt_type": "list", "expected": [minion]})
        names = [keys.job(jid), keys.life(jid), keys.PUBLICATIONS]
        with self._client.calling():
            done, faults = self._resend(
                keys=names, args=[jid, minion, now_ms, jid_ms(jid), keys.PUBLICATIONS_KEPT, entry, also]
            )
        self._client.faults.of_script(faults)
        return bool(done)

    def waiting_jobs(self, now_ms: int, limit: int = 1000) -> dict[str, int]:
        """{JID: its deadline, milliseconds since 1970} of jobs that wait for somebody, those that end first first."""
        found = self._client.call("zrangebyscore", keys.WAITING, now_ms, "+inf", start=0, num=limit, withscores=True)
        return {text(jid): values.number(deadline, keys.WAITING) for jid, deadline in found}

    def settle(self, now_ms: int, silent_since_ms: int, *, limit: int = 500) -> Settled:
        """Gives up lives whose time is over, of at most ``limit`` jobs that are due: bounded steps, the rest next time.

        ``expired``: a minion that was away and did not come back in time, or one that signs and said nothing of a job that it may
        no longer take. ``lost``: one that had the job, and was not heard of since ``silent_since_ms``. A minion that never signs
        stays expected: nobody knows whether it works.
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
    ) -> list[dict[str, Any]]:
        names = [keys.index("minion", minion), keys.WIDE_JOBS, keys.waiting_of(minion)]
        with self._client.calling():
            faults, *answers = self._missed(keys=names, args=[minion, after_ms, now_ms, limit, states])
        self._client.faults.of_script(faults)
        loads = []
        for jid, load, until in zip(answers[::3], answers[1::3], answers[2::3], strict=True):
            try:
                loads.append(values.loads_map(load, keys.load(text(jid))) | {"replay_until": int(until)})
            except StoreCorrupt as error:
                self._client.faults.report(error.key, str(error))
        return sorted(loads, key=lambda load: str(load.get("jid")))


#: Minions that are led to another state in one step.
_BATCH = 1000


def jid_ms(jid: str) -> int:
    """When the job was made, milliseconds since 1970; 0 for a JID whose digits are no time."""
    digits = jid[:20]
    if len(digits) < 20 or not (digits.isascii() and digits.isdecimal()):
        return 0
    # By place and not by a format, which takes six times as long: each return of a minion is asked.
    parts = (digits[:4], digits[4:6], digits[6:8], digits[8:10], digits[10:12], digits[12:14], digits[14:])
    try:
        return int(datetime(*map(int, parts), tzinfo=UTC).timestamp() * 1000)  # type: ignore[misc,arg-type]
    except ValueError:
        return 0
