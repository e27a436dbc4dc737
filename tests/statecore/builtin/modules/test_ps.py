"""ps and status: this machine's processes and counters beside real Salt's; a mounted host's from a /proc that is laid out."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from statecore.host.host import Host
from statecore.model.errors import CommandError, InvocationError

#: Calls whose answers have to be the same, and those of which names alone can be compared.
SAME = [
    ("ps.num_cpus", ()),
    ("ps.total_physical_memory", ()),
    ("ps.boot_time", ()),
    ("ps.disk_partitions", ()),
    ("ps.get_users", ()),
    ("ps.network_io_counters", ("none",)),
    ("ps.disk_io_counters", ("none",)),
    ("status.version", ()),
]
NAMES = [
    ("ps.virtual_memory", ()),
    ("ps.swap_memory", ()),
    ("ps.cpu_times", ()),
    ("ps.disk_usage", ("/",)),
    ("ps.network_io_counters", ()),
    ("ps.network_io_counters", ("lo",)),
    ("ps.disk_io_counters", ()),
    ("status.cpustats", ()),
    ("status.diskstats", ()),
    ("status.vmstats", ()),
    ("status.netstats", ()),
    ("status.netdev", ()),
    ("status.all_status", ()),
]

_ASK = """
import json, os, sys, salt.config, salt.loader
opts = salt.config.minion_config(None)
opts.update(id="web1", file_client="local", cachedir=sys.argv[1], grains={"id": "web1", "kernel": "Linux", "os": "Debian"})
functions = salt.loader.minion_mods(opts, utils=salt.loader.utils(opts))
asked, pid = json.load(sys.stdin)
answers = [functions[name](*args) for name, args in asked]
answers.append({key: value for key, value in functions["ps.proc_info"](pid).items()})
json.dump(answers, sys.stdout, default=str)
"""


@pytest.fixture(scope="module")
def child():
    """A process of ours that waits; its command line has a word that no other has."""
    with subprocess.Popen([sys.executable, "-c", "input()", f"word-{os.getpid()}"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


@pytest.fixture(scope="module")
def salts(oracle, child, tmp_path_factory):
    asked = json.dumps([[*SAME, *NAMES], child.pid])
    return json.loads(oracle.run("python", "-c", _ASK, str(tmp_path_factory.mktemp("salt")), stdin=asked))


@pytest.mark.oracle
def test_as_salt(plain, salts, child):
    ctx = plain.context(host=Host("/"))
    for number, (name, args) in enumerate(SAME):
        assert json.loads(json.dumps(ctx.call(name, *args))) == salts[number], (name, args)
    for number, (name, args) in enumerate(NAMES, start=len(SAME)):
        own = ctx.call(name, *args)
        assert sorted(own) == sorted(salts[number]), (name, args)
        for key, value in own.items():
            assert type(value) is type(salts[number][key]), (name, key)
    own, theirs = ctx.call("ps.proc_info", child.pid), salts[-1]
    for key in ("pid", "ppid", "name", "cmdline", "exe", "cwd", "username", "nice", "num_threads", "create_time"):
        assert own[key] == theirs[key], key
    assert list(own["uids"].values()) == theirs["uids"]
    assert sorted(own["memory_info"]) == ["data", "dirty", "lib", "rss", "shared", "text", "vms"]


def test_processes(plain, child):
    ctx = plain.context(host=Host("/"))
    word = child.args[-1]
    assert child.pid in ctx.call("ps.get_pid_list")
    assert ctx.call("ps.pgrep", word, full=True) == [child.pid]
    assert ctx.call("ps.pgrep", word) is None
    assert ctx.call("ps.pgrep", f"^.*input.*{word}$", full=True, pattern_is_regex=True) == [child.pid]
    assert ctx.call("ps.pgrep", word, full=True, user="nobody") is None
    assert ctx.call("status.pid", word) == str(child.pid)
    assert word in ctx.call("status.procs")[str(child.pid)]["cmd"]
    assert ctx.call("ps.proc_info", child.pid, ["pid", "status"])["pid"] == child.pid
    states = ("sleeping", "running", "disk_sleep")
    assert child.pid in [each["pid"] for state in states for each in ctx.call("ps.status", state)]
    assert os.getpid() in [each["pid"] for each in ctx.call("ps.top", 1000, 0.01)]
    assert ctx.call("ps.kill_pid", child.pid, 0) is True
    assert 0 <= ctx.call("ps.cpu_percent", 0.01) <= 100
    assert len(ctx.call("ps.cpu_percent", 0.01, True)) == ctx.call("ps.num_cpus")
    assert ctx.call("ps.boot_time", "%Y").isdecimal()
    assert {"mountpoint", "total", "free"} <= set(ctx.call("ps.disk_partition_usage")[0])
    assert ctx.call("status.time", "%%") == "%"
    plain.opts["status.loadavg.custom"] = ["1-min", "none"]
    assert ctx.call("status.custom") == {"1-min": pytest.approx(os.getloadavg()[0], abs=5), "none": "UNKNOWN"}


@pytest.mark.parametrize(
    ("name", "args", "error", "why"),
    [
        ("ps.proc_info", (2**22 + 1,), CommandError, r"process PID not found \(pid=4194305\)"),
        ("ps.proc_info", (1, ["none"]), InvocationError, "none is no attribute of a process; there are pid, ppid"),
        ("ps.pgrep", ("(", None, False, True), InvocationError, r"'\(' is not a regular expression"),
        ("ps.psaux", ("(",), InvocationError, r"'\(' is not a regular expression"),
        ("ps.pkill", ("none", None, "SIGNONE"), InvocationError, "'SIGNONE' is not a signal"),
        ("ps.status", ("",), InvocationError, "Filter is required for ps.status"),
        ("ps.disk_usage", ("/none",), CommandError, "/none: No such file or directory"),
        ("ps.lsof", ("none",), CommandError, "has no lsof"),
    ],
)
def test_nonsense(plain, name, args, error, why):
    host = Host("/") if name != "ps.lsof" else Host(plain.root)
    with pytest.raises(error, match=why):
        plain.context(host=host).call(name, *args)


def test_kill(plain):
    ctx = plain.context(host=Host("/"))
    word = f"kill-{os.getpid()}"
    with subprocess.Popen([sys.executable, "-c", "input()", word], stdin=subprocess.PIPE) as process:
        for test, result, comment, changes in (
            (True, None, "1 processes will be killed", {}),
            (False, True, "Killed 1 processes", {"killed": [process.pid]}),
        ):
            entry = plain.state(
                "process.absent", ctx=plain.context(host=Host("/"), test=test), name=word, signal="KILL"
            )
            assert (entry["result"], entry["comment"], entry["changes"]) == (result, comment, changes)
        assert process.wait(10) == -signal.SIGKILL
    assert ctx.call("ps.kill_pid", process.pid) is False
    for test in (True, False):
        entry = plain.state("process.absent", ctx=plain.context(host=Host("/"), test=test), name=word)
        assert (entry["result"], entry["comment"], entry["changes"]) == (True, "No matching processes running", {})


_APPLY = """
import json, os, sys
from statecore.runtime.runtime import local_runtime
call = local_runtime({"id": "web1", "cachedir": sys.argv[1], "file_roots": {"base": [sys.argv[1]]}}).call
found = call("ps.pgrep", [sys.argv[2]], {"full": True}).value
(entry,) = call("state.single", ["process.absent", sys.argv[2]]).value.values()
print(json.dumps([sorted(found) == sorted([os.getpid(), os.getppid()]), entry["result"], entry["changes"], entry["comment"]]))
"""


def test_who_applies_it_is_not_killed(tmp_path):
    """Nor who started that: each may have the text in its command line. Both are of this test's own: what else may be killed?"""
    script = tmp_path / "apply.py"
    script.write_text(_APPLY)
    command = f"{sys.executable} {script} {tmp_path} of-one-{os.getpid()}; exit $?"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == [True, True, {}, "No matching processes running"]


