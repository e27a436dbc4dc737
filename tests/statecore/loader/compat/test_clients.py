"""Salt's clients in users' runners: LocalClient, RunnerClient, WheelClient, salt.config, and every way to import them."""

from __future__ import annotations

import inspect
import json
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from statecore.loader.compat import client, runner, wheel
from statecore.loader.compat.utils import event, master
from statecore.model.errors import CommandError
from statecore.model.ports import MasterCall, MinionJob
from statecore.runtime.runtime import local_runtime

MODULE = """
import importlib
import salt.client
import salt.config
import salt.runner
import salt.utils.event
import salt.utils.master
import salt.wheel


def evaluate(text):
    return eval(text, globals())


def collected(text):
    return list(eval(text, globals()))
"""

JID = "20261121001824892890"


class Master:
    """A master of web1, web2 and db1, of which db1 never returns."""

    jid = JID

    def __init__(self) -> None:
        self.published: list[MinionJob] = []
        self.started: list[MasterCall] = []
        self.followed: list[tuple[str, Sequence[str], float | None]] = []

    def publish(self, job: MinionJob) -> dict[str, object]:
        self.published.append(job)
        return {} if job.tgt == "none*" else {"jid": JID, "minions": ["web1", "web2", "db1"]}

    def ask(self, job: MinionJob, event_data: Any) -> dict[str, dict[str, Any]]:
        self.published.append(job)
        return {
            "web1": {"ret": 1, "retcode": 0, "jid": JID},
            "web2": {"ret": 2, "retcode": 1, "jid": JID, "out": "nested"},
        }

    def follow(
        self, jid: str, minions: Sequence[str], timeout: float | None
    ) -> Iterator[tuple[str, dict[str, Any]] | None]:
        self.followed.append((jid, minions, timeout))
        yield "web1", {"ret": 1, "retcode": 0, "jid": jid}
        yield None
        yield "web2", {"ret": 2, "retcode": 1, "jid": jid}
        yield "db1", {"failed": True, "out": "no_return", "jid": jid}

    def start(self, call: MasterCall) -> dict[str, str]:
        self.started.append(call)
        return {"jid": JID, "tag": f"salt/run/{JID}"}

    def run(self, calls: Sequence[MasterCall]) -> list[dict[str, Any]]:
        self.started.extend(calls)
        answers: dict[str, Any] = {
            "cache.grains": {"web2": {}, "web1": {}},
            "jobs.list_job": {"Result": {"web1": {"return": 5, "out": "txt"}, "web2": {"return": None}}},
            "cache.clear_grains": True,
            "test.arg": {"args": [1]},
        }
        return [{"return": answers.get(one.fun, "no"), "success": one.fun in answers, "jid": JID} for one in calls]

    def wheel(self, call: MasterCall) -> dict[str, Any]:
        self.started.append(call)
        if call.fun == "minions.connected":
            return {"return": ["web1"], "success": True}
        return {"return": "refused" if call.fun == "key.no" else dict(call.kwarg), "success": call.fun != "key.no"}

    def events(self, prefix: str, seconds: float) -> Iterator[tuple[str, Any]]:
        yield from ((tag, {"n": 1}) for tag in ("salt/job/1/ret/web1",) if tag.startswith(prefix))


class Bus:
    def __init__(self) -> None:
        self.fired: list[str] = []

    def fire(self, tag: str, data: Any) -> bool:
        self.fired.append(tag)
        return True


@pytest.fixture
def call(tmp_path: Path) -> Any:
    """Evaluate an expression in a user's module on a master, or on a minion (``on=None``)."""
    (tmp_path / "ext/modules").mkdir(parents=True)
    (tmp_path / "ext/modules/own.py").write_text(MODULE)
    runtime = local_runtime({"id": "m", "extension_modules": str(tmp_path / "ext"), "interface": "1.2.3.4"}, pillar={})

    def evaluated(text: str, on: Any, events: Any = None, function: str = "evaluate") -> Any:
        ctx = replace(runtime.context, master=on, events=events or Bus())
        served, name = runtime.loader.function("modules", f"own.{function}", ctx)
        return served.bound(name, ctx)(text)

    return evaluated


