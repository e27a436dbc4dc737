"""Rules of nftables: made from arguments, and found again in what nft lists. Pure text. Salt: modules/nftables.py.

nft lists a rule in words of its own: a set of one is a value, sets are sorted, counters have numbers, ``meta`` is left out. Two
texts are the same rule when they are ``plain`` the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from statecore.model.errors import InvocationError
from statecore.model.nearest import close_matches

#: Salt's name of a family -> nft's.
FAMILIES = {
    "ipv4": "ip",
    "ip4": "ip",
    "ip": "ip",
    "ipv6": "ip6",
    "ip6": "ip6",
    "inet": "inet",
    "arp": "arp",
    "bridge": "bridge",
    "netdev": "netdev",
}

#: Arguments that say something of a rule; what follows of them is in ``build``.
_OPTIONS = (
    "if of proto connstate icmp-type icmpv6-type pkttype counter saddr source daddr destination dport sport dports sports"
    " jump j target redirect-to to-port to-ports to-source to-destination reject-with"
)

#: Arguments that say nothing of it. ``match`` is there for those who come from iptables.
_NO_OPTION = ("name", "table", "chain", "save", "position", "command", "full", "family", "state", "match")

_HANDLE = re.compile(r"\s*# handle (\d+)$")


def build(family: str, arguments: Mapping[str, Any]) -> str:
    """The text of a rule. Raises InvocationError for an argument that there is not, or a family."""
    given = {key: value for key, value in arguments.items() if key not in _NO_OPTION}
    if "target" in given:
        given["jump"] = given.pop("target")
    for key in given:
        if key not in _OPTIONS.split():
            near = close_matches(key, _OPTIONS.split(), n=1)
            raise InvocationError(f"'{key}' is no option of a rule" + (f"; did you mean '{near[0]}'?" if near else ""))
    protocol = given.get("proto", "")
    at = of(family)
    parts = [
        _part(given, "meta iifname {}", "if"),
        _part(given, "meta oifname {}", "of"),
        _part(given, "ct state {{ {} }}", "connstate"),
        _part(given, "icmp type {{ {} }}", "icmp-type"),
        _part(given, "icmpv6 type {{ {} }}", "icmpv6-type"),
        _part(given, "meta pkttype {{ {} }}", "pkttype"),
        "counter" if "counter" in given else "",
        _part(given, f"{at} saddr {{}}", "saddr", "source"),
        _part(given, f"{at} daddr {{}}", "daddr", "destination"),
        *(_port(given, key, protocol) for key in ("dport", "sport", "dports", "sports")),
        _part(given, "{}", "jump"),
        _part(given, "{}", "j"),
        _part(given, "redirect to {}", "redirect-to", "to-port"),
        _part(given, "--to-ports {}", "to-ports"),
        _part(given, "{}", "to-source"),
        _part(given, "{}", "to-destination"),
        _part(given, "reject with {}", "reject-with"),
    ]
    return " ".join(part for part in parts if part)


def of(family: str) -> str:
    """nft's name of a family. Raises InvocationError."""
    if family not in FAMILIES:
        raise InvocationError(f"family: {family!r} is none; there are {', '.join(FAMILIES)}")
    return FAMILIES[family]


def _part(given: Mapping[str, Any], form: str, *names: str) -> str:
    value = next((given[name] for name in names if given.get(name) not in (None, "")), None)
    return "" if value is None else form.format(value)


def _port(given: Mapping[str, Any], key: str, protocol: str) -> str:
    value = given.get(key)
    if value is None:
        return ""
    if not protocol:
        raise InvocationError(f"{key}: proto must be specified")
    if key in ("dport", "sport"):
        return f"{protocol} {key} {{ {str(value).replace(':', '-')} }}"
    ports = value if isinstance(value, list) else str(value).split(",")
    if not all(re.fullmatch(r"\s*\d+\s*", str(each)) for each in ports):
        raise InvocationError(f"{key}: a list of ports is needed, not {value!r}")
    # From high to low, as Salt has it.
    listed = ", ".join(str(each) for each in sorted((int(each) for each in ports), reverse=True))
    return f"{protocol} {key.rstrip('s')} {{ {listed} }}"


def plain(rule: str) -> str:
    """A rule without what nft changes in it when it lists it."""
    text = _HANDLE.sub("", rule.strip())
    text = re.sub(r"\bcounter packets \d+ bytes \d+", "counter", text)
    text = re.sub(r"\bmeta (iif|oif)(name)?\b", r"\1\2", text)
    text = re.sub(r'"(\S+)"', r"\1", text)
    text = re.sub(r"\{([^{}]*)\}", lambda found: _set(found[1].split(",")), text)
    text = re.sub(r"\bct state (\S+)", lambda found: f"ct state {_set(found[1].split(','))}", text)
    text = re.sub(r"\breject with (icmp(x|v6)?) type ", r"reject with \1 ", text)
    text = re.sub(r"\breject with icmp(x|v6)? port-unreachable", "reject", text)
    text = re.sub(r"\b(snat|dnat)( ip6?)? to ", r"\1 ", text)
    text = re.sub(r"\bredirect to :", "redirect to ", text)
    text = re.sub(r"\b(\d+(?:\.\d+){3})/32\b", r"\1", text)
    text = re.sub(r"([\da-f:]*:[\da-f:]*)/128\b", r"\1", text)
    return " ".join(text.split())


def _set(elements: Iterable[str]) -> str:
    return ",".join(sorted(each.strip() for each in elements))


def handle(listing: str, rule: str) -> str | None:
    """The handle of a rule in what ``nft --handle list chain`` tells, None where it is not there."""
    wanted = plain(rule)
    return next((number for text, number in with_handles(listing) if plain(text) == wanted), None)


def with_handles(listing: str) -> list[tuple[str, str]]:
    """(text, handle) of each rule in what ``nft --handle list chain`` tells."""
    found = []
    for line in listing.splitlines():
        number = _HANDLE.search(line)
        if number and "{ #" not in line:
            found.append((_HANDLE.sub("", line).strip(), number[1]))
    return found
