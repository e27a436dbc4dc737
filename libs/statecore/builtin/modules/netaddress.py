"""Addresses of networks: Salt's ``netaddress`` execution module. Networks are written as ``192.168.0.0/20``."""

from __future__ import annotations

import ipaddress
from typing import TypeAlias

from statecore.model.context import Context
from statecore.model.errors import CommandError

_Network: TypeAlias = "ipaddress.IPv4Network | ipaddress.IPv6Network"

#: Largest number of addresses in an answer: a network of IPv6 may have more than fit into memory.
_LIMIT = 1_000_000


def list_cidr_ips(ctx: Context, cidr: str) -> list[str]:
    """Return all addresses of a network as texts. Raise CommandError for a network of more than a million addresses.

    CLI Example:

        salt '*' netaddress.list_cidr_ips 192.168.0.0/30
    """
    return [str(each) for each in _bounded(cidr)]


def list_cidr_ips_ipv6(ctx: Context, cidr: str) -> list[str]:
    """Return all addresses of a network as texts in IPv6 form, such as ::ffff:192.168.0.0 for IPv4. Raise
    CommandError for a network of more than a million addresses.

    CLI Example:

        salt '*' netaddress.list_cidr_ips_ipv6 192.168.0.0/30
    """
    network = _bounded(cidr)
    if network.version == 6:
        return [str(each) for each in network]
    # The form of netaddr: IPv4-mapped addresses.
    return [f"::ffff:{each}" for each in network]


def cidr_netmask(ctx: Context, cidr: str) -> str:
    """Return the netmask of a network as text, such as 255.255.240.0. Raise CommandError for text that is no
    network.

    CLI Example:

        salt '*' netaddress.cidr_netmask 192.168.0.0/20
    """
    return str(_network(cidr).netmask)


def cidr_broadcast(ctx: Context, cidr: str) -> str:
    """Return the broadcast address of a network as text; "None" for an IPv6 network. Raise CommandError for text
    that is no network.

    CLI Example:

        salt '*' netaddress.cidr_broadcast 192.168.0.0/20
    """
    network = _network(cidr)
    return str(network.broadcast_address) if network.version == 4 and network.prefixlen < 31 else "None"


def _network(cidr: str) -> _Network:
    try:
        return ipaddress.ip_network(cidr, strict=False)
    except ValueError as error:
        raise CommandError(f"invalid network {cidr}: {error}") from error


def _bounded(cidr: str) -> _Network:
    network = _network(cidr)
    if network.num_addresses > _LIMIT:
        raise CommandError(f"{cidr} has {network.num_addresses} addresses, more than {_LIMIT}")
    return network
