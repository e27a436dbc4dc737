"""``connections``: the reqserver's report which minions have gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from saltern.kit.links.worker_link import WHO

pytestmark = pytest.mark.redis

Worker = Any


def test_the_gone_are_absent_and_the_connected_present(new_worker: Callable[..., Worker]) -> None:
    worker = new_worker()
    for name in ("web1", "web2", "web3"):
        worker.store.minion_keys.store(name, worker.keys[0].public.pem, "accepted")
        worker.store.presence.seen(name, 1_000_000)
    left = {"web1": 0.5, "web2": 60.0, "unknown": 0.5}
    told = worker.control("connections", "reqserver", left=left, connected=["web3", "unknown"], at=1001.0)
    assert told is None
    # web2 was heard of after its connection ended.
    assert worker.store.presence.present(1_000_000) == {"web2", "web3"}
    assert worker.store.presence.last_seen(["web1", "web3", "unknown"]) == {"web1": 1_000_000, "web3": 1_001_000}
    for wrong in ({"left": [], "connected": [], "at": 1}, {"left": {}, "connected": [], "at": "x"}):
        assert worker.control("connections", "reqserver", **wrong)[0] == "InvocationError"


def test_only_a_proved_request_names_its_sender(worker: Worker) -> None:
    minion = worker.minion("web1")
    payload, _ = minion.session.seal({"cmd": "_mine", "id": "web1", "data": {}}, 1.0)
    worker.handler.answer(b"minion", WHO.decode(), payload)
    assert worker.handler.sender == "web1"
    worker.handler.answer(b"minion", WHO.decode(), b"\xc1")
    assert worker.handler.sender == ""
