"""What is away is said to be away: minions that were stopped, a dead master, Redis that does not answer."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import yaml

from tests.ports import free_ports
from tests.roles.conftest import NewLab
from tests.roles.lab import Lab, until

pytestmark = [pytest.mark.roles]

#: Seconds in which each command says that Redis is away, and some for the command's own start on a busy machine.
_SOON = 5.0
_START = 4.0


@pytest.fixture(scope="module")
def lab(module_labs: NewLab) -> Lab:
    made = module_labs(options={"presence_events": True, "loop_interval": 1})
    made.start_all()
    return made


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_a_minion_that_was_stopped_is_not_connected(lab: Lab, number: int) -> None:
    one, other = lab.minions
    until(lambda: lab.runner("manage.present") == [one, other], 30, "both are present")
    # Only the end of a connection of more than ten seconds says that its minion has gone.
    assert lab.salt(one, "test.sleep", "11") == {one: True}
    lab.kill(one, number)
    killed = time.monotonic()
    until(lambda: lab.runner("manage.present") == [other], 15, "the stopped minion is absent")
    assert time.monotonic() - killed < 10, "a command takes two seconds on a busy machine"
    assert lab.runner("manage.not_present") == [one]
    assert lab.run("salt-run", "--out", "json", "wheel.minions.connected").code != 0
    assert lab.runner("manage.status", "timeout=2", "gather_job_timeout=1") == {"up": [other], "down": [one]}
    lab.start(one)
    lab.await_ready(one)
    until(lambda: lab.runner("manage.present") == [one, other], 30, "it is back")


def test_salt_call_waits_once_for_a_dead_master_and_says_for_what(lab: Lab) -> None:
    directory = lab.root / "minions" / lab.minions[0]
    (port,) = free_ports(1)
    own = lab.root / "dead"
    own.mkdir()
    options = yaml.safe_load((directory / "minion").read_text())
    options |= {
        "master": f"127.0.0.1:{port}",
        "auth_timeout": 5,
        "auth_tries": 2,
        "pki_dir": str(own),
        "cachedir": str(own / "c"),
    }
    (own / "minion").write_text(yaml.safe_dump(options))
    started = time.monotonic()
    answer = lab.run("salt-call", "-c", str(own), "state.apply", "web")
    assert answer.code == 1
    assert time.monotonic() - started < 19, "two waits of ten seconds"
    assert f"waiting for the master at tcp://127.0.0.1:{port}: it does not answer" in answer.err
    assert f"no answer from the master at tcp://127.0.0.1:{port} within 10 s" in answer.err
    assert answer.err.index("waiting for") < answer.err.index("no answer from")


@contextmanager
def redis_away(lab: Lab, how: int) -> Iterator[None]:
    """Redis is stopped as by a machine that hangs, or killed, until the block ends."""
    if how == signal.SIGSTOP:
        lab.processes["redis"].send_signal(signal.SIGSTOP)
    else:
        lab.kill("redis", how)
    try:
        yield
    finally:
        if how == signal.SIGSTOP:
            lab.processes["redis"].send_signal(signal.SIGCONT)
        else:
            lab.start_redis()
        until(lambda: lab.run("salt", "-t", "3", "*", "test.ping").code == 0, 60, "Redis is back")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "hangs"])
def test_every_command_says_within_five_seconds_that_redis_is_away(lab: Lab, how: int) -> None:
    copied = lab.root / "copied"
    copied.write_text("x")
    commands = (
        ("salt", "*", "test.ping"),
        ("salt", "--async", "*", "test.ping"),
        ("salt", "-b", "1", "*", "test.ping"),
        ("salt-run", "jobs.list_jobs"),
        ("salt-run", "manage.present"),
        ("salt-run", "manage.up"),
        ("salt-key", "-L"),
        ("salt-key", "-y", "-a", "web9"),
        ("salt-cp", "*", str(copied), "/tmp/copied"),
    )
    with redis_away(lab, how):
        late: dict[str, float] = {}
        untold: dict[str, str] = {}
        for words in commands:
            started = time.monotonic()
            answer = lab.run(*words)
            passed = time.monotonic() - started
            assert answer.code != 0, str(answer)
            # A runner's failure is its result.
            if "redis at" not in answer.out + answer.err or "does not answer" not in answer.out + answer.err:
                untold[" ".join(words)] = str(answer)
            if passed > _SOON + _START:
                late[" ".join(words)] = round(passed, 1)
        assert (late, untold) == ({}, {})
