"""Interfaces and addresses of the managed host: Salt's ``network`` execution module, read from the kernel without a
program.

As in the grains, ``interface_ip`` returns the first IPv4 address of an interface.
"""

from __future__ import annotations

import fnmatch
import ipaddress
import re
import socket
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from statecore.builtin.modules.network import connections, probes, routes
from statecore.model.context import Context
from statecore.model.errors import CallFailed, CommandError
from statecore.model.text_lines import lines_of
from statecore.system.hostfiles import kernel_network, network_files

#: Modules whose public functions also belong to the execution module ``network``.
PARTS = (routes, connections, probes)

#: Number of reverse DNS queries that run at the same time.
_ASKED_AT_ONCE = 8


def interfaces(ctx: Context) -> dict[str, dict[str, Any]]:
    """Return the host's network interfaces: a map of name to up, hwaddr, inet (address, netmask, broadcast, label) and
    inet6 (address, prefixlen, scope).

    CLI Example:

        salt '*' network.interfaces
    """
    found: dict[str, dict[str, Any]] = {}
    for name, each in kernel_network.interfaces(ctx.host).items():
        entry = found[name] = {"up": each.up, **({"hwaddr": each.hardware} if each.hardware else {})}
        if each.four:
            entry["inet"] = [
                {"address": one.address, "netmask": one.netmask, "label": name, "broadcast": one.broadcast}
                for one in each.four
            ]
        if each.six:
            entry["inet6"] = [{"address": one.address, "prefixlen": one.prefix, "scope": one.scope} for one in each.six]
    return found


def interface(ctx: Context, iface: str) -> object:
    """Return the IPv4 addresses of a network interface as a list of maps (address, netmask, broadcast, label), None if
    it has none. Raise CommandError for an unknown interface.
    """
    return _existing(ctx, iface).get("inet")


def interface_ip(ctx: Context, iface: str) -> str:
    """Return the first IPv4 address of a network interface, "" if it has none. Raise CommandError for an unknown
    interface.
    """
    entries = _existing(ctx, iface).get("inet") or [{"address": ""}]
    return str(entries[0]["address"])


def hw_addr(ctx: Context, iface: str) -> str:
    """Return the hardware address of a network interface, "" if it has none. Raise CommandError for an unknown
    interface.

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
    """Return the IPv4 addresses of the host, sorted.

    interface
        only addresses of this interface
    include_loopback
        True: include loopback addresses
    cidr
        only addresses in this network
    type
        "public" or "private": only addresses of this kind; ignored if ``cidr`` is given

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
    """Return the IPv6 addresses of the host, sorted. The arguments are those of ``network.ip_addrs``."""
    return _addresses(ctx, "inet6", interface, include_loopback, cidr)


ipaddrs6 = ip_addrs6


def subnets(ctx: Context, interfaces: str | Iterable[object] | None = None) -> list[str]:
    """Return the IPv4 networks of the host's interfaces (or of those named in ``interfaces``), such as "10.0.0.0/8".
    Loopback and link-local networks are left out.
    """
    return _networks(ctx, "inet", interfaces)


def subnets6(ctx: Context) -> list[str]:
    """Return the IPv6 networks of the host's interfaces, without loopback and link-local networks."""
    return _networks(ctx, "inet6", None)


def ip_networks(
    ctx: Context, interface: str | None = None, include_loopback: bool = False, verbose: bool = False
) -> object:
    """Return the IPv4 networks of the host's interfaces, sorted.

    interface
        only of these interfaces: names or globs, with commas between them
    verbose
        True: return a map of network to address, netmask, num_addresses and prefixlen

    CLI Example:

        salt '*' network.ip_networks interface=eth0
    """
    return _ip_networks(ctx, "inet", interface, loopback=include_loopback, verbose=verbose)


def ip_networks6(
    ctx: Context, interface: str | None = None, include_loopback: bool = False, verbose: bool = False
) -> object:
    """Return the IPv6 networks of the host's interfaces. The arguments and the result are those of
    ``network.ip_networks``.
    """
    return _ip_networks(ctx, "inet6", interface, loopback=include_loopback, verbose=verbose)


def fqdns(ctx: Context) -> dict[str, list[str]]:
    """Return a map with ``fqdns``: the names that the minion's resolver finds for the host's addresses, sorted.

    CLI Example:

        salt '*' network.fqdns
    """
    with ThreadPoolExecutor(_ASKED_AT_ONCE) as pool:
        names = list(pool.map(_name_of, [*ip_addrs(ctx), *ip_addrs6(ctx)]))
    return {"fqdns": sorted({name for name in names if name})}


def in_subnet(ctx: Context, cidr: str) -> bool:
    """Return whether one of the host's addresses is in the network ``cidr``; False for text that is no network."""
    try:
        ipaddress.ip_network(cidr, strict=False)
    except ValueError:
        return False
    return bool(_addresses(ctx, "inet", None, False, cidr) or _addresses(ctx, "inet6", None, False, cidr))


