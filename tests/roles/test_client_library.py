"""The client library beside a whole master: each example of docs/client-library.md, and its faults."""

from __future__ import annotations

import asyncio
import json
import re
import runpy
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import saltern
from saltern.kit.keys.keygen import make_keys
from tests.roles.conftest import NewLab
from tests.roles.lab import ROOT, SOON, Lab, until

pytestmark = [pytest.mark.roles, pytest.mark.redis]

PAGE = ROOT / "docs" / "client-library.md"

#: (script, what it prints) of each example.
EXAMPLES: Sequence[tuple[str, str]] = re.findall(
    r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL
)

ALL = [".*", "@runner", "@wheel", "@jobs"]


class ApiLab(Lab):
    """A lab with the API."""

    def _replicas(self) -> list[str]:
        return [*super()._replicas(), "api", "http"]

    @property
    def roles(self) -> tuple[str, ...]:
        return tuple(name for name in super().roles if name != "http")

    def environment_of(self, name: str) -> dict[str, str]:
        if name != "api":
            return self.environment
        return self.environment | {
            "SALTERN_REST_CHERRYPY": json.dumps({**self.options["rest_cherrypy"], "port": self.port["http"]})
        }

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port['http']}"


@pytest.fixture(scope="module")
def lab(module_labs: NewLab, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    home = tmp_path_factory.mktemp("users")
    (home / "users").write_text("ann:pw-ann\nbob:pw-bob\n")
    clients = ["local", "local_async", "local_batch", "runner", "runner_async", "wheel"]
    made = module_labs(
        ApiLab,
        options={
            "external_auth": {"file": {"^filename": str(home / "users"), "ann": ALL, "bob": ["test.ping"]}},
            "netapi_enable_clients": clients,
            "timeout": 20,
            "rest_cherrypy": {"host": "127.0.0.1", "disable_ssl": True},
        },
    )
    # For Caller, whose default would be this machine's own minion.
    (made.etc / "minion").write_text(f"id: script\ncachedir: {made.root}/script\npki_dir: {made.root}/script-pki\n")
    made.start_all()
    made.run("salt", "*", "test.ping", "-t", "30")
    return made


@pytest.fixture
def control(lab: Lab) -> saltern.Control:
    return saltern.Control(config_dir=lab.environment["SALT_CONFIG_DIR"])


@pytest.fixture
def ann(lab: ApiLab) -> saltern.Api:
    return saltern.Api(lab.url, "ann", "pw-ann", "file")


@pytest.fixture(params=["4507", "api"])
def master(request: pytest.FixtureRequest, control: saltern.Control, ann: saltern.Api) -> saltern.Control | saltern.Api:
    return control if request.param == "4507" else ann


# ------------------------------------------------------------------------------------------------------------- examples


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_prints_what_the_page_says(
    lab: ApiLab,
    tmp_path: Path,
    number: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    script, printed = EXAMPLES[number]
    (tmp_path / "script.py").write_text(script.replace("/etc/salt/master", str(lab.etc / "master")))
    own = {"SALT_API": lab.url, "SALT_PASSWORD": "pw-ann", "SALT_CONFIG_DIR": str(lab.etc)}
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    runpy.run_path(str(tmp_path / "script.py"), run_name="__main__")
    assert capsys.readouterr() == (printed, "")


def test_the_examples_are_typed(tmp_path: Path) -> None:
    """As users check their scripts: strictly, against the types that the package ships."""
    paths = []
    for number, (script, _) in enumerate(EXAMPLES):
        paths.append(tmp_path / f"example_{number}.py")
        paths[-1].write_text(script)
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), *map(str, paths)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr


# ------------------------------------------------------------------------------------------------------- both transports


def test_jobs_by_each_transport(master: saltern.Control | saltern.Api) -> None:
    with saltern.LocalClient(master=master) as local:
        assert local.cmd("*", "test.ping") == {"web1": True, "web2": True}
        full = local.cmd_full_return("web1", "test.retcode", [3])
        assert (full["web1"]["ret"], full["web1"]["retcode"]) == (True, 3)
        assert sorted(name for one in local.cmd_iter("*", "test.ping") for name in one) == ["web1", "web2"]
        slow = list(local.cmd_iter_no_block("web1", "test.sleep", [1]))
        assert None in slow
        assert next(one for one in slow if one)["web1"]["ret"] is True
        batch = list(local.cmd_batch("*", "test.echo", ["x"], batch="50%"))
        assert sorted((name, value) for one in batch for name, value in one.items()) == [("web1", "x"), ("web2", "x")]
        jid = local.cmd_async("web*", "test.echo", ["later"])
        assert isinstance(jid, str)
        assert local.get_returns(jid, ["web1", "web2"]) == {"web1": "later", "web2": "later"}
        assert local.get_cache_returns(jid)["web1"] == {"ret": "later"}
        assert local.run_job("none*", "test.ping") == {}
        assert local.gather_minions("web1,nobody", "list") == ["web1"]


def test_runners_wheel_functions_and_events_by_each_transport(master: saltern.Control | saltern.Api) -> None:
    with saltern.RunnerClient(master=master) as runner, saltern.WheelClient(master=master) as wheel:
        assert runner.cmd("test.arg", [1], kwarg={"a": 2}) == {"args": [1], "kwargs": {"a": 2}}
        whole = runner.cmd_sync({"fun": "test.arg", "arg": [1]}, full_return=True)
        assert isinstance(whole, dict)
        assert whole["data"]["fun"] == "runner.test.arg"
        assert whole["tag"] == f"salt/run/{whole['data']['jid']}/ret"
        assert whole["data"]["success"] is True
        failed = runner.cmd("event.send", ["tag", "no map"], full_return=True)
        assert isinstance(failed, dict)
        assert failed["success"] is False
        assert wheel.cmd("key.list", kwarg={"match": "accepted"}) == {"minions": ["web1", "web2"]}
        assert wheel.cmd_sync({"fun": "key.list", "match": "all"})["data"]["success"] is True
        with pytest.raises(saltern.exceptions.SaltInvocationError, match=r"no\.such"):
            runner.cmd("no.such")
    with saltern.Events("salt/job/*/ret/web1", master=master) as events, saltern.LocalClient(master=master) as local:
        local.cmd("*", "test.ping")
        event = events.next(SOON)
        assert event is not None
        assert event.data["id"] == "web1"
        assert events.next(0.5) is None
        assert events.lost == 0


def test_asyncio_by_each_transport(master: saltern.Control | saltern.Api) -> None:
    async def main() -> None:
        async with (
            saltern.AsyncLocalClient(master=master) as local,
            saltern.AsyncEvents("salt/job/", master=master) as events,
        ):
            done = await asyncio.gather(*(local.cmd("*", "test.echo", [number]) for number in range(8)))
            assert done == [{"web1": number, "web2": number} for number in range(8)]
            seen = 0
            async for event in events:
                seen += event.tag.endswith("/ret/web1")
                if seen == 8:
                    break
            job = await local.run_job("*", "test.echo", ["x"])
            assert await local.get_returns(job["jid"], job["minions"]) == {"web1": "x", "web2": "x"}
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(local.cmd("web1", "test.sleep", [15]), 1)
            assert await local.cmd("web2", "test.ping") == {"web2": True}

    asyncio.run(main())


def test_threads_and_forked_children_share_a_client(control: saltern.Control) -> None:
    local = saltern.LocalClient(master=control)
    found: dict[int, Any] = {}

    def ask(number: int) -> None:
        found[number] = local.cmd("*", "test.echo", [number])

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON)
    assert found == {number: {"web1": number, "web2": number} for number in range(6)}
    script = (
        "import os, saltern\n"
        f"local = saltern.LocalClient(master=saltern.Control(config_dir={control.config_dir!r}))\n"
        "assert local.cmd('web1', 'test.ping') == {'web1': True}\n"
        "if (child := os.fork()) == 0:\n"
        "    os._exit(0 if local.cmd('web1', 'test.ping') == {'web1': True} else 1)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "assert local.cmd('web1', 'test.ping') == {'web1': True}\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    local.destroy()
    assert local.cmd("web1", "test.ping") == {"web1": True}
    local.destroy()


def test_events_of_the_api_go_on_after_its_restart(lab: ApiLab, ann: saltern.Api, control: saltern.Control) -> None:
    with saltern.Events("own/", master=ann) as events, saltern.Events("own/", master=control) as bus:
        bus.fire_event({"n": 1}, "own/1")
        assert [event.data["n"] for event in [events.next(SOON)] if event] == [1]
        lab.restart("api")
        bus.fire_event({"n": 2}, "own/2")
        lab.await_ready("api")
        event = events.next(SOON)
        assert event is not None
        assert event.data["n"] == 2


# --------------------------------------------------------------------------------------------------------------- faults


@pytest.fixture
def keys(lab: Lab, tmp_path: Path) -> Path:
    """Keys of another master."""
    make_keys(tmp_path / "keys")
    return tmp_path / "keys"


FAULTS = saltern.exceptions


def test_no_master(lab: Lab, control: saltern.Control) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    nowhere = saltern.Control(config_dir=control.config_dir, port=port, patience=1)
    with pytest.raises(FAULTS.SaltReqTimeoutError, match=f"127.0.0.1:{port} does not answer .waited 1 s"):
        saltern.LocalClient(master=nowhere).cmd("*", "test.ping")
    api = saltern.Api(f"http://127.0.0.1:{port}", token="ab", patience=1)
    with pytest.raises(FAULTS.SaltReqTimeoutError, match=f"http://127.0.0.1:{port} does not answer"):
        saltern.LocalClient(master=api).cmd("*", "test.ping")


def test_keys_that_do_not_fit(lab: Lab, control: saltern.Control, keys: Path) -> None:
    other = saltern.Control(config_dir=control.config_dir, key_dir=str(keys / "cli"), patience=2)
    with pytest.raises(FAULTS.AuthenticationError, match=r"has another key than known/reqserver\.pub"):
        saltern.LocalClient(master=other).cmd("*", "test.ping")
    # A key of our own, and the right key of the master.
    own = Path(control.config_dir) / "keys" / "cli"
    for path in (keys / "cli").rglob("reqserver.pub"):
        path.write_bytes(next(own.rglob("reqserver.pub")).read_bytes())
    with pytest.raises(FAULTS.AuthenticationError, match="refuses this operator's key"):
        saltern.LocalClient(master=other).cmd("*", "test.ping")
    missing = saltern.Control(config_dir=control.config_dir, key_dir=str(keys / "nobody"))
    with pytest.raises(FAULTS.SaltConfigurationError, match="saltern keygen"):
        saltern.LocalClient(master=missing).cmd("*", "test.ping")


@pytest.mark.parametrize("kind", ["4507", "api"])
def test_users_without_rights(lab: ApiLab, control: saltern.Control, kind: str) -> None:
    def client(**login: str) -> saltern.LocalClient:
        if kind == "api":
            return saltern.LocalClient(master=saltern.Api(lab.url, **login))
        return saltern.LocalClient(master=saltern.Control(config_dir=control.config_dir, login=saltern.Login(**login)))

    with pytest.raises(FAULTS.EauthAuthenticationError, match="refuses: "):
        client(username="ann", password="wrong", eauth="file").cmd("*", "test.ping")
    with pytest.raises(FAULTS.TokenAuthenticationError, match="sign in again"):
        client(token="ab" * 20).cmd("*", "test.ping")
    bob = client(username="bob", password="pw-bob", eauth="file")
    assert bob.cmd("web1", "test.ping") == {"web1": True}
    with pytest.raises(FAULTS.AuthorizationError):
        bob.cmd("web1", "cmd.run", ["id"])
    with pytest.raises(FAULTS.SaltInvocationError, match="not supported: nonsense"):
        bob.cmd("web1", "test.ping", nonsense=1)


def test_a_token_that_expires_is_renewed(lab: ApiLab, ann: saltern.Api) -> None:
    with saltern.LocalClient(master=ann) as local:
        assert local.cmd("web1", "test.ping") == {"web1": True}
        tokens = local._thread.here()[1]._tokens
        (login,) = tokens
        first, _ = tokens[login]
        tokens[login] = (first, 0.0)
        assert local.cmd("web1", "test.ping") == {"web1": True}
        assert tokens[login][0] != first


def test_redis_away(lab: Lab, control: saltern.Control) -> None:
    lab.processes["redis"].send_signal(signal.SIGSTOP)
    try:
        patient = saltern.Control(config_dir=control.config_dir, patience=8)
        with pytest.raises((FAULTS.SaltMasterError, FAULTS.SaltReqTimeoutError), match=r"(?i)redis|does not answer"):
            saltern.LocalClient(master=patient).cmd("*", "test.ping")
    finally:
        lab.processes["redis"].send_signal(signal.SIGCONT)

    def works() -> bool:
        try:
            with saltern.LocalClient(master=control) as local:
                return local.cmd("web1", "test.ping") == {"web1": True}
        except (FAULTS.SaltMasterError, FAULTS.SaltReqTimeoutError):
            return False

    until(works, SOON, "the master works again")