LOCAL = "salt.client.LocalClient()"
ONE, TWO = {"web1": {"ret": 1, "retcode": 0, "jid": JID}}, {"web2": {"ret": 2, "retcode": 1, "jid": JID}}
SILENT = {"db1": {"out": "no_return", "retcode": 1}}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (f"{LOCAL}.cmd('*', 'test.ping')", {"web1": 1, "web2": 2}),
        (f"{LOCAL}.cmd('a,b', 'test.ping', expr_form='list')", {"web1": 1, "web2": 2}),
        (f"{LOCAL}.cmd_full_return('*', 'test.ping')", {**ONE, "web2": {**TWO["web2"], "out": "nested"}}),
        (f"list({LOCAL}.cmd_iter('*', 'test.ping'))", [ONE, TWO]),
        (f"list({LOCAL}.cmd_iter_no_block('*', 'test.ping', show_jid=True))", [ONE, None, TWO]),
        (f"list({LOCAL}.cmd_iter_no_block('none*', 'test.ping'))", []),
        (f"{LOCAL}.get_cache_returns('{JID}')", {"web1": {"ret": 5, "out": "txt"}, "web2": {"ret": None}}),
        (f"{LOCAL}.returns_for_job('{JID}')", True),
        (f"list({LOCAL}.get_cli_returns('{JID}', ['web1', 'web2'], timeout=3))", [ONE, TWO]),
        (f"list({LOCAL}.get_iter_returns('{JID}', {{'web1', 'web2'}}))", [ONE, TWO]),
        (f"{LOCAL}.get_returns('{JID}', ['web1'])", {"web1": 1, "web2": 2}),
        (f"{LOCAL}.get_full_returns('{JID}', ['web1'])", {**ONE, **TWO}),
        (f"{LOCAL}.gather_minions('web*', 'glob')", ["web1", "web2"]),
        (f"{LOCAL}.event.get_event(tag='salt/job')", {"n": 1}),
        (f"{LOCAL}.event.get_event_noblock()['tag']", "salt/job/1/ret/web1"),
        (f"{LOCAL}.event.connect_pub(), {LOCAL}.opts['id']", (True, "m")),
        (
            "salt.runner.RunnerClient(__opts__).cmd_async({'fun': 'test.arg', 'arg': [1]})",
            {"jid": JID, "tag": f"salt/run/{JID}"},
        ),
        ("salt.runner.RunnerClient(__opts__).cmd_sync({'fun': 'test.arg', 'arg': [1]})", {"args": [1]}),
        (
            "salt.runner.RunnerClient(__opts__).cmd_sync({'fun': 'test.arg'}, full_return=True)",
            {
                "tag": f"salt/run/{JID}/ret",
                "data": {"fun": "runner.test.arg", "return": {"args": [1]}, "success": True, "jid": JID},
            },
        ),
        ("salt.wheel.WheelClient(__opts__).cmd('key.f', kwarg={'match': 'a'})", {"match": "a"}),
        ("salt.wheel.WheelClient(__opts__).call_func('key.f', match='a')", {"match": "a"}),
        ("salt.wheel.WheelClient(__opts__).cmd_sync({'fun': 'key.f', 'match': 'a'})['data']['return']", {"match": "a"}),
        ("salt.wheel.WheelClient(__opts__).cmd_async({'fun': 'key.f'})['tag'][:11]", "salt/wheel/"),
        ("salt.config.master_config('/etc/salt/master')['interface']", "1.2.3.4"),
        ("salt.config.client_config('/etc/salt/master')['interface']", "1.2.3.4"),
        ("salt.config.minion_config('/etc/salt/minion')['interface']", "1.2.3.4"),
        ("salt.utils.master.MasterPillarUtil('*').clear_cached_minion_data(clear_grains=True)", True),
        ("salt.utils.master.ping_all_connected_minions(__opts__)", None),
    ],
)
def test_on_a_master(call: Any, expression: str, value: Any) -> None:
    assert call(expression, Master()) == value


def test_the_command_line_hears_of_silent_minions(call: Any) -> None:
    found = call(f"{LOCAL}.cmd_cli('*', 'test.ping', progress=True)", Master(), function="collected")
    told = found.pop()
    assert found == [{"minion_count": 3, "return_count": 1}, ONE, {"minion_count": 3, "return_count": 2}, TWO]
    assert told["db1"].pop("ret").endswith(f"salt-run jobs.lookup_jid {JID}")
    assert told == SILENT


def test_a_subset_on_the_command_line(call: Any) -> None:
    on = Master()
    call(f"{LOCAL}.cmd_subset('*', 'test.ping', subset=1, cli=True)", on, function="collected")
    (job,) = on.published
    assert (job.tgt_type, len(job.tgt), job.tgt[0] in ("web1", "web2")) == ("list", 1, True)


