"""What maintenance does by the clock, one task at a time, over a real Redis."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from masterstore.store import Store
from services.kit.config import MasterOptions
from services.kit.health import Health
from services.kit.metrics import new_metrics
from services.kit.service import Role, Stop
from services.maintenance import main as maintenance
from services.maintenance.main import Chores

pytestmark = pytest.mark.redis

JID = "20260101000000000000"
LOAD: dict[str, Any] = {"jid": JID, "fun": "runner.test.sleep", "tgt": "master", "arg": [9], "user": "root"}


@dataclass
class Round:
    """Chores, and what they fired."""

    chores: Chores
    fired: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)


def round_of(url: str, tmp_path: Path, **options: Any) -> Round:
    """Chores over a Redis."""
    metrics = new_metrics("maintenance")
    health = Health("maintenance", metrics.registry, stall_after=30)
    chosen = MasterOptions(redis_url=url, **options)
    role = Role("maintenance", chosen, tmp_path, health, metrics, logging.getLogger("saltern.maintenance"), Stop())
    fired: list[tuple[str, Mapping[str, Any]]] = []

    def fire(tag: str, data: Mapping[str, Any]) -> bool:
        fired.append((tag, data))
        return True

    return Round(Chores(role, Store.open(url, client_name="test"), fire), fired)


def test_a_runner_that_died_with_its_worker_ends_as_failed(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "SILENT_AFTER", 0.0)
    made = round_of(redis_url, tmp_path)
    store = made.chores.store
    store.runner_jobs.begin("r", LOAD, "master", ttl=60)
    store.runner_jobs.alive(JID, "process 7 of worker w1")
    maintenance.end_lost_runners(made.chores)
    assert made.fired == [], "once silent is not lost: while Redis was away nobody could give a sign"
    maintenance.end_lost_runners(made.chores)
    ((tag, data),) = made.fired
    assert tag == f"salt/run/{JID}/ret"
    assert (data["success"], data["fun"], data["jid"]) == (False, "runner.test.sleep", JID)
    for part in ("The runner test.sleep has no result", "process 7 of worker w1", "salt-run jobs.active"):
        assert part in data["return"]
    kept = store.jobs.returns(JID)["master"]
    assert (kept["success"], kept["retcode"], kept["return"]) == (False, 1, data["return"])
    maintenance.end_lost_runners(made.chores)
    assert len(made.fired) == 1


def test_a_runner_that_gives_signs_is_left_alone(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "SILENT_AFTER", 0.0)
    made = round_of(redis_url, tmp_path)
    store = made.chores.store
    store.runner_jobs.begin("r", LOAD, "master", ttl=60)
    for _ in range(3):
        signs = dict(store.runner_jobs.silent(0))
        while store.runner_jobs.silent(0) == signs:
            store.runner_jobs.alive(JID, "here")
        maintenance.end_lost_runners(made.chores)
    assert made.fired == []
