"""What maintenance does by the clock, one task at a time, over a real Redis."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from masterstore.store import Store
from saltern.kit.config.master import MasterOptions
from saltern.kit.process.health import Health
from saltern.kit.process.metrics import new_metrics
from saltern.kit.process.process import Stop
from saltern.kit.process.service import Role
from saltern.kit.process.tracing import Tracing
from saltern.maintenance import main as maintenance
from saltern.maintenance.main import MaintenanceContext, Task, TaskSchedule, rotate_keys, run_due_tasks
from saltern.maintenance.scheduled import Due, ScheduledRunners
from statecore.system.scheduling.due import Clock

pytestmark = pytest.mark.redis

JID = "20260101000000000000"
LOAD: dict[str, Any] = {"jid": JID, "fun": "runner.test.sleep", "tgt": "master", "arg": [9], "user": "root"}


@dataclass
class Round:
    """Chores, and what they fired."""

    context: MaintenanceContext
    fired: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    started: list[Due] = field(default_factory=list)


@dataclass
class Hands:
    """A clock that a test sets."""

    now: Clock = field(default_factory=lambda: Clock(datetime(2026, 1, 1, 12), 1000.0))

    def turn(self, seconds: float) -> None:
        self.now = Clock(self.now.wall + timedelta(seconds=seconds), self.now.steady + seconds)


def round_of(url: str, tmp_path: Path, clock: Hands | None = None, **options: Any) -> Round:
    """Chores over a Redis."""
    metrics = new_metrics("maintenance")
    health = Health("maintenance", metrics.registry, stall_after=30)
    chosen = MasterOptions(redis_url=url, **options)
    role = Role(
        "maintenance",
        chosen,
        tmp_path,
        health,
        metrics,
        logging.getLogger("saltern.maintenance"),
        Stop(),
        Tracing({}, "maintenance"),
    )
    fired: list[tuple[str, Mapping[str, Any]]] = []

    def fire(tag: str, data: Mapping[str, Any]) -> bool:
        fired.append((tag, data))
        return True

    started: list[Due] = []

    def start(due: Due) -> dict[str, str]:
        started.append(due)
        return {"jid": str(len(started))}

    scheduled = ScheduledRunners(chosen.schedule, clock=lambda: clock.now) if clock else ScheduledRunners({})
    return Round(MaintenanceContext(role, Store.open(url, client_name="test"), fire, scheduled, start), fired, started)


def test_a_runner_that_died_with_its_worker_ends_as_failed(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "SILENT_AFTER", 0.0)
    made = round_of(redis_url, tmp_path)
    store = made.context.store
    store.runner_jobs.begin("r", LOAD, "master", ttl=60)
    store.runner_jobs.alive(JID, "process 7 of worker w1")
    maintenance.end_lost_runners(made.context)
    assert made.fired == [], "once silent is not lost: while Redis was away nobody could give a sign"
    maintenance.end_lost_runners(made.context)
    ((tag, data),) = made.fired
    assert tag == f"salt/run/{JID}/ret"
    assert (data["success"], data["fun"], data["jid"]) == (False, "runner.test.sleep", JID)
    for part in ("The runner test.sleep has no result", "process 7 of worker w1", "salt-run jobs.active"):
        assert part in data["return"]
    kept = store.jobs.returns(JID)["master"]
    assert (kept["success"], kept["retcode"], kept["return"]) == (False, 1, data["return"])
    maintenance.end_lost_runners(made.context)
    assert len(made.fired) == 1


def test_a_runner_that_gives_signs_is_left_alone(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "SILENT_AFTER", 0.0)
    made = round_of(redis_url, tmp_path)
    store = made.context.store
    store.runner_jobs.begin("r", LOAD, "master", ttl=60)
    for _ in range(3):
        signs = dict(store.runner_jobs.silent(0))
        while store.runner_jobs.silent(0) == signs:
            store.runner_jobs.alive(JID, "here")
        maintenance.end_lost_runners(made.context)
    assert made.fired == []


SCHEDULE = {
    "often": {"function": "test.arg", "seconds": 10, "args": [1], "kwargs": {"a": 2}},
    "noon": {"function": "fileserver.update", "cron": "5 12 * * *"},
    "broken": {"function": "x.y", "seconds": "many"},
}


def test_the_job_cache_is_held_to_its_budget(redis_url: str, tmp_path: Path) -> None:
    made = round_of(redis_url, tmp_path, job_cache_bytes=300)
    jobs, metrics = made.context.store.jobs, made.context.role.metrics
    now_ms = int(time.time() * 1000)
    for number in range(5):
        load = {"jid": f"2026010100000{number}000000", "fun": "test.ping", "tgt": "*"}
        jobs.publish(load, ["a"], request_id=str(number), ttl=60, now_ms=now_ms + number)
        jobs.record_return({**load, "id": "a", "return": "x" * 50}, ttl=60, now_ms=now_ms + number)
    before = made.context.store.job_budget.bytes()
    maintenance.expire_jobs(made.context)
    held = made.context.store.job_budget.bytes()
    assert 0 < held <= 300 < before
    assert jobs.recent(1)[0].jid == "20260101000004000000"
    assert metrics.registry.value("salt_jobs_bytes") == held
    assert metrics.registry.value("salt_jobs_evicted_total") == 5 - jobs.count() > 0


def test_without_a_job_cache_what_has_ended_goes(redis_url: str, tmp_path: Path) -> None:
    made = round_of(redis_url, tmp_path, job_cache=False)
    jobs, now_ms = made.context.store.jobs, int(time.time() * 1000)
    ages = {"20251231000000000000": 400, "20251231000001000000": 100}
    for jid, age in ages.items():
        load = {"jid": jid, "fun": "test.ping", "tgt": "*"}
        jobs.publish(load, ["a"], request_id=jid, ttl=60, now_ms=now_ms - 900_000)
        jobs.record_return({**load, "id": "a", "return": True}, ttl=60, now_ms=now_ms - age * 1000)
    jobs.publish(LOAD, ["slow"], request_id="r", ttl=60, now_ms=now_ms - 900_000)
    maintenance.expire_jobs(made.context)
    assert {job.jid for job in jobs.recent(9)} == {"20251231000001000000", JID}


def test_minions_are_given_up_by_the_clock(redis_url: str, tmp_path: Path) -> None:
    made = round_of(redis_url, tmp_path)
    jobs, ago = made.context.store.jobs, int(time.time() * 1000) - 3_600_000
    jobs.publish(LOAD, ["silent", "gone"], request_id="r", ttl=60, now_ms=ago, offline=["gone"])
    jobs.sign("silent", [(JID, "started", ago)], ago)
    maintenance.give_up_minions(made.context)
    assert {minion: life.state.value for minion, life in jobs.life(JID).items()} == {
        "silent": "lost",
        "gone": "expired",
    }
    for state in ("lost", "expired"):
        assert made.context.role.metrics.registry.value("salt_job_minions_given_up_total", {"state": state}) == 1


def test_runners_start_by_the_clock(redis_url: str, tmp_path: Path) -> None:
    clock = Hands()
    made = round_of(redis_url, tmp_path, clock, schedule=SCHEDULE)
    schedule = TaskSchedule(made.context.role.options)
    run_due_tasks(made.context, schedule, "a")
    assert [(due.name, due.fun, due.arg, due.kwarg) for due in made.started] == [("often", "test.arg", [1], {"a": 2})]
    clock.turn(5)
    run_due_tasks(made.context, schedule, "a")
    assert len(made.started) == 1
    clock.turn(300)
    run_due_tasks(made.context, schedule, "a")
    assert [due.name for due in made.started] == ["often", "often", "noon"]


def test_a_runner_that_still_works_is_not_started_again(redis_url: str, tmp_path: Path) -> None:
    clock = Hands()
    made = round_of(redis_url, tmp_path, clock, schedule=SCHEDULE)
    store, schedule = made.context.store, TaskSchedule(made.context.role.options)
    run_due_tasks(made.context, schedule, "a")
    store.runner_jobs.begin("r", {**LOAD, "jid": "1"}, "master", ttl=60)
    clock.turn(20)
    run_due_tasks(made.context, schedule, "a")
    assert len(made.started) == 1
    store.runner_jobs.end({**LOAD, "jid": "1"}, {"id": "master", "return": 1}, ttl=60)
    clock.turn(20)
    run_due_tasks(made.context, schedule, "a")
    assert len(made.started) == 2


def test_who_has_not_the_lock_starts_nothing_and_does_not_make_up_for_it(redis_url: str, tmp_path: Path) -> None:
    clock = Hands()
    made = round_of(redis_url, tmp_path, clock, schedule=SCHEDULE)
    schedule = TaskSchedule(made.context.role.options)
    assert made.context.store.locks.acquire("maintenance", "b", 60_000)
    run_due_tasks(made.context, schedule, "a")
    clock.turn(301)
    run_due_tasks(made.context, schedule, "a")
    assert made.started == []
    made.context.store.locks.release("maintenance", "b")
    run_due_tasks(made.context, schedule, "a")
    assert made.started == [], "noon has been, and so has often"


def replica(url: str, tmp_path: Path, owner: str) -> None:
    """A maintenance of its own process, whose one task waits for a word before it rotates."""
    maintenance._LOCK_MS = 700
    made = round_of(url, tmp_path, aes_rotation_interval=0)

    def slowly(context: MaintenanceContext) -> None:
        (tmp_path / f"{owner}-begun").touch()
        while not (tmp_path / f"{owner}-go").exists():
            threading.Event().wait(0.01)
        rotate_keys(context)
        (tmp_path / f"{owner}-done").touch()

    maintenance.TASKS = {"rotate_keys": Task(lambda options: 1000.0, slowly)}
    schedule = TaskSchedule(made.context.role.options)
    while True:
        run_due_tasks(made.context, schedule, owner)
        threading.Event().wait(0.02)


def test_a_replica_that_was_paused_does_nothing_under_a_lock_that_is_anothers(
    redis_url: str, tmp_path: Path, eventually: Callable[[Callable[[], Any]], Any]
) -> None:
    store = Store.open(redis_url, client_name="test")
    before = store.epochs.current().aes
    context = multiprocessing.get_context("fork")
    one, other = (
        context.Process(target=replica, args=(redis_url, tmp_path, name), daemon=True) for name in ("one", "other")
    )
    try:
        one.start()
        eventually((tmp_path / "one-begun").exists)
        assert one.pid
        os.kill(one.pid, signal.SIGSTOP)
        other.start()
        eventually((tmp_path / "other-begun").exists)
        assert store.locks.newest("maintenance") == 2
        (tmp_path / "one-go").touch()
        os.kill(one.pid, signal.SIGCONT)
        eventually((tmp_path / "one-done").exists)
        assert store.epochs.current().aes == before, "it rotated under a lock that was no longer its own"
        (tmp_path / "other-go").touch()
        eventually((tmp_path / "other-done").exists)
        assert store.epochs.current().aes == before + 1
    finally:
        for process in (one, other):
            if process.pid:
                process.kill()
                process.join()
