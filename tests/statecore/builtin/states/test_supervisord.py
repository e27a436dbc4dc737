"""supervisord states and module, with a supervisord that really runs, on a socket of its own."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from statecore.host.host import Host
from statecore.model.errors import CommandError
from tests.statecore.conftest import PlainMinion

CONFIGURATION = """[unix_http_server]
file=HERE/socket
[supervisord]
logfile=HERE/log
pidfile=HERE/pid
nodaemon=true
[rpcinterface:supervisor]
supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface
[supervisorctl]
serverurl=unix://HERE/socket
[program:up]
command=sleep 600
startsecs=0
[program:down]
command=sleep 600
autostart=false
startsecs=0 ; at once
priority=5
[program:dud]
command=/none/such
autostart=false
startretries=0
[program:one]
command=sleep 600
startsecs=0
autostart=false
[program:two]
command=sleep 600
startsecs=0
autostart=false
[group:pair]
programs=one,two
[include]
files=HERE/more/*.conf
"""

NEW = "[program:new]\ncommand=sleep 600\nstartsecs=0\n"

#: One after the other: (function, arguments, (result, changes, comment)), after test mode has told of it: (result, comment).
STEPS = [
    ("running", {"name": "up"}, (True, "Service up is already running"), (True, {}, "Service up is already running")),
    (
        "running",
        {"name": "down"},
        (None, "Service down will be started"),
        (True, {"down": "Starting service: down"}, "Starting service: down"),
    ),
    (
        "running",
        {"name": "down"},
        (True, "Service down is already running"),
        (True, {}, "Service down is already running"),
    ),
    (
        "running",
        {"name": "down", "restart": True},
        (None, "Service down is already running; it is set to be restarted"),
        (True, {"down": "Restarting service: down"}, "Restarting service: down"),
    ),
    (
        "mod_watch",
        {"name": "down", "sfun": "running"},
        (None, "Service down is already running; it is set to be restarted"),
        (True, {"down": "Restarting service: down"}, "Restarting service: down"),
    ),
    (
        "dead",
        {"name": "down"},
        (None, "Service down is set to be stopped"),
        (True, {"down": "Stopping service: down"}, "Stopping service: down"),
    ),
    ("dead", {"name": "down"}, (True, "Service down is not running"), (True, {}, "Service down is not running")),
    (
        "mod_watch",
        {"name": "down", "sfun": "dead"},
        (True, "Service down is not running"),
        (True, {}, "Service down is not running"),
    ),
    ("dead", {"name": "none"}, (True, "Service none doesn't exist"), (True, {}, "Service none doesn't exist")),
    (
        "running",
        {"name": "pair:*"},
        (None, "All services in group 'pair:' will be started"),
        (True, {"pair:": "Starting group: pair:"}, "Starting group: pair:"),
    ),
    (
        "running",
        {"name": "pair:"},
        (True, "All services in group 'pair:' are already running"),
        (True, {}, "All services in group 'pair:' are already running"),
    ),
    (
        "dead",
        {"name": "pair:one"},
        (None, "Service pair:one is set to be stopped"),
        (True, {"pair:one": "Stopping service: pair:one"}, "Stopping service: pair:one"),
    ),
    (
        "running",
        {"name": "pair:"},
        (None, "The following services will be started: pair:one"),
        (True, {"pair:": "Starting group: pair:"}, "Starting group: pair:"),
    ),
    (
        "dead",
        {"name": "pair:"},
        (None, "Service pair: is set to be stopped"),
        (True, {"pair:": "Stopping service: pair:"}, "Stopping service: pair:"),
    ),
    (
        "running",
        {"name": "dud"},
        (None, "Service dud will be started"),
        (False, {}, "Starting service: dud\ndud: ERROR (no such file)"),
    ),
    (
        "running",
        {"name": "none"},
        (None, "Service none will be added and started"),
        (False, {}, "Adding service: none\nERROR: no such process/group: none"),
    ),
    (
        "running",
        {"name": "new"},
        (None, "Service new will be added and started"),
        (True, {"new": "Adding service: new Starting: new"}, "Starting: new"),
    ),
    (
        "running",
        {"name": "newer", "update": True},
        (None, "Service newer will be added and started"),
        (True, {"newer": "Updating supervisor"}, "Not starting updated: newer"),
    ),
    (
        "running",
        {"name": "newer", "update": True},
        (None, "Service newer is already running; supervisor is set to be updated"),
        (True, {}, "Not starting already running service: newer"),
    ),
]


@pytest.fixture(scope="module")
def supervisor(tmp_path_factory):
    """A supervisord; its directory has its configuration, and a supervisorctl."""
    # A socket's path may have a hundred characters.
    directory = tmp_path_factory.mktemp("s")
    (directory / "more").mkdir()
    (directory / "conf").write_text(CONFIGURATION.replace("HERE", str(directory)))
    (directory / "bin").mkdir()
    program = directory / "bin/supervisorctl"
    program.write_text(f"#!{sys.executable}\nfrom supervisor.supervisorctl import main\nmain()\n")
    program.chmod(0o755)
    command = [sys.executable, "-m", "supervisor.supervisord", "-c", directory / "conf"]
    with (
        (directory / "out").open("wb") as out,
        subprocess.Popen(command, stdout=out, stderr=out, cwd=directory) as daemon,
    ):
        try:
            deadline = time.monotonic() + 30
            while "RUNNING" not in (said := _status(directory)):
                assert time.monotonic() < deadline, said + (directory / "out").read_text()
                assert daemon.poll() is None, (directory / "out").read_text()
                time.sleep(0.05)  # between two questions; the deadline is above
            yield directory
        finally:
            daemon.terminate()
            daemon.wait(20)


def _status(directory: Path) -> str:
    command = [directory / "bin/supervisorctl", "-c", directory / "conf", "status", "up"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


@pytest.fixture(scope="module")
def told(supervisor, tmp_path_factory):
    """What the states tell, in the order of the steps: they build on each other."""
    minion = PlainMinion(tmp_path_factory.mktemp("minion"))
    where = {"conf_file": str(supervisor / "conf"), "bin_env": str(supervisor)}
    answers = []
    for function, args, *_ in STEPS:
        if args["name"].startswith("new"):
            text = NEW.replace("new", args["name"])
            (supervisor / f"more/{args['name']}.conf").write_text(text)
        foretold, done = (
            minion.context(host=Host("/"), test=test).states[f"supervisord.{function}"](**args, **where)
            for test in (True, False)
        )
        assert foretold["changes"] == {}
        answers.append(((foretold["result"], foretold["comment"]), (done["result"], done["changes"], done["comment"])))
    return answers


@pytest.mark.parametrize("number", range(len(STEPS)), ids=lambda at: f"{at}-{STEPS[at][0]}-{STEPS[at][1]['name']}")
def test_step(told, number):
    assert told[number] == STEPS[number][2:]


def test_module(supervisor, plain, told):
    ctx = plain.context(host=Host("/"))
    where = {"conf_file": str(supervisor / "conf"), "bin_env": str(supervisor / "bin/supervisorctl")}
    status = ctx.call("supervisord.status", **where)
    assert status["up"]["state"] == "RUNNING"
    assert status["up"]["reason"].startswith("pid ")
    assert ctx.call("supervisord.status", "pair:*", **where)["pair:two"]["state"] == "STOPPED"
    assert ctx.call("supervisord.status_bool", "up", **where) is True
    assert ctx.call("supervisord.status_bool", "up", "STOPPED", **where) is False
    assert ctx.call("supervisord.status_bool", "none", **where) is False
    assert ctx.call("supervisord.start", "up", **where) == "up: ERROR (already started)"
    assert ctx.call("supervisord.stop", "pair:*", **where) == ""
    assert ctx.call("supervisord.restart", "up", **where) == "up: stopped\nup: started"
    assert ctx.call("supervisord.reread", **where) == "No config updates to processes"
    assert ctx.call("supervisord.stop", "new", **where) == "new: stopped"
    assert ctx.call("supervisord.remove", "new:", **where) == "new: removed process group"
    assert ctx.call("supervisord.add", "new", **where) == "new: added process group"
    assert ctx.call("supervisord.update", name="new", **where) == ""
    assert ctx.call("supervisord.custom", "pid up", **where).isdecimal()
    assert "ERROR" in ctx.call("supervisord.start", "none", **where)
    options = ctx.call("supervisord.options", "down", conf_file=where["conf_file"])
    assert options == {"command": "sleep 600", "autostart": False, "startsecs": 0, "priority": 5}


def test_no_supervisor(supervisor, plain, tmp_path):
    ctx = plain.context(host=Host("/"))
    dead = tmp_path / "conf"
    dead.write_text(f"[supervisorctl]\nserverurl=unix://{tmp_path}/none\n")
    where = {"conf_file": str(dead), "bin_env": str(supervisor)}
    with pytest.raises(CommandError, match="supervisord does not answer"):
        ctx.call("supervisord.status", **where)
    for function in ("running", "dead"):
        entry = ctx.states[f"supervisord.{function}"](name="up", **where)
        assert entry["result"] is False
        assert "supervisord does not answer" in entry["comment"]
    with pytest.raises(CommandError, match="Could not find a `supervisorctl` binary"):
        ctx.call("supervisord.status", bin_env=str(tmp_path))
    with pytest.raises(CommandError, match="Process 'none' not found"):
        ctx.call("supervisord.options", "none", conf_file=str(supervisor / "conf"))
    with pytest.raises(CommandError, match="No suitable config file found: there is no /none"):
        ctx.call("supervisord.options", "none", conf_file="/none")
