"""The built-in beacons: what is a configuration of each, what it tells, and what real Salt says of the same configuration."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from statecore.builtin.beacons import load as load_beacon
from statecore.builtin.beacons import sh as sh_beacon
from statecore.host.host import Host
from statecore.model.errors import CommandError, NotAvailable
from statecore.model.ports import CommandResult
from tests.conftest import Oracle

VALID = (True, "Valid beacon configuration")

AVERAGES = {"1m": [0.0, 2.0], "5m": [0.0, 1.5], "15m": [0.1, 1.0]}

#: Beacon, configuration, whether it is one.
CONFIGURATIONS: list[tuple[str, Any, bool]] = [
    ("load", [{"averages": AVERAGES}, {"emitatstartup": True}, {"onchangeonly": False}], True),
    ("load", [{"averages": AVERAGES}, {"interval": 5}], True),
    ("load", {"averages": AVERAGES}, False),
    ("load", [{"onchangeonly": True}], False),
    ("load", [{"averages": AVERAGES}, {"onchangeonly": "yes"}], False),
    ("load", [{"averages": AVERAGES}, {"emitatstartup": 1}], False),
    ("load", [{"averages": {"2m": [1, 2]}}], False),
    ("load", [{"averages": {**AVERAGES, "5m": [1]}}], False),
    ("diskusage", [{"/": "63%"}, {"interval": 5}], True),
    ("diskusage", "/", False),
    ("memusage", [{"percent": "63%"}], True),
    ("memusage", [{"percent": 63}], True),
    ("memusage", [{"interval": 5}], False),
    ("memusage", {}, False),
    ("ps", [{"processes": {"nginx": "running"}}], True),
    ("ps", [{"processes": ["nginx"]}], False),
    ("ps", [{}], False),
    ("ps", {}, False),
    ("service", [{"services": {"nginx": {"onchangeonly": True}}}], True),
    ("service", [{"services": {"nginx": None}}], False),
    ("service", [{"services": ["nginx"]}], False),
    ("service", [{}], False),
    ("service", {}, False),
    ("status", [], True),
    ("status", [{"loadavg": ["all"]}], True),
    ("status", {}, False),
    ("network_info", [{"interfaces": {"eth0": {"type": "equal", "bytes_sent": 1}}}], True),
    ("network_info", [{"interfaces": {"eth0": {"bytes": 1}}}], False),
    ("network_info", [{"interfaces": {"eth0": 1}}], False),
    ("network_info", {}, False),
    ("log", [{"file": "/var/log/messages"}, {"tags": {"a": {"regex": ".*"}}}], True),
    ("log", [{"tags": {}}], False),
    ("log", {}, False),
]

#: What Salt takes, or has no library for here.
STRICTER: list[tuple[str, Any, str]] = [
    ("load", [{"averages": {"1m": [0, "many"]}}], "1m must be two numbers"),
    ("diskusage", [{"/": "most"}], "/: 'most' is not a percentage"),
    ("diskusage", [{"(": "5%"}], "(: missing )"),
    ("memusage", [{"percent": "most"}], "percent: 'most' is not a percentage"),
    ("memusage", ["percent"], "must be a list of dictionaries"),
    ("service", [{"services": {"nginx": {"delay": "5"}}}], "delay of nginx must be a number"),
    ("status", [{"loadaverage": ["all"]}], "there is no status.loadaverage."),
    ("network_info", [{"interfaces": {"lo": {"type": "less"}}}], "type is equal or greater, not 'less'"),
    ("network_info", [{"interfaces": {"lo": {"errin": "x"}}}], "errin must be a number, not 'x'"),
    ("log", [{"file": "/f"}, {"tags": {"a": {"regex": "("}}}], "bad regex of a: missing )"),
    ("log", [{"file": "/f"}, {"tags": ["a"]}], "tags must be a dictionary of dictionaries"),
    ("inotify", [{"paths": {}}], "must include files."),
    ("inotify", [{"files": []}], "files must be a dict."),
    ("inotify", [{"files": {"/a": []}}], "must be a list of dictionaries."),
    ("inotify", [{"files": {"/a": {}}}], "must contain mask, recurse or auto_add items."),
    ("inotify", [{"files": {"/a": {"auto_add": 1}}}], "auto_add must be boolean."),
    ("inotify", [{"files": {"/a": {"recurse": 1}}}], "recurse must be boolean."),
    ("inotify", [{"files": {"/a": {"mask": "create"}}}], "mask must be list."),
    ("inotify", [{"files": {"/a": {"mask": ["creation"]}}}], "invalid mask option creation."),
    ("inotify", [{"files": {"/a": {"recurse": True, "exclude": [{"(": {"regex": True}}]}}}], "exclude: missing )"),
]


def run(plain, name: str, function: str, config: Any, ctx: Any = None) -> Any:
    ctx = ctx or plain.context()
    served, own = plain.loader.function("beacons", f"{name}.{function}", ctx)
    return served.bound(own, ctx)(config)


@pytest.mark.parametrize(("name", "config", "valid"), CONFIGURATIONS)
def test_configurations(plain, name, config, valid):
    told = run(plain, name, "validate", config)
    assert told[0] is valid
    assert valid == (told == VALID)


@pytest.mark.parametrize(("name", "config", "why"), STRICTER)
def test_what_would_fail_later_is_no_configuration(plain, name, config, why):
    valid, told = run(plain, name, "validate", config)
    assert not valid
    assert why in told


@pytest.mark.oracle
def test_salt_says_the_same_of_configurations(plain, oracle: Oracle) -> None:
    """Where Salt has the libraries: its sentences are the same."""
    program = (
        "import importlib, json, sys\n"
        "told = []\n"
        "for name, config in json.load(sys.stdin):\n"
        "    module = importlib.import_module('salt.beacons.' + {'log': 'log_beacon'}.get(name, name))\n"
        "    try: told.append(module.validate(config))\n"
        "    except Exception: told.append(None)\n"
        "print(json.dumps(told))"
    )
    asked = [(name, config) for name, config, _ in CONFIGURATIONS]
    told = json.loads(oracle.run("python", "-c", program, stdin=json.dumps(asked)))
    for (name, config), theirs in zip(asked, told, strict=True):
        assert list(run(plain, name, "validate", config)) == theirs, (name, config)


@pytest.mark.parametrize(
    ("averages", "told"), [((1.0, 1.0, 0.5), 0), ((2.5, 1.0, 0.5), 1), ((1.0, 1.0, 0.05), 1), ((9.0, 9.0, 9.0), 1)]
)
def test_load_outside_of_its_bounds(plain, monkeypatch, averages, told):
    monkeypatch.setattr(load_beacon, "os", SimpleNamespace(getloadavg=lambda: averages))
    events = run(plain, "load", "beacon", [{"averages": AVERAGES}])
    assert events == [dict(zip(("1m", "5m", "15m"), averages, strict=True))] * told


def test_load_that_leaves_its_bounds(plain, monkeypatch):
    ctx, told = plain.context(), []
    for average in (1.0, 3.0, 3.0, 1.0, 2.0, 3.0):
        monkeypatch.setattr(load_beacon, "os", SimpleNamespace(getloadavg=lambda average=average: (average, 1.0, 0.5)))
        config = [{"averages": {"1m": [0.5, 2.5]}}, {"onchangeonly": True}]
        told.append(len(run(plain, "load", "beacon", config, ctx)))
    assert told == [0, 1, 0, 0, 0, 1]


def test_memory(plain):
    assert run(plain, "memusage", "beacon", [{"percent": "100%"}]) == []
    (event,) = run(plain, "memusage", "beacon", [{"percent": 0.1}])
    assert 0 < event["memusage"] < 100


def test_disks(plain):
    ctx = plain.context()
    # A mounted host has what is mounted below its root.
    assert run(plain, "diskusage", "beacon", [{"/": 0}], ctx) == []
    (plain.root / "srv").mkdir()
    ctx.host.mount_table = lambda: "40 1 0:40 / /srv rw - ext4 /dev/sdb1 rw\n"
    (event,) = run(plain, "diskusage", "beacon", [{"/srv": 0}], ctx)
    assert event["mount"] == "/srv"
    own = plain.context(host=Host("/"))
    (event,) = run(plain, "diskusage", "beacon", [{"/": "0%"}], own)
    assert event["mount"] == "/"
    assert 0 <= event["diskusage"] <= 100
    assert run(plain, "diskusage", "beacon", [{"/": "100.1%"}], own) == []
    several = run(plain, "diskusage", "beacon", [{"^/.*": 0}, {"interval": 3}], own)
    assert len({event["mount"] for event in several}) > 1


def test_processes(plain):
    me = Path(f"/proc/{os.getpid()}/comm").read_text().strip()
    own = plain.context(host=Host("/"))
    config = [{"processes": {me: "running", "no-such-process": "running"}}]
    assert run(plain, "ps", "beacon", config, own) == [{me: "Running"}]
    # None of our processes is one of the mounted host.
    assert run(plain, "ps", "beacon", config) == []
    config = [{"processes": {me: "stopped", "no-such-process": "stopped", "nor-this": "?"}}]
    assert run(plain, "ps", "beacon", config, own) == [{"no-such-process": "Stopped"}, {"nor-this": False}]


def test_services(plain):
    running: dict[str, Any] = {"nginx": True}
    ctx = replace(plain.context(), functions={"service.status": running.__getitem__})

    def told(**options: Any) -> list[Any]:
        events = run(plain, "service", "beacon", [{"services": {"nginx": options}}, {"_beacon_name": "s"}], ctx)
        assert all(event["tag"] == event["service_name"] == "nginx" for event in events)
        return [event["nginx"] for event in events]

    assert told() == [{"running": True}]
    assert told(is_running_state=False) == []
    assert told(onchangeonly=True) == [{"running": True}]
    assert told(onchangeonly=True) == []
    running["nginx"] = False
    (plain.root / "run").mkdir()
    assert told(onchangeonly=True, uncleanshutdown="/run/nginx.pid") == [{"running": False, "uncleanshutdown": False}]
    (plain.root / "run" / "nginx.pid").write_text("1")
    assert told(uncleanshutdown="/run/nginx.pid") == [{"running": False, "uncleanshutdown": True}]
    ctx.scratch.clear()
    assert told(onchangeonly=True, emitatstartup=False) == []
    running["nginx"] = True
    assert told(onchangeonly=True, emitatstartup=False, delay=60) == []
    ctx.scratch["s.last"]["nginx"]["since"] -= 61
    assert told(onchangeonly=True, delay=60) == [{"running": True}]
    assert told(onchangeonly=True, delay=60) == []


def test_status(plain):
    (event,) = run(plain, "status", "beacon", [{"interval": 5}])
    assert sorted(event["data"]) == ["cpustats", "loadavg", "meminfo", "time", "vmstats"]
    assert {"user", "idle"} <= set(event["data"]["cpustats"]["cpu"])
    assert "MemTotal" in event["data"]["meminfo"]
    (event,) = run(plain, "status", "beacon", [{"loadavg": ["1-min"]}, {"meminfo": ["nothing"]}])
    assert list(event["data"]["loadavg"]) == ["1-min"]
    assert event["data"]["meminfo"] == "Status beacon is incorrectly configured: 'nothing'"


def test_interfaces(plain):
    def told(**options: Any) -> list[Any]:
        return run(plain, "network_info", "beacon", [{"interfaces": {"lo": options, "none0": options}}])

    assert told(type="greater", bytes_recv=10**18) == []
    (event,) = told(type="equal", errin=0)
    assert event["interface"] == "lo"
    # A mounted host's own counters, where its /proc is there.
    (plain.root / "proc/1/net").mkdir(parents=True)
    (plain.root / "proc/stat").write_text("")
    (plain.root / "proc/1/net/dev").write_text(f"head\nhead\n  eth7: {' '.join('7' * 16)}\n")
    config = [{"interfaces": {"eth7": {"bytes_recv": 7}, "lo": {"errin": 0}}}]
    (theirs,) = run(plain, "network_info", "beacon", config)
    assert (theirs["interface"], theirs["network_info"]["bytes_sent"]) == ("eth7", 7)
    assert sorted(event["network_info"]) == sorted(
        ["bytes_sent", "bytes_recv", "packets_sent", "packets_recv", "errin", "errout", "dropin", "dropout"]
    )


def test_lines_of_a_log(plain):
    file = plain.root / "messages"
    file.write_text("old good-bye\n")
    ctx = plain.context()
    config = [{"file": "/messages"}, {"tags": {"goodbye/world": {"regex": ".*good-bye.*"}, "empty": {}}}]

    def told(text: str, mode: str = "a") -> list[str]:
        with file.open(mode) as log:
            log.write(text)
        events = run(plain, "log", "beacon", config, ctx)
        assert all(
            {**event, "raw": ""} == {"tag": "goodbye/world", "match": "yes", "raw": "", "error": ""} for event in events
        )
        return [event["raw"] for event in events]

    assert told("") == []
    assert told("one\ntwo good-bye\n") == ["two good-bye"]
    assert told("") == []
    assert told("half good-") == []
    assert told("bye\n") == ["half good-bye"]
    assert told("cut good-bye\n", mode="w") == ["cut good-bye"]
    file.unlink()
    assert told("another good-bye\nmore good-bye\nand more, so that it is longer\n") == [
        "another good-bye",
        "more good-bye",
    ]
    file.unlink()
    with pytest.raises(FileNotFoundError):
        run(plain, "log", "beacon", config, ctx)


def test_the_journal(plain):
    """journalctl is played: its options and its last line are those of systemd 247 and later."""
    entries = [{"SYSLOG_IDENTIFIER": "sshd", "PRIORITY": "6", "MESSAGE": "17", "_SYSTEMD_SESSION": "c1"}]
    entries.append({"SYSLOG_IDENTIFIER": "cron"})
    asked: list[Any] = []

    def journalctl(words: Any) -> CommandResult:
        asked.append(words[-1])
        lines = [] if words[-1] == "--lines=0" else [json.dumps(entry) for entry in entries]
        return CommandResult(0, "\n".join([*lines, f"-- cursor: s={len(asked)}"]), "", 1)

    ctx = plain.context(host=SimpleNamespace(run=journalctl, which=lambda _: "/bin/journalctl"))
    config = [{"services": {"sshd": {"SYSLOG_IDENTIFIER": "sshd", "PRIORITY": 6}}}]
    assert run(plain, "journald", "validate", config, ctx) == VALID
    assert run(plain, "journald", "beacon", config, ctx) == []
    assert run(plain, "journald", "beacon", config, ctx) == [{**entries[0], "PRIORITY": 6, "tag": "sshd"}]
    run(plain, "journald", "beacon", config, ctx)
    assert asked == ["--lines=0", "--after-cursor=s=1", "--after-cursor=s=2"]
    assert not plain.loader.__class__().has("beacons", "journald.beacon", plain.context())


def test_a_journal_without_an_entry_is_no_failure(plain):
    """journalctl says nothing of it, and ends with 1; what comes then is new from its beginning."""
    asked: list[Any] = []
    answers = [
        CommandResult(1, "", "", 1),
        CommandResult(1, "", "", 1),
        CommandResult(0, '{"MESSAGE": "first"}\n-- cursor: s=1', "", 1),
        CommandResult(1, "", "", 1),
    ]

    def journalctl(words: Any) -> CommandResult:
        asked.append(words[-1])
        return answers[len(asked) - 1]

    ctx = plain.context(host=SimpleNamespace(run=journalctl, which=lambda _: "/bin/journalctl"))
    config = [{"services": {"any": {}}}]
    told = [run(plain, "journald", "beacon", config, ctx) for _ in range(3)]
    assert told == [[], [], [{"MESSAGE": "first", "tag": "any"}]]
    with pytest.raises(CommandError, match="journalctl failed: exit code 1"):
        run(plain, "journald", "beacon", config, ctx)
    assert asked == ["--lines=0", "--show-cursor", "--show-cursor", "--after-cursor=s=1"]


def test_files_that_change(plain):
    directory = plain.root / "etc"
    (directory / "sub").mkdir(parents=True)
    (directory / "file").write_text("a")
    ctx = plain.context()
    exclude = ["/etc/private", "*.swp", {r"\.tmp\d$": {"regex": True}}]
    config = [{"files": {"/etc": {"recurse": True, "auto_add": True, "exclude": exclude}, "/none": {"recurse": False}}}]

    def told() -> list[tuple[str, str, str]]:
        events = run(plain, "inotify", "beacon", config, ctx)
        return [(event["tag"], event["path"], event["change"]) for event in events]

    assert told() == []
    (directory / "file").write_text("b")
    assert ("/etc", "/etc/file", "IN_MODIFY") in told()
    (directory / "sub" / "new").write_text("")
    assert told() == [("/etc/sub", "/etc/sub/new", "IN_CREATE")]
    (directory / "sub" / "new").unlink()
    assert told() == [("/etc/sub", "/etc/sub/new", "IN_DELETE")]
    (directory / "later").mkdir()
    assert told() == [("/etc", "/etc/later", "IN_CREATE|IN_ISDIR")]
    (directory / "later" / "file").write_text("")
    assert told() == [("/etc/later", "/etc/later/file", "IN_CREATE")]
    for name in ("private", "a.swp", "b.tmp1"):
        (directory / name).write_text("")
    assert told() == []
    config[0]["files"]["/etc"] = {"mask": ["close_write"]}
    assert told() == []
    (directory / "file").write_text("c")
    assert told() == [("/etc", "/etc/file", "IN_CLOSE_WRITE")]
    config.append({"coalesce": True})
    for _ in range(3):
        (directory / "file").write_text("d")
    assert len(told()) == 1
    run(plain, "inotify", "close", config, ctx)
    (directory / "file").write_text("e")
    assert told() == []


def test_files_that_change_behind_a_link_of_the_host(plain, tmp_path):
    """A link of a mounted host means the host's own path, and one that takes a directory's place leads nowhere."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (plain.root / "srv/real").mkdir(parents=True)
    (plain.root / "etc").symlink_to("/srv/real")
    (plain.root / "out").symlink_to(outside)
    ctx = plain.context()
    config = [{"files": {path: {"recurse": True, "auto_add": True} for path in ("/etc", "/out")}}]
    assert run(plain, "inotify", "beacon", config, ctx) == []
    (plain.root / "srv/real/file").write_text("")
    (outside / "file").write_text("")
    told = [event["path"] for event in run(plain, "inotify", "beacon", config, ctx) if event["change"] == "IN_CREATE"]
    assert told == ["/etc/file"]
    (plain.root / "srv/real").rename(plain.root / "srv/aside")
    (plain.root / "srv/real").symlink_to(outside)
    run(plain, "inotify", "beacon", config, ctx)
    (outside / "more").write_text("")
    assert run(plain, "inotify", "beacon", config, ctx) == []
    run(plain, "inotify", "close", config, ctx)


