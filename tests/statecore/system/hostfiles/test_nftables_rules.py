"""Rules of nftables, from a table and randomly generated, compared with Salt's; rules that nft writes in other
words.
"""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from statecore.model.errors import InvocationError
from statecore.system.hostfiles import nftables_rules

_SALT = Path(__file__).with_name("salt_rules.py")

#: family, arguments, rule
TABLE: list[tuple[str, dict[str, Any], str]] = [
    ("ipv4", {}, ""),
    ("ipv4", {"target": "drop", "table": "t", "name": "x", "save": True, "match": "state"}, "drop"),
    ("ipv4", {"if": "eth0", "of": "lo", "jump": "accept"}, "meta iifname eth0 meta oifname lo accept"),
    ("ipv4", {"connstate": "new", "counter": "", "jump": "accept"}, "ct state { new } counter accept"),
    ("ipv6", {"source": "::1", "daddr": "fe80::1"}, "ip6 saddr ::1 ip6 daddr fe80::1"),
    ("ipv4", {"proto": "tcp", "dport": "1:5", "sport": 7}, "tcp dport { 1-5 } tcp sport { 7 }"),
    ("ipv4", {"proto": "udp", "dports": "22,443,80"}, "udp dport { 443, 80, 22 }"),
    ("ipv4", {"icmp-type": "echo-request", "pkttype": "host"}, "icmp type { echo-request } meta pkttype { host }"),
    ("inet", {"icmpv6-type": "echo-reply"}, "icmpv6 type { echo-reply }"),
    ("ipv4", {"redirect-to": 80}, "redirect to 80"),
    ("ipv4", {"jump": "dnat", "to-destination": "1.2.3.4"}, "dnat 1.2.3.4"),
    ("ipv4", {"reject-with": "tcp reset"}, "reject with tcp reset"),
]

#: option -> values that chance takes from
_CHOICES: dict[str, list[Any]] = {
    "if": ["eth0"],
    "of": ["lo"],
    "connstate": ["new", "new,established"],
    "icmp-type": ["echo-request"],
    "icmpv6-type": ["echo-reply"],
    "pkttype": ["host"],
    "counter": [True, ""],
    "saddr": ["10.0.0.1"],
    "source": ["10.0.0.2"],
    "daddr": ["10.0.0.3"],
    "destination": ["10.0.0.4"],
    "dport": [22, "5:9"],
    "sport": ["80"],
    "dports": ["1,3,2"],
    "sports": ["9,7"],
    "jump": ["accept"],
    "j": ["drop"],
    "target": ["return"],
    "redirect-to": [80],
    "to-port": [81],
    "to-ports": ["1-2"],
    "to-source": ["1.2.3.4"],
    "to-destination": ["5.6.7.8"],
    "reject-with": ["tcp reset"],
    "state": ["gone"],
    "table": ["nat"],
}


@pytest.mark.parametrize(("family", "arguments", "rule"), TABLE)
def test_a_rule(family, arguments, rule):
    assert nftables_rules.build(family, arguments) == rule


@pytest.mark.parametrize(
    ("family", "arguments", "told"),
    [
        ("ipv5", {}, "family: 'ipv5' is unknown"),
        ("ipv4", {"jmp": "accept"}, "'jmp' is not an option of a rule; did you mean 'jump'"),
        ("ipv4", {"dport": 22}, "dport: proto must be specified"),
        ("ipv4", {"proto": "tcp", "dports": "22,ssh"}, "dports: a list of ports is needed"),
    ],
)
def test_what_is_no_rule(family, arguments, told):
    with pytest.raises(InvocationError, match=told):
        nftables_rules.build(family, arguments)


@pytest.mark.oracle
def test_salt_builds_the_same_rules(oracle):
    chance = random.Random(3008)
    asked = [{**arguments, "family": family} for family, arguments, _ in TABLE]
    for _ in range(600):
        names = chance.sample(sorted(_CHOICES), chance.randint(1, 9))
        made = {name: chance.choice(_CHOICES[name]) for name in names}
        asked.append({**made, "proto": chance.choice(["tcp", "udp"]), "family": chance.choice(["ipv4", "ip6", "inet"])})
    done = subprocess.run(
        [oracle.program("python"), _SALT],
        input=json.dumps([["nftables", each] for each in asked]),
        text=True,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert len(told) == len(asked)
    for arguments, salts in zip(asked, told, strict=True):
        assert " ".join(salts["rule"].split()) == nftables_rules.build(arguments["family"], arguments), arguments


LISTING = """\
table ip filter {
	chain input { # handle 1
		type filter hook input priority filter; policy accept;
		iifname "lo" ct state { established, new } counter packets 5 bytes 9 ip saddr 10.0.0.0/8 tcp dport 22 accept # handle 3
		tcp dport { 80, 443 } reject # handle 15
		reject with icmp host-unreachable # handle 6
	}
}
"""


@pytest.mark.parametrize(
    ("rule", "handle"),
    [
        ("meta iifname lo ct state { new,established } counter ip saddr 10.0.0.0/8 tcp dport { 22 } accept", "3"),
        ("tcp dport { 443, 80 } reject with icmp type port-unreachable", "15"),
        ("tcp dport { 443 } reject", None),
        ("reject with icmp type host-unreachable", "6"),
        ("reject", None),
        ("type filter hook input priority filter; policy accept;", None),
    ],
)
def test_a_rule_is_found_in_a_listing(rule, handle):
    assert nftables_rules.handle(LISTING, rule) == handle


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("ip saddr 10.0.0.1/32 drop", "ip saddr 10.0.0.1 drop", True),
        ("ip6 saddr fe80::1/128 drop", "ip6 saddr fe80::1 drop", True),
        ("ip6 saddr 2001:db8::/32 drop", "ip6 saddr 2001:db8:: drop", False),
        ("dnat to 1.2.3.4", "dnat 1.2.3.4", True),
        ("redirect to :80", "redirect to 80", True),
        ("oifname eth0 drop", 'meta oifname "eth0" drop', True),
        ("drop", "accept", False),
    ],
)
def test_words_that_mean_the_same(one, other, same):
    assert (nftables_rules.plain(one) == nftables_rules.plain(other)) is same
