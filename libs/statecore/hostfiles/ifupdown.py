"""interfaces(5), Debian's /etc/network/interfaces: the stanzas of one interface made from arguments, found and put in place.

Whatever else is in a file stays as it is. Pure text. Salt: modules/debian_ip.py and its templates.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from statecore.errors import InvocationError
from statecore.hostfiles import interface_options as options
from statecore.hostfiles.interface_options import is_address, is_mac, is_netmask

TYPES = ("eth", "bond", "bridge", "slave", "vlan", "source")
_FAMILIES = ("inet", "inet6")

_KEYWORD = re.compile(
    r"\s*(auto|allow-\S+|iface|mapping|source|source-directory|no-auto-down|no-scripts|rename|template)\s"
)

#: In this order options are written.
_ORDER = """
    autoconf privext dhcp hwaddress vlan_raw_device address addresses netmask broadcast metric gateway pointopoint scope
    hostname media leasehours leasetime vendor client bootfile server mode endpoint dstaddr local ttl mtu provider unit
    options master dns_nameservers dns_search wireless_essid wireless_mode wpa_ap_scan wpa_conf wpa_driver wpa_group
    wpa_key_mgmt wpa_pairwise wpa_proto wpa_psk wpa_roam wpa_ssid accept_ra preferred_lifetime dad_attempts dad_interval
    up_cmds down_cmds pre_up_cmds post_up_cmds pre_down_cmds post_down_cmds
