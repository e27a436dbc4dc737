"""Arguments of ``network.managed`` for Debian's ifupdown: validate each and assign it to the address families.

Salt: salt/modules/debian_ip.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from statecore.model.errors import InvocationError
from statecore.model.values import to_float, to_int
from statecore.system.hostfiles import interface_options as options
from statecore.system.hostfiles.ifupdown import COMMANDS, ETHTOOL, FAMILIES, KEYS, IfupdownInterface
from statecore.system.hostfiles.interface_options import is_address, is_mac, is_netmask

TYPES = ("eth", "bond", "bridge", "slave", "vlan", "source")

#: Required argument -> the interface type that requires it.
_REQUIRED = {"master": "slave", "slaves": "bond", "ports": "bridge"}

#: Address family -> the argument that disables it.
_SWITCHES = {"inet": "enable_ipv4", "inet6": "enable_ipv6"}

#: Options whose values are written on one line.
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

_PROTOCOLS = {
    "inet": ("bootp", "dhcp", "static", "manual", "loopback", "ppp"),
    "inet6": ("auto", "loopback", "static", "manual", "dhcp", "v4tunnel", "6to4"),
}

Check = Callable[[object], bool]


def _number(value: object) -> bool:
    return re.fullmatch(r"-?\d+", str(value)) is not None


def _decimal(value: object) -> bool:
    return re.fullmatch(r"-?\d+(\.\d+)?", str(value)) is not None


def _any(value: object) -> bool:
    return value is not None


def _within(*valid: str) -> Check:
    return lambda value: str(int(value) if isinstance(value, bool) else value) in valid


_SCOPES = ("global", "link", "host")
_WIRELESS: Mapping[str, Check] = dict.fromkeys(
    [each.replace("_", "-") for each in KEYS if each.startswith(("wireless", "wpa"))], _any
)

#: Address family -> argument, by its name in the file -> function that validates it.
_CHECKS: Mapping[str, Mapping[str, Check]] = {
    "inet": {
        "proto": _within(*_PROTOCOLS["inet"]),
        **dict.fromkeys(
            ("address", "broadcast", "gateway", "pointopoint", "server", "endpoint", "dstaddr", "local"),
            lambda value: is_address(value, 4),
        ),
        "addresses": _any,
        "netmask": lambda value: is_netmask(value) or (_number(value) and 0 <= to_int(value) <= 32),
        **dict.fromkeys(("metric", "mtu", "leasehours", "leasetime", "ttl", "unit"), _number),
        "hwaddress": is_mac,
        "scope": _within(*_SCOPES),
        **dict.fromkeys(("hostname", "vendor", "client", "bootfile", "provider", "options"), _any),
        **dict.fromkeys(("dns-nameservers", "dns-search", "vlan-raw-device"), _any),
        **_WIRELESS,
    },
    "inet6": {
        "proto": _within(*_PROTOCOLS["inet6"]),
        **dict.fromkeys(("address", "broadcast", "gateway"), lambda value: is_address(value, 6)),
        **dict.fromkeys(("endpoint", "local"), lambda value: is_address(value, 4)),
        "addresses": _any,
        "netmask": lambda value: _number(value) and 0 <= to_int(value) <= 128,
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

#: Arguments that apply to IPv4 only if they have no family prefix.
_OF_INET = ("ipaddr", "address", "addr", "ipaddrs", "addresses", "addrs", "gateway", "proto")


def build(
    iface: str, type_: str, enabled: bool, settings: Mapping[str, object], *, carrier: bool = True
) -> IfupdownInterface:
    """Return the ifupdown stanzas of the network interface that the arguments of ``network.managed`` describe. Raises
    InvocationError that names the argument.

    With ``carrier``, ``use_carrier`` is written for bonds in mode 1.
    """
    if type_ not in TYPES[:-1]:
        raise options.invalid(iface, "type", TYPES)
    for key, of in _REQUIRED.items():
        if type_ == of and not settings.get(key):
            raise InvocationError(f"{key} is a required setting for {of} interfaces")
    given = {**settings, "proto": "manual"} if type_ == "slave" else dict(settings)
    families = {family: _of_type(iface, type_, given, carrier=carrier) for family in FAMILIES}
    if given.get("enable_ipv6") and given.get("iface_type") == "vlan":
        families["inet6"]["vlan_raw_device"] = _parent(iface)
    present = set(FAMILIES) if type_ in ("slave", "vlan", "bond", "bridge") else set()
    for argument, value in given.items():
        _assign(iface, argument, value, families, present)
    for key in COMMANDS:
        if key in given:
            for stanza in families.values():
                commands = given[key]
                stanza[key] = list(map(str, commands)) if isinstance(commands, list | tuple) else [str(commands)]
    wanted = {
        family: stanza
        for family, stanza in families.items()
        if family in present and given.get(_SWITCHES[family]) is not False
    }
    return IfupdownInterface(
        enabled, bool(given.get("hotplug")), _activatable(iface, wanted, of_inet6="ipv6proto" in given)
    )


def _activatable(
    iface: str, wanted: Mapping[str, dict[str, object]], *, of_inet6: bool
) -> dict[str, dict[str, object]]:
    """Return {address family: options} without a family "inet6" that has neither an address nor a dynamic protocol.
    ``of_inet6``: the argument ipv6proto is given.

    Raise InvocationError if a family has no protocol, or if no family is left.
    """
    families = dict(wanted)
    six = families.get("inet6")
    if six is not None and not {"address", "addresses"} & set(six):
        # ``proto`` is for IPv4. A static IPv6 stanza without an address cannot be activated.
        static = six.get("proto") == "static" and not of_inet6
        if static or ("proto" not in six and "inet" in families):
            del families["inet6"]
    for family, stanza in families.items():
        if "proto" not in stanza:
            raise options.invalid(iface, "proto" if family == "inet" else "ipv6proto", _PROTOCOLS[family])
    if not families:
        raise options.invalid(iface, "proto", _PROTOCOLS["inet"])
    return families


def _assign(
    iface: str, argument: str, value: object, families: dict[str, dict[str, object]], present: set[str]
) -> None:
    name, only = argument, None
    if argument.startswith("ipv4"):
        name, only = argument[4:], "inet"
    elif argument.startswith("ipv6"):
        name, only = argument[4:], "inet6"
    elif argument in _OF_INET:
        only = "inet"
    attribute = _ARGUMENTS.get(name, name)
    knowing = [family for family in ((only,) if only else FAMILIES) if attribute in _CHECKS[family]]
    if not knowing:
        return
    present |= {only} if only else set()
    fit = [family for family in knowing if _CHECKS[family][attribute](value)]
    if not fit:
        valid = _PROTOCOLS[knowing[0]] if attribute == "proto" else (f"valid {attribute}",)
        raise options.invalid(iface, argument, valid)
    key = attribute.replace("-", "_")
    for family in fit:
        # An argument for one family takes precedence over an argument for both.
        if only or key not in families[family] or key == "vlan_raw_device":
            families[family][key] = _shaped(key, value)


def _shaped(key: str, value: object) -> object:
    if key in _JOINED:
        return " ".join(options.words(value))
    if key == "addresses":
        return options.words(value)
    return str(int(value)) if isinstance(value, bool) else str(value)


def _of_type(iface: str, type_: str, given: Mapping[str, object], *, carrier: bool) -> dict[str, object]:
    stanza: dict[str, object] = {}
    if type_ == "bridge":
        stanza["bridge"] = bridge_options(iface, given)
    elif tool := {**options.ethtool(iface, given), **options.offload(iface, given)}:
        stanza["ethtool"] = {ETHTOOL[key]: str(value) for key, value in tool.items()}
    if type_ == "bond":
        stanza["bond"] = {
            **bond_options(iface, given, carrier=carrier),
            "slaves": " ".join(options.words(given["slaves"])),
        }
    if type_ == "slave":
        stanza["master"] = str(given["master"])
    if type_ == "vlan":
        stanza["vlan_raw_device"] = _parent(iface)
    return stanza


def _parent(iface: str) -> str:
    """Return the parent of a VLAN interface, from the interface's name: ``eth0.5`` has the parent ``eth0``."""
    return re.sub(r"\.\d*", "", iface)


