"""Network interfaces and addresses of the managed host, read from the kernel without any program.

For this machine, and for a mounted host without /proc, the interfaces are those of this process's network namespace.
For a mounted host with its own /proc, those of its first process are read: /proc/1/net, and /sys if it is mounted.

The kernel's tables (proc(5): dev, fib_trie, route, if_inet6) do not name the interface of an IPv4 address. It is
derived: the interface that reaches the address's network, lo for a loopback address, and the first interface for an
address without a network.
"""

from __future__ import annotations

import fcntl
import ipaddress
import re
import socket
import struct
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from statecore.model.ports import ManagedHost
from statecore.model.text_lines import lines_of
from statecore.system.hostfiles import plain_text, processes

#: ioctl numbers for an interface's address, broadcast address, netmask and flags.
_ADDRESS, _BROADCAST, _NETMASK, _FLAGS = 0x8915, 0x8919, 0x891B, 0x8913
_UP = 1

#: Value of the scope column in if_inet6 -> scope.
_SCOPES = {"00": "global", "10": "host", "20": "link", "40": "site"}

#: An address of the machine itself in fib_trie: the line of the address and the line of its type.
_LOCAL = re.compile(r"\|-- (\S+)\n\s+/32 host LOCAL")
_BROADCASTS = re.compile(r"\|-- (\S+)\n\s+/32 link BROADCAST")


class Address4(NamedTuple):
    """An IPv4 address with netmask and broadcast address as text. The broadcast address may be None."""

    address: str
    netmask: str
    broadcast: str | None


class Address6(NamedTuple):
    """An IPv6 address with prefix length and scope: global, host, link, site, or the kernel's number."""

    address: str
    prefix: str
    scope: str


class KernelInterface:
    """One network interface. ``hardware`` is its MAC address, or "".

    Not a dataclass, to save start time: grains are gathered at every start.
    """

    __slots__ = ("four", "hardware", "six", "up")

    def __init__(
        self,
        up: bool = True,
        hardware: str = "",
        four: Sequence[Address4] = (),
        six: Sequence[Address6] = (),
    ) -> None:
        self.up, self.hardware = up, hardware
        self.four, self.six = list(four), list(six)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KernelInterface) and all(
            getattr(self, it) == getattr(other, it) for it in self.__slots__
        )

    def __hash__(self) -> int:
        return hash((self.up, self.hardware, tuple(self.four), tuple(self.six)))

    def __repr__(self) -> str:
        return f"Interface({', '.join(f'{it}={getattr(self, it)!r}' for it in self.__slots__)})"


def interfaces(host: ManagedHost) -> dict[str, KernelInterface]:
    """Map of the name of each network interface of the managed host to the interface."""
    top = processes.network(host)
    found = _of_this_process() if top == processes.OWN_NETWORK else _of_tables(host, top)
    for line in lines_of(processes.text(host, f"{top}/if_inet6")):
        digits, _, prefix, scope, _, name = line.split()
        address = socket.inet_ntop(socket.AF_INET6, bytes.fromhex(digits))
        six = Address6(address, str(int(prefix, 16)), _SCOPES.get(scope, scope))
        found.setdefault(name, KernelInterface()).six.append(six)
    return found


def ipv4_of(digits: str) -> str:
    """Return the IPv4 address as text for a hexadecimal number in the kernel's tables, in this machine's byte order.

    Raises ValueError.
    """
    return socket.inet_ntoa(int(digits, 16).to_bytes(4, sys.byteorder))


# ------------------------------------------------------------------------------------------------------------- this process


def _of_this_process() -> dict[str, KernelInterface]:
    found = {}
    for _, name in socket.if_nameindex():
        flags = _ask(name, _FLAGS)
        made = found[name] = KernelInterface(up=bool(flags and struct.unpack("H", flags[16:18])[0] & _UP))
        made.hardware = plain_text.text(Path(f"/sys/class/net/{name}/address")).strip()
        if (address := _address(name, _ADDRESS)) is not None:
            broadcast = _address(name, _BROADCAST)
            none = broadcast in ("0.0.0.0", None)
            made.four.append(Address4(address, _address(name, _NETMASK) or "", None if none else broadcast))
    return found


def _address(name: str, what: int) -> str | None:
    answer = _ask(name, what)
    return socket.inet_ntoa(answer[20:24]) if answer else None


def _ask(name: str, what: int) -> bytes:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            return fcntl.ioctl(probe.fileno(), what, struct.pack("256s", name.encode()[:15]))
        except OSError:
            return b""


# ---------------------------------------------------------------------------------------------------------- a mounted host


def _of_tables(host: ManagedHost, top: str) -> dict[str, KernelInterface]:
    found = {}
    for line in lines_of(processes.text(host, f"{top}/dev"))[2:]:
        name = line.partition(":")[0].strip()
        flags = plain_text.host_text(host, f"/sys/class/net/{name}/flags").strip()
        made = found[name] = KernelInterface(up=bool(int(flags, 16) & _UP) if flags else True)
        made.hardware = plain_text.host_text(host, f"/sys/class/net/{name}/address").strip()
    trie = processes.text(host, f"{top}/fib_trie")
    broadcasts = set(_BROADCASTS.findall(trie))
    networks = _networks(processes.text(host, f"{top}/route"))
    # The routing tables main and local may be merged. Then both list all addresses.
    for text in dict.fromkeys(_LOCAL.findall(trie)):
        address = ipaddress.IPv4Address(text)
        reached = [each for each in networks if address in each[0]]
        if reached:
            network, name = max(reached, key=lambda each: each[0].prefixlen)
        elif address.is_loopback:
            network, name = ipaddress.IPv4Network("127.0.0.0/8"), "lo"
        else:
            network, name = ipaddress.IPv4Network(text), next(iter(found), "lo")
        last = str(network.broadcast_address)
        broadcast = last if last in broadcasts and not address.is_loopback else None
        made = found.setdefault(name, KernelInterface())
        made.four.append(Address4(text, str(network.netmask), broadcast))
    return found


def _networks(table: str) -> list[tuple[ipaddress.IPv4Network, str]]:
    """List of (network, name of the interface) for the IPv4 networks that the routing table reaches without a gateway."""
    rows = (line.split() for line in lines_of(table)[1:])
    return [
        (ipaddress.IPv4Network(f"{ipv4_of(row[1])}/{ipv4_of(row[7])}"), row[0])
        for row in rows
        if len(row) > 7 and int(row[2], 16) == 0 and int(row[7], 16) != 0
    ]
