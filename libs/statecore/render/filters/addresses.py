"""Jinja filters for IP addresses, networks and MAC addresses."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import jinja2

#: Options that select public addresses. As in Salt, every address that is not private is public, which is more than
#: Python's is_global.
_PUBLIC = frozenset(("global", "public"))

#: Largest network whose addresses may be listed. Listing 2001:db8::/64 would never end.
_LISTED = 2**20

_KINDS: Mapping[str, str] = {
    "link-local": "is_link_local",
    "linklocal": "is_link_local",
    "link_local": "is_link_local",
    "ll": "is_link_local",
    "loopback": "is_loopback",
    "lo": "is_loopback",
    "multicast": "is_multicast",
    "private": "is_private",
    "reserved": "is_reserved",
    "site-local": "is_site_local",
    "site_local": "is_site_local",
    "sl": "is_site_local",
    "unspecified": "is_unspecified",
}


#: Types of values that ``ipaddress`` accepts as an address.
_Given: TypeAlias = str | int | bytes | ipaddress.IPv4Address | ipaddress.IPv6Address

#: A network, or an address with the prefix of its network.
_Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


def _address(value: object, version: int | None, options: str | None) -> str | None:
    """Return an IP address in normal form, or with its prefix length (``10.0.0.1/8``) if it has one.

    None if the value is not an address, has another IP version, or is of none of the kinds in ``options``
    ("private,loopback").
    """
    if not isinstance(value, _Given):
        return None
    found: ipaddress.IPv4Address | ipaddress.IPv6Address
    try:
        found = ipaddress.ip_address(value)
    except ValueError:
        try:
            found = ipaddress.ip_interface(value)
        except ValueError:
            return None
    if version is not None and found.version != version:
        return None
    wanted = {option.strip() for option in (options or "").split(",")}
    if wanted & _PUBLIC and found.is_private:
        return None
    return str(found) if all(getattr(found, _KINDS[kind], False) for kind in wanted & _KINDS.keys()) else None


def _valid(version: int | None) -> Callable[[object, str | None], str | list[str] | None]:
    def filtered(value: object, options: str | None = None) -> str | list[str] | None:
        """Jinja filter: return an IP address in normal form, or None if it is not valid; for a list, the list of its
        valid addresses.
        """
        if isinstance(value, list | tuple):
            order = (4, 6) if version is None else (version,)
            found = [_address(each, one, options) for one in order for each in value]
            return [each for each in found if each is not None]
        return _address(value, version, options)

    return filtered


ipaddr, ipv4, ipv6 = _valid(None), _valid(4), _valid(6)


def is_address(version: int | None) -> Callable[..., bool]:
    """Return a Jinja filter that returns whether a value is an IP address of this version (4, 6; None: both)."""

    def filtered(value: object, options: str | None = None) -> bool:
        return _address(value, version, options) is not None

    return filtered


def _for_each(use: Callable[[str], object]) -> Callable[..., object]:
    def filtered(value: object, options: str | None = None, version: int | None = None) -> object:
        found = {4: ipv4, 6: ipv6}.get(version or 0, ipaddr)(value, options)
        if not found:
            return None
        return [use(each) for each in found] if isinstance(found, list) else use(found)

    return filtered


def _hosts(text: str) -> list[str]:
    network = ipaddress.ip_network(text, strict=False)
    if network.num_addresses > _LISTED:
        raise jinja2.TemplateRuntimeError(f"{text} has more than {_LISTED} addresses: too many to list")
    return [str(host) for host in network.hosts()]


ip_host = _for_each(lambda text: str(ipaddress.ip_interface(text)))
network_hosts = _for_each(_hosts)
network_size = _for_each(lambda text: ipaddress.ip_network(text, strict=False).num_addresses)


def ipwrap(value: object) -> object:
    """Jinja filter ``ipwrap``: return IPv6 addresses, in a list or alone, in square brackets, and other values
    unchanged.
    """
    if isinstance(value, list | tuple):
        return [ipwrap(each) for each in value]
    found = _address(value, 6, None)
    return f"[{value}]" if found is not None else value


def filter_by_networks(given: Mapping[object, Iterable[str]] | Iterable[str], networks: Iterable[str] | None) -> object:
    """Jinja filter: return the list of those given addresses that are in one of the networks.

    Of a map of lists, return a map with each list filtered. With ``networks`` None, nothing is filtered.
    """
    if networks is None:
        return given
    nets = [ipaddress.ip_network(each, strict=False) for each in networks]
    if isinstance(given, Mapping):
        return {key: _within(listed, nets) for key, listed in given.items()}
    return _within(given, nets)


def _within(listed: Iterable[str], nets: Iterable[_Network]) -> list[str]:
    return [each for each in listed if any(ipaddress.ip_address(each) in net for net in nets)]


def mac_bytes(text: str) -> bytes:
    """Jinja filter ``mac_str_to_bytes``: return the six bytes of a MAC address, with or without separators.

    Raise ValueError if the address is malformed.
    """
    digits = text.replace(text[2], "") if len(text) == 17 else text
    if len(digits) != 12:
        raise ValueError("Invalid MAC address")
    return bytes.fromhex(digits)
