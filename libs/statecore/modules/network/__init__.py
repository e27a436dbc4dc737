"""Interfaces and addresses (Salt's ``network`` module): as the kernel has them for this process, asked without a program.

Of an interface its first IPv4 address is told, as in the grains.
"""

from __future__ import annotations

import fcntl
import ipaddress
import re
import socket
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from statecore.context import Context
from statecore.errors import CommandError
from statecore.hostfiles import network_files
from statecore.modules.network import routes

#: The module whose functions are served with these.
PARTS = (routes,)

#: ioctl numbers of an interface's address, its broadcast address, its netmask, its flags.
_ADDRESS, _BROADCAST, _NETMASK, _FLAGS = 0x8915, 0x8919, 0x891B, 0x8913
_UP = 1

#: Column of /proc/net/if_inet6 -> scope.
_SCOPES = {"00": "global", "10": "host", "20": "link", "40": "site"}


def interfaces(ctx: Context) -> dict[str, dict[str, Any]]:
    """name -> up, hwaddr, inet (address, netmask, broadcast, label), inet6 (address, prefixlen, scope).

    CLI Example:

        salt '*' network.interfaces
    """
    found: dict[str, dict[str, Any]] = {}
    for _, name in socket.if_nameindex():
        flags = _ask(name, _FLAGS)
        entry: dict[str, Any] = {"up": bool(flags and struct.unpack("H", flags[16:18])[0] & _UP)}
        if hardware := _text(f"/sys/class/net/{name}/address").strip():
            entry["hwaddr"] = hardware
        if (address := _address(name, _ADDRESS)) is not None:
            mask, broadcast = _address(name, _NETMASK), _address(name, _BROADCAST)
            inet = {"address": address, "netmask": mask, "label": name}
            entry["inet"] = [{**inet, "broadcast": None if broadcast in ("0.0.0.0", None) else broadcast}]
        found[name] = entry
    for line in _text("/proc/net/if_inet6").splitlines():
        digits, _, prefix, scope, _, name = line.split()
        address = socket.inet_ntop(socket.AF_INET6, bytes.fromhex(digits))
        inet6 = {"address": address, "prefixlen": str(int(prefix, 16)), "scope": _SCOPES.get(scope, scope)}
        found.setdefault(name, {"up": True}).setdefault("inet6", []).append(inet6)
    return found


def interface(ctx: Context, iface: str) -> Any:
    """The IPv4 addresses of an interface."""
    return _existing(ctx, iface).get("inet")


def interface_ip(ctx: Context, iface: str) -> str:
    """The first IPv4 address of an interface, "" when it has none."""
    entries = _existing(ctx, iface).get("inet") or [{"address": ""}]
    return str(entries[0]["address"])


def hw_addr(ctx: Context, iface: str) -> str:
    """The hardware address of an interface.

    CLI Example:

        salt '*' network.hw_addr eth0
    """
    return str(_existing(ctx, iface).get("hwaddr", ""))


hwaddr = hw_addr


def ip_addrs(
    ctx: Context,
    interface: str | None = None,
    include_loopback: bool = False,
    cidr: str | None = None,
    type: str | None = None,
) -> list[str]:
    """IPv4 addresses, sorted; of one interface, in a network, or only "public" or "private" ones.

    CLI Example:

        salt '*' network.ip_addrs cidr=10.0.0.0/8
    """
    addresses = _addresses(ctx, "inet", interface, include_loopback, cidr)
    if type in ("public", "private") and not cidr:
        return [each for each in addresses if is_private(ctx, each) is (type == "private")]
    return addresses


ipaddrs = ip_addrs


def ip_addrs6(
    ctx: Context, interface: str | None = None, include_loopback: bool = False, cidr: str | None = None
) -> list[str]:
    """IPv6 addresses, sorted."""
    return _addresses(ctx, "inet6", interface, include_loopback, cidr)


ipaddrs6 = ip_addrs6


def subnets(ctx: Context, interfaces: Any = None) -> list[str]:
    """IPv4 networks that the host is in, but for loopback."""
    return _networks(ctx, "inet", interfaces)


def subnets6(ctx: Context) -> list[str]:
    """IPv6 networks that the host is in, but for loopback."""
    return _networks(ctx, "inet6", None)


def in_subnet(ctx: Context, cidr: str) -> bool:
    """Whether one of the host's addresses is in a network."""
    return bool(_addresses(ctx, "inet", None, False, cidr) or _addresses(ctx, "inet6", None, False, cidr))


def calc_net(ctx: Context, ip_addr: str, netmask: str | None = None) -> str:
    """The network of an address."""
    return str(ipaddress.ip_network(f"{ip_addr}/{netmask}" if netmask else ip_addr, strict=False))


