"""Hosts files, zone files and DNS queries: Salt's ``dnsutil`` execution module.

DNS queries need the host's program ``dig``. Without it, ``A`` and ``AAAA`` use the minion's own resolver.
"""

from __future__ import annotations

import ipaddress
import socket
import time
from typing import Any

from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.text_lines import lines_of

_NO_DIG = "This function requires dig, which is not currently available"

#: Seconds of a week: the highest value of a time in a zone (RFC 1035).
_WEEK = 604800

_UNITS = {"H": 3600, "D": 86400, "W": _WEEK}


def parse_hosts(ctx: Context, hostsfile: str = "/etc/hosts", hosts: str | None = None) -> dict[str, list[str]] | str:
    """Return a map of address to list of names, read from a hosts file or from the text ``hosts``. Return an error text
    if there is no file.

    CLI Example:

        salt '*' dnsutil.parse_hosts
    """
    text = hosts or _read(ctx, hostsfile)
    if text is None:
        return "Error: hosts data was not found"
    found: dict[str, list[str]] = {}
    for words in (line.partition("#")[0].split() for line in lines_of(text)):
        if words:
            found.setdefault(words[0], []).extend(words[1:])
    return found


def hosts_append(
    ctx: Context, hostsfile: str = "/etc/hosts", ip_addr: str | None = None, entries: object = None
) -> str:
    """Append a line to a hosts file: an address, and those names of ``entries`` (text with commas) that the address
    does not have yet. Return a sentence with the added line, or that nothing was added.

    CLI Example:

        salt '*' dnsutil.hosts_append /etc/hosts 127.0.0.1 ad1.example.com,ad2.example.com
    """
    if not ip_addr or not entries:
        raise InvocationError("ip_addr and entries are needed")
    text = _read(ctx, hostsfile) or ""
    known = parse_hosts(ctx, hosts=text or "#")
    there = known.get(ip_addr, []) if isinstance(known, dict) else []
    names = [name for name in _names(entries) if name not in there]
    if not names:
        return f"No additional hosts were added to {hostsfile}"
    line = f"{ip_addr} {' '.join(names)}"
    _write(ctx, hostsfile, f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{line}\n")
    return f"The following line was added to {hostsfile}:\n{line}"


def hosts_remove(ctx: Context, hostsfile: str = "/etc/hosts", entries: object = None) -> None:
    """Remove names (``entries``: text with commas) from a hosts file. Return None. A line that has no names left is
    removed.

    CLI Example:

        salt '*' dnsutil.hosts_remove /etc/hosts ad1.example.com
    """
    gone = set(_names(entries))
    text = _read(ctx, hostsfile)
    if text is None:
        raise CommandError(f"{hostsfile}: there is no such file")
    kept = []
    for line in lines_of(text, keepends=True):
        row, sign, comment = line.partition("#")
        words = row.split()
        left = [word for word in words[1:] if word not in gone]
        if left == words[1:]:
            kept.append(line)
        elif left:
            kept.append(" ".join([words[0], *left]) + (f" {sign}{comment}" if sign else "\n"))
    if "".join(kept) != text:
        _write(ctx, hostsfile, "".join(kept))


def parse_zone(ctx: Context, zonefile: str | None = None, zone: str | None = None) -> object:
    """Return the content of a DNS zone file, or of the text ``zone``, as a map. Return an error text if there is
    neither.

    Keys: ORIGIN, NETWORK, SOURCE, CONTACT, SERIAL, REFRESH, RETRY, EXPIRE, MINTTL (seconds), NS, MX, and for each other
    record type a map of name to value.

    CLI Example:

        salt '*' dnsutil.parse_zone /var/lib/named/example.com.zone
    """
    text = (_read(ctx, zonefile) if zonefile else None) or zone
    if not text:
        return "Error: Zone data was not found"
    found: dict[str, Any] = {}
    for line in _logical_lines(text):
        words = line.split()
        if line.startswith("$"):
            found[words[0].lstrip("$")] = words[1] if len(words) > 1 else ""
            continue
        try:
            _record(found, line)
        except (IndexError, KeyError) as error:
            raise CommandError(f"{zonefile or 'the zone'}: '{line}' cannot be read: {error}") from error
    return found


def check_ip(ctx: Context, ip_addr: str) -> object:
    """Return whether the text is an IP address or a network. Return an error text if the host has no dig."""
    return ctx.call("dig.check_ip", ip_addr) if _has_dig(ctx) else _NO_DIG


def A(ctx: Context, host: str, nameserver: str | None = None) -> object:
    """Return a list of the IPv4 addresses that DNS has for a name; [] or a text with the error if there are none.

    CLI Example:

        salt '*' dnsutil.A www.example.com
    """
    return _addresses(ctx, "A", host, nameserver, socket.AF_INET)


def AAAA(ctx: Context, host: str, nameserver: str | None = None) -> object:
    """Return a list of the IPv6 addresses that DNS has for a name; [] or a text with the error if there are none."""
    return _addresses(ctx, "AAAA", host, nameserver, socket.AF_INET6)


def NS(ctx: Context, domain: str, resolve: bool = True, nameserver: str | None = None) -> object:
    """Return a list of the addresses of the name servers of a DNS domain, or with ``resolve=False`` of their names.
    Return an error text if the host has no dig.
    """
    return ctx.call("dig.NS", domain, resolve, nameserver) if _has_dig(ctx) else _NO_DIG


def SPF(ctx: Context, domain: str, record: str = "SPF", nameserver: str | None = None) -> object:
    """Return a list of the networks that may send mail for a DNS domain. Return an error text if the host has no
    dig.
    """
    return ctx.call("dig.SPF", domain, record, nameserver) if _has_dig(ctx) else _NO_DIG


def MX(ctx: Context, domain: str, resolve: bool = False, nameserver: str | None = None) -> object:
    """Return the mail servers of a DNS domain as a list of [preference, name]. Return an error text if the host has no
    dig.
    """
    return ctx.call("dig.MX", domain, resolve, nameserver) if _has_dig(ctx) else _NO_DIG


def serial(ctx: Context, zone: str = "", update: bool = False) -> str:
    """Return the serial number (YYYYMMDDNN) of a DNS zone. The minion stores it in the grain ``dnsserial_ZONE``.

    update
        True: compute and store the next serial number

    CLI Example:

        salt '*' dnsutil.serial example.com update=True
    """
    key = f"dnsserial_{zone}" if zone else "dnsserial"
    stored, today = str(ctx.call("grains.get", key) or ""), time.strftime("%Y%m%d01")
    if not update:
        return stored or today
    current = str(int(stored) + 1) if stored and stored >= today else today
    ctx.call("grains.setval", key, current)
    return current


# --------------------------------------------------------------------------------------------- helpers


def _addresses(ctx: Context, record: str, host: str, nameserver: str | None, family: socket.AddressFamily) -> object:
    if _has_dig(ctx):
        return ctx.call(f"dig.{record}", host, nameserver)
    if nameserver is not None:
        return _NO_DIG
    try:
        found = socket.getaddrinfo(host, None, family, 0, socket.SOCK_RAW)
    except socket.gaierror:
        return f"Unable to resolve {host}"
    return [str(ipaddress.ip_address(str(each[4][0]).partition("%")[0])) for each in found]


def _has_dig(ctx: Context) -> bool:
    return ctx.host.which("dig") is not None


def _logical_lines(text: str) -> list[str]:
    """Return the lines of a DNS zone file without comments. Lines inside parentheses are joined to one line."""
    found: list[str] = []
    held = ""
    for line in (raw.partition(";")[0].rstrip() for raw in lines_of(text)):
        if not line.strip():
            continue
        held = f"{held} {line.strip()}" if held else line.strip()
        if "(" in held and ")" not in held:
            continue
        found.append(held.replace("(", " ").replace(")", " "))
        held = ""
    return found


def _record(found: dict[str, Any], line: str) -> None:
    """Add the record in one line of a DNS zone file to the map ``found``. Salt's column order is expected: name, TTL
    (may be missing), IN, type, value.
    """
    origin = found.get("ORIGIN", "")
    words = (line.replace("@", origin) if origin else line).split()
    if "SOA" in words:
        if words[1] != "IN":
            words.pop(1)
        times = dict(zip(("REFRESH", "RETRY", "EXPIRE", "MINTTL"), map(_seconds, words[6:10]), strict=True))
        contact = words[4].replace(".", "@", 1)
        found |= {"ORIGIN": words[0], "NETWORK": words[1], "SOURCE": words[3], "CONTACT": contact, "SERIAL": words[5]}
        found |= times
        return
    if words[0] == "IN":
        words.insert(0, found["ORIGIN"])
    if not words[0].endswith(".") and "NS" not in words:
        words[0] = f"{words[0]}.{found['ORIGIN']}"
    if words[2] == "NS":
        found.setdefault("NS", []).append(words[3])
    elif words[2] == "MX":
        found.setdefault("MX", []).append({"priority": words[3], "host": words[4]})
    elif words[3] in ("A", "AAAA"):
        found.setdefault(words[3], {})[words[0]] = {"TARGET": words[4], "TTL": words[1]}
    else:
        found.setdefault(words[2], {})[words[0]] = words[3]


def _seconds(text: str) -> int:
    unit = text[-1:].upper()
    number = text[:-1] if unit in _UNITS else text
    if not number.isdecimal():
        return _WEEK
    return min(int(number) * _UNITS.get(unit, 1), _WEEK)


def _names(entries: object) -> list[str]:
    each = entries if isinstance(entries, list | tuple) else str(entries or "").split(",")
    return [str(name).strip() for name in each if str(name).strip()]


def _read(ctx: Context, name: str) -> str | None:
    data = managed_file.read(ctx.host.path(name), name)
    return None if data is None else data.decode("utf-8", "replace")


def _write(ctx: Context, name: str, text: str) -> None:
    managed_file.replace(ctx.host, ctx.host.path(name), text.encode(), Attributes())
