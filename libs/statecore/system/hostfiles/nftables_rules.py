"""Rules of nftables: build from arguments, and find in nft's listings.

nft lists a rule in another form: a set of one element becomes a value, sets are sorted, counters have numbers, ``meta``
is left out. ``plain`` removes these differences; two texts with the same ``plain`` form are the same rule.

Salt: salt/modules/nftables.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from statecore.model.errors import InvocationError
from statecore.model.nearest import close_matches
from statecore.model.text_lines import lines_of

#: Salt's name of an address family -> nft's name.
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

#: Arguments that are part of a rule. ``build`` writes them.
OPTIONS = (
    "if of proto connstate icmp-type icmpv6-type pkttype counter saddr source daddr destination dport sport dports sports"
    " jump j target redirect-to to-port to-ports to-source to-destination reject-with"
)

#: Arguments that are not part of a rule. ``match`` is accepted for compatibility with iptables.
NO_OPTIONS = ("name", "table", "chain", "save", "position", "command", "full", "family", "state", "match")

_HANDLE = re.compile(r"\s*# handle (\d+)$")


def build(family: str, arguments: Mapping[str, object]) -> str:
    """Return the text of an nftables rule from the arguments of a call. Raises InvocationError for an unknown argument
    or family.
    """
    given = {key: value for key, value in arguments.items() if key not in NO_OPTIONS}
    if "target" in given:
        given["jump"] = given.pop("target")
    for key in given:
        if key not in OPTIONS.split():
            near = close_matches(key, OPTIONS.split(), n=1)
            raise InvocationError(
                f"'{key}' is not an option of a rule" + (f"; did you mean '{near[0]}'?" if near else "")
            )
    protocol = str(given.get("proto") or "")
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
    """Return nft's name of the address family that Salt calls ``family``: "ip" for ipv4. Raises InvocationError."""
    if family not in FAMILIES:
        raise InvocationError(f"family: {family!r} is unknown; there are {', '.join(FAMILIES)}")
    return FAMILIES[family]


def _part(given: Mapping[str, object], form: str, *names: str) -> str:
    value = next((given[name] for name in names if given.get(name) not in (None, "")), None)
    return "" if value is None else form.format(value)


def _port(given: Mapping[str, object], key: str, protocol: str) -> str:
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
    # Sorted from high to low, as in Salt.
    listed = ", ".join(str(each) for each in sorted((int(each) for each in ports), reverse=True))
    return f"{protocol} {key.rstrip('s')} {{ {listed} }}"


def plain(rule: str) -> str:
    """Return an nftables rule in one comparable form, without the differences that nft's listing introduces."""
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
    """Return the handle (number) of an nftables rule in the output of ``nft --handle list chain``, or None."""
    wanted = plain(rule)
    return next((number for text, number in with_handles(listing) if plain(text) == wanted), None)


def with_handles(listing: str) -> list[tuple[str, str]]:
    """List of (text, handle) for each nftables rule in the output of ``nft --handle list chain``."""
    found = []
    for line in lines_of(listing):
        number = _HANDLE.search(line)
        if number and "{ #" not in line:
            found.append((_HANDLE.sub("", line).strip(), number[1]))
    return found
