"""One job in a process of its own: arguments, the shape of a return, and what becomes of a job that ends badly."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from saltern.kit.command.arguments import read_arguments
from saltern.minion.ipc.framed_socket import FramedSocket
from saltern.minion.ipc.messages import SPOOLED
from saltern.minion.jobs.jobber import run, work
from saltern.minion.jobs.spool import Spool
from statecore.host.content import data_files
from statecore.runtime.calls import Returned
from statecore.runtime.state_runs.running_jobs import ProcDirectory

JID = "20260101000000000000"


class Functions:
    """A runtime of a few functions; it notes its calls."""

    def __init__(self, **functions: Any) -> None:
        self.functions = functions
        self.calls: list[tuple[str, list[Any], dict[str, Any]]] = []
        #: What each call was told of its publication.
        self.publications: list[dict[str, Any]] = []
        self.jobs: list[Mapping[str, Any]] = []
        #: Whether each call was the minion's own wish.
        self.trusted: list[bool] = []
        self.opts: dict[str, Any] = {"id": "web1"}
        #: What was delivered is written here: it happens in another process.
        self.told: Path | None = None

    def deliver(self, names: Sequence[str], ret: Mapping[str, Any]) -> None:
        assert self.told is not None
        self.told.write_text(json.dumps([list(names), dict(ret)]))

    def hidden(self, value: Any) -> Any:
        return value

    def call(
        self,
        fun: str,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        job: Mapping[str, Any] | None = None,
        *,
        trusted: bool = False,
    ) -> Returned:
        assert job is not None
        self.trusted.append(trusted)
        self.jobs.append(job)
        told = {name: value for name, value in (kwargs or {}).items() if name.startswith("__pub_")}
        self.publications.append(told)
        self.calls.append(
            (fun, list(args), {name: value for name, value in (kwargs or {}).items() if name not in told})
        )
        answer = self.functions[fun.replace(".", "_")]
        if callable(answer):
            answer = answer()
        if isinstance(answer, BaseException):
            raise answer
        return answer if isinstance(answer, Returned) else Returned(answer, 0, True)


@pytest.mark.parametrize(
    ("args", "positional", "keywords"),
    [
        ([], [], {}),
        ([1, "a", None, [2]], [1, "a", None, [2]], {}),
        (["a", {"__kwarg__": True, "x": 1, "y": [2]}], ["a"], {"x": 1, "y": [2]}),
        ([{"x": 1}], [{"x": 1}], {}),
        ([{"__kwarg__": False, "x": 1}], [{"x": 1}], {}),
        ([{"__kwarg__": 1, "x": 1}], [{"x": 1}], {}),
        ([{"__kwarg__": True, "x": 1}, "x=2", {"__kwarg__": True, "y": 3}], [], {"x": 2, "y": 3}),
        (["x=1", {"__kwarg__": True, "x": 2}], [], {"x": 2}),
        (["name=[1, a]", "other=7"], [], {"name": [1, "a"], "other": 7}),
        (["name=value"], [], {"name": "value"}),
        (["name=a=b"], [], {"name": "a=b"}),
        (["name="], [], {"name": ""}),
        (["a==b", "=x", "a b=c", "1a=b", "/a=b", ""], ["a==b", "=x", "a b=c", "1a=b", "/a=b", ""], {}),
        (["cmd=first\nsecond"], ["cmd=first\nsecond"], {}),
        (["cmd=first\n"], [], {"cmd": "first"}),
        ([{"__kwarg__": True, 1: 2}], [], {"1": 2}),
    ],
)
def test_arguments(args: list[Any], positional: list[Any], keywords: dict[str, Any]) -> None:
    assert read_arguments(args) == (positional, keywords)


def load(fun: Any = "test.ping", arg: Any = (), **more: Any) -> dict[str, Any]:
    return {"jid": JID, "fun": fun, "arg": list(arg), "tgt": "*", **more}


def test_the_shape_of_a_return() -> None:
    runtime = Functions(test_ping=True)
    assert run(runtime, load(arg=[1, {"__kwarg__": True, "a": 2}], user="root", metadata={"t": 7}, key="no")) == {  # type: ignore[arg-type]
        "cmd": "_return",
        "jid": JID,
        "fun": "test.ping",
        "fun_args": [1, {"__kwarg__": True, "a": 2}],
        "return": True,
        "retcode": 0,
        "success": True,
        "user": "root",
        "metadata": {"t": 7},
    }
    assert runtime.calls == [("test.ping", [1], {"a": 2})]


def test_an_outputter_is_passed_on() -> None:
    runtime = Functions(state_apply=Returned({}, 2, False, "highstate"))
    answer = run(runtime, load("state.apply"))  # type: ignore[arg-type]
    assert (answer["out"], answer["retcode"], answer["success"]) == ("highstate", 2, False)


def test_several_functions_at_once() -> None:
    runtime = Functions(test_ping=True, cmd_run=Returned("no", 3, False))
    answer = run(runtime, load(["test.ping", "cmd.run"], [[], ["x"]]))  # type: ignore[arg-type]
    assert answer["return"] == {"test.ping": True, "cmd.run": "no"}
    assert answer["retcode"] == {"test.ping": 0, "cmd.run": 3}
    assert answer["success"] == {"test.ping": True, "cmd.run": False}
    assert runtime.calls == [("test.ping", [], {}), ("cmd.run", ["x"], {})]


def test_functions_know_their_publication() -> None:
    runtime = Functions(shop_open=1)
    more = {"user": "root", "tgt": "web*", "tgt_type": "glob", "ret": "", "replay_until": 1}
    run(runtime, load("shop.open", [1, {"__kwarg__": True, "a": 2, "__pub_id": "db1", "__pub_user": "root"}], **more))  # type: ignore[arg-type]
    (told,) = runtime.publications
    assert runtime.calls == [("shop.open", [1], {"a": 2})]
    assert told.keys() == {f"__pub_{name}" for name in ("arg", "fun", "jid", "ret", "tgt", "tgt_type", "user")}
    assert (told["__pub_jid"], told["__pub_fun"], told["__pub_tgt"]) == (JID, "shop.open", "web*")
    run(runtime, load("shop.open", [3], own=True, schedule="daily"))  # type: ignore[arg-type]
    own = {"__pub_fun": "shop.open", "__pub_fun_args": [3], "__pub_jid": JID, "__pub_schedule": "daily"}
    assert runtime.publications[-1] == own | {"__pub_pid": os.getpid()}


def test_a_function_that_ends_its_process_still_returns() -> None:
    answer = run(Functions(bad_exit=SystemExit(3)), load("bad.exit"))  # type: ignore[arg-type]
    assert (answer["retcode"], answer["success"]) == (1, False)
    assert "SystemExit: 3" in answer["return"]


@pytest.mark.parametrize(
    ("more", "trusted"),
    [
        ({"own": True, "schedule": "__mine_interval"}, True),
        ({"own": True, "schedule": "daily"}, False),
        ({"schedule": "__x"}, False),
    ],
)
def test_what_the_minion_wishes_itself_passes_its_whitelist(more: dict[str, Any], trusted: bool) -> None:
    """Who publishes a job cannot claim that it is the minion's own."""
    runtime = Functions(mine_update=True)
    run(runtime, load("mine.update", [], **more))  # type: ignore[arg-type]
    assert runtime.trusted == [trusted]


