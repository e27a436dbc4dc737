"""Secrets in states and in the arguments of jobs: where an attacker would look for them, and what users still see."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from masterstore.jobs import Job
from saltern.minion.jobs import jobber
from saltern.mworker.runners import jobs
from statecore.model.redaction import is_masked, shown_arguments
from statecore.model.values import MASK
from statecore.runtime.runtime import local_runtime
from tests.services.mworker.conftest import Worker

SECRET = "hunter2-swordfish"

#: Attack: SLS whose run is searched for the secret, in the log at level debug and in the return.
STATES: dict[str, str] = {
    "a quiet command's name": f"x:\n  cmd.run:\n    - name: 'echo {SECRET} >/dev/null'\n    - output_loglevel: quiet\n",
    "a quiet command whose id is the command": f"'echo {SECRET} >/dev/null':\n  cmd.run:\n    - output_loglevel: quiet\n",
    "QUIET": f"x:\n  cmd.run:\n    - name: 'echo {SECRET} >/dev/null'\n    - output_loglevel: QUIET\n",
    "a quiet command that fails": f"x:\n  cmd.run:\n    - name: 'false {SECRET}'\n    - output_loglevel: quiet\n",
    "a quiet command that is a syntax error": f"x:\n  cmd.run:\n    - name: 'echo \"{SECRET}'\n    - python_shell: False\n"
    "    - output_loglevel: quiet\n",
    "a quiet command that times out": f"x:\n  cmd.run:\n    - name: 'sleep 5 # {SECRET}'\n    - timeout: 0.2\n"
    "    - output_loglevel: quiet\n",
    "a quiet command in a missing directory": f"x:\n  cmd.run:\n    - name: 'echo {SECRET}'\n    - cwd: /nowhere\n"
    "    - output_loglevel: quiet\n",
    "two quiet commands of one id": f"x:\n  cmd.run:\n    - names: ['true {SECRET} 1', 'true {SECRET} 2']\n"
    "    - output_loglevel: quiet\n",
    "a quiet command whose requisite failed": f"bad:\n  test.fail_without_changes: []\n'true {SECRET}':\n  cmd.run:\n"
    "    - output_loglevel: quiet\n    - require: [test: bad]\n",
    "a state that requires a quiet command": f"'false {SECRET}':\n  cmd.run:\n    - output_loglevel: quiet\n"
    f"after:\n  test.nop:\n    - require:\n      - cmd: 'false {SECRET}'\n",
    "a quiet command that is repeated": f"x:\n  cmd.run:\n    - name: 'false {SECRET}'\n    - output_loglevel: quiet\n"
    "    - retry: {attempts: 2, interval: 0}\n",
    "a quiet command in parallel": f"x:\n  cmd.run:\n    - name: 'true {SECRET}'\n    - output_loglevel: quiet\n"
    "    - parallel: True\n",
    "a quiet command with unknown arguments": f"x:\n  cmd.run:\n    - name: 'true {SECRET}'\n    - output_loglevel: quiet\n"
    "    - timeout: soon\n",
    "a quiet command as a listener": f"y:\n  test.succeed_with_changes: []\n'true {SECRET}':\n  cmd.wait:\n"
    "    - output_loglevel: quiet\n    - listen: [test: y]\n",
    "a quiet script's arguments": f"x:\n  cmd.script:\n    - source: salt://s.sh\n    - name: s.sh\n    - args: {SECRET}\n"
    "    - output_loglevel: quiet\n",
    "hidden output": f"x:\n  cmd.run:\n    - name: cat secret\n    - stdin: {SECRET}\n    - hide_output: True\n",
    "no_log": f"x:\n  cmd.run:\n    - name: 'echo {SECRET}'\n    - no_log: True\n",
    "no_log and a command as the id": f"'echo {SECRET}':\n  cmd.run:\n    - no_log: True\n",
    "no_log on another state": f"x:\n  test.configurable_test_state:\n    - name: {SECRET}\n    - comment: {SECRET}\n"
    "    - no_log: True\n",
    "no_log and an exception": f"x:\n  file.managed:\n    - name: /proc/{SECRET}\n    - contents: {SECRET}\n    - no_log: True\n",
    "no_log and a wrong argument": f"x:\n  test.nop:\n    - name: {SECRET}\n    - no_log: True\n    - {SECRET}: 1\n",
    "no_log whose requisite failed": "bad:\n  test.fail_without_changes: []\nx:\n  test.nop:\n"
    f"    - name: {SECRET}\n    - no_log: True\n    - require: [test: bad]\n",
}


def run(tmp_path: Path, sls: str, **options: Any) -> Any:
    """Apply this SLS text on a new minion by ``state.apply`` and return the value."""
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "secret.sls").write_text(sls)
    (tree / "s.sh").write_text("#!/bin/sh\necho $1\n")
    opts = {
        "id": "web1",
        "cachedir": str(tmp_path / "cache"),
        "file_roots": {"base": [str(tree)]},
        "state_events": True,
    }
    return local_runtime(opts, grains={"id": "web1"}).call("state.apply", ["secret"], options).value


@pytest.mark.parametrize("test", [False, True], ids=["run", "test=True"])
@pytest.mark.parametrize("attack", STATES)
def test_a_state_run_shows_no_secret(attack: str, test: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    returned = run(tmp_path, STATES[attack], test=test)
    assert isinstance(returned, dict), returned
    assert SECRET not in json.dumps(returned)
    assert SECRET not in caplog.text


@pytest.mark.ordinary
def test_a_normal_command_is_shown_as_in_salt(tmp_path: Path) -> None:
    ((tag, entry),) = run(tmp_path, "x:\n  cmd.run:\n    - name: echo seen\n").items()
    assert tag == "cmd_|-x_|-echo seen_|-run"
    assert (entry["name"], entry["comment"], entry["changes"]["stdout"]) == (
        "echo seen",
        'Command "echo seen" run',
        "seen",
    )


@pytest.mark.ordinary
def test_a_quiet_command_still_shows_its_id_its_output_and_its_code(tmp_path: Path) -> None:
    sls = "x:\n  cmd.run:\n    - name: sh -c 'echo seen; exit 3'\n    - output_loglevel: quiet\n"
    ((tag, entry),) = run(tmp_path, sls).items()
    assert tag == f"cmd_|-x_|-{MASK}_|-run"
    assert (entry["__id__"], entry["name"], entry["comment"]) == ("x", MASK, f'Command "{MASK}" run')
    assert (entry["changes"]["stdout"], entry["changes"]["retcode"], entry["result"]) == ("seen", 3, False)


@pytest.mark.ordinary
def test_states_of_one_id_stay_apart(tmp_path: Path) -> None:
    sls = "x:\n  cmd.run:\n    - names: ['true aaaa', 'true bbbb']\n    - output_loglevel: quiet\n"
    assert len(run(tmp_path, sls)) == 2


#: Attack -> (function, arguments of its job).
ARGUMENTS: dict[str, tuple[Any, list[Any]]] = {
    "a password": ("user.add", ["frank", {"__kwarg__": True, "password": SECRET}]),
    "a passwd": ("pkgrepo.add", [{"__kwarg__": True, "passwd": SECRET}]),
    "a token": ("http.query", ["https://x", {"__kwarg__": True, "token": SECRET}]),
    "a name that ends in password": ("mysql.query", [{"__kwarg__": True, "connection_password": SECRET}]),
    "capitals": ("x.y", [{"__kwarg__": True, "DB_PASSWORD": SECRET}]),
    "a dash": ("x.y", [{"__kwarg__": True, "api-key": SECRET}]),
    "a private key": ("x509.create", [{"__kwarg__": True, "private_key": SECRET}]),
    "a passphrase": ("x509.create", [{"__kwarg__": True, "private_key_passphrase": SECRET}]),
    "an identity": ("git.clone", [{"__kwarg__": True, "identity": SECRET}]),
    "a pillar": ("state.apply", [{"__kwarg__": True, "pillar": {"db": [{"secret": SECRET}]}}]),
    "the environment": ("cmd.run", ["env", {"__kwarg__": True, "env": {"DB_PASSWORD": SECRET}}]),
    "a map as a positional argument": ("x.y", [{"credentials": {"user": SECRET}}]),
    "a word": ("x.y", [f"password={SECRET}"]),
    "a list of words": ("x.y", [[{"token": SECRET}]]),
    "a positional password": ("shadow.set_password", ["root", SECRET]),
    "a positional password of MySQL": ("mysql.user_create", ["frank", "localhost", SECRET]),
    "a quiet command": ("cmd.run", [f"echo {SECRET}", {"__kwarg__": True, "output_loglevel": "quiet"}]),
    "a quiet command by name": ("cmd.run_all", [{"__kwarg__": True, "cmd": SECRET, "output_loglevel": "quiet"}]),
    "a quiet single state": (
        "state.single",
        ["cmd.run", {"__kwarg__": True, "name": f"echo {SECRET}", "output_loglevel": "quiet"}],
    ),
    "a single state with no_log": ("state.single", ["cmd.run", SECRET, {"__kwarg__": True, "no_log": True}]),
    "several functions": (["test.ping", "user.add"], [[], ["a", {"__kwarg__": True, "password": SECRET}]]),
    "a nest of maps": ("x.y", [{"a": {"b": {"c": {"d": [[{"password": SECRET}]]}}}}]),
    "a number": ("x.y", [{"__kwarg__": True, "password": SECRET, "secret": 12345}]),
}


@pytest.mark.parametrize("attack", ARGUMENTS)
def test_arguments_are_shown_without_secrets(attack: str) -> None:
    shown = shown_arguments(*ARGUMENTS[attack])
    assert SECRET not in json.dumps(shown)
    assert MASK in json.dumps(shown)
    assert "12345" not in json.dumps(shown)
    assert is_masked(shown)


@pytest.mark.parametrize(
    ("fun", "arguments"),
    [
        ("cmd.run", ["echo a=b password"]),
        ("cmd.run", ["mysql -psecret", {"__kwarg__": True, "cwd": "/", "hide_output": True}]),
        ("user.add", ["frank", {"__kwarg__": True, "empty_password": True, "password": None}]),
        ("test.arg", ["tokenize=3", {"__kwarg__": True, "passwords_file": "/x", "key": 1}]),
        ("test.ping", []),
        (["a.b", "c.d"], [["x"], []]),
        ("x.y", None),
    ],
)
@pytest.mark.ordinary
def test_other_arguments_are_shown_as_they_are(fun: Any, arguments: Any) -> None:
    assert shown_arguments(fun, arguments) == arguments
    assert not is_masked(arguments)


def test_a_return_of_a_minion_repeats_no_secret(tmp_path: Path) -> None:
    runtime = local_runtime({"id": "web1", "cachedir": str(tmp_path)}, grains={"id": "web1"})
    for load in ({}, {"own": True}):
        job: Any = {"jid": "1", "fun": "test.arg", "arg": ["a", {"__kwarg__": True, "password": SECRET}], **load}
        returned = jobber.run(runtime, job)
        assert SECRET not in json.dumps(returned["fun_args"])


# --------------------------------------------------------------------------------------------------- the master


@pytest.mark.redis
@pytest.mark.parametrize("attack", [name for name, (fun, _) in ARGUMENTS.items() if isinstance(fun, str)])
def test_the_master_shows_no_secret_of_a_job(new_worker: Callable[..., Worker], attack: str) -> None:
    """Published by an operator, returned by a stock minion: neither events, nor the cached return, nor `jobs` show it."""
    fun, arguments = ARGUMENTS[attack]
    worker = new_worker()
    minion = worker.minion()
    calls = {"fun": fun, "arg": arguments}
    jid = worker.control("publish", "cli", tgt="*", tgt_type="glob", request_id="r", **calls)["jid"]
    minion.ask(
        "_return", **{"jid": jid, "fun": fun, "fun_args": arguments, "return": True, "retcode": 0, "success": True}
    )
    assert len(worker.events) >= 3
    assert SECRET not in json.dumps(worker.events, default=str)
    assert SECRET not in json.dumps(worker.store.jobs.returns(jid, ["web1"]), default=str)
    assert SECRET not in json.dumps(jobs.shown(Job(jid, worker.store.jobs.load(jid) or {})), default=str)


@pytest.mark.redis
def test_the_master_shows_no_secret_of_a_wheel_function(new_worker: Callable[..., Worker]) -> None:
    worker = new_worker()
    worker.control("wheel", fun="key.finger", arg=["web1"], kwarg={"password": SECRET})
    assert len(worker.events) == 2
    assert SECRET not in json.dumps([{k: v for k, v in data.items() if k != "return"} for _, data in worker.events])


@pytest.mark.redis
@pytest.mark.ordinary
def test_a_job_that_reaches_a_minion_has_its_secret(new_worker: Callable[..., Worker]) -> None:
    worker = new_worker()
    worker.minion()
    fields = {"fun": "user.add", "arg": ["a", {"__kwarg__": True, "password": SECRET}]}
    jid = worker.control("publish", "cli", tgt="*", tgt_type="glob", request_id="r", **fields)["jid"]
    assert SECRET in json.dumps(worker.store.jobs.load(jid))
