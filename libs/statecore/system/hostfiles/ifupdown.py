"""Debian's /etc/network/interfaces (interfaces(5)): write, find and replace the stanzas of one interface.

The rest of the file is kept.

Salt: salt/modules/debian_ip.py and its templates.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from statecore.model.errors import InvocationError
from statecore.model.text_lines import lines_of

FAMILIES = ("inet", "inet6")

_KEYWORD = re.compile(
    r"\s*(auto|allow-\S+|iface|mapping|source|source-directory|no-auto-down|no-scripts|rename|template)\s"
)

#: Order of the options in a stanza.
_ORDER = """
    autoconf privext dhcp hwaddress vlan_raw_device address addresses netmask broadcast metric gateway pointopoint scope
    hostname media leasehours leasetime vendor client bootfile server mode endpoint dstaddr local ttl mtu provider unit
    options master dns_nameservers dns_search wireless_essid wireless_mode wpa_ap_scan wpa_conf wpa_driver wpa_group
    wpa_key_mgmt wpa_pairwise wpa_proto wpa_psk wpa_roam wpa_ssid accept_ra preferred_lifetime dad_attempts dad_interval
    up_cmds down_cmds pre_up_cmds post_up_cmds pre_down_cmds post_down_cmds
"""
KEYS = tuple(_ORDER.split())

#: Option -> its name in the file, if that is not the option's name with dashes.
_CALLED = {"addresses": "address", "master": "bond-master", "accept_ra": "accept_ra"} | {
    f"{each}_cmds": each.replace("_", "-") for each in ("up", "down", "pre_up", "post_up", "pre_down", "post_down")
}
COMMANDS = tuple(each for each in KEYS if each.endswith("_cmds"))

#: Option of ethtool -> its name in the file.
ETHTOOL = {
    "speed": "link-speed",
    "duplex": "link-duplex",
    "autoneg": "ethernet-autoneg",
    **{name: f"offload-{name}" for name in ("rx", "tx", "sg", "tso", "ufo", "gso", "gro", "lro")},
}


@dataclass(slots=True)
class IfupdownInterface:
    """The stanzas of one network interface in Debian's /etc/network/interfaces."""

    auto: bool = False
    hotplug: bool = False
    #: Address family -> its options, named as in ``_ORDER``, and ``proto``. ``ethtool``, ``bond`` and ``bridge`` are
    #: maps, ``other`` is a list of lines.
    families: dict[str, dict[str, object]] = field(default_factory=dict)

    def render(self, name: str) -> str:
        """Return the stanzas of the network interface ``name`` as text of /etc/network/interfaces."""
        lines = [f"auto {name}"] * self.auto + [f"allow-hotplug {name}"] * self.hotplug
        for family in FAMILIES:
            if (options := self.families.get(family)) is not None:
                lines += [f"iface {name} {family} {options['proto']}", *(f"    {line}" for line in _lines(options))]
        return "".join(f"{line}\n" for line in lines)


def _lines(options: Mapping[str, object]) -> list[str]:
    lines = []
    for key in KEYS:
        name = _CALLED.get(key, key.replace("_", "-"))
        value = options.get(key)
        for each in value if isinstance(value, list) else [] if value is None else [value]:
            lines.append(f"{name} {each}")
    for table, before in (("ethtool", ""), ("bond", "bond-"), ("bridge", "bridge_")):
        lines += [f"{before}{key} {value}".rstrip() for key, value in sorted(_map(options.get(table)).items())]
    other = options.get("other")
    return [*lines, *(other if isinstance(other, list) else [])]


def _map(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def find(text: str, name: str) -> IfupdownInterface | None:
    """Return the stanzas of a network interface in the text of /etc/network/interfaces, or None. Raises InvocationError
    for a malformed line.
    """
    found = IfupdownInterface()
    for words, body in _stanzas(text):
        if words[0] == "auto" and name in words[1:]:
            found.auto = True
        elif words[0] == "allow-hotplug" and name in words[1:]:
            found.hotplug = True
        elif words[0] == "iface" and words[1:2] == [name]:
            if len(words) < 4 or words[2] not in FAMILIES:
                raise InvocationError(f"Interface file malformed: {' '.join(words)}")
            options = found.families.setdefault(words[2], {})
            options["proto"] = words[3]
            for line in body:
                _read(options, line)
    return found if found.families else None


def _read(options: dict[str, Any], line: str) -> None:
    name, _, value = line.partition(" ")
    value = " ".join(value.split())
    called = {written: key for key, written in _CALLED.items() if key != "addresses"}
    key = called.get(name, name.replace("-", "_"))
    if key in COMMANDS:
        options.setdefault(key, []).append(value)
    elif key == "address" and "address" in options:
        options.setdefault("addresses", []).append(value)
    elif key in KEYS:
        options[key] = value
    elif name in ETHTOOL.values():
        options.setdefault("ethtool", {})[name] = value
    elif table := re.fullmatch(r"(bond|bridge)[_-](.+)", name):
        options.setdefault(table[1], {})[table[2].replace("-", "_")] = value
    else:
        options.setdefault("other", []).append(f"{name} {value}".rstrip())


def put(text: str, name: str, stanzas: str) -> str:
    """Return the text of /etc/network/interfaces with ``stanzas`` in place of the interface's existing stanzas, or at
    the end.
    """
    lines = lines_of(text)
    spans = _spans(lines, name)
    # Placed at the iface line rather than at "auto", which may also name interfaces further down.
    at = next((start for start, _, _ in spans if lines[start].split()[0] == "iface"), spans[0][0] if spans else None)
    kept: list[str] = []
    new = lines_of(stanzas)
    position = 0
    for start, end, instead in spans:
        kept += lines[position:start]
        if start == at:
            kept += new
        kept += instead
        position = end
    kept += lines[position:]
    if at is None:
        kept += ([""] if kept and kept[-1].strip() else []) + new
    return "".join(f"{line}\n" for line in kept)


def _spans(lines: list[str], name: str) -> list[tuple[int, int, list[str]]]:
    """List of (first line number, line number after the last, lines that remain) for each part of
    /etc/network/interfaces about one interface.
    """
    spans = []
    at = 0
    while at < len(lines):
        words = lines[at].split()
        if words and words[0] in ("auto", "allow-hotplug") and name in words[1:]:
            rest = [each for each in words[1:] if each != name]
            spans.append((at, at + 1, [" ".join([words[0], *rest])] if rest else []))
        elif words[:2] == ["iface", name]:
            end = at + 1
            last = end
            while end < len(lines) and not _KEYWORD.match(f"{lines[end]} "):
                # Comments and blank lines after the last option belong to the next stanza.
                if lines[end].strip() and not lines[end].lstrip().startswith("#"):
                    last = end + 1
                end += 1
            spans.append((at, last, []))
            at = last - 1
        at += 1
    return spans


def _stanzas(text: str) -> list[tuple[list[str], list[str]]]:
    """List of (words of the first line, other lines) for each stanza in the text of /etc/network/interfaces.

    A backslash at a line's end continues the line.
    """
    found: list[tuple[list[str], list[str]]] = []
    for line in lines_of(text.replace("\\\n", " ")):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if _KEYWORD.match(f"{line} "):
            found.append((line.split(), []))
        elif found:
            found[-1][1].append(" ".join(line.split()))
    return found
