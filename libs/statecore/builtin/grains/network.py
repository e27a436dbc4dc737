"""Grains of the network: interfaces, addresses and gateways from the kernel, names and name servers from the host's
files.

No name server is asked: fqdn_ip4, fqdn_ip6 and fqdns, which Salt asks a resolver for, are read from the host's
/etc/hosts.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
from collections.abc import Iterator, Mapping
from typing import Any

from statecore.model.ports import ManagedHost
from statecore.model.text_lines import lines_of
from statecore.system.hostfiles import kernel_network, processes
from statecore.system.hostfiles.plain_text import exists, first_line, host_text

_GATEWAY = 0x2


def names(host: ManagedHost, opts: Mapping[str, object]) -> dict[str, object]:
    """Return the grains host, fqdn, domain, nodename, localhost, fqdn_ip4, fqdn_ip6 and fqdns.

    The name of a mounted host is read from its /etc/hostname. fqdn_ip4 and fqdn_ip6 are the addresses of the fqdn in
    /etc/hosts. fqdns are the other names there of the host's addresses; [] if the option ``enable_fqdns_grains`` is
    False.
    """
    own = first_line(host, "/etc/hostname") if host.mounted else ""
    node = own or socket.gethostname()
    fqdn = node if "." in node or host.mounted else _fqdn(host, node)
    short, _, domain = fqdn.partition(".")
    grains: dict[str, object] = {"nodename": node, "localhost": node, "fqdn": fqdn, "host": short, "domain": domain}
    entries = list(_hosts(host))
    for version in (4, 6):
        listed = [str(address) for address, known in entries if address.version == version and fqdn in known]
        grains[f"fqdn_ip{version}"] = list(dict.fromkeys(listed))
    if opts.get("enable_fqdns_grains", True) is False:
        return grains | {"fqdns": []}
    outside = set(_global_addresses(host))
    dotted = {name for address, known in entries if str(address) in outside for name in known if "." in name}
    return grains | {"fqdns": sorted(dotted)}


def addresses(host: ManagedHost, opts: Mapping[str, object]) -> dict[str, object]:
    """Return the grains with the host's addresses: ip_interfaces, ip4_interfaces, ip6_interfaces and hwaddr_interfaces
    map each interface to its addresses; ipv4 and ipv6 list all addresses.
    """
    found = kernel_network.interfaces(host)
    four = {name: [one.address for one in each.four] for name, each in found.items() if each.four}
    six = {name: [one.address for one in each.six] for name, each in found.items() if each.six}
    hardware_addresses = {name: each.hardware for name, each in found.items() if each.hardware}
    every = sorted({*four, *six, *hardware_addresses})
    return {
        "ip4_interfaces": {name: four.get(name, []) for name in every},
        "ip6_interfaces": {name: six.get(name, []) for name in every},
        "ip_interfaces": {name: [*four.get(name, []), *six.get(name, [])] for name in every},
        "ipv4": _in_order(four),
        "ipv6": _in_order(six),
        "hwaddr_interfaces": hardware_addresses,
    }


def gateways(host: ManagedHost, opts: Mapping[str, object]) -> dict[str, object]:
    """Return the grains ip4_gw, ip6_gw and ip_gw.

    ip4_gw and ip6_gw are the address of the default gateway, True for a default route without a gateway, False without
    a default route. ip_gw is True if one of them is set.
    """
    four, six = _gateway4(host), _gateway6(host)
    return {"ip_gw": bool(four or six), "ip4_gw": four, "ip6_gw": six}


def name_servers(host: ManagedHost, opts: Mapping[str, object]) -> dict[str, object]:
    """Return the grain dns: the settings of the host's resolv.conf. The file of systemd-resolved is preferred. Return
    {} if the host has neither file.
    """
    paths = ("/run/systemd/resolve/resolv.conf", "/etc/resolv.conf")
    path = next((path for path in paths if exists(host, path)), None)
    if path is None:
        return {}
    found: dict[str, object] = {name: [] for name in ("nameservers", "ip4_nameservers", "ip6_nameservers", "sortlist")}
    found |= {"domain": "", "search": [], "options": []}
    for line in lines_of(host_text(host, path)):
        directive, *words = line.split() or [""]
        arguments = [word for at, word in enumerate(words) if not any(each[0] in "#;" for each in words[: at + 1])]
        if arguments:
            _resolve(found, directive.lower(), arguments)
    return {"dns": found}


def _resolve(found: dict[str, Any], directive: str, arguments: list[str]) -> None:
    """Add one directive of resolv.conf (such as ``nameserver``) and its arguments to the value ``found`` of the grain
    dns.
    """
    if directive == "nameserver":
        try:
            address = ipaddress.ip_address(arguments[0])
        except ValueError:
            return
        for name in ("nameservers", f"ip{address.version}_nameservers"):
            if str(address) not in found[name]:
                found[name].append(str(address))
    elif directive == "domain":
        found["domain"] = arguments[0]
    elif directive == "search":
        found["search"] = arguments
    elif directive == "sortlist":
        found["sortlist"] += [each for each in map(_netmask, arguments) if each and each not in found["sortlist"]]
    elif directive == "options" and arguments[0] not in found["options"]:
        found["options"].append(arguments[0])


def _netmask(network: str) -> str:
    """Return a network as ``10.0.0.0/255.0.0.0``, "" for text that is not a network. A bare IPv4 address is a network
    of its class.
    """
    try:
        if "/" not in network and ":" not in network:
            first = int(network.split(".")[0])
            network = f"{network}/{24 if first >= 192 else 16 if first >= 128 else 8}"
            return ipaddress.ip_network(network, strict=False).with_netmask
        return ipaddress.ip_network(network).with_netmask
    except ValueError:
        return ""


def _hosts(host: ManagedHost) -> Iterator[tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, list[str]]]:
    """Yield (address, list of host names) of each line of the host's /etc/hosts."""
    for line in lines_of(host_text(host, "/etc/hosts")):
        first, *known = line.partition("#")[0].split() or [""]
        try:
            yield ipaddress.ip_address(first), known
        except ValueError:
            continue


