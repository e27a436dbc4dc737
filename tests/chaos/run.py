"""Breaks processes and links at random while jobs run, and counts lost and repeated jobs.

    python -m tests.chaos.run --seconds 600 --seed 1

Prints the plan, the events of the run and the findings; the last line is ``acknowledged N, lost 0, run twice 0``. Exit code 0
if no job was lost, none ran twice on a minion of Saltern and none was late without a reason; else 1, and the logs of all
processes are kept.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import redis
import zmq

from masterstore.store import Store
from saltern.kit.config.master import load_master
from saltern.kit.links.control import ControlClient, ControlError, ControlTimeout
from saltern.kit.links.sockets import LinkKeys
from tests.chaos.accountant import Account, Asked, Evidence, Execution, Made, Result, account
from tests.chaos.field import REDIS_KINDS, Field, read_journal
from tests.chaos.plan import ROTATION_REST, Ask, Fault, Plan, Way, make_plan
from tests.chaos.rotations import Probe, Rotated, rotate, table

#: Seconds that one who asks waits for a JID.
PATIENCE = 12.0

#: Seconds that a job waits for minions that are away, where it does.
_WHEN_BACK = 600

#: Jobs that are asked for at the same time.
_ASKERS = 8

#: Seconds between two looks at what has returned.
_LOOK = 1.0

#: Seconds in which nothing may move before the books are closed.
_STILL = 2.0

#: The same while a job is owed that nobody has begun: it may be on its way still, on a busy machine.
_UNBEGUN = 20.0

#: Seconds that a job takes at most, with its process and all, on a busy machine.
_LONGEST = 30.0

#: Seconds that minions have to be there at the beginning, beside some for each of them; and a command among them.
_MUSTER, _MUSTER_EACH, _MUSTER_COMMAND = 180.0, 3.0, 120.0

#: Seconds for a rotation that has begun to end.
_ROTATIONS = 200.0

#: Seconds for all that was asked to be answered, or given up, when the plan is at its end: some wait for others.
_ANSWERS = 300.0


@dataclass
class Seen:
    """Watches Redis for the returns of published jobs, without Saltern's code: (jid, minion) -> time at which it was first seen."""

    arena: Field
    returned: dict[tuple[str, str], float] = field(default_factory=dict)
    owed: dict[str, frozenset[str]] = field(default_factory=dict)

    def expect(self, jid: str, minions: frozenset[str]) -> None:
        """Watch for the returns of this job from now on."""
        self.owed[jid] = minions

    def look(self) -> None:
        """Read from Redis which of the watched jobs have new returns. If Redis does not answer, do nothing."""
        pending = [(jid, minions) for jid, minions in list(self.owed.items()) if self.missing(jid, minions)]
        if not pending:
            return
        with contextlib.suppress(redis.RedisError):
            pipe = self.arena.redis_now().pipeline(transaction=False)
            for jid, _ in pending:
                pipe.hkeys(self.arena.redis_name(f"ret:{jid}"))
            now = time.time()
            for (jid, _), minions in zip(pending, pipe.execute(), strict=True):
                for minion in minions:
                    self.returned.setdefault((jid, minion), now)

    def missing(self, jid: str, minions: frozenset[str]) -> list[str]:
        """Return those of the minions that have not returned the job."""
        return [minion for minion in minions if (jid, minion) not in self.returned]

    def all_missing(self, of: frozenset[str]) -> list[tuple[str, str]]:
        """Return (jid, minion) for each missing return of the watched jobs, limited to these minions."""
        return [(jid, minion) for jid, minions in list(self.owed.items()) for minion in self.missing(jid, minions & of)]