def calc_net(ctx: Context, ip_addr: str, netmask: str | None = None) -> str:
    """Return the network of an address as text, such as "10.0.0.0/8". Raise ValueError for text that is not an address."""
    return str(ipaddress.ip_network(f"{ip_addr}/{netmask}" if netmask else ip_addr, strict=False))


def is_loopback(ctx: Context, ip_addr: str) -> bool:
    """Return whether an address is a loopback address. Raise ValueError for text that is not an address."""
    return ipaddress.ip_address(ip_addr).is_loopback


def is_private(ctx: Context, ip_addr: str) -> bool:
    """Return whether an address belongs to a private network. Raise ValueError for text that is not an address."""
    return ipaddress.ip_address(ip_addr).is_private


def reverse_ip(ctx: Context, ip_addr: str) -> str:
    """Return the name of an address in the reverse DNS zone, such as "1.0.0.10.in-addr.arpa". Raise ValueError for text
    that is not an address.
    """
    return ipaddress.ip_address(ip_addr).reverse_pointer


def get_hostname(ctx: Context) -> str:
    """Return the host's name. The name of a mounted host is read from its /etc/hostname."""
    if ctx.host.mounted and (real_path := ctx.host.path("/etc/hostname")).is_file():
        return real_path.read_text("utf-8", "replace").strip()
    return socket.gethostname()


def get_fqdn(ctx: Context) -> str:
    """Return the grain ``fqdn`` (the host's full name); if it is empty, the host's name."""
    return str(ctx.grains.get("fqdn") or get_hostname(ctx))


def mod_hostname(ctx: Context, hostname: str) -> bool:
    """Change the host's name: in the kernel, /etc/hostname, /etc/hosts and /etc/sysconfig/network. Return True; False
    if the kernel refuses the name.

    CLI Example:

        salt '*' network.mod_hostname web1.example.com
    """
    if re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?", hostname or "") is None:
        raise CommandError(f"{hostname!r} is not a valid host name")
    known = network_files.text(ctx.host, "/etc/hostname").strip()
    program = ["hostnamectl", "set-hostname", hostname] if ctx.host.which("hostnamectl") else ["hostname", hostname]
    if ctx.host.run(program).retcode:
        return False
    hosts = network_files.text(ctx.host, "/etc/hosts")
    renamed = "".join(_renamed(line, known, hostname) for line in lines_of(hosts, keepends=True))
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
        names = ", ".join(sorted(found))
        raise CallFailed(
            f"Interface {name} not available. There are {names}",
            f'Interface "{name}" not in available interfaces: "{names}"',
        )
    return found[name]


def _addresses(ctx: Context, kind: str, name: str | None, loopback: bool, cidr: str | None) -> list[str]:
    chosen = [_existing(ctx, name)] if name else interfaces(ctx).values()
    every = {entry["address"] for each in chosen for entry in each.get(kind, ())}
    kept = [each for each in every if loopback or not ipaddress.ip_address(each).is_loopback]
    network = ipaddress.ip_network(cidr, strict=False) if cidr else None
    return _sorted(each for each in kept if network is None or ipaddress.ip_address(each) in network)


def _networks(ctx: Context, kind: str, names: str | Iterable[object] | None) -> list[str]:
    wanted = [names] if isinstance(names, str) else names
    found = set()
    for name, each in interfaces(ctx).items():
        for entry in each.get(kind, ()) if wanted is None or name in wanted else ():
            address = ipaddress.ip_interface(f"{entry['address']}/{entry.get('netmask') or entry.get('prefixlen')}")
            if not address.ip.is_loopback and not address.ip.is_link_local:
                found.add(str(address.network))
    return sorted(found)


def _ip_networks(ctx: Context, kind: str, name: str | None, *, loopback: bool, verbose: bool) -> object:
    patterns = [each.strip() for each in name.split(",")] if name else ["*"]
    chosen = [
        each for own, each in interfaces(ctx).items() if any(fnmatch.fnmatchcase(own, pattern) for pattern in patterns)
    ]
    found = {
        ipaddress.ip_network(f"{entry['address']}/{entry.get('netmask') or entry.get('prefixlen')}", strict=False)
        for each in chosen
        for entry in each.get(kind, ())
    }
    kept = sorted(
        (each for each in found if loopback or not each.is_loopback), key=lambda each: each.network_address.packed
    )
    if not verbose:
        return [str(each) for each in kept]
    return {
        str(each): {
            "address": str(each.network_address),
            "netmask": str(each.netmask),
            "num_addresses": each.num_addresses,
            "prefixlen": each.prefixlen,
        }
        for each in kept
    }


def _name_of(address: str) -> str:
    try:
        return socket.getfqdn(socket.gethostbyaddr(address)[0])
    except OSError:
        # No name server has a name for the address.
        return ""


def _sorted(addresses: Iterable[str]) -> list[str]:
    return sorted(addresses, key=lambda each: ipaddress.ip_address(each).packed)
