"""DNS queries with the host's ``dig``: Salt's ``dig`` execution module."""

from __future__ import annotations

import ipaddress
import logging
import re

from statecore.model.context import Context
from statecore.model.errors import InvocationError
from statecore.model.text_lines import lines_of

log = logging.getLogger(__name__)

#: Highest number of SPF records that are followed (RFC 7208).
_MOST = 10

_MECHANISM = re.compile(r"[+~]?(ip[46]|include):(.+)")

#: IP version -> (smallest, largest prefix length of a network).
_BITS = {4: (1, 32), 6: (8, 128)}


def available(ctx: Context) -> str | None:
    """Return None if the host has the program ``dig``; else return the reason as text."""
    return None if ctx.host.which("dig") else "the host has no dig"


def check_ip(ctx: Context, addr: object) -> bool:
    """Return whether the text is an IP address or a network such as 10.0.0.0/8.

    CLI Example:

        salt '*' dig.check_ip 127.0.0.1
    """
    return _is_address(addr)


def A(ctx: Context, host: str, nameserver: str | None = None) -> list[str]:
    """Return the IPv4 addresses that DNS has for a name, as texts; [] if there are none or dig fails.

    CLI Example:

        salt '*' dig.A www.example.com
    """
    return [each for each in _ask(ctx, host, "A", nameserver) if _is_address(each)]


def AAAA(ctx: Context, host: str, nameserver: str | None = None) -> list[str]:
    """Return the IPv6 addresses that DNS has for a name, as texts; [] if there are none or dig fails."""
    return [each for each in _ask(ctx, host, "AAAA", nameserver) if _is_address(each)]


def CNAME(ctx: Context, host: str, nameserver: str | None = None) -> str:
    """Return the name that an alias in DNS points to, "" if the name is not an alias."""
    return "\n".join(_ask(ctx, host, "CNAME", nameserver))


def PTR(ctx: Context, host: str, nameserver: str | None = None) -> list[str]:
    """Return the names that DNS has for an IP address; [] if there are none or dig fails."""
    return _run(ctx, ["-x", _plain(host)], nameserver)


def TXT(ctx: Context, host: str, nameserver: str | None = None) -> list[str]:
    """Return the TXT records that DNS has for a name, each with its quotes; [] if there are none or dig fails."""
    return _ask(ctx, host, "TXT", nameserver)


def NS(ctx: Context, domain: str, resolve: bool = True, nameserver: str | None = None) -> list[str]:
    """Return the addresses of the name servers of a DNS domain, or with ``resolve=False`` their names; [] if there are
    none or dig fails.
    """
    names = _ask(ctx, domain, "NS", nameserver)
    return [address for name in names for address in A(ctx, name, nameserver)] if resolve else names


def MX(ctx: Context, domain: str, resolve: bool = False, nameserver: str | None = None) -> list[list[str]]:
    """Return the mail servers of a DNS domain as a list of [preference, name]; [] if there are none or dig fails. With
    ``resolve``, each name is replaced by its first address.

    CLI Example:

        salt '*' dig.MX example.com
    """
    rows = [line.split() for line in _ask(ctx, domain, "MX", nameserver)]
    if not resolve:
        return rows
    found = [(row[0], A(ctx, row[1], nameserver)) for row in rows if len(row) > 1]
    return [[preference, addresses[0]] for preference, addresses in found if addresses]


def SPF(ctx: Context, domain: str, record: str = "SPF", nameserver: str | None = None) -> list[str]:
    """Return the networks that may send mail for a DNS domain, those of included SPF records too.

    Without an SPF record, the TXT records are searched.

    CLI Example:

        salt '*' dig.SPF example.com
    """
    return _spf(ctx, domain, record, nameserver, _MOST)


a, aaaa, cname, ptr, txt, ns, mx, spf = A, AAAA, CNAME, PTR, TXT, NS, MX, SPF


# --------------------------------------------------------------------------------------------- helpers


def _spf(ctx: Context, domain: str, record: str, nameserver: str | None, left: int) -> list[str]:
    if not left:
        log.warning("SPF of %s: more than %s records refer to each other; the rest is ignored", domain, _MOST)
        return []
    lines = _ask(ctx, domain, record, nameserver)
    if not lines and record == "SPF":
        return _spf(ctx, domain, "TXT", nameserver, left)
    texts = [line.replace('" "', "").replace('"', "") for line in lines]
    words = next((text.split() for text in texts if text.split()[:1] == ["v=spf1"]), [])
    if len(words) > 1 and words[1].startswith("redirect="):
        return _spf(ctx, words[1].removeprefix("redirect="), "SPF", nameserver, left - 1)
    found: list[str] = []
    for match in (_MECHANISM.match(word) for word in words[1:]):
        if match and match[1] == "include":
            found += _spf(ctx, match[2], "SPF", nameserver, left - 1)
        elif match and _is_address(match[2]):
            found.append(match[2])
    return found


def _ask(ctx: Context, name: str, record: str, nameserver: str | None) -> list[str]:
    return _run(ctx, [_plain(name), _plain(record)], nameserver)


def _run(ctx: Context, words: list[str], nameserver: str | None) -> list[str]:
    """Run the host's ``dig`` and return the lines of its output. If dig fails, log a warning and return []."""
    server = [f"@{_plain(nameserver)}"] if nameserver is not None else []
    result = ctx.host.run(["dig", "+short", *words, *server], env={"LC_ALL": "C"})
    if result.retcode:
        log.warning("dig returned exit code '%s'. Returning empty list as fallback.", result.retcode)
        return []
    return [line for line in lines_of(result.stdout) if line]


def _plain(word: object) -> str:
    """Return a word of a ``dig`` command unchanged. Raise InvocationError for a word that dig could take for an
    option.
    """
    text = str(word)
    if not text or text.startswith(("-", "+", "@")) or any(sign.isspace() for sign in text):
        raise InvocationError(f"{text!r} is not a valid name for a DNS query")
    return text


def _is_address(text: object) -> bool:
    if not isinstance(text, str):
        return False
    address, separator, bits = text.rpartition("/") if "/" in text else (text, "", "")
    try:
        version = ipaddress.ip_address(address).version
    except ValueError:
        return False
    if not separator:
        return True
    least, most = _BITS[version]
    return bits.isdecimal() and least <= int(bits) <= most
