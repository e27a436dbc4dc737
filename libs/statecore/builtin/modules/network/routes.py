"""Routes, neighbours and connection tests: functions of the ``network`` module.

The kernel's tables are read from the mounted host's /proc if it is mounted, else from the minion's own.
"""

from __future__ import annotations

import ipaddress
import socket
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.text_lines import lines_of
from statecore.system.hostfiles import processes

#: Bit of a route's flags -> letter of route(8). IPv6 has further bits.
_FLAGS: Mapping[int, str] = {0x2: "G", 0x4: "H", 0x8: "R", 0x10: "D", 0x20: "M"}
_FLAGS6: Mapping[int, str] = {**_FLAGS, 0x40000: "A", 0x20000: "a", 0x400000: "e", 0x200000: "n", 0x1000000: "C"}
_REJECT = 0x200

_EVERYWHERE = ("0.0.0.0", "::/0")

_FAMILIES: Mapping[str | None, socket.AddressFamily] = {
    None: socket.AF_UNSPEC,
    "ipv4": socket.AF_INET,
    "ipv6": socket.AF_INET6,
}

#: Flag of the ARP table (ATF_COM): the neighbour's hardware address is known.
_KNOWN = 0x2


def routes(ctx: Context, family: str | None = None) -> list[dict[str, str]]:
    """Return the host's routes as a list of maps: addr_family, destination, gateway, netmask, flags, interface.

    family
        ``inet`` or ``inet6``: only routes of this family

    CLI Example:

        salt '*' network.routes
    """
    if family not in (None, "inet", "inet6"):
        raise CommandError(f"Invalid address family {family}")
    return [row for row in (*_routes(ctx), *_routes6(ctx)) if family in (None, row["addr_family"])]


def default_route(ctx: Context, family: str | None = None) -> list[dict[str, str]]:
    """Return the host's default routes as a list of maps: addr_family, destination, gateway, netmask, flags,
    interface.

    CLI Example:

        salt '*' network.default_route
    """
    # "!" marks a route that refuses: an IPv6 kernel has such a default route on lo.
    return [row for row in routes(ctx, family) if row["destination"] in _EVERYWHERE and "!" not in row["flags"]]


def get_route(ctx: Context, ip: str) -> dict[str, str | None]:
    """Return a map with destination, gateway, interface and source of the route that the kernel chooses for an address;
    the gateway is None for a direct route. Raise CommandError if there is no route.

    CLI Example:

        salt '*' network.get_route 10.10.10.10
    """
    address = str(_address(ip))
    if ctx.host.which("ip") is None:
        raise CommandError("the host does not have the program ip")
    result = ctx.host.run(["ip", "route", "get", address], env={"LC_ALL": "C"})
    words = lines_of(result.stdout)[0].split() if result.stdout else []
    if result.retcode or "dev" not in words:
        raise CommandError(f"there is no route to {address}: {result.stderr.strip()}")
    found = {word: words[at + 1] for at, word in enumerate(words[:-1]) if word in ("via", "dev", "src")}
    return {
        "destination": ip,
        "gateway": found.get("via"),
        "interface": found.get("dev"),
        "source": found.get("src"),
    }


def arp(ctx: Context) -> dict[str, str]:
    """Return a map of hardware address to IPv4 address for the machines in the kernel's ARP table that have
    answered.

    CLI Example:

        salt '*' network.arp
    """
    rows = (line.split() for line in lines_of(_text(ctx, "arp"))[1:])
    return {row[3]: row[0] for row in rows if len(row) > 3 and int(row[2], 16) & _KNOWN}


ip_neighs = ipneighs = arp


def ip_neighs6(ctx: Context) -> dict[str, str]:
    """Return a map of hardware address to IPv6 address for the neighbours that the host's ``ip -6 neigh`` lists.

    CLI Example:

        salt '*' network.ip_neighs6
    """
    if ctx.host.which("ip") is None:
        raise CommandError("the host does not have the program ip")
    rows = (line.split() for line in lines_of(ctx.host.run(["ip", "-6", "neigh", "show"], env={"LC_ALL": "C"}).stdout))
    return {row[row.index("lladdr") + 1]: row[0] for row in rows if "lladdr" in row[:-1]}


ipneighs6 = ip_neighs6


def ip_in_subnet(ctx: Context, ip_addr: str, cidr: str) -> bool:
    """Return whether the address ``ip_addr`` is in the network ``cidr``; False for text that is neither.

    CLI Example:

        salt '*' network.ip_in_subnet 172.17.0.4 172.16.0.0/12
    """
    try:
        return ipaddress.ip_address(ip_addr) in ipaddress.ip_network(cidr, strict=False)
    except ValueError:
        return False


