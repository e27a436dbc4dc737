"""Service states of mounted hosts without an init that runs; the provider that a state names."""

from __future__ import annotations

import pytest

from statecore.compile import compile_chunks
from statecore.engine import EngineOptions, run

OFFLINE = "Running in OFFLINE mode. Nothing to do"
UNIT = "[Install]\nWantedBy=multi-user.target\n"
SET = "Service web set to be"
IS = "and is in the desired state"

#: (function, arguments, whether it is enabled before, (in test mode, applied, again): result, changes, comment)
CASES = {
    "running": ("running", {}, False, *[(True, {}, OFFLINE)] * 3),
    "running, at boot": (
        "running",
        {"enable": True},
        False,
        (None, {}, f"{OFFLINE}\n{SET} enabled"),
        (True, {"web": True}, f"{OFFLINE}\nService web has been enabled, {IS}"),
        (True, {}, f"{OFFLINE}\nService web is already enabled, {IS}"),
    ),
    "dead": ("dead", {}, True, *[(True, {}, OFFLINE)] * 3),
    "dead, not at boot": (
        "dead",
        {"enable": False},
        True,
        (None, {}, f"{OFFLINE}\n{SET} disabled"),
        (True, {"web": True}, f"{OFFLINE}\nService web has been disabled, {IS}"),
        (True, {}, f"{OFFLINE}\nService web is already disabled, {IS}"),
    ),
    "enabled": (
        "enabled",
        {},
        False,
        (None, {}, f"{SET} enabled"),
        (True, {"web": True}, f"Service web has been enabled, {IS}"),
        (True, {}, f"Service web is already enabled, {IS}"),
    ),
    "masked": (
        "masked",
        {},
        False,
        (None, {"masked": {"old": False, "new": True}}, "Service web would be masked"),
        (True, {"masked": {"old": False, "new": True}}, "Service web was masked"),
        (True, {}, "Service web is already masked"),
    ),
    "watch": ("mod_watch", {"sfun": "running"}, False, *[(True, {}, OFFLINE)] * 3),
    "what is not there": ("running", {"name": "none", "enable": True}, False, *[(True, {}, OFFLINE)] * 3),
}


@pytest.fixture
def image(plain):
    units = plain.root / "usr/lib/systemd/system"
    units.mkdir(parents=True)
    (units.parent / "systemd").write_text("")
    (units / "web.service").write_text(UNIT)
    return plain


@pytest.mark.parametrize("told_as", CASES)
def test_without_an_init(image, told_as):
    function, args, enabled, *wanted = CASES[told_as]
    if enabled:
        image.call("service.enable", "web")
    for test, told in zip((True, False, False), wanted, strict=True):
        entry = image.state(f"service.{function}", test=test, **{"name": "web", **args})
        assert (entry["result"], entry["changes"], entry["comment"]) == told


def test_a_state_names_its_provider(plain):
    scripts = plain.root / "etc/init.d"
    scripts.mkdir(parents=True)
    (scripts / "old").write_text("#!/bin/sh\n")
    (plain.root / "etc/runlevels").mkdir()
    told = _told(plain, [{"provider": "debian_service"}, {}, {"provider": 5}], test=True)
    assert "the host's init scripts are OpenRC's" in told[0][2]
    assert told[1][0] is None
    assert told[2][2].startswith("provider must name a file, or map modules to files, not 5")
    (plain.root / "etc/runlevels").rmdir()
    plain.loader.refresh()
    assert _told(plain, [{"provider": [{"service": "service_sysv"}]}], test=False)[0][:2] == (True, {"old": True})
    assert (plain.root / "etc/rc2.d/S20old").is_symlink()


def test_a_provider_where_there_is_no_other(plain):
    program = plain.root / "usr/bin/supervisorctl"
    program.parent.mkdir(parents=True)
    program.write_text("#!/none\n")
    program.chmod(0o755)
    told = _told(plain, [{}, {"provider": "supervisord"}, {}], test=True)
    assert "No service execution module loaded" in told[0][2]
    assert "/usr/bin/supervisorctl" in told[1][2]
    assert "No service execution module loaded" not in told[1][2]
    assert told[2] == told[0]


def _told(plain, providers, *, test):
    chunk = {"state": "service", "fun": "enabled", "name": "old", "__sls__": "s", "__env__": "base"}
    chunks = [{**chunk, "__id__": str(at), "order": at, **each} for at, each in enumerate(providers)]
    running = run(compile_chunks(chunks).graph, plain.context(test=test), plain.loader, EngineOptions())
    return [(entry["result"], entry["changes"], entry["comment"]) for entry in running.values()]