def _until(look, wanted):
    """Looks until there is as much, and a while at the most."""
    found: list[Any] = []
    deadline = time.monotonic() + 20
    while len(found) < wanted and time.monotonic() < deadline:
        found += look()
        time.sleep(0.02)
    return found


@pytest.mark.skipif(shutil.which("strace") is None, reason="there is no strace")
def test_commands_in_a_shell(plain, monkeypatch, tmp_path):
    """A shell that reads from a pipe is one that somebody types into."""
    ctx = plain.context(host=Host("/"))
    shell = subprocess.Popen(
        ["/bin/bash", "--norc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tmp_path
    )
    own = [each for each in sh_beacon.processes.all_of(ctx.host) if each.pid == shell.pid]
    monkeypatch.setattr(sh_beacon.processes, "all_of", lambda _: own)
    assert shell.stdin is not None
    assert shell.stdout is not None

    def look() -> list[Any]:
        return run(plain, "sh", "beacon", [], ctx)

    try:
        deadline = time.monotonic() + 20
        while "TracerPid:\t0" in Path(f"/proc/{shell.pid}/status").read_text() and time.monotonic() < deadline:
            assert look() == []
            time.sleep(0.02)
        shell.stdin.write('/bin/ls \'a b\' "c\\"d" grün 2>&1; /no/such; (/bin/true)\n')
        shell.stdin.flush()
        user = ctx.host.user_name(os.geteuid())
        told = {"tag": str(shell.pid), "user": user}
        assert _until(look, 2) == [
            {**told, "cmd": "/bin/ls", "args": ["/bin/ls", "a b", 'c"d', "grün"]},
            {**told, "cmd": "/bin/true", "args": ["/bin/true"]},
        ]
        places = [each.place for each in ctx.scratch["sh.shells"][0].values()]
        run(plain, "sh", "close", [], ctx)
        assert [place for place in places if Path(place).exists()] == []
        while "TracerPid:\t0" not in Path(f"/proc/{shell.pid}/status").read_text():
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        shell.kill()
        shell.communicate()
    assert look() == []


def test_the_configuration_of_sh(plain):
    ctx = plain.context(host=Host("/"))
    assert sh_beacon.validate(ctx, []) == VALID
    assert sh_beacon.validate(ctx, {}) == (False, "Configuration for sh beacon must be a list.")
    with pytest.raises(NotAvailable, match="strace is missing"):
        run(plain, "sh", "validate", [])


def test_a_shell_that_may_not_be_looked_into_is_told_of_once(plain, monkeypatch):
    monkeypatch.setattr(
        sh_beacon, "_START", sh_beacon._START.replace("strace", "sh -c 'echo not permitted >&2; exit 1'")
    )
    ctx = plain.context(host=Host("/"))
    (own,) = [each for each in sh_beacon.processes.all_of(ctx.host) if each.pid == os.getpid()]
    monkeypatch.setattr(sh_beacon.processes, "all_of", lambda _: [own._replace(words=("-bash",))])
    told = []
    deadline = time.monotonic() + 20
    while not told and time.monotonic() < deadline:
        try:
            assert run(plain, "sh", "beacon", [], ctx) == []
            time.sleep(0.02)
        except CommandError as error:
            told.append(str(error))
    assert told == [f"strace of {os.getpid()}: not permitted"]
    assert run(plain, "sh", "beacon", [], ctx) == []
    assert ctx.scratch["sh.shells"][0] == {}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["-bash"], True),
        (["/bin/bash", "--login", "-i"], True),
        (["bash", "-c", "ls"], False),
        (["sh", "script"], False),
        (["python3"], False),
        ([], False),
    ],
)
def test_what_is_a_shell(words, told):
    process = SimpleNamespace(words=tuple(words))
    assert sh_beacon._is_shell(process, {"sh", "bash"}) is told
