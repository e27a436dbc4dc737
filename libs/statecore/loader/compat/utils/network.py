"""``salt.utils.network`` for users' modules: functions for IP addresses, and the addresses of the managed host.

The host's addresses are those of ``__salt__["network.interfaces"]``.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from typing import Literal, TypeAlias, TypedDict

from statecore.loader.compat.filter_aliases import filter_getattr
from statecore.loader.current_context import context_of, current

__getattr__ = filter_getattr(
    __name__,
    {
        "dns_check": "machine.dns_check",
        "filter_by_networks": "addresses.filter_by_networks",
        "gen_mac": "machine.gen_mac",
        "ip_host": "addresses.ip_host",
        "ipaddr": "addresses.ipaddr",
        "ipv4": "addresses.ipv4",
        "ipv6": "addresses.ipv6",
        "ipwrap": "addresses.ipwrap",
        "mac_str_to_bytes": "addresses.mac_bytes",
        "network_hosts": "addresses.network_hosts",
        "network_size": "addresses.network_size",
    },
)

_HOST_CHARACTERS = re.compile(r"[^A-Za-z0-9._-]")

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address


def _address(text: object) -> Address | None:
    if not isinstance(text, str | bytes | int | Address):
        return None
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def is_ip(ip_addr: object) -> bool:
    """Return whether the value is an IP address."""
    return _address(ip_addr) is not None


def is_ipv4(ip_addr: object) -> bool:
    """Return whether the value is an IPv4 address."""
    found = _address(ip_addr)
    return found is not None and found.version == 4


def is_ipv6(ip_addr: object) -> bool:
    """Return whether the value is an IPv6 address."""
    found = _address(ip_addr)
    return found is not None and found.version == 6


def is_loopback(ip_addr: object) -> bool:
    """Return whether the value is a loopback address, such as 127.0.0.1."""
    found = _address(ip_addr)
    return found is not None and found.is_loopback


def _is_network(cidr: object, version: int) -> bool:
    try:
        return isinstance(cidr, str) and "/" in cidr and ipaddress.ip_network(cidr).version == version
    except ValueError:
        return False


def is_ipv4_subnet(cidr: object) -> bool:
    """Return whether the value is an IPv4 network such as ``10.0.0.0/8``."""
    return _is_network(cidr, 4)


def is_ipv6_subnet(cidr: object) -> bool:
    """Return whether the value is an IPv6 network such as ``fd00::/8``."""
    return _is_network(cidr, 6)


def is_subnet(cidr: object) -> bool:
    """Return whether the value is an IPv4 or IPv6 network such as ``10.0.0.0/8``."""
    return is_ipv4_subnet(cidr) or is_ipv6_subnet(cidr)


def sanitize_host(host: str) -> str:
    """Return a host name without the characters that host names must not have; an IP address unchanged."""
    return host if is_ip(host) else _HOST_CHARACTERS.sub("", host[:255])


def cidr_to_ipv4_netmask(cidr_bits: str | int) -> str:
    """Return the IPv4 netmask of a prefix length: ``255.255.255.0`` for 24. "" for an invalid length."""
    try:
        bits = int(cidr_bits)
    except (TypeError, ValueError):
        return ""
    return str(ipaddress.IPv4Network(f"0.0.0.0/{bits}").netmask) if 1 <= bits <= 32 else ""


def natural_ipv4_netmask(ip_addr: str, fmt: str = "prefixlen") -> str:
    """Return the netmask of an IPv4 address's class: ``/24`` by default, ``255.255.255.0`` if ``fmt`` is "netmask"."""
    first = int(ip_addr.split(".", 1)[0])
    bits = 24 if first >= 192 else 16 if first >= 128 else 8
    return cidr_to_ipv4_netmask(bits) if fmt == "netmask" else f"/{bits}"


def rpad_ipv4_network(ip_addr: str) -> str:
    """Return a shortened IPv4 network with its missing zeros: ``10.1.0.0`` for ``10.1``."""
    return ".".join((ip_addr.split(".") + ["0"] * 4)[:4])


def get_net_start(ipaddr: str, netmask: object) -> str:
    """Return the first address of the network that contains an address: 10.1.0.0 for 10.1.2.3 and ``255.255.0.0``."""
    return str(ipaddress.ip_network(f"{ipaddr}/{netmask}", strict=False).network_address)


def get_net_size(mask: str) -> int:
    """Return the prefix length of an IPv4 netmask: 24 for ``255.255.255.0``."""
    return len("".join(f"{int(part):08b}" for part in mask.split(".")).rstrip("0"))