def convert_cidr(ctx: Context, cidr: str) -> dict[str, str]:
    """Return a map with ``network``, ``netmask`` and ``broadcast`` of a network such as 172.31.0.0/16.

    CLI Example:

        salt '*' network.convert_cidr 172.31.0.0/16
    """
    found = _network(cidr)
    return {
        "network": str(found.network_address),
        "netmask": str(found.netmask),
        "broadcast": str(found.broadcast_address),
    }


def ifacestartswith(ctx: Context, cidr: str) -> list[str]:
    """Return the names of the interfaces that have an IPv4 address starting with the text ``cidr``.

    CLI Example:

        salt '*' network.ifacestartswith 10.0
    """
    return [
        entry.get("label", name)
        for name, each in ctx.call("network.interfaces").items()
        for entry in each.get("inet", ())
        if entry["address"].startswith(str(cidr))
    ]


def iphexval(ctx: Context, ip: str) -> str:
    """Return an IPv4 address as eight hexadecimal digits.

    CLI Example:

        salt '*' network.iphexval 10.0.0.1
    """
    return _address(ip).packed.hex().upper()


def connect(ctx: Context, host: str, port: int | str | None = None, **kwargs: Any) -> dict[str, object]:
    """Try to connect to a server. Return a map with ``result`` (bool) and ``comment``.

    proto
        tcp (default) or udp; a UDP "connection" only checks that the kernel has a route
    family
        ipv4 or ipv6; default: either
    timeout
        seconds to wait; default 5

    CLI Example:

        salt '*' network.connect archlinux.org 80 timeout=3
    """

    for name, value in (("host", host), ("port", port)):
        if not value:
            return {"result": False, "comment": f"Required argument, {name}, is missing."}
    proto = "udp" if kwargs.get("proto") == "udp" else "tcp"
    kind = socket.SOCK_DGRAM if proto == "udp" else socket.SOCK_STREAM
    try:
        family, _, number, _, address = socket.getaddrinfo(host, port, _FAMILIES[kwargs.get("family")], kind)[0]
    except KeyError:
        raise InvocationError(f"family is ipv4 or ipv6, not {kwargs['family']!r}") from None
    except OSError:
        return {"result": False, "comment": f"Unable to resolve host {host} on {proto} port {port}"}
    where = f"{host} ({address[0]}) on {proto} port {port}"
    try:
        with socket.socket(family, kind, number) as client:
            client.settimeout(float(kwargs.get("timeout") or 5))
            client.connect(address)
    except OSError:
        return {"result": False, "comment": f"Unable to connect to {where}"}
    return {"result": True, "comment": f"Successfully connected to {where}"}


# --------------------------------------------------------------------------------------------- helpers


def _text(ctx: Context, name: str) -> str:
    return processes.text(ctx.host, f"{processes.network(ctx.host)}/{name}")


def _routes(ctx: Context) -> Iterator[dict[str, str]]:
    for row in (line.split() for line in lines_of(_text(ctx, "route"))[1:]):
        if len(row) > 7:
            yield {
                "addr_family": "inet",
                "destination": _address4(row[1]),
                "gateway": _address4(row[2]),
                "netmask": _address4(row[7]),
                "flags": _letters(int(row[3], 16), _FLAGS),
                "interface": row[0],
            }


def _routes6(ctx: Context) -> Iterator[dict[str, str]]:
    for row in (line.split() for line in lines_of(_text(ctx, "ipv6_route"))):
        if len(row) > 9:
            yield {
                "addr_family": "inet6",
                "destination": f"{_address6(row[0])}/{int(row[1], 16)}",
                "gateway": _address6(row[4]),
                "netmask": "",
                "flags": _letters(int(row[8], 16), _FLAGS6),
                "interface": row[9],
            }


def _address4(digits: str) -> str:
    """Convert an IPv4 address of a kernel table, hexadecimal in this machine's byte order, to dotted form."""
    return socket.inet_ntoa(int(digits, 16).to_bytes(4, sys.byteorder))


def _address6(digits: str) -> str:
    return socket.inet_ntop(socket.AF_INET6, bytes.fromhex(digits))


def _letters(flags: int, letters: Mapping[int, str]) -> str:
    return ("!" if flags & _REJECT else "U") + "".join(letter for bit, letter in letters.items() if flags & bit)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    try:
        return ipaddress.ip_address(text)
    except ValueError as error:
        raise InvocationError(str(error)) from error


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError as error:
        raise InvocationError(str(error)) from error
