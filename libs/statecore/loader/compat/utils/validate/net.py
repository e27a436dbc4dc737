"""``salt.utils.validate.net`` for users' modules: checks of addresses."""

from __future__ import annotations

import ipaddress
import re
import socket

_MAC = re.compile(r"(?:[0-9A-F]{1,2}([-:.]))(?:[0-9A-F]{1,2}\1){4}[0-9A-F]{1,2}", re.IGNORECASE)


def mac(addr: str) -> bool:
    """Return whether the text is a MAC address."""
    return _MAC.fullmatch(addr) is not None


def _address(addr: object, family: socket.AddressFamily, longest: int) -> bool:
    if not isinstance(addr, str):
        return False
    ip, slash, bits = addr.rpartition("/")
    if not slash:
        ip, bits = addr, str(longest)
    try:
        socket.inet_pton(family, ip)
    except (OSError, ValueError):
        return False
    return bits.isdecimal() and 1 <= int(bits) <= longest


def ipv4_addr(addr: object) -> bool:
    """Return whether the value is an IPv4 address, with or without a prefix length (``/24``)."""
    return _address(addr, socket.AF_INET, 32)


def ipv6_addr(addr: object) -> bool:
    """Return whether the value is an IPv6 address, with or without a prefix length (``/64``)."""
    return _address(addr, socket.AF_INET6, 128)


def ip_addr(addr: object) -> bool:
    """Return whether the value is an IPv4 or IPv6 address, with or without a prefix length."""
    return ipv4_addr(addr) or ipv6_addr(addr)


def netmask(mask: object) -> bool:
    """Return whether the value is an IPv4 netmask such as ``255.255.255.0``."""
    try:
        return isinstance(mask, str) and bool(ipaddress.IPv4Network(f"0.0.0.0/{mask}"))
    except ValueError:
        return False
