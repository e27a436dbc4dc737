"""``iptables`` and ``nftables`` with the real programs, in a network namespace of the test's own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from statecore.states import iptables

_CHILD = Path(__file__).with_name("states_in_a_namespace.py")


@pytest.fixture
def in_namespace(tmp_path):
    """Calls states, each in test mode, applied, and applied again; (result, changes) of the three, and comments."""

    def asked(program, *calls):
        if os.geteuid() != 0 or shutil.which(program) is None:
            pytest.skip(f"needs root and {program}")
        if subprocess.run(["unshare", "-n", program, "--version"], capture_output=True).returncode:
            pytest.skip("no network namespace of its own may be made")
        each = [[state, arguments, test] for state, arguments in calls for test in (True, False, False)]
        done = subprocess.run(
            ["unshare", "-n", sys.executable, _CHILD, tmp_path], input=json.dumps(each), text=True, capture_output=True
        )
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        return [told[at : at + 3] for at in range(0, len(told), 3)]

    return asked


def test_rules_of_iptables(in_namespace, tmp_path):
    file = str(tmp_path / "rules")
    ssh = {"name": "ssh", "chain": "INPUT", "protocol": "tcp", "dport": 22, "match": "comment", "comment": "two words"}
    ssh["jump"] = "ACCEPT"
    six = {
        "name": "six",
        "chain": "INPUT",
        "family": "ipv6",
        "source": "!2001:db8::/32",
        "jump": "DROP",
        "save": f"{file}6",
    }
    first = {"name": "first", "chain": "INPUT", "position": 1, "if": "lo", "jump": "MINE", "save": file}
    told = in_namespace(
        "iptables",
        ("iptables.chain_present", {"name": "MINE"}),
        ("iptables.append", ssh),
        ("iptables.append", six),
        ("iptables.insert", first),
        ("iptables.set_policy", {"name": "x", "chain": "FORWARD", "policy": "DROP", "save": file}),
        ("iptables.delete", {key: value for key, value in first.items() if key != "position"}),
        ("iptables.chain_absent", {"name": "MINE"}),
        ("iptables.flush", {"name": "x", "table": "filter"}),
    )
    for would, does, again in told:
        assert (would["result"], would["changes"]) == (None, {}), would
        assert does["result"] is True, does
        assert does["changes"], does
        assert (again["result"], again["changes"]) == (True, {}), again
    assert "! -s 2001:db8::/32 -j DROP" in Path(f"{file}6").read_text()
    saved = Path(file).read_text()
    assert ":FORWARD DROP" in saved
    assert '-A INPUT -p tcp -m comment --comment "two words" -m tcp --dport 22 -j ACCEPT' in saved
    assert "-j MINE" not in saved


def test_what_iptables_refuses(in_namespace):
    ((would, does, again),) = in_namespace(
        "iptables", ("iptables.append", {"name": "x", "chain": "NONE", "jump": "ACCEPT"})
    )
    assert would["result"] is None
    assert does["result"] is False
    assert "-A NONE" in does["comment"]
    assert again["result"] is False


def test_like_rules_are_gathered():
    def chunk(name, **more):
        return {
            "state": "iptables",
            "fun": "append",
            "name": name,
            "__id__": name,
            "order": 1,
            "chain": "INPUT",
            **more,
        }

    low = chunk("a", jump="A", require=[{"pkg": "x"}], watch_in=["y"])
    chunks = [chunk("b", jump="B"), chunk("c", unless="true"), {**chunk("d"), "fun": "delete"}, chunk("e", rules=[])]
    gathered = iptables.mod_aggregate(None, low, chunks, {})
    assert gathered["rules"] == [
        {"name": "a", "chain": "INPUT", "jump": "A"},
        {"name": "b", "chain": "INPUT", "jump": "B"},
    ]
    assert [each.get("__agg__") for each in chunks] == [True, None, None, None]
    assert iptables.mod_aggregate(None, low, [], {}) is low
    assert iptables.mod_aggregate(None, {**low, "fun": "flush"}, chunks, {})["fun"] == "flush"