class Run:
    """One chaos run: ``go`` carries out the plan, then ``evidence`` collects what happened."""

    def __init__(self, arena: Field, plan: Plan, say: Callable[[str], None]) -> None:
        self._arena = arena
        self._plan = plan
        self._say = say
        self._seen = Seen(arena)
        self._asked: dict[str, Asked] = {}
        self._active: dict[Fault, float] = {}
        self._made: list[Made] = []
        #: Roles and minions that nobody had killed.
        self.ended: list[str] = []
        self._closed = threading.Event()
        # By itself: a Redis that stands still must not hold up the one who lets it go on.
        self.rotated: list[Rotated] = []
        self.probe = Probe(
            load_master(str(arena.etc), env=arena.environment_of("cli")), self._cli_keys(), arena.minions
        )
        self._rotator = threading.Thread(target=self._rotate_all, name="rotates", daemon=True)
        self._started = 0.0
        self._looker = threading.Thread(target=self._keep_looking, name="looks", daemon=True)
        self._askers = ThreadPoolExecutor(_ASKERS, thread_name_prefix="asks")
        self._clients = threading.local()
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._every_client: list[ControlClient] = []
        self._options = load_master(str(arena.etc), env=arena.environment_of("cli"))
        self._keys = self._cli_keys()

    # ------------------------------------------------------------------------------------------------------------ the time

    def go(self, settle: float) -> None:
        """Carry out the plan; then wait at most ``settle`` seconds until no return is missing and no job runs."""
        futures: list[Future[None]] = []
        agenda: list[tuple[float, Callable[[], object]]] = []
        for fault in self._plan.faults:
            agenda += [(fault.at, partial(self._begin, fault)), (fault.end, partial(self._end, fault))]
        for ask in self._plan.asks:
            if ask.at < self._plan.seconds:
                agenda.append((ask.at, partial(self._submit, ask, futures)))
        agenda += [(second, self._look) for second in range(int(self._plan.seconds))]
        self._looker.start()
        self._started = time.monotonic()
        if self._plan.rotations:
            self.probe.start()
            self._rotator.start()
        play(agenda)
        for fault in list(self._active):
            self._end(fault)
        if self._plan.rotations:
            self._rotator.join(_ROTATIONS)
        for future in futures:
            future.result(_ANSWERS)
        self._settle(settle)

    def _rotate_all(self) -> None:
        for turn in self._plan.rotations:
            left = turn.at - (time.monotonic() - self._started)
            if self._closed.wait(max(0.0, left)) or time.monotonic() - self._started > self._plan.seconds:
                return
            self._say(str(turn))
            done = rotate(self._arena.rotate, turn.words, calm=turn.calm, say=self._say)
            undisturbed = done.ended - self._started < min(fault.at for fault in self._plan.faults)
            self.rotated.append(replace(done, calm=done.calm and undisturbed))
            self._say(f"rotated {self.rotated[-1].name} after {self.rotated[-1].ended - self.rotated[-1].began:.1f} s")

    def _cli_keys(self) -> LinkKeys:
        return LinkKeys.load(self._arena.etc / "keys" / "cli")

    def times(self) -> list[str]:
        """Return the lines of the report about rotations: for how long no job was answered. [] without rotations."""
        if not self.rotated:
            return []
        undisturbed = self.probe.longest(self._started + 1.0, self._started + ROTATION_REST)
        said = f"{len(self.probe.answers)} probes answered; longest pause before the first rotation {undisturbed:.1f} s"
        return [said, *table(self.rotated, self.probe)]

    def _look(self) -> None:
        broken = {fault.victim for fault in self._active}
        for told in self._arena.revive():
            self._say(f"{told} (broken at the moment: {', '.join(sorted(broken)) or 'nothing'})")
            self.ended.append(told)

    def _keep_looking(self) -> None:
        while not self._closed.wait(_LOOK):
            self._seen.look()

    def _begin(self, fault: Fault) -> None:
        self._say(str(fault))
        self._active[fault] = time.time()
        self._arena.break_(fault.victim, fault.kind)

    def _end(self, fault: Fault) -> None:
        if fault in self._active:
            self._arena.mend(fault.victim, fault.kind)
            self._made.append(Made(fault.victim, fault.kind, self._active.pop(fault), time.time()))

    def _settle(self, seconds: float) -> None:
        ours = frozenset(self._arena.minions)
        started = time.monotonic()
        still_since: float | None = None
        state: Any = None
        pause = threading.Event()
        while (now := time.monotonic()) - started < seconds:
            self._look()
            # Nobody else moves once our own minions have nothing in hand; stock ones may have lost what they had.
            missing = self._seen.all_missing(ours), len(self._seen.all_missing(frozenset(self._arena.stock)))
            executions = dict(_executions(self._arena))
            at_work = (self._unfinished(executions), self._arena.spooled())
            if state != (missing, at_work):
                state, still_since = (missing, at_work), now
            tokens = {one.jid: one.token for one in list(self._asked.values())}
            unbegun = any((tokens[jid], minion) not in executions for jid, minion in missing[0])
            patience = _UNBEGUN if unbegun else 3 * _STILL if any(missing) else _STILL
            if not any(at_work) and still_since is not None and now - still_since > patience:
                break
            pause.wait(_LOOK / 4)
        self._say(f"settled after {time.monotonic() - started:.1f} s: {state}")

    def _unfinished(self, executions: Mapping[tuple[str, str], Sequence[Execution]]) -> list[str]:
        """Return the nonces of executions that may still be running, also of jobs whose client got no JID.

        Executions that began more than 30 seconds ago are left out: those of killed minions never end.
        """
        newest = time.time() - _LONGEST
        over = {(self._asked[token].jid, minion) for token, minion in executions if token in self._asked}
        over &= self._seen.returned.keys()
        return [
            run.nonce
            for (token, minion), runs in executions.items()
            if token in self._asked and (self._asked[token].jid, minion) not in over
            for run in runs
            if run.ended is None and run.began > newest
        ]

    # ------------------------------------------------------------------------------------------------------------- asking

    def _submit(self, ask: Ask, futures: list[Future[None]]) -> None:
        futures.append(self._askers.submit(self._ask, ask))

    def _ask(self, ask: Ask) -> None:
        begun = time.time()
        asked = Asked(ask.token, ask.minions, ask.seconds, begun, when_back=ask.way is Way.WAITING)
        # Before the answer: a job without one may run all the same.
        self._asked[ask.token] = asked
        jid, why = _WAYS[ask.way](self, ask)
        if jid is None:
            self._say(f"no JID for {ask.token}: {why}")
            return
        self._asked[ask.token] = replace(asked, jid=jid, answered=time.time())
        self._seen.expect(jid, ask.minions)

    def _client(self) -> ControlClient:
        if not hasattr(self._clients, "one"):
            self._clients.one = ControlClient(self._context, self._options, self._keys)
            self._every_client.append(self._clients.one)
        found: ControlClient = self._clients.one
        return found

    def ask_control(self, ask: Ask, **more: Any) -> tuple[str | None, str]:
        """Publish a planned job by a control request. Return (JID, text), or (None, reason) if there is no JID."""
        arg = [ask.token, ask.seconds, ask.size]
        tgt = list(ask.tgt) if isinstance(ask.tgt, tuple) else ask.tgt
        fields = {"tgt": tgt, "tgt_type": ask.tgt_type, **more}
        try:
            job = self._client().call(
                "publish", timeout=PATIENCE, fun="chaos.run", arg=arg, request_id=os.urandom(16).hex(), **fields
            )
        except (ControlError, ControlTimeout) as error:
            return None, str(error)
        return job["jid"], str(job.get("error"))

    def ask_command(self, ask: Ask) -> tuple[str | None, str]:
        """Publish a planned job by the command ``salt --async``. Return (JID, text), or (None, output of the command)."""
        flag = {"glob": [], "list": ["-L"], "pcre": ["-E"], "grain": ["-G"]}[ask.tgt_type]
        tgt = ",".join(ask.tgt) if isinstance(ask.tgt, tuple) else ask.tgt
        words = ["salt", *flag, tgt, "chaos.run", ask.token, str(ask.seconds), str(ask.size), "--async"]
        answer = self._arena.run(*words, seconds=4 * PATIENCE)
        found = re.search(r"job ID: (\d{20})", answer.out)
        return (found[1] if found else None), f"exit code {answer.code}: {answer.err or answer.out}"

    # ------------------------------------------------------------------------------------------------------------ the end

    def evidence(self) -> Evidence:
        """Collect the Evidence of the run: published jobs, journals, results and states in Redis, and faults."""
        self._arena.await_redis()
        store = Store.open(self._arena.redis_address, client_name="accountant")
        lives = {jid: store.jobs.life(jid) for jid in self._seen.owed}
        return Evidence(
            sorted(self._asked.values(), key=lambda one: one.asked),
            dict(_executions(self._arena)),
            dict(self._results(store)),
            tuple(self._made),
            frozenset((*self._arena.minions, *self._arena.stock)),
            frozenset(self._arena.stock),
            {jid: {minion: life.state.value for minion, life in found.items()} for jid, found in lives.items()},
        )

    def _results(self, store: Store) -> Iterator[tuple[tuple[str, str], Result]]:
        for jid, minions in self._seen.owed.items():
            returns = store.jobs.returns(jid)
            for minion in minions & set(returns):
                value = returns[minion]
                # A field of the hash that our own code does not see as a result would be missing here.
                seen = self._seen.returned.get((jid, minion), time.time())
                yield (jid, minion), Result(value.get("return"), value.get("success") is True, seen)

    def close(self) -> None:
        """Stop all threads of the run and close their connections to the master."""
        self._closed.set()
        self.probe.close()
        if self._looker.ident is not None:
            self._looker.join()
        self._askers.shutdown(cancel_futures=True)
        for client in self._every_client:
            client.close()
        self._context.term()