def bond_options(iface: str, given: Mapping[str, object], *, carrier: bool = True) -> dict[str, str]:
    """Map of a bond's options to their values, in the order of its modprobe line on Debian. Raise InvocationError for a
    missing or invalid argument.
    """
    mode = options.bond_mode(iface, given)
    bond: dict[str, object] = {"mode": mode}
    if mode in "02":
        bond["arp_ip_target"] = options.arp_targets(iface, given)
        bond["arp_interval"] = options.integer(iface, given, "arp_interval", "250")
    else:
        for key, default in (("miimon", "100"), ("downdelay", "200"), ("updelay", "0")):
            bond[key] = options.integer(iface, given, key, default)
    if mode == "4":
        rate = given.get("lacp_rate", "0")
        rate = {"fast": "1", "slow": "0"}.get(rate, rate) if isinstance(rate, str) else rate
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


def bridge_options(iface: str, given: Mapping[str, object]) -> dict[str, str]:
    """Map of a network bridge's ifupdown options to their values. Raise InvocationError for an invalid argument."""
    bridge: dict[str, object] = {"ports": " ".join(options.words(given["ports"]))}
    for key in ("ageing", "fd", "gcint", "hello", "maxage"):
        if key in given:
            bridge[key] = options.checked(iface, key, given[key], to_float, "float")
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
