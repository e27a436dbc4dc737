"""The service states on a real systemd: what they say is what systemctl shows, and a second run changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
import yaml

from tests.hosts.conftest import SUITES, install
from tests.hosts.machine import Machine

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(1800)]

#: Directory of units of packages: a unit in /etc cannot be masked.
UNITS = "/usr/lib/systemd/system"

_UNIT = """\
[Unit]
Description=A mill
[Service]
ExecStart=/bin/sleep infinity
ExecReload=/bin/touch /run/mill.reloaded
[Install]
WantedBy=multi-user.target
"""

#: A unit that never starts, one that fails after its start, and one that takes a while.
_OTHERS = {
    "broken": "[Service]\nExecStart=/bin/false\nType=oneshot\n",
    "slow": "[Service]\nType=notify\nNotifyAccess=all\nExecStart=/bin/sh -c 'sleep 3; systemd-notify --ready; sleep infinity'\n",
}


@pytest.fixture(scope="module", params=SUITES)
def machine(
    request: pytest.FixtureRequest, tree_of: Any, debs: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Machine]:
    """A machine with a minion that has no master, and units of its own."""
    one = Machine(tree_of(request.param), tmp_path_factory.mktemp("services") / "box", "services")
    try:
        one.write("/etc/salt/minion", "file_client: local\nmaster_type: disable\nid: web1\n")
        install(one, debs["saltern-common"], debs["saltern-minion"])
        for name, text in {"mill": _UNIT, **_OTHERS}.items():
            one.write(f"{UNITS}/{name}.service", text)
        one.run("systemctl", "daemon-reload")
        yield one
    finally:
        one.stop()


#: Brings the units back to where they were.
_AS_BEFORE = """\
systemctl unmask --runtime mill
systemctl unmask mill broken slow
systemctl disable --now mill
systemctl stop slow
systemctl reset-failed
"""


@pytest.fixture(autouse=True)
def _as_before(machine: Machine) -> None:
    machine.run("sh", "-c", _AS_BEFORE, expect=None)


def apply(machine: Machine, sls: Mapping[str, Any], *words: str, good: bool = True) -> list[dict[str, Any]]:
    """Returns of the states of an SLS, in their order."""
    machine.write("/srv/salt/tried.sls", yaml.safe_dump(sls, sort_keys=False))
    said = machine.run(
        "salt-call", "--out=json", "--retcode-passthrough", "state.apply", "tried", *words, expect=0 if good else None
    )
    rows = json.loads(said[said.index("{") :])["local"].values()
    return sorted(rows, key=lambda row: row["__run_num__"])


def state(machine: Machine, function: str, name: str = "mill", **arguments: Any) -> dict[str, Any]:
    """The return of one state of the module ``service``."""
    rows = [{"name": name}, *({key: value} for key, value in arguments.items())]
    return apply(machine, {"tried": {f"service.{function}": rows}}, good=False)[0]


def seen(machine: Machine, unit: str = "mill") -> tuple[str, str]:
    """What systemctl says: (active or not, enabled or not)."""
    return tuple(machine.run("systemctl", word, unit, expect=None).strip() for word in ("is-active", "is-enabled"))  # type: ignore[return-value]


#: Function and arguments, from what (a command) -> what systemctl then says, and whether something was changed.
STATES = [
    ("running", {}, "true", ("active", "disabled"), True),
    ("running", {"enable": True}, "true", ("active", "enabled"), True),
    ("running", {}, "systemctl start mill", ("active", "disabled"), False),
    ("running", {"enable": False}, "systemctl enable --now mill", ("active", "disabled"), True),
    ("dead", {}, "systemctl start mill", ("inactive", "disabled"), True),
    ("dead", {"enable": False}, "systemctl enable --now mill", ("inactive", "disabled"), True),
    ("dead", {}, "true", ("inactive", "disabled"), False),
    ("enabled", {}, "true", ("inactive", "enabled"), True),
    ("enabled", {}, "systemctl enable mill", ("inactive", "enabled"), False),
    ("disabled", {}, "systemctl enable --now mill", ("active", "disabled"), True),
    ("disabled", {}, "true", ("inactive", "disabled"), False),
    ("masked", {}, "true", ("inactive", "masked"), True),
    ("masked", {}, "systemctl mask mill", ("inactive", "masked"), False),
    ("unmasked", {}, "systemctl mask mill", ("inactive", "disabled"), True),
    ("unmasked", {"runtime": True}, "systemctl mask --runtime mill", ("inactive", "disabled"), True),
    ("masked", {"runtime": True}, "true", ("inactive", "masked-runtime"), True),
    ("unmasked", {}, "true", ("inactive", "disabled"), False),
]


@pytest.mark.parametrize(("function", "arguments", "before", "after", "changed"), STATES)
def test_a_state_does_what_it_says(
    machine: Machine, function: str, arguments: dict[str, Any], before: str, after: tuple[str, str], changed: bool
) -> None:
    machine.sh(before)
    row = state(machine, function, **arguments)
    assert row["result"] is True, row
    assert (seen(machine), bool(row["changes"])) == (after, changed), row
    again = state(machine, function, **arguments)
    assert (again["result"], again["changes"]) == (True, {}), again


def test_masked_units_of_the_system(machine: Machine) -> None:
    """A unit of a package: masked, not started while it is, unmasked and started again."""
    row = state(machine, "masked", "redis-server")
    assert (row["result"], seen(machine, "redis-server")[1]) == (True, "masked"), row
    assert state(machine, "masked", "redis-server")["changes"] == {}
    machine.run("systemctl", "stop", "redis-server")
    row = state(machine, "running", "redis-server")
    assert (row["result"], seen(machine, "redis-server")[0]) == (False, "inactive"), row
    assert "mask" in row["comment"]
    row = state(machine, "running", "redis-server", unmask=True)
    assert (row["result"], seen(machine, "redis-server")[0]) == (True, "active"), row
    assert state(machine, "unmasked", "redis-server")["changes"] == {}


def test_what_does_not_start_fails(machine: Machine) -> None:
    row = state(machine, "running", "broken")
    assert row["result"] is False, row
    row = state(machine, "running", "nosuch")
    assert row["result"] is False
    assert "nosuch" in row["comment"]
    assert state(machine, "dead", "nosuch")["result"] is True


def test_a_unit_that_starts_slowly_is_waited_for(machine: Machine) -> None:
    row = state(machine, "running", "slow", init_delay=0)
    assert (row["result"], seen(machine, "slow")[0]) == (True, "active"), row


def test_a_watch_restarts_or_reloads(machine: Machine) -> None:
    def sls(content: str, *more: Mapping[str, Any]) -> dict[str, Any]:
        watch = {"watch": [{"file": "/etc/mill.conf"}]}
        return {
            "/etc/mill.conf": {"file.managed": [{"contents": content}]},
            "mill": {"service.running": [{"enable": True}, watch, *more]},
        }

    apply(machine, sls("one"))
    first = machine.show("mill", "MainPID")
    assert apply(machine, sls("one"))[1]["changes"] == {}
    assert machine.show("mill", "MainPID") == first
    said = apply(machine, sls("two"), "test=True")[1]
    assert (said["result"], machine.show("mill", "MainPID")) == (None, first)
    assert apply(machine, sls("two"))[1]["changes"] == {"mill": True}
    second = machine.show("mill", "MainPID")
    assert second != first
    assert apply(machine, sls("three", {"reload": True}))[1]["result"] is True
    assert machine.show("mill", "MainPID") == second
    assert machine.sh("test -e /run/mill.reloaded && echo reloaded") == "reloaded\n"


def test_a_changed_unit_file_is_read_again(machine: Machine) -> None:
    sls = {
        f"{UNITS}/mill.service": {"file.managed": [{"contents": _UNIT.replace("infinity", "1000")}]},
        "mill": {"service.running": [{"watch": [{"file": f"{UNITS}/mill.service"}]}]},
    }
    machine.run("systemctl", "start", "mill")
    apply(machine, sls)
    # A unit of the type simple is started before its program is: until then the process has systemd's words.
    machine.until(f"tr '\\0' ' ' </proc/{machine.show('mill', 'MainPID')}/cmdline | grep -qx '/bin/sleep 1000 '", 20)
    machine.write(f"{UNITS}/mill.service", _UNIT)
    machine.run("systemctl", "daemon-reload")


#: Function of the module service -> its return on the machine.
CALLS: list[tuple[str, tuple[str, ...], Callable[[Any], bool]]] = [
    ("service.status", ("mill",), lambda found: found is True),
    ("service.available", ("mill",), lambda found: found is True),
    ("service.missing", ("nosuch",), lambda found: found is True),
    ("service.enabled", ("mill",), lambda found: found is False),
    ("service.get_all", (), lambda found: {"mill", "salt-minion"} <= {*found}),
    ("service.get_running", (), lambda found: "mill" in found),
    ("service.show", ("mill",), lambda found: found["Description"] == "A mill" and found["ActiveState"] == "active"),
    ("service.restart", ("mill",), lambda found: found is True),
    ("service.reload", ("mill",), lambda found: found is True),
    ("service.stop", ("mill",), lambda found: found is True),
    ("grains.get", ("init",), lambda found: found == "systemd"),
    ("grains.get", ("systemd:version",), lambda found: str(found).startswith("25")),
]


def test_functions_of_the_module(machine: Machine) -> None:
    machine.run("systemctl", "start", "mill")
    for function, words, right in CALLS:
        said = machine.run("salt-call", "--out=json", function, *words)
        found = json.loads(said[said.index("{") :])["local"]
        assert right(found), f"{function} {words}: {found}"