OWN = {"own": True, "schedule": "nightly"}


@pytest.mark.parametrize(
    ("more", "jid"),
    [
        ({}, "req"),
        ({"return_job": "nocache"}, "nocache"),
        ({"ret": "redis"}, JID),
        ({"ret": "redis", "return_job": "nocache"}, JID),
    ],
)
def test_the_shape_of_a_return_of_the_minions_own(more: Mapping[str, Any], jid: str) -> None:
    runtime = Functions(cmd_run="x")
    arg = ["echo a=b", {"c": 1}, {"__kwarg__": True, "d": 2}]
    answer = run(runtime, load("cmd.run", arg, metadata={"t": 7}, **OWN, **more))  # type: ignore[arg-type]
    assert answer == {
        "cmd": "_return",
        "jid": jid,
        **({} if jid == JID else {"own_jid": JID}),
        "fun": "cmd.run",
        "fun_args": ["echo a=b", {"c": 1}, {"d": 2}],
        "schedule": "nightly",
        "pid": os.getpid(),
        "metadata": {"t": 7},
        "return": "x",
        "retcode": 0,
        "success": True,
    }
    assert runtime.calls == [("cmd.run", ["echo a=b", {"c": 1}], {"d": 2})]


@pytest.mark.parametrize(
    ("configured", "more", "names"),
    [
        (["redis"], {}, ["redis"]),
        ("redis", {"ret": "told,redis"}, ["told", "redis"]),
        ([], {"ret": "told"}, ["told"]),
        (["redis"], {**OWN, "ret": "told"}, ["told"]),
        (["redis"], OWN, None),
        ([], {}, None),
    ],
)
def test_returners_get_the_return_after_the_master(
    tmp_path: Path, configured: Any, more: Mapping[str, Any], names: list[str] | None
) -> None:
    runtime = Functions(test_ping=True)
    runtime.opts["return_"], runtime.told = configured, tmp_path / "told"
    pid, pair = in_jobber(tmp_path, runtime, load(**more))
    assert pair.receive() == SPOOLED
    assert pair.receive() == b""
    os.waitpid(pid, 0)
    pair.close()
    assert runtime.told.exists() == (names is not None)
    if names is not None:
        called, ret = json.loads(runtime.told.read_text())
        assert (called, ret["id"], ret["jid"], ret["return"]) == (names, "web1", JID, True)
        assert "cmd" not in ret


