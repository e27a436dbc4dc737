"""Names, gateways and name servers of hosts in a temporary directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from statecore.builtin.grains import network
from statecore.host.host import Host
from statecore.system.hostfiles.kernel_network import Address4, KernelInterface

ROUTES = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n"


def test_names_of_the_hosts_file(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/hostname").write_text("web1.example.org\n")
    (tmp_path / "etc/hosts").write_text(
        "127.0.0.1 localhost\n10.0.0.1 web1.example.org web1\n10.0.0.1 web1.example.org\nfe80::1 web1.example.org\nno address\n"
    )
    grains = network.names(Host(tmp_path), {})
    assert (grains["fqdn_ip4"], grains["fqdn_ip6"]) == (["10.0.0.1"], ["fe80::1"])


def test_further_names_of_own_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {
        name: KernelInterface(four=[Address4(address, "255.0.0.0", None)])
        for name, address in {"lo": "127.0.0.1", "eth0": "10.0.0.1"}.items()
    }
    monkeypatch.setattr(network.kernel_network, "interfaces", lambda _: found)
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/hosts").write_text("127.0.0.1 local.host\n10.0.0.1 b.example.org a.example.org short\n")
    assert network.names(Host(tmp_path), {})["fqdns"] == ["a.example.org", "b.example.org"]


RESOLV = """# a comment
nameserver 10.0.0.1
nameserver 10.0.0.1
nameserver ::1 # the last
nameserver nonsense
domain example.org
search a.example.org b.example.org
sortlist 10.1.0.0/255.255.0.0 192.168.1.1 bad
options timeout:1
unknown
"""


@pytest.mark.parametrize("path", ["etc/resolv.conf", "run/systemd/resolve/resolv.conf"])
def test_name_servers(tmp_path: Path, path: str) -> None:
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text(RESOLV)
    assert network.name_servers(Host(tmp_path), {})["dns"] == {
        "nameservers": ["10.0.0.1", "::1"],
        "ip4_nameservers": ["10.0.0.1"],
        "ip6_nameservers": ["::1"],
        "sortlist": ["10.1.0.0/255.255.0.0", "192.168.1.0/255.255.255.0"],
        "domain": "example.org",
        "search": ["a.example.org", "b.example.org"],
        "options": ["timeout:1"],
    }


def test_no_name_servers(tmp_path: Path) -> None:
    assert network.name_servers(Host(tmp_path), {}) == {}


@pytest.mark.parametrize(
    ("four", "six", "told"),
    [
        ("", "", (False, False, False)),
        (
            "eth0 00000000 010200C0 0003 0 0 100 00000000 0 0 0\neth1 00000000 0101000A 0003 0 0 5 00000000 0 0 0\n"
            "eth0 0000000A 00000000 0001 0 0 0 000000FF 0 0 0\n",
            "",
            (True, "10.0.1.1", False),
        ),
        ("ppp0 00000000 00000000 0001 0 0 0 00000000 0 0 0\n", "", (True, True, False)),
        (
            "",
            f"{'0' * 32} 00 {'0' * 32} 00 fd{'0' * 29}1 00000400 1 0 00000003 eth0\n"
            f"{'0' * 32} 00 {'0' * 32} 00 {'0' * 32} ffffffff 1 0 00200200 lo\n",
            (True, False, "fd00::1"),
        ),
        ("", f"{'0' * 32} 00 {'0' * 32} 00 {'0' * 32} ffffffff 1 0 00200200 lo\n", (False, False, False)),
    ],
)
def test_gateways(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, four: str, six: str, told: tuple[object, ...]
) -> None:
    files = {"net/route": ROUTES + four, "net/ipv6_route": six}
    monkeypatch.setattr(network.processes, "text", lambda _, name: files[name])
    grains = network.gateways(Host(tmp_path), {})
    assert (grains["ip_gw"], grains["ip4_gw"], grains["ip6_gw"]) == told


def test_this_machine(tmp_path: Path) -> None:
    grains = network.addresses(Host(tmp_path), {})
    assert "127.0.0.1" in grains["ip4_interfaces"]["lo"]
    assert "127.0.0.1" in grains["ipv4"]
