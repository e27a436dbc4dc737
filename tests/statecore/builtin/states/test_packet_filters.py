"""``iptables`` and ``nftables`` with the real programs, in a network namespace of the test's own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from statecore.builtin.states import iptables

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


def test_rules_of_nftables(in_namespace, tmp_path):
    file = str(tmp_path / "rules.nft")
    ssh = {
        "name": "ssh",
        "chain": "input",
        "proto": "tcp",
        "dports": "22,443",
        "connstate": "new,established",
        "counter": True,
    }
    ssh |= {"if": "lo", "source": "10.0.0.1/32", "jump": "accept"}
    rest = {"name": "rest", "chain": "input", "jump": "reject", "save": file}
    first = {"name": "first", "chain": "input", "proto": "udp", "dport": "1000:2000", "jump": "drop"}
    six = {
        "name": "six",
        "family": "ip6",
        "table": "mine",
        "chain": "c",
        "saddr": "2001:db8::/32",
        "icmpv6-type": "echo-request",
    }
    six |= {"jump": "return"}
    told = in_namespace(
        "nft",
        ("nftables.table_present", {"name": "filter"}),
        ("nftables.chain_present", {"name": "input", "table_type": "filter", "hook": "input", "priority": 0}),
        ("nftables.append", ssh),
        ("nftables.append", rest),
        ("nftables.insert", first),
        ("nftables.table_present", {"name": "mine", "family": "ip6"}),
        ("nftables.chain_present", {"name": "c", "table": "mine", "family": "ip6"}),
        ("nftables.append", six),
        ("nftables.set_policy", {"name": "x", "chain": "input", "policy": "drop", "save": True, "save_filename": file}),
        ("nftables.delete", first),
        ("nftables.table_present", {"name": "one"}),
        ("nftables.chain_present", {"name": "c", "table": "one"}),
        ("nftables.append", {"name": "second", "table": "one", "chain": "c", "jump": "accept"}),
        # In a table of its own, the first chain has the handle 1, its first rule 2.
        ("nftables.delete", {"name": "by handle", "table": "one", "chain": "c", "position": 2}),
        ("nftables.flush", {"name": "x", "chain": "input"}),
        ("nftables.chain_absent", {"name": "input"}),
        ("nftables.table_absent", {"name": "mine", "family": "ip6"}),
    )
    for would, does, again in told:
        assert (would["result"], would["changes"]) == (None, {}), would
        assert does["result"] is True, does
        assert does["changes"], does
        assert (again["result"], again["changes"]) == (True, {}), again
    saved = Path(file).read_text()
    assert saved.startswith("#! nft -f\n")
    assert "policy drop;" in saved
    assert "udp dport 1000-2000 drop" in saved
    assert "ip6 saddr 2001:db8::/32" in saved


def test_what_nftables_refuses(in_namespace):
    nowhere, wrong = in_namespace(
        "nft",
        ("nftables.append", {"name": "x", "chain": "none", "jump": "accept"}),
        ("nftables.chain_present", {"name": "input", "hook": "input"}),
    )
    assert nowhere[1]["result"] is False
    assert "Table filter in family ipv4 does not exist" in nowhere[1]["comment"]
    assert "Table_type, hook, and priority required." in wrong[0]["comment"]


def test_rules_that_nftables_lists_in_other_words(in_namespace):
    """Each is known again, whatever nft makes of it."""
    common = {"table": "t", "chain": "c"}
    options = [
        {"if": "eth0", "of": "lo", "jump": "accept"},
        {"connstate": "related,established,new", "jump": "accept"},
        {"connstate": "established", "jump": "accept"},
        {"pkttype": "broadcast, multicast", "counter": True, "jump": "drop"},
        {"icmp-type": "echo-request,echo-reply", "jump": "accept"},
        {"source": "192.168.1.77", "destination": "10.0.0.0/8", "proto": "udp", "sport": "53", "jump": "accept"},
        {"source": "10.0.0.5-10.0.0.9", "jump": "drop"},
        {"proto": "tcp", "dports": [22, 80, 8080], "sports": "1,2", "jump": "accept"},
        {"proto": "tcp", "dport": "1024:65535", "reject-with": "tcp reset"},
        {"proto": "udp", "dport": 5, "reject-with": "icmp type host-unreachable"},
        {"proto": "udp", "dport": 6, "reject-with": "icmp type port-unreachable"},
        {"jump": "jump other"},
        {"jump": "goto other"},
        {"proto": "tcp", "dport": 80, "jump": 'log prefix "two words " accept'},
    ]
    nat = {"table": "t", "chain": "pre"}
    options_of_nat = [
        {"proto": "tcp", "dport": 80, "redirect-to": 8080},
        {"proto": "tcp", "dport": 81, "jump": "dnat", "to-destination": "10.0.0.1:8080"},
        {"proto": "tcp", "dport": 82, "jump": "dnat", "to-destination": "to 10.0.0.2"},
    ]
    calls = [
        ("nftables.table_present", {"name": "t"}),
        ("nftables.chain_present", {"name": "c", "table": "t"}),
        ("nftables.chain_present", {"name": "other", "table": "t"}),
        ("nftables.chain_present", {**nat, "name": "pre", "table_type": "nat", "hook": "prerouting", "priority": -100}),
        *(("nftables.append", {"name": f"r{at}", **common, **each}) for at, each in enumerate(options)),
        *(("nftables.append", {"name": f"n{at}", **nat, **each}) for at, each in enumerate(options_of_nat)),
    ]
    calls[3][1].pop("chain")
    for _, does, again in in_namespace("nft", *calls):
        assert does["result"] is True, does
        assert (again["result"], again["changes"]) == (True, {}), again


def test_a_rule_that_is_not_known_again_is_taken_back(in_namespace):
    # nft makes one network of the two.
    rule = {"name": "x", "table": "t", "chain": "c", "source": "{ 10.0.0.0/9, 10.128.0.0/9 }", "jump": "drop"}
    told = in_namespace(
        "nft",
        ("nftables.table_present", {"name": "t"}),
        ("nftables.chain_present", {"name": "c", "table": "t"}),
        ("nftables.append", rule),
        ("nftables.flush", {"name": "y", "table": "t"}),
    )
    assert told[2][1]["result"] is False
    assert "Use this spelling." in told[2][1]["comment"]
    # Nothing is left of it.
    assert told[3][1]["changes"] == {}