def test_a_job_may_return_nothing_and_not_be_seen(tmp_path: Path) -> None:
    def seen() -> bool:
        (tmp_path / "seen").write_text(str(len(ProcDirectory(tmp_path / "proc").running())))
        return True

    job = load(**OWN, return_job=False, jid_include=False)
    pid, pair = in_jobber(tmp_path, Functions(test_ping=seen), job)
    assert pair.receive() == b""
    os.waitpid(pid, 0)
    pair.close()
    assert (tmp_path / "seen").read_text() == "0"
    assert Spool(tmp_path / "spool").waiting() == []


def in_jobber(tmp_path: Path, runtime: Functions, job: Mapping[str, Any]) -> tuple[int, FramedSocket]:
    """A jobber; its pid, and the main process's end."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(10)
    procs, spool = ProcDirectory(tmp_path / "proc"), Spool(tmp_path / "spool")
    pid = os.fork()
    if not pid:
        try:
            ours.close()
            work(runtime, job, procs, spool, FramedSocket(theirs), Spool(tmp_path / "others").put)  # type: ignore[arg-type]
        finally:
            os._exit(0)
    theirs.close()
    return pid, FramedSocket(ours)


def test_a_result_is_in_the_spool_before_anybody_hears_of_it(tmp_path: Path) -> None:
    pid, pair = in_jobber(tmp_path, Functions(test_ping=lambda: os.getpgrp() == os.getpid()), load())
    assert pair.receive() == SPOOLED
    spool = Spool(tmp_path / "spool")
    (path,) = spool.waiting()
    ret = spool.read(path)
    assert ret is not None
    assert ret["return"] is True, "the jobber leads a process group of its own"
    assert pair.receive() == b""
    assert os.waitpid(pid, 0)[1] == 0
    assert ProcDirectory(tmp_path / "proc").running() == []
    pair.close()


@pytest.mark.parametrize("own", [False, True])
def test_what_the_minion_began_is_told_to_its_other_masters(tmp_path: Path, own: bool) -> None:
    pid, pair = in_jobber(tmp_path, Functions(test_ping=True), load(**({"own": True} if own else {})))
    assert pair.receive() == SPOOLED
    os.waitpid(pid, 0)
    pair.close()
    assert len(Spool(tmp_path / "others").waiting()) == own


def test_a_killed_jobber_leaves_no_return_and_no_job(tmp_path: Path) -> None:
    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    pid, pair = in_jobber(tmp_path, Functions(test_ping=die), load())
    assert pair.receive() == b""
    os.waitpid(pid, 0)
    assert Spool(tmp_path / "spool").waiting() == []
    assert ProcDirectory(tmp_path / "proc").running() == []
    pair.close()


def test_without_a_main_process_the_result_waits_in_the_spool(tmp_path: Path) -> None:
    go, said = os.pipe()
    pid, pair = in_jobber(tmp_path, Functions(test_ping=lambda: os.read(go, 1)), load())
    pair.close()
    os.write(said, b"x")
    assert os.waitpid(pid, 0)[1] == 0
    assert len(Spool(tmp_path / "spool").waiting()) == 1
    os.close(go)
    os.close(said)


def test_a_return_is_kept_where_the_minion_is_to_keep_it(tmp_path: Path) -> None:
    runtime = Functions(test_ping=True)
    runtime.opts |= {"cache_jobs": True, "cachedir": str(tmp_path)}
    pid, pair = in_jobber(tmp_path, runtime, load())
    os.waitpid(pid, 0)
    pair.close()
    kept = data_files.load(tmp_path / "minion_jobs" / load()["jid"] / "return.p")
    assert (kept["return"], kept["id"], kept["jid"]) == (True, "web1", load()["jid"])
    assert "cmd" not in kept


def test_where_nothing_can_be_written_the_result_is_sent_at_once(tmp_path: Path) -> None:
    read, write = os.pipe()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    procs, spool = ProcDirectory(tmp_path / "proc"), Spool(tmp_path / "spool")
    pid = os.fork()
    if not pid:
        try:
            # As a full disk: files can be made, and nothing goes into them.
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
            told = [lambda ret: None, None, lambda ret: os.write(write, json.dumps(ret).encode())]
            work(Functions(test_ping={1, 2}), load(), procs, spool, FramedSocket(theirs), *told)  # type: ignore[arg-type]
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    ret = json.loads(os.read(read, 9999))
    assert (ret["jid"], ret["return"], ret["retcode"]) == (load()["jid"], [1, 2], 0)
    assert [*(tmp_path / "spool").iterdir(), *(tmp_path / "proc").iterdir()] == []
    for number in (read, write):
        os.close(number)
    ours.close()
    theirs.close()
