"""Users' runners: found, run with their ambient names, told apart from ours; users' modules fetched for the master."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from saltern.kit.config.master import MasterOptions
from saltern.kit.links.control import ControlError
from saltern.mworker.runners import saltutil, users
from saltern.mworker.runners.runner import RunnerFault
from saltern.mworker.runners.table import RUNNERS
from statecore.model.errors import CommandError, InvocationError
from statecore.runtime.runtime import local_runtime

OWN = """
import salt.client
import salt.utils.data
from salt.exceptions import SaltException

__func_alias__ = {"list_": "list"}


def list_(*names, **kwargs):
    return {"names": list(names), "kwargs": kwargs, "user": __user__, "id": __opts__["id"], "flat": salt.utils.data.flatten([[1]])}


def through():
    __jid_event__.fire_event({"message": "half way"}, "progress")
    return [__salt__["test.arg"](1, a=2), __salt__["own.other"](), "jobs.active" in __salt__, "no.such" in __salt__]


def other():
    return __utils__["tool.f"]()


def fails():
    raise SaltException("no luck")


def ask(tgt):
    with salt.client.LocalClient(__opts__["conf_file"]) as client:
        return client.cmd(tgt, "test.ping", timeout=1)
"""


class Sender:
    def __init__(self) -> None:
        self.fired: list[tuple[str, Any]] = []

    def fire(self, tag: str, data: Any) -> bool:
        self.fired.append((tag, data))
        return True


@pytest.fixture
def tools(tmp_path: Path) -> Any:
    """A master whose tree has a runner, a utility module, and nothing fetched yet."""
    tree = tmp_path / "tree"
    for name, text in (
        ("_runners/own.py", OWN),
        ("_runners/broken.py", "import no_such_library\ndef f(): pass\n"),
        ("_runners/jobs.py", "def active(): return 'mine'\n"),
        ("_utils/tool.py", "def f(): return 'tool'\n"),
        ("_output/loud.py", "def output(data, **kwargs): return str(data).upper()\n"),
    ):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    options = MasterOptions(
        id="master",
        file_roots={"base": [str(tree)]},
        extension_modules=str(tmp_path / "ext"),
        pillar_roots={"base": []},
    )
    return SimpleNamespace(options=options, user="ann", jid="20261121120000000000", sender=Sender(), scratch={})


def _call(tools: Any, fun: str, *args: Any, **kwargs: Any) -> Any:
    function = users.find(fun, tools.options, RUNNERS)
    assert function is not None
    return function(tools, *args, **kwargs)


def test_sync(tools: Any) -> None:
    assert users.find("own.list", tools.options, RUNNERS) is None
    assert sorted(RUNNERS["saltutil.sync_runners"](tools)) == ["runners.broken", "runners.jobs", "runners.own"]
    assert RUNNERS["saltutil.sync_runners"](tools) == []
    synced = RUNNERS["saltutil.sync_all"](tools)
    assert {kind: names for kind, names in synced.items() if names} == {
        "utils": ["utils.tool"],
        "output": ["output.loud"],
    }
    assert list(synced) == list(saltutil.KINDS)
    assert RUNNERS["saltutil.sync_runners"](tools, extmod_whitelist="own") == []
    assert users.find("jobs.active", tools.options, RUNNERS) is None


def test_a_place_that_cannot_be_written(tools: Any, tmp_path: Path) -> None:
    (tmp_path / "ext").write_text("a file")
    with pytest.raises(RunnerFault, match="users' modules cannot be kept in"):
        RUNNERS["saltutil.sync_runners"](tools)


def test_runners_of_users(tools: Any) -> None:
    RUNNERS["saltutil.sync_all"](tools)
    assert _call(tools, "own.list", 1, a=2) == {
        "names": [1],
        "kwargs": {"a": 2},
        "user": "ann",
        "id": "master",
        "flat": [1],
    }
    assert _call(tools, "own.through") == [{"args": [1], "kwargs": {"a": 2}}, "tool", True, False]
    assert tools.sender.fired == [("salt/run/20261121120000000000/progress", {"message": "half way"})]
    assert _call(tools, "jobs.active") == "mine"


def test_directories_of_runners(tools: Any, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/here.py").write_text("def f(): return 1\n")
    tools.options = MasterOptions(runner_dirs=[str(tmp_path / "mine")], extension_modules=str(tmp_path / "ext"))
    assert _call(tools, "here.f") == 1


@pytest.mark.parametrize(
    ("fun", "error", "text"),
    [
        ("own.nothing", RunnerFault, "'own.nothing' is not available."),
        ("broken.f", RunnerFault, "broken.py failed to import: ModuleNotFoundError: No module named 'no_such_library'"),
        ("own.fails", Exception, "no luck"),
    ],
)
def test_what_goes_wrong(tools: Any, fun: str, error: type[Exception], text: str) -> None:
    RUNNERS["saltutil.sync_runners"](tools)
    with pytest.raises(error) as caught:
        _call(tools, fun)
    assert text in str(caught.value)


def test_a_client_publishes(tools: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def ask(master: Any, job: Any, told: Any) -> dict[str, Any]:
        asked.append(job)
        return {"web1": {"ret": True, "retcode": 0, "jid": "1"}}

    monkeypatch.setattr("saltern.mworker.runners.orchestration.OrchestrationMaster.ask", ask)
    RUNNERS["saltutil.sync_all"](tools)
    assert _call(tools, "own.ask", "web*") == {"web1": True}
    assert (asked[0].tgt, asked[0].fun, asked[0].timeout) == ("web*", "test.ping", 1)


CLIENTS = """
import salt.client
import salt.runner
import salt.wheel


