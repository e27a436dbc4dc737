"""The interfaces parsed from the kernel's tables equal those that the kernel returns when asked.

The tables are this machine's.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from statecore.host.host import Host
from statecore.system.hostfiles import kernel_network
from statecore.system.hostfiles.kernel_network import Address4, Address6, KernelInterface

TRIE = """Main:
  +-- 0.0.0.0/0 3 0 4
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 10.1.0.0/16 2 0 2
        |-- 10.1.0.0
           /16 link UNICAST
        |-- 10.1.2.3
           /32 host LOCAL
        |-- 10.1.255.255
           /32 link BROADCAST
     |-- 192.0.2.9
        /32 host LOCAL
Local:
  +-- 127.0.0.0/8 2 0 2
     |-- 127.0.0.0
        /8 host LOCAL
     |-- 127.0.0.1
        /32 host LOCAL
     |-- 10.1.2.3
        /32 host LOCAL
"""
ROUTES = """Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT
eth0 00000000 0100010A 0003 0 0 0 00000000 0 0 0
eth1 0000010A 00000000 0001 0 0 0 0000FFFF 0 0 0
"""
DEVICES = "head\nhead\n  eth0: 1\n  eth1: 1\n    lo: 1\n"
SIX = "fe80000000000000000000000000001a 02 40 20 80 eth1\n00000000000000000000000000000001 01 80 10 80 lo\n"


def lay_out(root: Path, tables: dict[str, str]) -> Host:
    """Return a mounted host whose /proc has these tables."""
    (root / "proc/1/net").mkdir(parents=True)
    (root / "proc/stat").write_text("cpu 1\n")
    for name, text in tables.items():
        (root / "proc/1/net" / name).write_text(text)
    return Host(root)


def test_a_mounted_host(tmp_path: Path) -> None:
    host = lay_out(tmp_path, {"dev": DEVICES, "fib_trie": TRIE, "route": ROUTES, "if_inet6": SIX})
    # As sysfs has them: links to the devices.
    device = tmp_path / "sys/devices/virtual/net/eth1"
    device.mkdir(parents=True)
    (device / "address").write_text("02:00:00:00:00:01\n")
    (device / "flags").write_text("0x1002\n")
    (tmp_path / "sys/class/net").mkdir(parents=True)
    (tmp_path / "sys/class/net/eth1").symlink_to("../../devices/virtual/net/eth1")
    assert kernel_network.interfaces(host) == {
        "eth0": KernelInterface(four=[Address4("192.0.2.9", "255.255.255.255", None)]),
        "eth1": KernelInterface(
            up=False,
            hardware="02:00:00:00:00:01",
            four=[Address4("10.1.2.3", "255.255.0.0", "10.1.255.255")],
            six=[Address6("fe80::1a", "64", "link")],
        ),
        "lo": KernelInterface(four=[Address4("127.0.0.1", "255.0.0.0", None)], six=[Address6("::1", "128", "host")]),
    }


def test_a_host_without_its_proc_has_our_network(tmp_path: Path) -> None:
    assert kernel_network.interfaces(Host(tmp_path)) == kernel_network.interfaces(Host("/"))


def test_the_tables_say_what_the_kernel_answers(tmp_path: Path) -> None:
    names = ("dev", "fib_trie", "route", "if_inet6")
    if not all(Path("/proc/self/net", name).exists() for name in names):
        pytest.skip("this kernel has no such tables")
    host = lay_out(tmp_path, {name: Path("/proc/self/net", name).read_text() for name in names})
    for place in Path("/sys/class/net").iterdir():
        for name in ("address", "flags"):
            if (place / name).is_file():
                (tmp_path / "sys/class/net" / place.name).mkdir(parents=True, exist_ok=True)
                shutil.copyfile(place / name, tmp_path / "sys/class/net" / place.name / name)
    ours = kernel_network.interfaces(Host("/"))
    theirs = kernel_network.interfaces(host)
    assert {name: (each.up, each.hardware, each.six) for name, each in theirs.items()} == {
        name: (each.up, each.hardware, each.six) for name, each in ours.items()
    }
    # Asked, the kernel tells the first address alone.
    for name, each in ours.items():
        assert [one.address for one in each.four] == [one.address for one in theirs[name].four[:1]]