def calc_net(ipaddr: str, netmask: object = None) -> str:
    """Return the network that contains an address, as text such as ``10.0.0.0/8``.

    ``netmask`` is a netmask or a prefix length; without it, ``ipaddr`` itself contains the prefix length
    (``10.1.2.3/8``).
    """
    return str(ipaddress.ip_network(ipaddr if netmask is None else f"{ipaddr}/{netmask}", strict=False))


def in_subnet(cidr: str, addr: str | Address | list[str] | tuple[str, ...] | None = None) -> bool:
    """Return whether one of the addresses is in the network ``cidr``. Without ``addr``, the managed host's own
    addresses are checked.
    """
    try:
        network = ipaddress.ip_network(cidr)
    except ValueError:
        return False
    if addr is None:
        addr = [*ip_addrs(), *ip_addrs6()]
    return any(ipaddress.ip_address(each) in network for each in (addr if isinstance(addr, list | tuple) else [addr]))


def ip_bracket(addr: object, strip: bool = False) -> str:
    """Return an IPv6 address in square brackets, or without brackets if ``strip`` is true. An IPv4 address is returned
    unchanged.

    Raise ValueError if it is not an IP address.
    """
    found = ipaddress.ip_address(str(addr).lstrip("[").rstrip("]"))
    return f"[{found}]" if found.version == 6 and not strip else str(found)


def parse_host_port(host_port: str) -> tuple[str, int | None]:
    """Return (host, port) of a text such as ``host:1``, ``[::1]:1``, ``::1`` or ``host``. The port is None if the text
    has none.

    Raise ValueError for other texts.
    """
    host, port = host_port, None
    if host_port.startswith("["):
        host, _, rest = host_port[1:].rpartition("]")
        if len(rest) > 1 and not rest.startswith(":"):
            raise ValueError(f'found ambiguous "{rest}" port in "{host_port}"')
        port = int(rest[1:]) if rest.startswith(":") else None
    elif host_port.count(":") == 1:
        host, _, text = host_port.partition(":")
        if not text.isdecimal():
            raise ValueError(f'host_port "{host_port}" port value "{text}" is not an integer.')
        port = int(text)
    found = _address(host)
    if found is not None:
        return found.compressed, port
    if host != sanitize_host(host):
        raise ValueError(f'bad hostname: "{host}"')
    return host, port


def hex2ip(hex_ip: str, invert: bool = False) -> str:
    """Return the IP address of a hexadecimal text as in /proc/net. Other texts are returned unchanged.

    With ``invert``, the bytes of each 32-bit word are reversed, as Linux writes them on little-endian machines.
    """
    if len(hex_ip) == 32:
        words = [hex_ip[at : at + 8] for at in range(0, 32, 8)]
        if invert:
            words = ["".join(reversed(re.findall("..", word))) for word in words]
        try:
            found = ipaddress.IPv6Address(bytes.fromhex("".join(words)))
        except ValueError:
            return hex_ip
        return str(found.ipv4_mapped or found.compressed)
    try:
        number = int(hex_ip, 16) & 0xFFFFFFFF
    except ValueError:
        return hex_ip
    data = number.to_bytes(4, "big")
    return ".".join(str(part) for part in (reversed(data) if invert else data))


def mac2eui64(mac: str, prefix: str | None = None) -> str | None:
    """Return the EUI-64 identifier of a MAC address. With ``prefix``, return the IPv6 address with this identifier in
    the network.

    None if the network is invalid or has no such address.
    """
    digits = re.sub("[.:-]", "", mac).lower()
    eui64 = f"{int(digits[:2], 16) | 2:02x}{digits[2:6]}fffe{digits[6:]}"
    if prefix is None:
        return ":".join(re.findall("....", eui64))
    try:
        network = ipaddress.ip_network(prefix, strict=False)
        return f"{network[int(eui64, 16)]}/{network.prefixlen}"
    except (ValueError, IndexError):
        return None


def isportopen(host: str, port: int | str) -> int | bool:
    """Return 0 if the TCP port of a host accepts connections, otherwise the errno. False for a port number outside 1 to
    65535.
    """
    if not 1 <= int(port) <= 65535:
        return False
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        return probe.connect_ex((sanitize_host(host), int(port)))