def test_calls_reach_the_master_with_their_arguments(call: Any) -> None:
    on, bus = Master(), Bus()
    call(
        f"{LOCAL}.cmd_iter('web*', 'test.arg', [1], timeout=7, expr_form='glob', kwarg={{'a': 2}})",
        on,
        function="collected",
    )
    assert on.published == [MinionJob("web*", "test.arg", "glob", (1,), {"a": 2})]
    assert on.followed == [(JID, ["db1", "web1", "web2"], 7)]
    low = "{'fun': 'runner.test.arg', 'arg': [1], 'kwarg': {'b': 2}, 'c': 3, 'eauth': 'pam', 'username': 'x', 'password': 'y'}"
    call(f"salt.runner.RunnerClient(1).cmd_async({low})", on)
    assert on.started == [MasterCall("test.arg", (1,), {"c": 3, "b": 2})]
    call("salt.wheel.WheelClient(1).cmd_async({'fun': 'key.f'})", on, bus)
    assert [tag.rpartition("/")[2] for tag in bus.fired] == ["new", "ret"]


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        (f"list({LOCAL}.cmd_iter_no_block('*', 'test.ping'))", "works in runners only"),
        (f"{LOCAL}.gather_minions('*', 'glob')", "works in runners only"),
        (f"{LOCAL}.get_cache_returns('1')", "can be called on a master only"),
        ("salt.runner.RunnerClient(1).cmd_async({'fun': 'x.y'})", "__salt__['publish.runner']"),
        ("salt.wheel.WheelClient(1).cmd_sync({'fun': 'x.y'})", "a minion must not call wheel functions"),
        ("salt.config.master_config('/etc/salt/master')", "a minion does not have the master's options"),
    ],
)
def test_on_a_minion(call: Any, expression: str, says: str) -> None:
    with pytest.raises(CommandError) as caught:
        call(expression, None)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        (f"{LOCAL}.cmd('*', 'test.ping', eauth='pam')", "LocalClient.cmd: not supported: eauth"),
        ("salt.wheel.WheelClient(1).cmd('key.no')", "refused"),
        ("salt.wheel.WheelClient(1).cmd('key.f', ['a'])", "pass the arguments by name"),
        ("salt.runner.RunnerClient(1).cmd_sync({})", "a low chunk needs the key fun"),
    ],
)
def test_what_is_refused(call: Any, expression: str, says: str) -> None:
    with pytest.raises(Exception, match=r".") as caught:
        call(expression, Master())
    assert says in str(caught.value)


#: Way to import a module of Salt in a user's module -> expression that is true.
IMPORTS = [
    "importlib.import_module('salt.client').LocalClient is salt.client.LocalClient",
    "importlib.import_module('salt.utils.event') is salt.utils.event",
    "importlib.import_module('.event', 'salt.utils') is salt.utils.event",
    "__import__('salt.client').client is salt.client",
    "__import__('salt.client', fromlist=['LocalClient']) is salt.client",
    "importlib.import_module('salt').client is salt.client",
    "importlib.reload(salt.config).master_config is not None",
]


@pytest.mark.parametrize("expression", IMPORTS)
def test_every_import_finds_the_same(call: Any, expression: str) -> None:
    assert call(expression, Master()) is True


#: Our class or module -> expression of Salt's.
COMPARED = {
    client.LocalClient: "salt.client.LocalClient",
    runner.RunnerClient: "salt.runner.RunnerClient",
    wheel.WheelClient: "salt.wheel.WheelClient",
    event.SaltEvent: "salt.utils.event.SaltEvent",
    master.MasterPillarUtil: "salt.utils.master.MasterPillarUtil",
}

#: Methods of Salt's that are left out: connections of its own, asyncio of tornado, and its processes.
LEFT_OUT = {
    "salt.client.LocalClient": {
        "gather_job_info",
        "get_returns_no_block",
        "pub",
        "pub_async",
        "run_job_async",
    },
    "salt.runner.RunnerClient": {"functions_dict", "print_async_event"},
    "salt.wheel.WheelClient": {"functions_dict", "get_docs", "print_async_event"},
    "salt.utils.event.SaltEvent": {"fire_event_async", "fire_ret_load", "pack", "set_event_handler", "unpack"},
    "salt.utils.master.MasterPillarUtil": set(),
}


@pytest.mark.oracle
def test_the_clients_have_salts_methods(oracle: Any) -> None:
    program = (
        "import inspect, json, salt.client, salt.runner, salt.wheel, salt.utils.event, salt.utils.master\n"
        f"names = {sorted(COMPARED.values())!r}\n"
        "print(json.dumps({name: {each: list(inspect.signature(f).parameters) for each, f in"
        " inspect.getmembers(eval(name), callable) if each[0] != '_'} for name in names}))"
    )
    python = oracle.program("python")
    salts = json.loads(subprocess.run([python, "-W", "ignore", "-c", program], capture_output=True, check=True).stdout)
    for ours, name in COMPARED.items():
        wanted = salts[name].keys() - LEFT_OUT[name]
        assert not {each for each in wanted if not hasattr(ours, each)}, name
        for each in wanted:
            parameters = inspect.signature(getattr(ours, each)).parameters
            if not any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
                assert set(salts[name][each]) <= set(parameters), (name, each)