def is_loopback(ctx: Context, ip_addr: str) -> bool:
    """Whether an address means this machine. Raises ValueError for what is no address."""
    return ipaddress.ip_address(ip_addr).is_loopback


def is_private(ctx: Context, ip_addr: str) -> bool:
    """Whether an address is of a private network. Raises ValueError for what is no address."""
    return ipaddress.ip_address(ip_addr).is_private


def reverse_ip(ctx: Context, ip_addr: str) -> str:
    """The name under which a resolver knows an address."""
    return ipaddress.ip_address(ip_addr).reverse_pointer


def get_hostname(ctx: Context) -> str:
    """The host's name: of a mounted host as its /etc/hostname says."""
    if ctx.host.mounted and (place := ctx.host.path("/etc/hostname")).is_file():
        return place.read_text("utf-8", "replace").strip()
    return socket.gethostname()


def get_fqdn(ctx: Context) -> str:
    """The host's name with its domain, as the grain has it."""
    return str(ctx.grains.get("fqdn") or get_hostname(ctx))


def mod_hostname(ctx: Context, hostname: str) -> bool:
    """Gives the host another name: the kernel's, in its files and in /etc/hosts. False when the kernel does not take it.

    CLI Example:

        salt '*' network.mod_hostname web1.example.com
    """
    if re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?", hostname or "") is None:
        raise CommandError(f"{hostname!r} is no name of a host")
    known = network_files.text(ctx.host, "/etc/hostname").strip()
    program = ["hostnamectl", "set-hostname", hostname] if ctx.host.which("hostnamectl") else ["hostname", hostname]
    if ctx.host.run(program).retcode:
        return False
    hosts = network_files.text(ctx.host, "/etc/hosts")
    renamed = "".join(_renamed(line, known, hostname) for line in hosts.splitlines(keepends=True))
    if renamed != hosts:
        network_files.write(ctx.host, "/etc/hosts", renamed)
    if known != hostname:
        network_files.write(ctx.host, "/etc/hostname", f"{hostname}\n")
    settings = network_files.text(ctx.host, "/etc/sysconfig/network")
    if (named := re.sub(r"(?m)^HOSTNAME=([\"']?).*$", rf"HOSTNAME=\g<1>{hostname}\g<1>", settings)) != settings:
        network_files.write(ctx.host, "/etc/sysconfig/network", named)
    return True


def _renamed(line: str, known: str, hostname: str) -> str:
    entry, sign, comment = line.partition("#")
    if known:
        entry = re.sub(rf"(?<!\S){re.escape(known)}(?!\S)", hostname, entry)
    return f"{entry}{sign}{comment}"


def _existing(ctx: Context, name: str) -> dict[str, Any]:
    found = interfaces(ctx)
    if name not in found:
        raise CommandError(f"Interface {name} not available. There are {', '.join(sorted(found))}")
    return found[name]


def _addresses(ctx: Context, kind: str, name: str | None, loopback: bool, cidr: str | None) -> list[str]:
    chosen = [_existing(ctx, name)] if name else interfaces(ctx).values()
    every = {entry["address"] for each in chosen for entry in each.get(kind, ())}
    kept = [each for each in every if loopback or not ipaddress.ip_address(each).is_loopback]
    network = ipaddress.ip_network(cidr, strict=False) if cidr else None
    return _sorted(each for each in kept if network is None or ipaddress.ip_address(each) in network)


def _networks(ctx: Context, kind: str, names: Any) -> list[str]:
    wanted = [names] if isinstance(names, str) else names
    found = set()
    for name, each in interfaces(ctx).items():
        for entry in each.get(kind, ()) if wanted is None or name in wanted else ():
            address = ipaddress.ip_interface(f"{entry['address']}/{entry.get('netmask') or entry.get('prefixlen')}")
            if not address.ip.is_loopback and not address.ip.is_link_local:
                found.add(str(address.network))
    return sorted(found)


def _sorted(addresses: Iterable[str]) -> list[str]:
    return sorted(addresses, key=lambda each: ipaddress.ip_address(each).packed)


def _address(name: str, what: int) -> str | None:
    answer = _ask(name, what)
    return socket.inet_ntoa(answer[20:24]) if answer else None


def _ask(name: str, what: int) -> bytes:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            return fcntl.ioctl(probe.fileno(), what, struct.pack("256s", name.encode()[:15]))
        except OSError:
            return b""


def _text(path: str) -> str:
    # Of the kernel, and so of every root; a mounted one need not have it.
    try:
        return Path(path).read_text("utf-8", "replace")
    except OSError:
        return ""
