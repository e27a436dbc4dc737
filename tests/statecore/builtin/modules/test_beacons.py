"""The module and the state ``beacon``: what a running minion is asked, and what is said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from saltern.minion.duties.beacons import Beacons

PS = [{"processes": {"nginx": "running"}}]
OTHER = [{"processes": {"nginx": "stopped"}}, {"interval": 5}]


@pytest.fixture
def live(plain, tmp_path):
    """A running minion's beacons, behind the port."""
    beacons = Beacons({}, tmp_path / "minion.d" / "beacons.conf", lambda events: None)

    def manage(request: Mapping[str, Any]) -> dict[str, Any]:
        return beacons.manage(request)

    plain.ports.managers["beacons"] = manage
    return beacons


@pytest.mark.usefixtures("live")
def test_they_are_listed(plain):
    assert plain.call("beacons.list") == "beacons: {}\n"
    plain.call("beacons.add", "ps", PS)
    assert yaml.safe_load(plain.call("beacons.list")) == {"beacons": {"ps": PS}}
    assert plain.call("beacons.list", return_yaml=False) == {"ps": PS}
    available = plain.call("beacons.list_available", return_yaml=False)
    assert {"load", "log", "ps", "service", "inotify"} <= set(available)
    assert "journald" not in available


@pytest.mark.usefixtures("live")
def test_they_come_change_and_go(plain):
    assert plain.call("beacons.add", "ps", PS, test=True) == {"comment": "Beacon: ps would be added.", "result": True}
    assert plain.call("beacons.add", "ps", PS) == {"comment": "Added beacon: ps.", "result": True}
    again = plain.call("beacons.add", "ps", PS)
    assert again == {"comment": "Beacon ps is already configured.", "result": True}
    assert plain.call("beacons.modify", "ps", PS) == {"comment": "Job ps in correct state", "result": True}
    diff = "--- \n+++ \n@@ -1 +1,2 @@\n-processes:{'nginx': 'running'}\n+processes:{'nginx': 'stopped'}\n+interval:5\n"
    would = plain.call("beacons.modify", "ps", OTHER, test=True)
    assert would == {"comment": "Beacon: ps would be modified.", "result": True, "changes": {"diff": diff}}
    done = plain.call("beacons.modify", "ps", OTHER)
    assert done == {"comment": "Modified beacon: ps.", "result": True, "changes": {"diff": diff}}
    assert plain.call("beacons.modify", "log", [])["comment"] == "Beacon log is not configured."
    assert plain.call("beacons.delete", "ps", test=True)["comment"] == "Beacon: ps would be deleted."
    assert plain.call("beacons.delete", "ps") == {"comment": "Deleted beacon: ps.", "result": True}


@pytest.mark.usefixtures("live")
@pytest.mark.parametrize(
    ("name", "config", "comment"),
    [
        ("nothing", [], 'Beacon "nothing" is not available.'),
        ("mine", [{"beacon_module": "nothing"}], 'Beacon "nothing" is not available.'),
        (
            "ps",
            [],
            "Beacon ps configuration invalid, not adding.\nConfiguration for ps beacon requires processes.",
        ),
        (
            "mine",
            [{"beacon_module": "ps"}],
            "Beacon mine configuration invalid, not adding.\nConfiguration for ps beacon requires processes.",
        ),
        ("ps", {}, "Beacon ps configuration invalid, not adding.\nConfiguration for ps beacon must be a list."),
    ],
)
def test_what_is_no_beacon_is_not_added(plain, name, config, comment):
    assert plain.call("beacons.add", name, config) == {"comment": comment, "result": False}
    assert plain.call("beacons.list", return_yaml=False) == {}


def test_switches(plain, live):
    plain.call("beacons.add", "ps", PS)
    for able in ("disable", "enable"):
        assert plain.call(f"beacons.{able}_beacon", "ps", test=True)["comment"] == f"Beacon ps would be {able}d."
        told = plain.call(f"beacons.{able}_beacon", "ps")
        assert told == {"comment": f"{able.capitalize()}d beacon ps on minion.", "result": True}
        missing = plain.call(f"beacons.{able}_beacon", "log")
        assert missing == {"comment": "Beacon log is not currently configured.", "result": False}
        assert plain.call(f"beacons.{able}") == {"comment": f"{able.capitalize()}d beacons on minion.", "result": True}
        assert live.whole["enabled"] is (able == "enable")
    assert plain.call("beacons.reset") == {"comment": "Beacon configuration reset.", "result": True}
    live.update({"beacons": {"ps": PS}})
    refused = plain.call("beacons.disable_beacon", "ps")
    assert refused == {"comment": "Cannot disable beacon item ps, it is configured in pillar.", "result": False}


@pytest.mark.usefixtures("live")
def test_they_are_saved(plain, tmp_path):
    plain.call("beacons.add", "ps", PS)
    file = tmp_path / "minion.d" / "beacons.conf"
    assert plain.call("beacons.save") == {"comment": f"Beacons saved to {file}.", "result": True}
    assert yaml.safe_load(file.read_text()) == {"beacons": {"ps": PS}}
    file.unlink()
    file.parent.rmdir()
    file.parent.write_text("")
    assert plain.call("beacons.save")["result"] is False


@pytest.mark.usefixtures("live")
def test_states(plain, tmp_path):
    def entry(fun: str, *, test: bool = False, **arguments: Any) -> tuple[Any, str, Any]:
        told = plain.state(f"beacon.{fun}", test=test, name="ps", **arguments)
        return told["result"], told["comment"], told["changes"]

    (have,), (other, interval) = PS, OTHER
    assert entry("present", test=True, **have) == (None, "Beacon: ps would be added.", {"ps": "added"})
    assert entry("present", **have) == (True, "Adding ps to beacons", {"ps": "added"})
    assert entry("present", **have) == (True, "Job ps in correct state", {})
    result, comment, changes = entry("present", test=True, **other, **interval)
    assert (result, comment, list(changes)) == (None, "Beacon: ps would be modified.", ["diff"])
    result, comment, changes = entry("present", save=True, **other, **interval)
    assert (result, comment, list(changes)) == (True, "Modifying ps in beacons\nBeacon ps saved", ["diff"])
    assert (tmp_path / "minion.d" / "beacons.conf").exists()
    assert entry("enabled") == (True, "Enabled ps from beacons", {})
    assert entry("disabled", test=True) == (None, "Beacon ps would be disabled.", {"ps": "disabled"})
    assert entry("disabled") == (True, "Disabled beacon ps.", {"ps": "disabled"})
    assert entry("disabled") == (True, "Disabled beacon ps.", {})
    assert entry("absent", test=True) == (None, "Beacon: ps would be deleted.", {"ps": "removed"})
    assert entry("absent") == (True, "Removed ps from beacons", {"ps": "removed"})
    assert entry("absent") == (True, "ps not configured in beacons", {})
    assert entry("enabled") == (True, "ps not a configured beacon", {})
    assert entry("disabled") == (True, "Job ps is not configured.", {})
    assert entry("present", processes="x")[0] is False