def host_to_ips(host: str) -> list[str] | None:
    """Return the IP addresses of a host name; None if the name cannot be resolved."""
    try:
        found = socket.getaddrinfo(host, 0, socket.AF_UNSPEC, socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return None
    return [str(each[4][0]) for each in found] or None


def ip_to_host(ip: str) -> str | None:
    """Return the host name of an IP address; None if it has none."""
    try:
        return socket.gethostbyaddr(ip)[0]
    except (OSError, UnicodeError):
        return None


def is_reachable_host(entity_name: str) -> bool:
    """Return whether a host name can be resolved to an IP address. No connection is made."""
    return host_to_ips(entity_name) is not None


def get_fqhostname() -> str:
    """Return the full host name: the grain ``fqdn``, else the canonical name of the machine's own host name."""
    ctx = current.get()
    if ctx is not None and ctx.grains.get("fqdn"):
        return str(ctx.grains["fqdn"])
    try:
        rows = socket.getaddrinfo(socket.gethostname(), 0, type=socket.SOCK_STREAM, flags=socket.AI_CANONNAME)
    except socket.gaierror:
        rows = []
    return next((row[3] for row in rows if row[3]), "") or socket.getfqdn()


class _AddressFacts(TypedDict, total=False):
    """Map for one IP address of a network interface: address, netmask, broadcast and label, as ``network.interfaces``
    shows it.
    """

    address: str
    netmask: str
    broadcast: str
    label: str
    #: Only in ``secondary``: "inet" or "inet6".
    type: str


class _Interface(TypedDict, total=False):
    """Map for one network interface: up, hwaddr, and the address lists inet, inet6 and secondary, as
    ``network.interfaces`` shows it.
    """

    up: bool
    hwaddr: str
    inet: list[_AddressFacts]
    inet6: list[_AddressFacts]
    secondary: list[_AddressFacts]


def interfaces() -> dict[str, _Interface]:
    """Map of interface name to a map with up, hwaddr, inet and inet6, for the network interfaces of the managed host,
    as the function ``network.interfaces`` returns it.
    """
    found: dict[str, _Interface] = context_of("salt.utils.network.interfaces").call("network.interfaces")
    return found


linux_interfaces = interfaces


def interface(iface: str) -> list[_AddressFacts] | str:
    """Return the list of the IPv4 addresses of a network interface, each as {"address": ..., "netmask": ...}; "" if it
    has none.
    """
    return interfaces().get(iface, _Interface()).get("inet", "")


def interface_ip(iface: str) -> str:
    """Return the first IPv4 address of a network interface of the managed host; "" if it has none."""
    found = interfaces().get(iface, _Interface()).get("inet")
    return str(found[0].get("address", "")) if found else ""


def hw_addr(iface: str) -> str:
    """Return the hardware (MAC) address of a network interface of the managed host; "" if it has none."""
    return str(interfaces().get(iface, _Interface()).get("hwaddr", ""))


def ip_addrs(
    interface: object = None, include_loopback: bool = False, interface_data: dict[str, _Interface] | None = None
) -> list[str]:
    """Return the sorted IPv4 addresses of the managed host, or of one interface (name, list or comma-separated text).

    Loopback addresses are left out unless ``include_loopback`` is true. ``interface_data`` replaces the host's
    interfaces.
    """
    return _addresses("inet", interface, include_loopback, interface_data)


def ip_addrs6(
    interface: object = None, include_loopback: bool = False, interface_data: dict[str, _Interface] | None = None
) -> list[str]:
    """Return the sorted IPv6 addresses of the managed host, or of one interface (name, list or comma-separated text).

    Loopback addresses are left out unless ``include_loopback`` is true. ``interface_data`` replaces the host's
    interfaces.
    """
    return _addresses("inet6", interface, include_loopback, interface_data)


def _addresses(
    kind: Literal["inet", "inet6"], interface: object, loopback: bool, known: dict[str, _Interface] | None
) -> list[str]:
    names = interface if isinstance(interface, list) else str(interface).split(",") if interface else None
    found = {
        ipaddress.ip_address(each["address"].partition("%")[0])
        for name, facts in (known if isinstance(known, dict) else interfaces()).items()
        if names is None or name in names
        for each in [*facts.get(kind, []), *(one for one in facts.get("secondary", []) if one.get("type") == kind)]
    }
    return [str(each) for each in sorted(found, key=int) if loopback or not each.is_loopback]


def subnets(interfaces: object = None) -> object:
    """Return the IPv4 networks of the managed host (``10.0.0.0/8``), as the function ``network.subnets`` does."""
    return context_of("salt.utils.network.subnets").call("network.subnets", interfaces)


def _get_interfaces() -> dict[str, _Interface]:
    """Return the machine's network interfaces, in the form of the function ``interfaces``. Copies of Salt's core grains
    import this name.
    """
    return interfaces()


def _clear_interfaces() -> None:
    """Do nothing: interfaces are not cached. Copies of Salt's core grains import this name."""
