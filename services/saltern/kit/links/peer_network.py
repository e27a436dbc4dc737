"""The text by which limits count the address of a peer."""

from __future__ import annotations

import ipaddress

#: Bits of an IPv6 address that one customer of a provider does not choose.
_PREFIX = 64


def network_of(address: str) -> str:
    """Return the text by which limits count a peer: its IPv4 address, or the network of 64 bits of its IPv6 address."""
    if ":" not in address:
        return address
    try:
        six = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    return str(six.ipv4_mapped or ipaddress.IPv6Network((six, _PREFIX), strict=False))