# -------------------------------------------------------------------------------------------------------------- a mounted host

STAT = "{pid} ({name}) S 1 1 1 0 -1 0 0 0 0 0 150 50 0 0 20 5 3 0 100 0 0 0"
STATUS = "Name:\tx\nUid:\t33\t33\t33\t33\nGid:\t33\t33\t33\t33\n"


@pytest.fixture
def mounted(plain):
    """A mounted host with a /proc of its own, of which nothing is this machine's."""
    proc = plain.root / "proc"
    for pid, name, words in (
        (1, "init", b"/sbin/init\0"),
        (7, "a (b) c", b"worker: a long title"),
        (9, "kthread", b""),
    ):
        place = proc / str(pid)
        place.mkdir(parents=True)
        (place / "stat").write_text(STAT.format(pid=pid, name=name))
        (place / "cmdline").write_bytes(words)
        (place / "status").write_text(STATUS)
        (place / "statm").write_text("10 5 2 1 0 3 0")
    (proc / "stat").write_text("cpu  10 0 10 80 0 0 0 0 0 0\ncpu0 10 0 10 80 0 0 0 0 0 0\nbtime 1000\n")
    (proc / "uptime").write_text("100.5 10\n")
    (proc / "meminfo").write_text("MemTotal:   100 kB\nMemFree:  40 kB\nMemAvailable:  50 kB\n")
    (proc / "1/net").mkdir()
    (proc / "1/net/dev").write_text("a\nb\n  eth9: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n")
    (plain.root / "etc").mkdir()
    (plain.root / "etc/passwd").write_text("root:x:0:0::/:/bin/sh\nweb:x:33:33::/:/bin/sh\n")
    return plain


def test_a_mounted_host_has_its_own(mounted):
    call = mounted.call
    assert call("ps.get_pid_list") == [1, 7, 9]
    assert call("ps.pgrep", "long title", full=True) == [7]
    assert call("ps.pgrep", "(b)") == [7]
    assert call("ps.pgrep", "init", user="web") == [1]
    assert call("status.pid", "sbin/init") == "1"
    assert call("status.procs")["9"] == {"user": "web", "cmd": "[kthread]"}
    told = call("ps.proc_info", 7)
    assert told["cpu_times"]["user"] == 150 / os.sysconf("SC_CLK_TCK")
    assert told["create_time"] == 1000 + 100 / os.sysconf("SC_CLK_TCK")
    assert (told["nice"], told["num_threads"], told["exe"]) == (5, 3, None)
    assert call("ps.virtual_memory")["percent"] == 50.0
    assert call("ps.num_cpus") == 1
    assert call("status.netdev")["eth9"]["tx_packets"] == 10
    assert call("status.uptime")["seconds"] == 100
    assert call("ps.network_io_counters")["bytes_recv"] == 1


def test_nothing_is_killed_by_a_number_that_means_another(mounted):
    for name, args in (("ps.kill_pid", (7,)), ("ps.pkill", ("init",))):
        with pytest.raises(CommandError, match="no signal is sent"):
            mounted.call(name, *args)
    entry = mounted.state("process.absent", name="init")
    assert entry["result"] is False
    assert "no signal is sent" in entry["comment"]


def test_a_mounted_host_without_proc_has_processes_in_its_root(plain):
    assert plain.call("ps.get_pid_list") == []
    assert plain.call("ps.pgrep", "python") is None
