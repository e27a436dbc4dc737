"""Services by init scripts, which really run, and by systemd, which is played."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from statecore.model.errors import CommandError, NotAvailable
from statecore.model.ports import CommandResult

#: An init script that keeps a file beside it for as long as its service "runs".
SCRIPT = """run="$0.run"
case "$1" in
  start|restart) touch "$run" ;;
  stop) rm -f "$run" ;;
  reload|force-reload) echo "$1" >>"$run" ;;
  status) test -e "$run" || exit 3 ;;
  *) exit 2 ;;
esac"""

#: Leaves a child behind that holds every output it was given.
DAEMON = 'sleep 60 & echo $! >"$0.pid"'


@pytest.fixture
def services(debian):
    """Two services with scripts, one of them started at boot; and one without a word for status."""
    debian.script("nginx", SCRIPT)
    debian.script("cron", SCRIPT)
    debian.script("mute", "exit 1")
    (debian.root / "etc/rc2.d").mkdir()
    (debian.root / "etc/rc2.d/S01cron").symlink_to("../init.d/cron")
    (debian.root / "etc/rc2.d/K01nginx").symlink_to("../init.d/nginx")
    return debian


def test_scripts(plain, services):
    ctx = plain.context()
    told = [
        (verb, ctx.call(f"service.{verb}", "nginx"), ctx.call("service.status", "nginx"))
        for verb in ("status", "start", "reload", "force_reload", "restart", "stop", "stop")
    ]
    assert told == [
        ("status", False, False),
        ("start", True, True),
        ("reload", True, True),
        ("force_reload", True, True),
        ("restart", True, True),
        ("stop", True, False),
        ("stop", True, False),
    ]
    assert list((services.root / "tmp").iterdir()) == []


@pytest.mark.parametrize(
    ("name", "args", "value"),
    [
        ("available", ("nginx",), True),
        ("available", ("no",), False),
        ("missing", ("no",), True),
        ("get_all", (), ["cron", "mute", "nginx"]),
        ("get_enabled", (), ["cron"]),
        ("get_disabled", (), ["mute", "nginx"]),
        ("enabled", ("cron",), True),
        ("enabled", ("nginx",), False),
        ("disabled", ("nginx",), True),
        ("disabled", ("no",), False),
        ("status", ("no",), False),
        ("status", ("mute",), False),
        ("status", ("[cn]*",), {"cron": False, "nginx": False}),
        ("start", ("mute",), False),
    ],
)
def test_reading(plain, services, name, args, value):
    assert plain.call(f"service.{name}", *args) == value


def test_at_boot(plain, services):
    assert plain.call("service.enable", "nginx")
    assert plain.call("service.enabled", "nginx")
    assert plain.call("service.disable", "nginx")
    assert plain.call("service.disabled", "nginx")
    services.broken["update-rc.d"] = "no LSB header"
    with pytest.raises(CommandError, match=r"update-rc\.d nginx disable failed: no LSB header"):
        plain.call("service.disable", "nginx")


def test_services_that_are_not_there(plain, services):
    with pytest.raises(CommandError, match=r"The named service no is not available: the host has no /etc/init\.d/no"):
        plain.call("service.start", "no")


@pytest.mark.timeout(30)
def test_daemons_do_not_hold_up_who_started_them(plain, services):
    services.script("daemon", DAEMON)
    assert plain.call("service.start", "daemon")
    pid = int((services.root / "etc/init.d/daemon.pid").read_text())
    try:
        os.kill(pid, 0)
        assert Path(f"/proc/{pid}/fd/0").readlink() == Path("/dev/null")
    finally:
        os.kill(pid, signal.SIGKILL)


def test_processes_by_their_command_line(plain, services):
    assert plain.call("service.status", "nginx", sig="no such text in any command line" + str(os.getpid())) is False


def test_hosts_without_services(plain):
    with pytest.raises(NotAvailable, match=r"systemd does not run on the host; .*the host has no /etc/init\.d"):
        plain.call("service.start", "nginx")


# --------------------------------------------------------------------------------------------------------------------- systemd


@pytest.fixture
def systemd(debian):
    """systemd: nginx runs and is enabled, cron is neither, old is an alias, changed has a newer file than was read."""
    debian.running = {"nginx.service"}
    debian.enabled = {"nginx.service"}
    debian.refuses = ""
    units = debian.root / "etc/systemd/system"
    for directory in (units, debian.root / "run/systemd/system"):
        directory.mkdir(parents=True)
    for name in ("nginx.service", "cron.service", "changed.service", "backup.timer", "README"):
        (units / name).write_text("")
    known = {"nginx.service", "cron.service", "changed.service", "backup.timer", "old.service"}

    def systemctl(words, stdin):
        plain = [word for word in words if not word.startswith("--")]
        verb, unit = plain[0], plain[-1]
        if verb == "show":
            if "--value" in words:
                return "nginx.service\n"
            reload = "yes" if unit == "changed.service" else "no"
            return f"LoadState={'loaded' if unit in known else 'not-found'}\nNeedDaemonReload={reload}\n"
        if verb == "status":
            return (0 if unit in debian.running else 3 if unit in known else 4), "", ""
        if verb == "is-active":
            return (0 if unit in debian.running else 3), "", ""
        if verb == "is-enabled":
            return (0, "alias\n", "") if unit == "old.service" else (int(unit not in debian.enabled), "", "")
        if verb == "list-unit-files":
            state = next(word for word in words if word.startswith("--state=")).partition("=")[2]
            return f"nginx.service {state} enabled\nbackup.timer {state} enabled\n"
        if debian.refuses:
            return 1, "", debian.refuses
        changes = {
            "start": lambda: debian.running.add(unit),
            "restart": lambda: debian.running.add(unit),
            "stop": lambda: debian.running.discard(unit),
            "enable": lambda: debian.enabled.add(unit),
            "disable": lambda: debian.enabled.discard(unit),
            "mask": lambda: (debian.root / f"run/systemd/system/{unit}").symlink_to("/dev/null"),
            "unmask": lambda: (debian.root / f"run/systemd/system/{unit}").unlink(),
        }
        if verb in changes:
            changes[verb]()
        return None

    debian._systemctl = systemctl
    return debian


def test_units(plain, systemd):
    ctx = plain.context()
    told = [
        (verb, ctx.call(f"service.{verb}", "cron"), ctx.call("service.status", "cron"))
        for verb in ("start", "reload", "force_reload", "restart", "stop")
    ]
    assert told == [
        ("start", True, True),
        ("reload", True, True),
        ("force_reload", True, True),
        ("restart", True, True),
        ("stop", True, False),
    ]
    assert "systemctl --no-pager --no-block reload-or-restart cron.service" in systemd.calls
    assert "systemctl --no-pager --system daemon-reload" not in systemd.calls


@pytest.mark.parametrize(
    ("name", "args", "value"),
    [
        ("available", ("nginx",), True),
        ("available", ("no",), False),
        ("missing", ("no",), True),
        ("status", ("nginx",), True),
        ("status", ("backup.timer",), False),
        ("status", ("[nc]*x",), {"nginx": True}),
        ("enabled", ("nginx",), True),
        ("enabled", ("old",), True),
        ("disabled", ("cron",), True),
        ("get_all", (), ["backup.timer", "changed", "cron", "nginx"]),
        ("get_enabled", (), ["backup.timer", "nginx"]),
        ("get_disabled", (), ["backup.timer", "nginx"]),
        ("get_static", (), ["backup.timer", "nginx"]),
        ("masked", ("nginx",), False),
        ("unmask", ("nginx",), True),
        ("show", ("nginx",), {"LoadState": "loaded", "NeedDaemonReload": "no"}),
        ("disable", ("nginx",), True),
        ("enable", ("cron",), True),
    ],
)
def test_units_read(plain, systemd, name, args, value):
    assert plain.call(f"service.{name}", *args) == value


def test_programs_of_services(plain, systemd):
    told = (
        "ExecStart={ path=/usr/sbin/cron ; argv[]=/usr/sbin/cron -f ; ignore_errors=no ; pid=0 }\nId=cron.service\n\n"
        "Id=changed.service\nExecStart=\n\n"
        "Id=nginx.service\nExecStart={ path=/usr/sbin/nginx ; argv[]=/usr/sbin/nginx ; }\n"
    )
    systemd._systemctl = lambda words, stdin: told
    assert plain.call("service.execs") == {"cron": "/usr/sbin/cron", "nginx": "/usr/sbin/nginx"}
    assert systemd.calls == [
        "systemctl --no-pager show changed.service cron.service nginx.service --property=Id,ExecStart"
    ]


def test_a_first_boot(plain, systemd):
    systemd._systemd_firstboot = lambda words, stdin: (systemd.refuses and (1, "", systemd.refuses)) or None
    assert plain.call("service.firstboot", keymap="jp", locale="en_US.UTF-8", machine_id="") is True
    assert systemd.calls == ["systemd-firstboot --locale=en_US.UTF-8 --keymap=jp"]
    systemd.refuses = "Keymap x not installed."
    with pytest.raises(CommandError, match=r"systemd-firstboot error: Keymap x not installed\."):
        plain.call("service.firstboot", keymap="x")
    systemd.absent.add("systemd-firstboot")
    with pytest.raises(CommandError, match="the host has no systemd-firstboot"):
        plain.call("service.firstboot")


def test_masks(plain, systemd):
    plain.call("service.mask", "cron", runtime=True)
    assert plain.call("service.masked", "cron", runtime=True) is True
    assert plain.call("service.masked", "cron") is False
    plain.call("service.start", "cron", unmask_runtime=True)
    assert plain.call("service.masked", "cron", runtime=True) is False


def test_changed_units_are_read_first(plain, systemd):
    plain.call("service.restart", "changed")
    assert systemd.calls[-2:] == [
        "systemctl --no-pager --system daemon-reload",
        "systemctl --no-pager restart changed.service",
    ]


def test_what_systemd_refuses(plain, systemd):
    systemd.refuses = "Running as unit: run-x.scope\nFailed to start cron.service: Unit is masked.\n"
    for verb in ("start", "restart", "reload", "enable"):
        with pytest.raises(CommandError, match=r"^Failed to start cron\.service: Unit is masked\.$"):
            plain.call(f"service.{verb}", "cron")
    assert plain.call("service.stop", "nginx") is False
    assert plain.call("service.disable", "nginx") is False
    with pytest.raises(CommandError, match="Failed to mask service 'cron'"):
        plain.call("service.mask", "cron")


def test_systemctl_is_told_to_work_in_a_chroot(plain, systemd, monkeypatch):
    seen = []
    monkeypatch.setattr(
        systemd, "run", lambda words, **options: seen.append(options["env"]) or CommandResult(0, "", "", 1)
    )
    plain.call("service.status", "nginx")
    assert seen == [{"LC_ALL": "C", "SYSTEMD_IGNORE_CHROOT": "1"}]


def test_a_unit_that_is_about_to_run(plain, systemd, monkeypatch):
    """It has as long as it is given."""
    monkeypatch.setattr("statecore.builtin.modules.service_systemd._PAUSE", 0.01)
    answers = [(3, "activating\n", "")] * 3 + [(0, "active\n", "")]
    known = systemd._systemctl
    systemd._systemctl = lambda words, stdin: answers.pop(0) if "is-active" in words else known(words, stdin)
    assert plain.call("service.status", "nginx") is False
    assert len(answers) == 3
    assert plain.call("service.status", "nginx", wait=20) is True
    answers += [(3, "failed\n", "")]
    assert plain.call("service.status", "nginx", wait=20) is False
