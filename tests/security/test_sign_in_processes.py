"""Finding 38.16: a few addresses with slow sign-ins, or a few minions with long requests, take all processes of a worker."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from saltern.mworker import processes as module
from saltern.mworker.commands import logins
from saltern.mworker.processes import LOGIN, MAX_LOGINS, MAX_MINIONS, MAX_RUNNERS, Processes, TooManyRunners, refusal
from tests.services.mworker.conftest import Worker


def wait() -> None:
    signal.pause()


def nothing(how: str) -> None:
    """Nobody waits for the answer."""


@pytest.fixture
def processes() -> Iterator[Processes]:
    made = Processes()
    yield made
    made.drain(0)
    assert not made.pids


def running(processes: Processes, requester: str) -> int:
    return list(processes.requesters.values()).count(requester)


#: Attack -> requesters, each with as many slow requests as a worker takes of it.
FLOODS: dict[str, list[str]] = {
    "four addresses": [f"{LOGIN}192.0.2.{number}" for number in range(1, 5)],
    "one address": [f"{LOGIN}192.0.2.1"],
    "two addresses": [f"{LOGIN}192.0.2.1", f"{LOGIN}192.0.2.2"],
    "three addresses": [f"{LOGIN}192.0.2.{number}" for number in range(1, 4)],
    "four minions": ["web1", "web2", "web3", "web4"],
    "one minion": ["web1"],
    "two minions": ["web1", "web2"],
    "four addresses and four minions": [*(f"{LOGIN}192.0.2.{n}" for n in range(1, 5)), "web1", "web2", "web3", "web4"],
}


@pytest.mark.parametrize("flood", FLOODS.values(), ids=list(FLOODS))
@pytest.mark.parametrize("victim", [f"{LOGIN}198.51.100.7", "db1"], ids=["an address", "a minion"])
def test_the_next_one_finds_a_process(processes: Processes, flood: list[str], victim: str) -> None:
    for requester in flood:
        for _ in range(40):
            try:
                processes.start_in_turn(wait, nothing, requester)
            except TooManyRunners:
                break
    processes.start_in_turn(wait, nothing, victim)
    assert running(processes, victim) == 1


@pytest.mark.parametrize("count", [10, 40])
def test_operators_find_a_process_whatever_the_others_do(processes: Processes, count: int) -> None:
    for number in range(count):
        for requester in (f"{LOGIN}192.0.2.{number}", f"web{number}"):
            processes.start_in_turn(wait, nothing, requester)
    for _ in range(MAX_RUNNERS - MAX_LOGINS - MAX_MINIONS):
        processes.start(wait, nothing)


def test_those_who_wait_take_turns(processes: Processes) -> None:
    """One address has eight sign-ins before it, another one has one: the second is served after one of the first."""
    for _ in range(2):
        for number in range(MAX_LOGINS):
            processes.start_in_turn(wait, nothing, f"{LOGIN}192.0.2.{number}")
    late = f"{LOGIN}198.51.100.7"
    flood = f"{LOGIN}203.0.113.1"
    for _ in range(8):
        processes.start_in_turn(wait, nothing, flood)
    processes.start_in_turn(wait, nothing, late)
    for _ in range(4 * MAX_LOGINS):
        if running(processes, late):
            break
        pid = min(pid for pid, who in processes.requesters.items())
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        processes.reap()
    assert running(processes, late) == 1
    assert running(processes, flood) <= 2


def test_those_who_wait_are_bounded_and_given_up(processes: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE", -1.0)
    told: list[str] = []
    flood = f"{LOGIN}192.0.2.1"
    refused = 0
    for _ in range(40):
        try:
            processes.start_in_turn(wait, told.append, flood)
        except TooManyRunners:
            refused += 1
    processes.reap()
    # Each is running, refused, or given up.
    assert refused + len(told) + running(processes, flood) == 40
    assert len(told) >= 8
    assert processes.waiting == {}


@pytest.mark.redis
def test_a_network_of_ipv6_is_one_address(new_worker: Callable[..., Worker]) -> None:
    context = new_worker().context
    fields: dict[str, Any] = {"username": "u", "password": "p", "eauth": "file"}
    sender: Any = SimpleNamespace(client="api")
    names = {logins.login(context, sender, {**fields, "address": f"2001:db8::{n:x}"}).requester for n in range(1, 50)}
    assert len(names) == 1


@pytest.mark.ordinary
@pytest.mark.parametrize(
    ("running_now", "requester", "may"),
    [
        ([], "web1", True),
        (["web1"] * 4, "web1", True),
        (["web1"] * 6, "web1", False),
        ([f"{LOGIN}a"] * 2, f"{LOGIN}a", True),
        ([f"{LOGIN}a"] * 8, "web1", True),
        (["web1"] * 16, f"{LOGIN}a", True),
        (["web1"] * 16, "web2", False),
    ],
)
def test_shares(running_now: list[str], requester: str, may: bool) -> None:
    assert (refusal(running_now, requester) == "") is may