_WAYS: Mapping[Way, Callable[[Run, Ask], tuple[str | None, str]]] = {
    Way.CONTROL: Run.ask_control,
    Way.COMMAND: Run.ask_command,
    Way.WAITING: lambda run, ask: run.ask_control(ask, when_back=_WHEN_BACK),
}


def _executions(arena: Field) -> Iterator[tuple[tuple[str, str], list[Execution]]]:
    for minion in (*arena.minions, *arena.stock):
        path = arena.journal(minion)
        for token, runs in read_journal(path.read_text() if path.exists() else "").items():
            yield (token, minion), runs


def play(agenda: Iterable[tuple[float, Callable[[], object]]]) -> None:
    """Call each function of ``agenda``, [(seconds from now, function)], at its time; those of one time in their order."""
    started = time.monotonic()
    pause = threading.Event()
    for at, what in sorted(agenda, key=itemgetter(0)):
        if (left := at - (time.monotonic() - started)) > 0:
            pause.wait(left)
        what()


def muster(arena: Field, say: Callable[[str], None]) -> None:
    """Start all roles and minions, and wait until each minion has run a ``chaos.run`` job. Raises RuntimeError if one does not."""
    started = time.monotonic()
    arena.start_redis()
    for name in (*arena.roles, *arena.stock, *arena.minions):
        arena.start(name)
    everybody = {*arena.minions, *arena.stock}
    deadline = started + _MUSTER + _MUSTER_EACH * len(everybody)
    arena.await_ready(*arena.roles, seconds=deadline - time.monotonic())
    arena.await_ready(*arena.minions, seconds=deadline - time.monotonic())
    wanted = set(everybody)
    while wanted:
        if time.monotonic() > deadline:
            raise RuntimeError(f"not ready: {sorted(wanted)}")
        names = ",".join(sorted(wanted))
        words = ("salt", "--out", "json", "--static", "-t", "20", "-L", names)
        synced = arena.run(*words, "saltutil.sync_modules", seconds=_MUSTER_COMMAND)
        if synced.out.startswith("{"):
            ran = arena.run(*words, "chaos.run", "muster", seconds=_MUSTER_COMMAND)
            found = ran.data if ran.out.startswith("{") else {}
            wanted -= {minion for minion, value in found.items() if isinstance(value, dict) and "nonce" in value}
    for minion in everybody:
        arena.journal(minion).unlink()
    say(f"{len(everybody)} minions and {len(arena.roles)} roles are there after {time.monotonic() - started:.1f} s")


