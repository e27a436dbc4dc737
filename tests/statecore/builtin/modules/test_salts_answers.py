"""Answers of functions that a sweep beside Salt found to differ: what is false or empty in Salt is no error in a template."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from statecore.host.host import Host
from statecore.model.errors import CallFailed
from statecore.model.ports import CommandResult

#: Function, arguments -> the value that templates and jobs get, although the call has failed.
FAILED = [
    ("iptables.check", {}, "Error: Chain needs to be specified"),
    ("iptables.check", {"chain": "INPUT"}, "Error: Rule needs to be specified"),
    ("iptables.set_policy", {"chain": "INPUT"}, "Error: Policy needs to be specified"),
    ("iptables.build_rule", {"full": True}, "Error: Chain needs to be specified"),
    ("nftables.get_policy", {}, "Error: Chain needs to be specified"),
    ("nftables.set_policy", {"chain": "input"}, "Error: Policy needs to be specified"),
    ("pkg_resource.version_compare", {"ver1": "1", "oper": "no", "ver2": "2"}, False),
    ("service.start", {"name": "no"}, False),
    ("service.restart", {"name": "no"}, False),
    ("service.enable", {"name": "no"}, False),
    ("service.disable", {"name": "no"}, False),
]

VALUES = [
    ("network.ip_in_subnet", {"ip_addr": "no", "cidr": "10.0.0.0/8"}, False),
    ("network.ip_in_subnet", {"ip_addr": "10.0.0.1", "cidr": "no"}, False),
    ("network.ip_in_subnet", {"ip_addr": "10.0.0.1", "cidr": "10.0.0.0/8"}, True),
    ("network.in_subnet", {"cidr": "no"}, False),
    ("network.ip_networks", {"interface": "no*,nor"}, []),
    ("network.ip_networks", {"interface": "l?,nor", "include_loopback": True}, ["127.0.0.0/8"]),
    ("ip.get_bond", {"iface": "bond0"}, ""),
    ("ip.get_routes", {"iface": "eth0"}, ""),
    ("pkg.set_selections", {}, {}),
    ("xfs.devices", {}, {}),
    ("restartcheck.restartcheck", {}, "No packages seem to need to be restarted."),
]

REFUSED = "iptables: Index of deletion too big."


class Programs(Host):
    """A host whose programs find nothing; iptables refuses each change."""

    def which(self, program: str) -> str | None:
        missing = ("update-rc.d", "systemctl", "uname")
        return None if program.rpartition("/")[2] in missing else f"/usr/bin/{program}"

    def run(self, cmd: str | Sequence[str], **options: Any) -> CommandResult:
        program, *words = [cmd] if isinstance(cmd, str) else list(cmd)
        if program == "blkid":
            return CommandResult(2, "", "", 1)
        if program == "iptables" and "--help" not in words:
            return CommandResult(1, "", REFUSED, 1)
        return CommandResult(0, "amd64\n" if program == "dpkg" else "", "", 1)


@pytest.fixture
def call(plain, monkeypatch):
    """Call a function on a host with init scripts and network files."""
    for path in ("etc/init.d", "etc/network", "proc"):
        (plain.root / path).mkdir(parents=True)
    (plain.root / "etc/network/interfaces").write_text("")
    loopback = {"lo": {"up": True, "inet": [{"address": "127.0.0.1", "netmask": "255.0.0.0"}]}}
    monkeypatch.setattr("statecore.builtin.modules.network.interfaces", lambda ctx: loopback)
    made, host = plain.context, Programs(plain.root)
    monkeypatch.setattr(plain, "context", lambda **changes: made(**{"host": host, **changes}))
    return plain.call


@pytest.mark.parametrize(("function", "arguments", "value"), FAILED)
def test_a_failed_call_has_salts_value(call, function, arguments, value):
    with pytest.raises(CallFailed) as failed:
        call(function, **arguments)
    assert failed.value.value == value


@pytest.mark.parametrize(("function", "arguments", "value"), VALUES)
def test_a_value(call, function, arguments, value):
    assert call(function, **arguments) == value


@pytest.mark.parametrize(
    ("function", "arguments", "value"),
    [
        ("iptables.delete", {"table": "filter", "chain": "INPUT", "position": 3}, REFUSED),
        ("iptables.delete_chain", {"chain": "X"}, REFUSED),
        ("iptables.set_policy", {"chain": "INPUT", "policy": "DROP"}, REFUSED),
        ("iptables.append", {"chain": "INPUT", "rule": "-j ACCEPT"}, False),
    ],
)
def test_a_refusal_of_iptables_is_the_exit_code(call, plain, function, arguments, value):
    ctx = plain.context()
    assert ctx.call(function, **arguments) == value
    assert ctx.scratch["retcode"] == 1
