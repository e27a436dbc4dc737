"""Netplan's YAML for one interface, from the arguments of ``network.managed``.

Salt: salt/modules/netplan_ip.py.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence

from statecore.model import yaml
from statecore.model.errors import InvocationError
from statecore.model.values import to_int
from statecore.system.hostfiles import interface_options as options

#: Interface type -> section of the document.
SECTIONS = {"eth": "ethernets", "bond": "bonds", "slave": "ethernets", "vlan": "vlans", "bridge": "bridges"}

#: Arguments that netplan cannot express.
_NO_WORD = ("up_cmds", "down_cmds", "pre_up_cmds", "post_up_cmds", "pre_down_cmds", "post_down_cmds", "ethtool")

_BOND = {
    "miimon": "mii-monitor-interval",
    "lacp_rate": "lacp-rate",
    "xmit_hash_policy": "transmit-hash-policy",
    "hashing-algorithm": "transmit-hash-policy",
    "downdelay": "down-delay",
    "updelay": "up-delay",
    "arp_interval": "arp-interval",
    "primary": "primary",
}

_BRIDGE = {
    "fd": "forward-delay",
    "forward_delay": "forward-delay",
    "ageing": "ageing-time",
    "maxage": "max-age",
    "hello": "hello-time",
    "priority": "priority",
    "bridgeprio": "priority",
}


def document(iface: str, type_: str, settings: Mapping[str, object], renderer: str) -> str:
    """Return the text of netplan's YAML file for one network interface. Raises InvocationError that names the argument."""
    section = SECTIONS.get(type_)
    if section is None:
        raise options.invalid(iface, "type", sorted(SECTIONS))
    if wrong := [key for key in _NO_WORD if settings.get(key)]:
        raise InvocationError(
            f"netplan does not support these network.managed options: {', '.join(sorted(wrong))}."
            " Manage them outside network.managed on netplan systems."
        )
    entry = _entry(iface, type_, settings)
    devices: dict[str, dict[str, object]] = {iface: entry}
    network: dict[str, object] = {"version": 2, "renderer": renderer, section: devices}
    ethernets = devices if section == "ethernets" else {}
    for member in _members(iface, type_, settings):
        if member != iface:
            # Netplan requires a definition for each interface that another one refers to.
            ethernets.setdefault(member, {})
            network["ethernets"] = ethernets
    return dump({"network": network})


def dump(data: object) -> str:
    """Return data as YAML text in block style with sorted keys, as netplan's files are written."""
    return yaml.dump(data, default_flow_style=False, sort_keys=True)


def section_of(iface: str, texts: Sequence[str]) -> str:
    """Return netplan's section ("ethernets", "bonds", ...) that defines an interface in the texts of netplan's files;
    "ethernets" if none does.
    """
    for network in _networks(texts):
        for name, section in network.items():
            if isinstance(section, dict) and iface in section and name in SECTIONS.values():
                return str(name)
    return SECTIONS["eth"]


def routes_document(iface: str, section: str, wanted: Sequence[Mapping[str, object]]) -> str:
    """Return the text of a netplan file with only an interface's routes. Netplan merges it with the other files."""
    return dump({"network": {"version": 2, section: {iface: {"routes": routes(wanted)}}}})