def _fqdn(host: ManagedHost, node: str) -> str:
    """Return the full host name: the first name in /etc/hosts that starts with the node name and a dot; else the node
    name. No resolver is asked, because it could hang.
    """
    for _, known in _hosts(host):
        if node in known:
            return next((name for name in known if name.startswith(f"{node}.")), node)
    return node


def _global_addresses(host: ManagedHost) -> Iterator[str]:
    """Yield the IPv4 and IPv6 addresses of the host, without loopback addresses."""
    for each in kernel_network.interfaces(host).values():
        for address in (*(one.address for one in each.four), *(one.address for one in each.six)):
            if not ipaddress.ip_address(address).is_loopback:
                yield address


def _in_order(found: Mapping[str, list[str]]) -> list[str]:
    every = {ipaddress.ip_address(address) for listed in found.values() for address in listed}
    return [str(address) for address in sorted(every, key=int)]


def _gateway4(host: ManagedHost) -> str | bool:
    """Return the gateway of the IPv4 default route with the smallest metric, the one that ``ip route`` lists first."""
    routes = [line.split() for line in lines_of(_table(host, "route"))[1:]]
    default = [row for row in routes if len(row) > 7 and row[1] == row[7] == "00000000"]
    if not default:
        return False
    row = min(default, key=lambda each: int(each[6]))
    return socket.inet_ntoa(struct.pack("<I", int(row[2], 16))) if int(row[3], 16) & _GATEWAY else True


def _gateway6(host: ManagedHost) -> str | bool:
    routes = [line.split() for line in lines_of(_table(host, "ipv6_route"))]
    # A route that rejects packets ("unreachable default", flag RTF_REJECT) is not a gateway.
    default = [row for row in routes if len(row) > 9 and row[1] == "00" and set(row[0]) == {"0"} and not _rejects(row)]
    if not default:
        return False
    row = min(default, key=lambda each: int(each[5], 16))
    return socket.inet_ntop(socket.AF_INET6, bytes.fromhex(row[4])) if int(row[8], 16) & _GATEWAY else True


def _table(host: ManagedHost, name: str) -> str:
    return processes.text(host, f"{processes.network(host)}/{name}")


def _rejects(row: list[str]) -> bool:
    return bool(int(row[8], 16) & 0x200) or row[9] == "lo"
