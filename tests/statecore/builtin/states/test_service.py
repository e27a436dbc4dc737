"""The service states over init scripts that really run: each told in test mode, applied, and looked at again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from statecore.model.errors import NotAvailable

SCRIPT = """run="$0.run"
case "$1" in
  start|restart) touch "$run" ;;
  stop) rm -f "$run" ;;
  reload|force-reload) echo "$1" >>"$run" ;;
  status) test -e "$run" || exit 3 ;;
esac"""

ABSENT = "The named service no is not available"
WOULD = "Service no not present; if created in this state run, it would have been "

#: fun, arguments, (result, changes, comment) in test mode, then applied, then applied again. up runs and is started at
#: boot, down does neither, dud does not start, stuck does not stop, no is not there.
CASES = {
    "start": (
        "running",
        {"name": "down"},
        (None, {}, "Service down is set to start"),
        (True, {"down": True}, "Started service down"),
        (True, {}, "The service down is already running"),
    ),
    "start, and at boot": (
        "running",
        {"name": "down", "enable": True},
        (None, {}, "Service down is set to start"),
        (True, {"down": True}, "Service down has been enabled, and is running"),
        (True, {}, "The service down is already running"),
    ),
    "start, not at boot already": (
        "running",
        {"name": "down", "enable": "false"},
        (None, {}, "Service down is set to start"),
        (True, {"down": True}, "Service down is already disabled, and is running"),
        (True, {}, "The service down is already running"),
    ),
    "runs, not at boot": (
        "running",
        {"name": "up", "enable": False},
        (None, {}, "Service up set to be disabled"),
        (True, {"up": True}, "Service up has been disabled, and is in the desired state"),
        (True, {}, "The service up is already running"),
    ),
    "start with a pause": (
        "running",
        {"name": "down", "init_delay": 0.01},
        (None, {}, "Service down is set to start"),
        (True, {"down": True}, "Started service down\nDelayed return for 0.01 seconds"),
        (True, {}, "The service down is already running"),
    ),
    "start in vain": (
        "running",
        {"name": "dud"},
        (None, {}, "Service dud is set to start"),
        *[(False, {}, "Service dud failed to start")] * 2,
    ),
    "start in vain, and at boot": (
        "running",
        {"name": "dud", "enable": True},
        (None, {}, "Service dud is set to start"),
        (False, {"dud": True}, "Service dud has been enabled, and is dead"),
        (False, {}, "Service dud is already enabled, and is dead"),
    ),
    "start what is not there": (
        "running",
        {"name": "no"},
        (None, {}, WOULD + "started"),
        *[(False, {}, ABSENT)] * 2,
    ),
    "misspelt": (
        "running",
        {"name": "up", "enabled": True},
        *[(False, {}, 'Service up uses non-existent option "enabled".  Perhaps "enable" option was intended?')] * 3,
    ),
    "systemd's own": (
        "running",
        {"name": "up", "no_block": True},
        *[(True, {}, "The 'no_block' argument is not supported by this platform\nThe service up is already running")]
        * 3,
    ),
    "stop": (
        "dead",
        {"name": "up"},
        (None, {}, "Service up is set to be killed"),
        (True, {"up": False}, "Service up was killed"),
        (True, {}, "The service up is already dead"),
    ),
    "stop, and not at boot": (
        "dead",
        {"name": "up", "enable": False},
        (None, {}, "Service up is set to be killed"),
        (True, {"up": True}, "Service up has been disabled, and is dead"),
        (True, {}, "The service up is already dead"),
    ),
    "stop in vain": (
        "dead",
        {"name": "stuck"},
        (None, {}, "Service stuck is set to be killed"),
        *[(False, {}, "Service stuck failed to die")] * 2,
    ),
    "stop what is not there": ("dead", {"name": "no"}, (None, {}, WOULD + "stopped"), *[(True, {}, ABSENT)] * 2),
    "at boot": (
        "enabled",
        {"name": "down"},
        (None, {}, "Service down set to be enabled"),
        (True, {"down": True}, "Service down has been enabled, and is in the desired state"),
        (True, {}, "Service down is already enabled, and is in the desired state"),
    ),
    "what is not there at boot": ("enabled", {"name": "no"}, (None, {}, WOULD + "enabled"), *[(False, {}, ABSENT)] * 2),
    "not at boot": (
        "disabled",
        {"name": "up"},
        (None, {}, "Service up set to be disabled"),
        (True, {"up": True}, "Service up has been disabled, and is in the desired state"),
        (True, {}, "Service up is already disabled, and is in the desired state"),
    ),
    "what is not there not at boot": ("disabled", {"name": "no"}, *[(True, {}, ABSENT)] * 3),
    "windows' own": (
        "dead",
        {"name": "down", "timeout": 5},
        *[(True, {}, "The 'timeout' argument is not supported by this platform\nThe service down is already dead")] * 3,
    ),
    "no seconds": (
        "running",
        {"name": "up", "init_delay": "long"},
        *[(False, {}, "init_delay must be a number of seconds, not 'long'")] * 3,
    ),
    "masked": ("masked", {"name": "up"}, *[(False, {}, "Service masking not available on this minion")] * 3),
    "watch": (
        "mod_watch",
        {"name": "up", "sfun": "running"},
        (None, {}, "Service is set to be restarted"),
        *[(True, {"up": True}, "Service restarted")] * 2,
    ),
    "watch, reload": (
        "mod_watch",
        {"name": "up", "sfun": "running", "reload": True, "enable": True},
        (None, {}, "Service is set to be reloaded"),
        *[(True, {"up": True}, "Service reloaded")] * 2,
    ),
    "watch, reload by force": (
        "mod_watch",
        {"name": "up", "sfun": "running", "reload": True, "force": True},
        (None, {}, "Service is set to be forcefully reloaded"),
        *[(True, {"up": True}, "Service forcefully reloaded")] * 2,
    ),
    "watch, no full restart here": (
        "mod_watch",
        {"name": "up", "sfun": "running", "full_restart": True},
        (None, {}, "Service is set to be restarted"),
        *[(True, {"up": True}, "Service restarted")] * 2,
    ),
    "watch what does not run": (
        "mod_watch",
        {"name": "down", "sfun": "running"},
        (None, {}, "Service is set to be started"),
        (True, {"down": True}, "Service started"),
        (True, {"down": True}, "Service restarted"),
    ),
    "watch in vain": (
        "mod_watch",
        {"name": "dud", "sfun": "running"},
        (None, {}, "Service is set to be started"),
        *[(False, {"dud": False}, "Failed to start the service")] * 2,
    ),
    "watch, dead": (
        "mod_watch",
        {"name": "up", "sfun": "dead"},
        (None, {}, "Service is set to be stopped"),
        (True, {"up": True}, "Service stopped"),
        (True, {}, "Service is already stopped"),
    ),
    "watch else": (
        "mod_watch",
        {"name": "up", "sfun": "enabled"},
        *[(False, {}, "Unable to trigger watch for service.enabled")] * 3,
    ),
}


@pytest.fixture
def services(debian):
    """The services of the cases."""
    for name in ("up", "down"):
        debian.script(name, SCRIPT)
    debian.script("dud", "exit 1")
    debian.script("stuck", "exit 0")
    (debian.root / "etc/init.d/up.run").touch()
    debian._update_rc_d(["up", "defaults"], "")
    return debian


@pytest.mark.parametrize("told_as", CASES)
def test_states(plain, services, told_as):
    fun, arguments, *expected = CASES[told_as]
    for test, told in zip((True, False, False), expected, strict=True):
        before = sorted(map(str, services.root.rglob("*")))
        entry = plain.state(f"service.{fun}", test=test, **arguments)
        assert (entry["result"], entry["changes"], entry["comment"]) == told
        if test:
            assert [path for path in sorted(map(str, services.root.rglob("*"))) if not path.endswith("/tmp")] == before


#: Case -> why Salt tells it in another way.
DIFFERS = {
    "windows' own": "Salt says nothing of what means nothing here",
    "no seconds": "Salt takes whatever it is given",
    "systemd's own": "Salt says nothing of an argument that its function does not take",
}


@pytest.mark.oracle
def test_as_salt(oracle):
    asked = [[CASES[name][0], CASES[name][1]] for name in CASES]
    stdin = json.dumps(asked)
    told = json.loads(oracle.run("python", str(Path(__file__).parent / "salt_services.py"), stdin=stdin))
    for name, answers in zip(CASES, told, strict=True):
        if name not in DIFFERS:
            assert [tuple(answer) for answer in answers] == list(CASES[name][2:]), name


def test_what_cannot_be_enabled(plain, services):
    services.broken["update-rc.d"] = "no LSB header"
    entry = plain.state("service.enabled", name="down")
    assert entry["comment"] == (
        "Failed when setting service down to start at boot, but the service was already running. Additional information "
        "follows:\n\nupdate-rc.d down defaults failed: no LSB header"
    )
    assert entry["result"] is False


def test_masks(plain, debian):
    units = debian.root / "etc/systemd/system"
    for directory in (units, debian.root / "run/systemd/system"):
        directory.mkdir(parents=True)

    def systemctl(words, stdin):
        if "mask" in words:
            (units / words[-1]).symlink_to("/dev/null")
        elif "unmask" in words:
            (units / words[-1]).unlink()

    debian._systemctl = systemctl
    told = [
        plain.state(f"service.{fun}", test=test, name="cron")
        for fun in ("masked", "unmasked")
        for test in (True, False, False)
    ]
    done, undone = {"masked": {"old": False, "new": True}}, {"masked": {"old": True, "new": False}}
    assert [(each["result"], each["changes"], each["comment"]) for each in told] == [
        (None, done, "Service cron would be masked"),
        (True, done, "Service cron was masked"),
        (True, {}, "Service cron is already masked"),
        (None, undone, "Service cron would be unmasked"),
        (True, undone, "Service cron was unmasked"),
        (True, {}, "Service cron was already unmasked"),
    ]


def test_hosts_without_services(plain):
    with pytest.raises(NotAvailable, match="No service execution module loaded"):
        plain.state("service.running", name="nginx")