def routes(wanted: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    """Return the routes of ``network.routes`` in netplan's form. Raises InvocationError."""
    made: list[dict[str, object]] = []
    for route in wanted:
        to = str(route["ipaddr"])
        to = "default" if to in ("default", "0.0.0.0", "::") else _cidr(to, route.get("netmask"))
        made.append(
            {
                "to": to,
                **({"via": str(route["gateway"])} if route.get("gateway") else {}),
                **({"metric": to_int(route["metric"])} if route.get("metric") else {}),
            }
        )
    return made


def renderer_of(texts: Sequence[str]) -> str:
    """Return the first network renderer that the texts of netplan's files name; "networkd" if none does."""
    return next((str(network["renderer"]) for network in _networks(texts) if network.get("renderer")), "networkd")


def _networks(texts: Sequence[str]) -> Iterator[dict[str, object]]:
    for text in texts:
        try:
            data = yaml.load(text)
        except yaml.YamlFault:
            # Netplan cannot read an invalid file either, so it is ignored.
            continue
        network = data.get("network") if isinstance(data, dict) else None
        if isinstance(network, dict):
            yield network


def _entry(iface: str, type_: str, settings: Mapping[str, object]) -> dict[str, object]:
    proto = str(settings.get("proto", "static")).lower()
    entry: dict[str, object] = {"dhcp4": proto in ("dhcp", "dhcp4")}
    if str(settings.get("ipv6proto", "")).lower() in ("dhcp", "dhcp6"):
        entry["dhcp6"] = True
    addresses = []
    if settings.get("ipaddr"):
        addresses.append(_cidr(settings["ipaddr"], settings.get("netmask") or settings.get("prefix")))
    addresses += [_cidr(each, settings.get("netmask")) for each in _listed(settings, "ipaddrs", "addresses")]
    for key in ("ipv6ipaddr", "ipv6addr"):
        if settings.get(key):
            addresses.append(_cidr(settings[key], settings.get("ipv6netmask")))
    addresses += [_cidr(each, settings.get("ipv6netmask")) for each in _listed(settings, "ipv6addrs", "ipv6ipaddrs")]
    if addresses:
        entry["addresses"] = addresses
    if gateways := [str(settings[key]) for key in ("gateway", "ipv6gateway") if settings.get(key)]:
        entry["routes"] = [{"to": "default", "via": each} for each in gateways]
    servers, search = _listed(settings, "dns", "nameservers"), _listed(settings, "search", "domain")
    if servers or search:
        entry["nameservers"] = {**({"addresses": servers} if servers else {}), **({"search": search} if search else {})}
    if "mtu" in settings:
        entry["mtu"] = to_int(options.integer(iface, settings, "mtu"))
    if settings.get("hwaddr") not in (None, "auto", "none"):
        if not options.is_mac(settings["hwaddr"]):
            raise options.invalid(iface, "hwaddr", ["valid MAC address"])
        entry["macaddress"] = str(settings["hwaddr"])
    return entry | _of_type(iface, type_, settings)


def _of_type(iface: str, type_: str, settings: Mapping[str, object]) -> dict[str, object]:
    if type_ == "vlan":
        number, link = _vlan(iface, settings)
        if number is None or not link:
            raise options.invalid(iface, "vlan_id" if number is None else "vlan-raw-device", ["number", "interface"])
        return {"id": number, "link": link}
    if type_ not in ("bond", "bridge"):
        return {}
    found: dict[str, object] = {}
    if members := _members(iface, type_, settings):
        found["interfaces"] = members
    table = _BOND if type_ == "bond" else _BRIDGE
    parameters = {name: settings[key] for key, name in table.items() if settings.get(key) is not None}
    if type_ == "bond" and "mode" in settings:
        parameters["mode"] = options.BOND_MODES[int(options.bond_mode(iface, settings))]
    if type_ == "bond" and isinstance(settings.get("arp_ip_target"), list):
        parameters["arp-ip-targets"] = options.arp_targets(iface, settings).split(",")
    if type_ == "bridge" and (stp := options.switch(iface, settings, "stp", "yes", "")) is not None:
        parameters["stp"] = bool(stp)
    return found | ({"parameters": parameters} if parameters else {})


def _members(iface: str, type_: str, settings: Mapping[str, object]) -> list[str]:
    if type_ == "bond":
        return _listed(settings, "slaves", "interfaces")
    if type_ == "bridge":
        return _listed(settings, "ports", "bridge_ports", "interfaces")
    link = _vlan(iface, settings)[1] if type_ == "vlan" else None
    return [link] if link else []


def _vlan(iface: str, settings: Mapping[str, object]) -> tuple[int | None, str | None]:
    """Return (VLAN id, parent interface) of a VLAN interface for netplan. Missing values are taken from a name such as
    ``eth0.5``.
    """
    base, dot, tag = iface.rpartition(".")
    names = ("vlan-raw-device", "vlan_raw_device", "phys_dev", "parent", "link")
    link = next((str(settings[key]) for key in names if settings.get(key)), base if dot else None)
    number = settings.get("vlan_id") or settings.get("id") or (tag if dot else None)
    return (int(str(number)) if str(number).isdecimal() else None), link


def _listed(settings: Mapping[str, object], *names: str) -> list[str]:
    return next((options.words(settings[name]) for name in names if settings.get(name)), [])


def _cidr(address: object, netmask: object) -> str:
    text = str(address)
    if netmask is None and "/" not in text:
        raise InvocationError(f"{text} has no prefix: write it with one, or give a netmask")
    try:
        whole = text if "/" in text else f"{text}/{netmask}"
        ipaddress.ip_interface(whole)
        return text if "/" in text else ipaddress.ip_interface(whole).with_prefixlen
    except ValueError as error:
        raise InvocationError(f"Invalid address/netmask {text}/{netmask}: {error}") from error
