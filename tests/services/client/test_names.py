"""``import saltern``: what it costs, what it offers, and how its errors are told; nothing here needs a master."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import saltern
from saltern.client.addresses import address_of, login_of
from saltern.client.asynchronous import fixed_start, tag_matches
from saltern.client.loop_thread import LoopThread
from saltern.client.master import job_call
from statecore.model.ports import MinionJob


def test_the_import_of_saltern_imports_nothing_else() -> None:
    script = (
        "import sys\nbefore = set(sys.modules)\nimport saltern\n"
        "assert set(sys.modules) - before == {'saltern'}, set(sys.modules) - before\n"
        "saltern.LocalClient\nassert not {'httpx', 'starlette', 'redis', 'masterstore'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_every_name_is_there() -> None:
    shown = [name for name in dir(saltern) if not name.startswith("_") and name != "TYPE_CHECKING"]
    assert {"LocalClient", "AsyncLocalClient", "Caller", "Events", "Api", "client", "runner", "exceptions"} <= set(
        shown
    )
    for name in shown:
        assert getattr(saltern, name) is not None
    assert saltern.client.LocalClient is saltern.LocalClient
    assert saltern.client.get_local_client("/etc/salt/master").NAME == "saltern.LocalClient"
    assert saltern.runner.RunnerClient is saltern.RunnerClient
    assert issubclass(saltern.exceptions.AuthenticationError, saltern.exceptions.SaltException)
    with pytest.raises(AttributeError, match="has no attribute 'utils'"):
        _ = saltern.utils  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = saltern.client.nothing  # type: ignore[attr-defined]


ARGUMENTS_OF_JOBS = [
    "cmd",
    "cmd_full_return",
    "cmd_iter",
    "cmd_iter_no_block",
    "cmd_cli",
    "cmd_batch",
    "run_job",
    "cmd_async",
]


@pytest.mark.parametrize("name", ARGUMENTS_OF_JOBS)
def test_the_asynchronous_client_takes_the_arguments_of_the_other(name: str) -> None:
    assert inspect.signature(getattr(saltern.AsyncLocalClient, name)) == inspect.signature(
        getattr(saltern.LocalClient, name)
    )
    with pytest.raises(TypeError, match="'fun'"):
        getattr(saltern.AsyncLocalClient(master=saltern.Control()), name)("*")
    with pytest.raises(saltern.exceptions.SaltInvocationError, match=rf"AsyncLocalClient\.{name}: not supported: x"):
        getattr(saltern.AsyncLocalClient(master=saltern.Control()), name)("*", "test.ping", x=1).send(None)


def test_addresses(tmp_path: Path) -> None:
    api = saltern.Api("https://salt", "ann", "secret", "file")
    assert address_of(None, None) == saltern.Control()
    assert address_of(None, api) is api
    assert address_of(str(tmp_path), None) == saltern.Control(config_dir=str(tmp_path))
    assert address_of(str(tmp_path / "master"), None) == saltern.Control(config_dir=str(tmp_path))
    assert address_of({"conf_file": str(tmp_path / "master")}, None) == saltern.Control(config_dir=str(tmp_path))
    assert "secret" not in repr(api)
    assert "secret" not in repr(saltern.Control(login=saltern.Login("ann", "secret", "file", "secret")))
    low: dict[str, object] = {"fun": "test.ping", "username": "ann", "password": "pw", "eauth": "file"}
    assert login_of(low) == saltern.Login("ann", "pw", "file")
    assert low == {"fun": "test.ping"}
    assert not login_of(low)


@pytest.mark.parametrize(
    ("tag", "wanted", "start", "matches"),
    [
        ("salt/job/1/ret/a", "salt/job/", "salt/job/", True),
        ("salt/job/1/ret/a", "salt/job/*/ret/*", "salt/job/", True),
        ("salt/job/1/new", "salt/job/*/ret/*", "salt/job/", False),
        ("salt/auth", "", "", True),
        ("salt/auth", "[rs]alt/*", "", True),
    ],
)
def test_tags(tag: str, wanted: str, start: str, matches: bool) -> None:
    assert (fixed_start(wanted), tag_matches(tag, wanted)) == (start, matches)


def test_a_job_becomes_a_publication() -> None:
    job = MinionJob("*", "test.arg", "glob", (1,), {"a": 2}, "redis", {"metadata": {"x": 1}, "when_back": "1h"})
    call = job_call(job)
    assert list(call.arg) == [1, {"__kwarg__": True, "a": 2}]
    assert call.kwargs == {"metadata": {"x": 1}}
    assert call.fields == {"when_back": "1h", "ret": "redis"}


@pytest.mark.parametrize(
    ("address", "said"),
    [
        (saltern.Control(config_dir="/nonexistent"), "saltern keygen"),
        (saltern.Api("salt.example"), "does not start with https://"),
        (saltern.Api("https://salt", token="ab", ca_file="/nonexistent.pem"), "ca_file /nonexistent.pem"),
    ],
)
def test_a_client_that_cannot_connect_says_why(address: saltern.Control | saltern.Api, said: str) -> None:
    with pytest.raises(saltern.exceptions.SaltConfigurationError, match=said):
        saltern.LocalClient(master=address).cmd("*", "test.ping")


def test_a_caller_without_a_master(tmp_path: Path) -> None:
    (tmp_path / "minion").write_text(f"id: own\ncachedir: {tmp_path}/cache\npki_dir: {tmp_path}/pki\n")
    caller = saltern.Caller(str(tmp_path / "minion"), local=True)
    assert caller.cmd("test.arg", 1, a=2) == {"args": (1,), "kwargs": {"a": 2}}
    assert caller.function("config.get", "id") == "own"
    assert saltern.Caller(str(tmp_path), {"id": "other"}, local=True).cmd("config.get", "id") == "other"
    with pytest.raises(KeyError, match=r"no\.such"):
        caller.cmd("no.such")
    (tmp_path / "minion").write_text("id: [\n")
    with pytest.raises(saltern.exceptions.SaltConfigurationError, match="minion"):
        saltern.Caller(str(tmp_path))


def test_options_as_maps(tmp_path: Path) -> None:
    (tmp_path / "master").write_text("timeout: 7\n")
    (tmp_path / "minion").write_text("id: own\n")
    assert saltern.config.master_config(str(tmp_path / "master"))["timeout"] == 7
    assert saltern.config.client_config(str(tmp_path))["timeout"] == 7
    assert saltern.config.minion_config(str(tmp_path / "minion"))["id"] == "own"
    assert saltern.LocalClient(str(tmp_path / "master")).opts["timeout"] == 7


def test_a_loop_in_a_thread() -> None:
    loop, ended = LoopThread(), []

    async def numbers() -> AsyncIterator[int]:
        try:
            for number in range(5):
                await asyncio.sleep(0)
                yield number
        finally:
            ended.append(True)

    async def fails() -> None:
        raise ValueError("told")

    assert list(loop.iterate(numbers())) == [0, 1, 2, 3, 4]
    for number in loop.iterate(numbers()):
        if number == 2:
            break
    assert ended == [True, True]
    with pytest.raises(ValueError, match="told"):
        loop.run(fails())
    assert loop.is_running
    if (child := os.fork()) == 0:
        # The thread is not here: the child starts its own.
        os._exit(0 if loop.is_of_another_process and list(loop.iterate(numbers())) == [0, 1, 2, 3, 4] else 1)
    assert os.waitpid(child, 0)[1] == 0
    loop.stop()
    assert not loop.is_running
    assert list(loop.iterate(numbers())) == [0, 1, 2, 3, 4]
    loop.stop()


def test_a_client_that_is_collected_in_its_own_loop_blocks_nobody() -> None:
    """The garbage collector may finalize a client in any thread, also in the one that the client's loop runs in."""
    loop, ended = LoopThread(), threading.Event()

    async def close() -> None:
        ended.set()

    async def collect() -> str:
        loop.end_soon(close)
        return "went on"

    assert loop.run(collect()) == "went on"
    assert ended.wait(30)
    assert not loop.is_running
    client = saltern.LocalClient(master=saltern.Control(config_dir="/nonexistent"))
    with pytest.raises(saltern.exceptions.SaltConfigurationError):
        client.cmd("*", "test.ping")
    thread = client._thread._thread._thread
    assert thread is not None
    del client
    gc.collect()
    thread.join(30)
    assert not thread.is_alive()