"""
_KEYS = tuple(_ORDER.split())

#: What an option is called in the file, where that is not its name with dashes.
_CALLED = {"addresses": "address", "master": "bond-master", "accept_ra": "accept_ra"} | {
    f"{each}_cmds": each.replace("_", "-") for each in ("up", "down", "pre_up", "post_up", "pre_down", "post_down")
}
_COMMANDS = tuple(each for each in _KEYS if each.endswith("_cmds"))
_JOINED = ("dns_nameservers", "dns_search")

_ARGUMENTS = {
    "dns": "dns-nameservers",
    "search": "dns-search",
    "hwaddr": "hwaddress",
    "ipaddr": "address",
    "ipaddrs": "addresses",
    "addr": "address",
    "addrs": "addresses",
    "dns_nameservers": "dns-nameservers",
    "dns_search": "dns-search",
    "vlan_raw_device": "vlan-raw-device",
}

_ETHTOOL = {
    "speed": "link-speed",
    "duplex": "link-duplex",
    "autoneg": "ethernet-autoneg",
    **{name: f"offload-{name}" for name in ("rx", "tx", "sg", "tso", "ufo", "gso", "gro", "lro")},
}

Check = Callable[[Any], bool]


def _number(value: Any) -> bool:
    return re.fullmatch(r"-?\d+", str(value)) is not None


def _decimal(value: Any) -> bool:
    return re.fullmatch(r"-?\d+(\.\d+)?", str(value)) is not None


def _any(value: Any) -> bool:
    return value is not None


def _within(*valid: str) -> Check:
    return lambda value: str(int(value) if isinstance(value, bool) else value) in valid


_SCOPES = ("global", "link", "host")
_WIRELESS: Mapping[str, Check] = dict.fromkeys(
    [each.replace("_", "-") for each in _KEYS if each.startswith(("wireless", "wpa"))], _any
)

#: Argument as the file calls it -> check, for each family.
_CHECKS: Mapping[str, Mapping[str, Check]] = {
    "inet": {
        "proto": _within("bootp", "dhcp", "static", "manual", "loopback", "ppp"),
        **dict.fromkeys(
            ("address", "broadcast", "gateway", "pointopoint", "server", "endpoint", "dstaddr", "local"),
            lambda value: is_address(value, 4),
        ),
        "addresses": _any,
        "netmask": lambda value: is_netmask(value) or (_number(value) and 0 <= int(value) <= 32),
        **dict.fromkeys(("metric", "mtu", "leasehours", "leasetime", "ttl", "unit"), _number),
        "hwaddress": is_mac,
        "scope": _within(*_SCOPES),
        **dict.fromkeys(("hostname", "vendor", "client", "bootfile", "provider", "options"), _any),
        **dict.fromkeys(("dns-nameservers", "dns-search", "vlan-raw-device"), _any),
        **_WIRELESS,
    },
    "inet6": {
        "proto": _within("auto", "loopback", "static", "manual", "dhcp", "v4tunnel", "6to4"),
        **dict.fromkeys(("address", "broadcast", "gateway"), lambda value: is_address(value, 6)),
        **dict.fromkeys(("endpoint", "local"), lambda value: is_address(value, 4)),
        "addresses": _any,
        "netmask": lambda value: _number(value) and 0 <= int(value) <= 128,
        **dict.fromkeys(("mtu", "ttl", "preferred-lifetime", "dad-attempts"), _number),
        "dad-interval": _decimal,
        "hwaddress": is_mac,
        "scope": _within(*_SCOPES, "site"),
        "privext": _within("0", "1", "2"),
        "accept_ra": _within("0", "1", "2"),
        **dict.fromkeys(("dhcp", "autoconf"), _within("0", "1")),
        "media": _any,
        **dict.fromkeys(("dns-nameservers", "dns-search", "vlan-raw-device"), _any),
        **_WIRELESS,
    },
}

#: Arguments that speak of IPv4 alone when no family stands before them.
_OF_INET = ("ipaddr", "address", "addr", "ipaddrs", "addresses", "addrs", "gateway", "proto")


@dataclass(slots=True)
class Interface:
    """What a file says of an interface."""

    auto: bool = False
    hotplug: bool = False
    #: family -> its options by ``_ORDER``'s names, ``proto``; ``ethtool``, ``bond``, ``bridge`` and ``other`` are tables.
    families: dict[str, dict[str, Any]] = field(default_factory=dict)

    def render(self, name: str) -> str:
        """Its stanzas."""
        lines = [f"auto {name}"] * self.auto + [f"allow-hotplug {name}"] * self.hotplug
        for family in _FAMILIES:
            if (told := self.families.get(family)) is not None:
                lines += [f"iface {name} {family} {told['proto']}", *(f"    {line}" for line in _lines(told))]
        return "".join(f"{line}\n" for line in lines)


def build(iface: str, type_: str, enabled: bool, settings: Mapping[str, Any], *, carrier: bool = True) -> Interface:
    """The interface that arguments describe. ``carrier``: whether bonds are told how to look for a carrier.

    Raises InvocationError that names the argument.
    """
    given = dict(settings)
    if type_ not in TYPES[:-1]:
        raise options.invalid(iface, "type", TYPES)
    for key, of in (("master", "slave"), ("slaves", "bond"), ("ports", "bridge")):
        if type_ == of and not given.get(key):
            raise InvocationError(f"{key} is a required setting for {of} interfaces")
    if type_ == "slave":
        given["proto"] = "manual"
    families: dict[str, dict[str, Any]] = {
        family: _of_type(iface, type_, given, carrier=carrier) for family in _FAMILIES
    }
    present = set(_FAMILIES) if type_ in ("slave", "vlan", "bond", "bridge") else set()
    if given.get("enable_ipv6") and given.get("iface_type") == "vlan":
        families["inet6"]["vlan_raw_device"] = re.sub(r"\.\d*", "", iface)
    for argument, value in given.items():
        _take(iface, argument, value, families, present)
    for key in _COMMANDS:
        if key in given:
            for told in families.values():
                told[key] = [given[key]] if isinstance(given[key], str) else [str(each) for each in given[key]]
    for family, switch in (("inet", "enable_ipv4"), ("inet6", "enable_ipv6")):
        if given.get(switch) is False or family not in present:
            del families[family]
    unset = families.get("inet6", {})
    if unset.get("proto") == "static" and "ipv6proto" not in given and not {"address", "addresses"} & set(unset):
        # ``proto`` speaks of IPv4; a static stanza without an address cannot be brought up.
        del families["inet6"]
    for family, told in list(families.items()):
        if (
            "proto" not in told
            and family == "inet6"
            and "inet" in families
            and not {"address", "addresses"} & set(told)
        ):
            del families[family]
        elif "proto" not in told:
            prefix = "" if family == "inet" else "ipv6"
            raise options.invalid(iface, f"{prefix}proto", _PROTOCOLS[family])
    if not families:
        raise options.invalid(iface, "proto", _PROTOCOLS["inet"])
    return Interface(auto=enabled, hotplug=bool(given.get("hotplug")), families=families)


_PROTOCOLS = {
    "inet": ("bootp", "dhcp", "static", "manual", "loopback", "ppp"),
    "inet6": ("auto", "loopback", "static", "manual", "dhcp", "v4tunnel", "6to4"),
}


def _take(iface: str, argument: str, value: Any, families: dict[str, dict[str, Any]], present: set[str]) -> None:
    name, only = argument, None
    if argument.startswith("ipv4"):
        name, only = argument[4:], "inet"
    elif argument.startswith("ipv6"):
        name, only = argument[4:], "inet6"
    elif argument in _OF_INET:
        only = "inet"
    attribute = _ARGUMENTS.get(name, name)
    knowing = [family for family in ((only,) if only else _FAMILIES) if attribute in _CHECKS[family]]
    if not knowing:
        return
    present |= {only} if only else set()
    fit = [family for family in knowing if _CHECKS[family][attribute](value)]
    if not fit:
        valid = _PROTOCOLS[knowing[0]] if attribute == "proto" else (f"valid {attribute}",)
        raise options.invalid(iface, argument, valid)
    key = attribute.replace("-", "_")
    for family in fit:
        # What is said of one family counts before what is said of both.
        if only or key not in families[family] or key == "vlan_raw_device":
            families[family][key] = _shaped(key, value)


def _shaped(key: str, value: Any) -> Any:
    if key in _JOINED:
        return " ".join(options.words(value))
    if key == "addresses":
        return options.words(value)
    return str(int(value)) if isinstance(value, bool) else str(value)


def _of_type(iface: str, type_: str, given: Mapping[str, Any], *, carrier: bool) -> dict[str, Any]:
    told: dict[str, Any] = {}
    if type_ == "bridge":
        told["bridge"] = bridge_options(iface, given)
    elif tool := {**options.ethtool(iface, given), **options.offload(iface, given)}:
        told["ethtool"] = {_ETHTOOL[key]: str(value) for key, value in tool.items()}
    if type_ == "bond":
        told["bond"] = {
            **bond_options(iface, given, carrier=carrier),
            "slaves": " ".join(options.words(given["slaves"])),
        }
    if type_ == "slave":
        told["master"] = str(given["master"])
    if type_ == "vlan":
        told["vlan_raw_device"] = re.sub(r"\.\d*", "", iface)
    return told


def bond_options(iface: str, given: Mapping[str, Any], *, carrier: bool = True) -> dict[str, str]:
    """Options of a bond, in the order of its modprobe line. Raises InvocationError."""
    mode = options.bond_mode(iface, given)
    bond: dict[str, Any] = {"mode": mode}
    if mode in "02":
        bond["arp_ip_target"] = options.arp_targets(iface, given)
        bond["arp_interval"] = options.integer(iface, given, "arp_interval", "250")
    else:
        for key, default in (("miimon", "100"), ("downdelay", "200"), ("updelay", "0")):
            bond[key] = options.integer(iface, given, key, default)
    if mode == "4":
        rate = {"fast": "1", "slow": "0"}.get(given.get("lacp_rate", "0"), given.get("lacp_rate", "0"))
        bond["lacp_rate"] = options.one_of(iface, "lacp_rate", rate, ("1", "0"))
        bond["ad_select"] = options.integer(iface, given, "ad_select", "0")
    if mode == "1" and "primary" in given:
        bond["primary"] = given["primary"]
    if mode in "3456" or (mode == "1" and carrier):
        bond["use_carrier"] = options.switch(iface, given, "use_carrier", "1", "0") or "on"
    if mode in "56" and "primary" in given:
        bond["primary"] = given["primary"]
    if mode in "24" and "hashing-algorithm" in given:
        valid = ("layer2", "layer2+3", "layer3+4")
        bond["xmit_hash_policy"] = options.one_of(iface, "hashing-algorithm", given["hashing-algorithm"], valid)
    return {key: str(value) for key, value in bond.items()}


def bridge_options(iface: str, given: Mapping[str, Any]) -> dict[str, str]:
    """Options of a bridge. Raises InvocationError."""
    bridge: dict[str, Any] = {"ports": " ".join(options.words(given["ports"]))}
    for key in ("ageing", "fd", "gcint", "hello", "maxage"):
        if key in given:
            bridge[key] = options.checked(iface, key, given[key], float, "float")
    for key in ("bridgeprio", "maxwait"):
        if key in given:
            bridge[key] = options.integer(iface, given, key)
    if "hw" in given:
        if not is_mac(given["hw"]):
            raise options.invalid(iface, "hw", ["valid MAC address"])
        bridge["hw"] = given["hw"]
    for key in ("pathcost", "portprio"):
        if key in given:
            if not re.fullmatch(r"\s*\S+\s+-?\d+\s*", str(given[key])):
                raise options.invalid(iface, key, ["interface integer"])
            bridge[key] = " ".join(str(given[key]).split())
    if (stp := options.switch(iface, given, "stp", "on", "off")) is not None:
        bridge["stp"] = stp
    if "waitport" in given:
        if not re.fullmatch(r"\d+(\s+\S+)*", str(given["waitport"])):
            raise options.invalid(iface, "waitport", ["integer [interfaces]"])
        bridge["waitport"] = " ".join(str(given["waitport"]).split())
    return {key: str(value) for key, value in bridge.items()}


# -------------------------------------------------------------------------------------------------------------------- lines


def _lines(told: Mapping[str, Any]) -> list[str]:
    lines = []
    for key in _KEYS:
        name = _CALLED.get(key, key.replace("_", "-"))
        value = told.get(key)
        for each in value if isinstance(value, list) else [] if value is None else [value]:
            lines.append(f"{name} {each}")
    for table, before in (("ethtool", ""), ("bond", "bond-"), ("bridge", "bridge_")):
        lines += [f"{before}{key} {value}".rstrip() for key, value in sorted(told.get(table, {}).items())]
    return [*lines, *told.get("other", [])]


def find(text: str, name: str) -> Interface | None:
    """What a text says of an interface, None when it does not define it. Raises InvocationError for a line that is wrong."""
    found = Interface()
    for words, body in _stanzas(text):
        if words[0] == "auto" and name in words[1:]:
            found.auto = True
        elif words[0] == "allow-hotplug" and name in words[1:]:
            found.hotplug = True
        elif words[0] == "iface" and words[1:2] == [name]:
            if len(words) < 4 or words[2] not in _FAMILIES:
                raise InvocationError(f"Interface file malformed: {' '.join(words)}")
            told = found.families.setdefault(words[2], {})
            told["proto"] = words[3]
            for line in body:
                _read(told, line)
    return found if found.families else None


def _read(told: dict[str, Any], line: str) -> None:
    name, _, value = line.partition(" ")
    value = " ".join(value.split())
    called = {written: key for key, written in _CALLED.items() if key != "addresses"}
    key = called.get(name, name.replace("-", "_"))
    if key in _COMMANDS:
        told.setdefault(key, []).append(value)
    elif key == "address" and "address" in told:
        told.setdefault("addresses", []).append(value)
    elif key in _KEYS:
        told[key] = value
    elif name in _ETHTOOL.values():
        told.setdefault("ethtool", {})[name] = value
    elif table := re.fullmatch(r"(bond|bridge)[_-](.+)", name):
        told.setdefault(table[1], {})[table[2].replace("-", "_")] = value
    else:
        told.setdefault("other", []).append(f"{name} {value}".rstrip())


def put(text: str, name: str, stanzas: str) -> str:
    """The text with these stanzas in place of the interface's own; at its end, where it has none."""
    lines = text.splitlines()
    spans = _spans(lines, name)
    # Not where "auto" names others, too, who may follow.
    at = next((start for start, _, _ in spans if lines[start].split()[0] == "iface"), spans[0][0] if spans else None)
    kept: list[str] = []
    new = stanzas.splitlines()
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
    """(first line, line behind the last, what stays of it) of all that speaks of an interface."""
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
                # Comments and blanks behind the last option belong to what follows.
                if lines[end].strip() and not lines[end].lstrip().startswith("#"):
                    last = end + 1
                end += 1
            spans.append((at, last, []))
            at = last - 1
        at += 1
    return spans


def _stanzas(text: str) -> list[tuple[list[str], list[str]]]:
    """(words of its first line, its other lines) of each stanza; a line that ends in a backslash goes on."""
    found: list[tuple[list[str], list[str]]] = []
    for line in text.replace("\\\n", " ").splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if _KEYWORD.match(f"{line} "):
            found.append((line.split(), []))
        elif found:
            found[-1][1].append(" ".join(line.split()))
    return found
