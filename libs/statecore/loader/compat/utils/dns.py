"""``salt.utils.dns`` for users' modules: looks names up with the machine's resolver, and reads resolv.conf."""

from __future__ import annotations

import ipaddress
import socket
from pathlib import Path

from statecore.model.text_lines import lines_of

#: Type of a record -> address family of its values.
_FAMILIES = {"A": socket.AF_INET, "AAAA": socket.AF_INET6}


def lookup(
    name: str,
    rdtype: str,
    method: str | None = None,
    servers: object = None,
    timeout: float | None = None,
    walk: bool = False,
    walk_tld: bool = False,
    secure: object = None,
) -> list[str] | bool:
    """Return the list of addresses of a name; False if it has none. Only the record types A and AAAA are looked up.

    Raise ValueError for another type. The other arguments are accepted and ignored.
    """
    family = _FAMILIES.get(rdtype.upper())
    if family is None:
        raise ValueError(f"salt.utils.dns.lookup finds records of the types A and AAAA only, not {rdtype}")
    try:
        rows = socket.getaddrinfo(name, None, family, socket.SOCK_STREAM)
    except socket.gaierror:
        return False
    return list(dict.fromkeys(str(row[4][0]) for row in rows)) or False


def query(name: str, rdtype: str, *args: object, **kwargs: object) -> list[str] | bool:
    """Return the list of addresses of a name, as the function ``lookup`` does; False if it has none."""
    return lookup(name, rdtype)


def host(name: str, ip4: bool = True, ip6: bool = True, **kwargs: object) -> dict[str, list[str]]:
    """Map of "ip4" and "ip6" to the addresses of a name; a family without addresses is left out."""
    wanted = [("ip4", "A")] * ip4 + [("ip6", "AAAA")] * ip6
    found = {key: lookup(name, rdtype) for key, rdtype in wanted}
    return {key: value for key, value in found.items() if isinstance(value, list)}


def ptr_name(rdata: str) -> str:
    """Return the name under which an address is looked up in the DNS (``1.0.0.127.in-addr.arpa``)."""
    return ipaddress.ip_address(rdata).reverse_pointer


def parse_resolv(src: str = "/etc/resolv.conf") -> dict[str, object]:
    """Return the settings of a resolv.conf: nameservers, ip4_nameservers, ip6_nameservers, sortlist, domain, search,
    options. {} if the file cannot be read or names no server.
    """
    try:
        lines = lines_of(Path(src).read_text("utf-8", "replace"))
    except OSError:
        return {}
    servers: list[ipaddress.IPv4Address | ipaddress.IPv6Address] = []
    lists: dict[str, list[str]] = {"search": [], "options": [], "sortlist": []}
    domain = ""
    for words in (line.split("#")[0].split(";")[0].split() for line in lines):
        if len(words) < 2:
            continue
        if words[0] == "nameserver":
            servers.append(ipaddress.ip_address(words[1].partition("%")[0]))
        elif words[0] == "domain":
            domain = words[1]
        elif words[0] in lists:
            lists[words[0]] = words[1:] if words[0] == "search" else [*lists[words[0]], *words[1:]]
    if not servers:
        return {}
    return {
        "nameservers": servers,
        "ip4_nameservers": [each for each in servers if each.version == 4],
        "ip6_nameservers": [each for each in servers if each.version == 6],
        "sortlist": lists["sortlist"],
        "domain": domain or (lists["search"][0] if len(lists["search"]) == 1 else domain),
        "search": lists["search"],
        "options": lists["options"],
    }