def chaos(arena: Field, plan: Plan, settle: float, say: Callable[[str], None]) -> tuple[Account, list[str]]:
    """Carry out a plan in a started Field. Return (Account, texts about processes and rotations that ended unexpectedly)."""
    run = Run(arena, plan, say)
    try:
        run.go(settle)
        for line in run.times():
            say(line)
        if arena.fails_over:
            say(f"{arena.failovers} failovers of Redis")
        unfinished = [f"the rotation {one.name} never ended" for one in run.rotated if not one.done]
        return account(run.evidence()), [*run.ended, *unfinished]
    finally:
        run.close()


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``python -m tests.chaos.run``. Return exit code 0 if nothing was found, 1 if a promise was broken."""
    parser = argparse.ArgumentParser(prog="tests.chaos.run", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--minions", type=int, default=50)
    parser.add_argument("--stock", type=int, default=2)
    parser.add_argument("--settle", type=float, default=120, help="seconds that everything has to come to rest")
    parser.add_argument("--executions", type=float, default=4.0, help="jobs times minions a second")
    parser.add_argument("--faults", type=float, default=0.6, help="faults a second")
    parser.add_argument(
        "--calm", type=float, default=240, help="seconds of rotations before the faults (0: no rotations)"
    )
    parser.add_argument(
        "--redis",
        choices=REDIS_KINDS,
        default="one",
        help="one server, a server with a replica and Sentinels, or a Redis Cluster with replicas",
    )
    parser.add_argument("--plan", action="store_true", help="prints the plan and breaks nothing")
    arguments = parser.parse_args(argv)
    seed = random.randrange(1_000_000) if arguments.seed is None else arguments.seed
    oracle = os.environ.get("SALTERN_ORACLE")
    stock = tuple(f"s{number}" for number in range(1, arguments.stock + 1)) if oracle else ()
    root = Path(tempfile.mkdtemp(prefix="chaos-"))
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - started:6.1f}] {text}", flush=True)  # noqa: T201 - a command

    minions = tuple(f"m{number:02d}" for number in range(1, arguments.minions + 1))
    arena = Field(
        root / "lab",
        minions=minions,
        stock=stock,
        oracle=Path(oracle) if oracle else None,
        redis_kind=arguments.redis,
    )
    kept = True
    try:
        plan = make_plan(
            seed,
            arguments.seconds,
            arena.cast,
            executions=arguments.executions,
            faults=arguments.faults,
            rotations=arena.rotations if arguments.calm else (),
            calm=arguments.calm,
        )
        print(plan, flush=True)  # noqa: T201
        if arguments.plan:
            kept = False
            return 0
        if not stock:
            say("SALTERN_ORACLE names no Salt: there are no stock minions")
        muster(arena, say)
        started = time.monotonic()
        found, ended = chaos(arena, plan, arguments.settle, say)
        traces = arena.tracebacks()
        (root / "account").write_text("\n".join([str(found), *map(str, found.findings), *ended]) + "\n")
        kept = bool(found.broken or ended or traces)
        for line in [
            str(found),
            *(f"FOUND {one}" for one in ended),
            *(f"FOUND a traceback of {one}" for one in traces),
        ]:
            print(line)  # noqa: T201
        if kept:
            again = f"make chaos SEED={seed}" + (f" REDIS={arguments.redis}" if arena.fails_over else "")
            print(f"all that they said is in {root}; {again} breaks the same again")  # noqa: T201
        print(found.last_line(), flush=True)  # noqa: T201
        return int(kept)
    finally:
        arena.close()
        if not kept:
            shutil.rmtree(root)


if __name__ == "__main__":
    sys.exit(main())