def each(tgt):
    client = salt.client.get_local_client(__opts__["conf_file"])
    returns = list(client.cmd_iter(tgt, "test.ping")), list(client.cmd_batch(tgt, "test.ping", batch=2))
    return [*returns, client.cmd_subset(tgt, "f", subset=1)]


def begun(tgt):
    client = salt.client.LocalClient(__opts__["conf_file"])
    return [client.cmd_async(tgt, "f", [1], kwarg={"a": 2}, timeout=5), client.run_job(tgt, "f", ret="local_cache")]


def numbered():
    return salt.client.LocalClient().cmd_async("*", "f", jid="20261121120000000000")


def runner():
    return salt.runner.RunnerClient(__opts__).cmd("test.arg", [1], kwarg={"a": 2})


def wheel(fun):
    return salt.wheel.WheelClient(__opts__).cmd(fun, kwarg={"match": "m"})
"""


def test_clients_of_all_kinds(tools: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def ask(master: Any, job: Any, told: Any) -> dict[str, Any]:
        asked.append((job.tgt, job.fun, job.batch, job.subset, job.expected))
        return {"web1": {"ret": True, "retcode": 0}}

    def publish(master: Any, job: Any) -> dict[str, Any]:
        ask(master, job, None)
        return {"jid": "7", "minions": ["web1"]}

    def follow(master: Any, jid: str, minions: list[str], timeout: float | None) -> Any:
        yield from ((minion, {"ret": True, "retcode": 0}) for minion in minions)

    def wheel(master: Any, call: Any) -> dict[str, Any]:
        return {"return": [call.fun, call.kwarg], "success": call.fun == "key.list"}

    place = "saltern.mworker.runners.orchestration.OrchestrationMaster"
    for name, function in {"ask": ask, "publish": publish, "follow": follow, "wheel": wheel}.items():
        monkeypatch.setattr(f"{place}.{name}", function)
    (tmp_path / "clients").mkdir()
    (tmp_path / "clients/clients.py").write_text(CLIENTS)
    tools.options = MasterOptions(runner_dirs=[str(tmp_path / "clients")], extension_modules=str(tmp_path / "ext"))
    assert _call(tools, "clients.each", "*") == [
        [{"web1": {"ret": True, "retcode": 0}}],
        [{"web1": True}],
        {"web1": True},
    ]
    jobs = [("*", "test.ping", None, None), ("*", "test.ping", "2", None), ("*", "f", None, 1)]
    # Only the first waits for every minion's return by itself.
    assert asked == [(*job, number == 0) for number, job in enumerate(jobs)]
    assert _call(tools, "clients.runner") == {"args": [1], "kwargs": {"a": 2}}
    assert _call(tools, "clients.wheel", "key.list") == ["key.list", {"match": "m"}]
    with pytest.raises(CommandError, match=r"key\.none"):
        _call(tools, "clients.wheel", "key.none")


def test_a_client_begins_jobs_that_nobody_waits_for(tools: Any, tmp_path: Path) -> None:
    asked: list[dict[str, Any]] = []

    def call(command: str, **fields: Any) -> dict[str, Any]:
        asked.append({"command": command, **fields})
        if fields["tgt"] == "refused*":
            raise ControlError("AuthorizationError", "ann may not")
        known = fields["tgt"] == "web*"
        return {"jid": "7" if known else None, "minions": ["web1"] if known else [], "missing": []}

    (tmp_path / "clients").mkdir()
    (tmp_path / "clients/clients.py").write_text(CLIENTS)
    tools.options = MasterOptions(runner_dirs=[str(tmp_path / "clients")], extension_modules=str(tmp_path / "ext"))
    tools.control = SimpleNamespace(call=call)
    assert _call(tools, "clients.begun", "web*") == ["7", {"jid": "7", "minions": ["web1"]}]
    assert {fields["command"] for fields in asked} == {"publish"}
    assert [(fields["fun"], fields["user"], fields["ret"]) for fields in asked] == [
        ("f", "ann", ""),
        ("f", "ann", "local_cache"),
    ]
    assert asked[0]["arg"] == [1, {"a": 2, "__kwarg__": True}]
    assert _call(tools, "clients.begun", "none*") == [0, {}]
    with pytest.raises(CommandError, match="ann may not"):
        _call(tools, "clients.begun", "refused*")
    with pytest.raises(InvocationError, match=r"LocalClient\.cmd_async: not supported: jid"):
        _call(tools, "clients.numbered")


def test_a_minion_has_no_client(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "import salt.client\ndef f(): return salt.client.LocalClient().cmd('*', 'test.ping')\n"
        "def g(): return salt.client.Caller().cmd('test.echo', 3)\n"
    )
    runtime = local_runtime({"id": "web1", "module_dirs": [str(tmp_path)]})
    with pytest.raises(CommandError, match=r"use __salt__\['publish.publish'\]"):
        runtime.functions["own.f"]()
    assert runtime.functions["own.g"]() == 3
    (tmp_path / "clients.py").write_text(CLIENTS)
    runtime = local_runtime({"id": "web1", "module_dirs": [str(tmp_path)]})
    with pytest.raises(CommandError, match=r"use __salt__\['publish.runner'\]"):
        runtime.functions["clients.runner"]()
    with pytest.raises(CommandError, match="a minion must not call wheel functions"):
        runtime.functions["clients.wheel"]("key.list")


def test_runners_of_an_extension(tools: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site, package = tmp_path / "site", "acme_runner_extension"
    for name, text in (
        (f"{package}/__init__.py", ""),
        (
            f"{package}/runners/acme.py",
            "def ask(x):\n    return [x, __opts__['id'], __salt__['test.arg'](1)['args']]\n",
        ),
        (f"{package}/runners/other.py", "NAME = 'test'\ndef f():\n    return 1\n"),
        (f"{package}-1.0.dist-info/entry_points.txt", f"[salt.loader]\nacme = {package}\n"),
    ):
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    monkeypatch.syspath_prepend(str(site))
    assert _call(tools, "acme.ask", 5) == [5, "master", [1]]
    # A file that only mentions the name of a built-in runner does not hide it.
    assert _call(tools, "test.arg", 1)["args"] == [1]
