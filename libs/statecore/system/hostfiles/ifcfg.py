"""Makes the text of Red Hat's network files (ifcfg-NAME, route-NAME and /etc/sysconfig/network) from arguments.

Salt: salt/modules/rh_ip.py and its templates.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from statecore.model.errors import InvocationError
from statecore.model.text_lines import lines_of
from statecore.model.values import to_int
from statecore.system.hostfiles import interface_options as options
from statecore.system.hostfiles.interface_options import is_address, is_mac

TYPES = ("eth", "bond", "team", "alias", "bridge", "slave", "teamport", "vlan", "ipip", "ib")

#: Order of the keys in a file, as argument:KEY. ``-`` before a key: its value has no quotes. ``'``: it has single
#: quotes. ``*`` before an argument: it makes several lines.
_ORDER = (
    "nickname:NAME hwaddr:HWADDR macaddr:MACADDR uuid:UUID userctl:USERCTL master:MASTER slave:SLAVE vlan:VLAN"
    " reorder_hdr:REORDER_HDR vlan_id:VID phys_dev:PHYSDEV devtype:TYPE devicetype:DEVICETYPE team_config:'TEAM_CONFIG"
    " team_port_config:'TEAM_PORT_CONFIG team_master:TEAM_MASTER proto:BOOTPROTO onboot:ONBOOT onparent:-ONPARENT"
    " ipv4_failure_fatal:IPV4_FAILURE_FATAL ipaddr:IPADDR ipaddr_start:IPADDR_START ipaddr_end:IPADDR_END"
    " clonenum_start:CLONENUM_START netmask:NETMASK prefix:PREFIX *ipaddrs gateway:GATEWAY arpcheck:ARPCHECK"
    " ipv6init:IPV6INIT ipv6_autoconf:IPV6_AUTOCONF dhcpv6c:DHCPV6C ipv6addr:IPV6ADDR ipv6gateway:IPV6_DEFAULTGW"
    " ipv6addrs:IPV6ADDR_SECONDARIES ipv6_peerdns:IPV6_PEERDNS ipv6_defroute:IPV6_DEFROUTE ipv6_peerroutes:IPV6_PEERROUTES"
    " srcaddr:SRCADDR peerdns:PEERDNS peerroutes:PEERROUTES peerntp:PEERNTP defroute:DEFROUTE bridge:BRIDGE stp:STP delay:DELAY"
    " mtu:MTU zone:ZONE my_inner_ipaddr:-MY_INNER_IPADDR my_outer_ipaddr:-MY_OUTER_IPADDR bonding:BONDING_OPTS"
    " ethtool:ETHTOOL_OPTS domain:DOMAIN nm_controlled:NM_CONTROLLED *dns"
)

_DEVICES = {"eth": "Ethernet", "bond": "Bond", "vlan": "Vlan", "bridge": "Bridge", "ipip": "IPIP", "ib": "InfiniBand"}
_OF_IPV6 = (
    "ipv6_autoconf",
    "dhcpv6c",
    "ipv6addr",
    "ipv6gateway",
    "ipv6addrs",
    "ipv6_peerdns",
    "ipv6_defroute",
    "ipv6_peerroutes",
)
_OF_VLAN = ("reorder_hdr", "vlan_id", "phys_dev")
_SWITCHES = (
    "onparent peerdns peerroutes peerntp slave vlan defroute stp ipv6_peerdns ipv6_defroute ipv6_peerroutes ipv6_autoconf"
    " ipv4_failure_fatal dhcpv6c userctl nm_controlled"
)
_PLAIN = (
    "ipaddr master srcaddr delay gateway uuid nickname zone ipv6addr ipv6gateway"
    " ipaddr_start ipaddr_end clonenum_start macaddr"
)

_ADVERTISE = (
    "0x001 0x002 0x004 0x008 0x010 0x020 0x20000 0x8000 0x1000 0x40000 0x80000 0x200000 0x400000 0x800000 0x1000000"
    " 0x2000000 0x4000000"
)


def interface(
    iface: str,
    type_: str,
    enabled: bool,
    settings: Mapping[str, object],
    *,
    hwaddr: str | None,
    release: int,
    cpus: int,
) -> str:
    """Return the text of Red Hat's file ifcfg-NAME for a network interface. Raises InvocationError that names the
    argument.

    ``hwaddr`` is the interface's address from the kernel, or None. ``release`` is the major release of the system.
    ``cpus`` is the number of processors.
    """
    if type_ not in TYPES:
        raise options.invalid(iface, "type", TYPES)
    given = dict(settings)
    if type_ == "slave":
        given["slave"] = "yes"
    if type_ == "vlan":
        given["vlan"] = "yes"
    _require(iface, type_, given)
    values: dict[str, object] = {}
    if type_ == "slave":
        values["proto"] = "none"
    elif "proto" in given:
        values["proto"] = options.one_of(iface, "proto", given["proto"], ("none", "bootp", "dhcp"))
    if "dns" in given:
        values["dns"], values["peerdns"] = options.words(given["dns"]), "yes"
    if (mtu := options.integer(iface, given, "mtu")) is not None:
        values["mtu"] = to_int(mtu)
    if type_ != "bridge":
        values["ethtool"] = " ".join(f"{key} {value}" for key, value in _ethtool(iface, given, cpus).items())
        values["bridge"] = given.get("bridge")
    values |= _of_type(iface, type_, given, release)
    values["hwaddr"] = _hwaddr(iface, type_, given, hwaddr)
    if "prefix" in given and "netmask" in given:
        raise InvocationError(f"Interface {iface}: prefix and netmask mean the same; give one of them")
    values |= {key: given[key] for key in ("prefix", "netmask", *_PLAIN.split()) if key in given}
    if "domain" in given:
        values["domain"] = " ".join(options.words(given["domain"]))
    values |= _addresses(iface, given)
    for key in _SWITCHES.split():
        if (value := options.switch(iface, given, key, "yes", "no")) is not None:
            values[key] = value
    if options.switch(iface, given, "arpcheck", "yes", "no") == "no":
        values["arpcheck"] = "no"
    values["onboot"] = "yes" if enabled else "no"
    # USERCTL and NM_CONTROLLED are always written.
    values.setdefault("userctl", "no")
    values.setdefault("nm_controlled", "no")
    return _render(iface, values, ipv6=bool(options.switch(iface, given, "enable_ipv6", "yes", "")))


def _require(iface: str, type_: str, given: dict[str, object]) -> None:
    if type_ == "slave" and not given.get("master"):
        raise InvocationError("master is a required setting for slave interfaces")
    if type_ == "bond" and "mode" not in given:
        raise InvocationError("mode is required for bond interfaces")
    if type_ == "teamport":
        if "master" not in given and "team_master" not in given:
            raise InvocationError("master or team_master is a required setting for teamport interfaces")
        given.setdefault("team_master", given.pop("master", None))
    if type_ == "ipip":
        for key in ("my_inner_ipaddr", "my_outer_ipaddr"):
            if key not in given:
                raise options.invalid(iface, key, ["1.2.3.4"])


def _ethtool(iface: str, given: Mapping[str, object], cpus: int) -> dict[str, str]:
    found = options.ethtool(iface, given)
    if "advertise" in given:
        found["advertise"] = options.one_of(iface, "advertise", given["advertise"], _ADVERTISE.split())
    channels = given.get("channels") or {}
    if not isinstance(channels, Mapping):
        raise options.invalid(iface, "channels", ["a map of rx, tx, other, combined"])
    parts = []
    for key in ("rx", "tx", "other", "combined"):
        if key in channels:
            parts.append(
                f"{key} {options.one_of(iface, f'channels: {key}', channels[key], [*map(str, range(1, cpus + 1))])}"
            )
    if parts:
        found[f"-L {iface}"] = " ".join(parts)
    return {**found, **options.offload(iface, given)}


def _of_type(iface: str, type_: str, given: Mapping[str, object], release: int) -> dict[str, object]:
    values: dict[str, object] = {"devtype": _DEVICES.get(type_)}
    if type_ == "team":
        values["devicetype"] = "Team"
    if type_ == "teamport":
        values["devicetype"], values["team_master"] = "TeamPort", given["team_master"]
    for key in ("team_config", "team_port_config"):
        if key in given and type_ == ("team" if key == "team_config" else "teamport"):
            values[key] = json.dumps(given[key])
    if type_ == "bond":
        values["bonding"] = " ".join(f"{key}={value}" for key, value in bond_options(iface, given, release).items())
    if type_ == "vlan":
        if "reorder_hdr" in given:
            values["reorder_hdr"] = options.switch(iface, given, "reorder_hdr", "yes", "no")
        if "vlan_id" in given:
            options.integer(iface, given, "vlan_id")
            if to_int(given["vlan_id"]) <= 0:
                raise options.invalid(iface, "vlan_id", ["Positive integer"])
            values["vlan_id"] = given["vlan_id"]
        if "phys_dev" in given:
            if not given["phys_dev"]:
                raise options.invalid(iface, "phys_dev", ["Non-empty string"])
            values["phys_dev"] = given["phys_dev"]
    if type_ == "ipip":
        values |= {key: given[key] for key in ("my_inner_ipaddr", "my_outer_ipaddr")}
    return values


def _hwaddr(iface: str, type_: str, given: Mapping[str, object], kernels: str | None) -> object:
    wanted = given.get("hwaddr", "auto")
    if "hwaddr" in given and "macaddr" in given:
        raise InvocationError("Cannot pass both hwaddr and macaddr. Must use either hwaddr or macaddr")
    if wanted not in ("auto", "none") and not is_mac(wanted):
        raise options.invalid(iface, "hwaddr", ("AA:BB:CC:DD:EE:FF", "auto", "none"))
    if is_mac(wanted):
        return wanted
    virtual = type_ in ("bond", "team", "vlan", "bridge", "ipip", "slave")
    return kernels if wanted == "auto" and not virtual else None


def _addresses(iface: str, given: Mapping[str, object]) -> dict[str, object]:
    values: dict[str, object] = {}
    if "ipaddrs" in given:
        values["ipaddrs"] = addresses = options.words(given["ipaddrs"])
        if not all("/" in each and is_address(each, 4) for each in addresses):
            raise options.invalid(iface, "ipaddrs", ["list of IPv4 addresses with a prefix"])
    if "ipv6addrs" in given:
        addresses = options.words(given["ipv6addrs"])
        if not all(is_address(each, 6) for each in addresses):
            raise options.invalid(iface, "ipv6addrs", ["list of IPv6 addresses"])
        values["ipv6addrs"] = " ".join(addresses)
    return values


def bond_options(iface: str, given: Mapping[str, object], release: int) -> dict[str, object]:
    """Map of a bond's options to their values, in the order of BONDING_OPTS in Red Hat's ifcfg files. Raise
    InvocationError for a missing or invalid argument.
    """
    mode = options.bond_mode(iface, given)
    bond: dict[str, object] = {"mode": mode, **_miimon(iface, given)}
    if mode in "02":
        if "arp_interval" in given:
            bond["arp_interval"] = options.integer(iface, given, "arp_interval")
            bond["arp_ip_target"] = options.arp_targets(iface, given)
        elif "miimon" not in given:
            raise options.invalid(iface, "miimon or arp_interval", ["at least one of these is required"])
    elif "miimon" not in given:
        raise options.invalid(iface, "miimon", ["integer"])
    if mode == "4":
        rate = given.get("lacp_rate", "0")
        rate = {"fast": "1", "slow": "0"}.get(rate, rate) if isinstance(rate, str) else rate
        bond["lacp_rate"] = options.one_of(iface, "lacp_rate", rate, ("1", "0"))
        bond["ad_select"] = options.integer(iface, given, "ad_select", "0")
    if mode in "24" and "hashing-algorithm" in given:
        valid = ["layer2", "layer2+3", "layer3+4"]
        if mode == "4":
            valid += ["encap2+3", "encap3+4", *(["vlan+srcmac"] if release >= 8 else [])]
        bond["xmit_hash_policy"] = options.one_of(iface, "hashing-algorithm", given["hashing-algorithm"], valid)
    if mode in "156" and "primary" in given:
        bond["primary"] = given["primary"]
    return bond


def _miimon(iface: str, given: Mapping[str, object]) -> dict[str, object]:
    found = {
        key: to_int(options.integer(iface, given, key)) for key in ("miimon", "downdelay", "updelay") if key in given
    }
    if "miimon" not in found:
        return {**found}
    every = found["miimon"]
    if not every:
        raise options.invalid(iface, "miimon", ["nonzero integer"])
    found.setdefault("downdelay", every * 2)
    for key in ("downdelay", "updelay"):
        if found.get(key, 0) % every:
            raise options.invalid(iface, key, [f"0 or a multiple of miimon ({every})"])
    return {**found, "use_carrier": options.switch(iface, given, "use_carrier", "1", "0") or "0"}


def _render(iface: str, values: Mapping[str, object], *, ipv6: bool) -> str:
    values = {**values, "ipv6init": "yes" if ipv6 else None}
    lines = [f'DEVICE="{iface}"']
    for row in _ORDER.split():
        key, _, name = row.partition(":")
        if (key in _OF_IPV6 and not ipv6) or (key in _OF_VLAN and not values.get("vlan")):
            continue
        if key == "*ipaddrs":
            for number, each in enumerate(options.words(values.get("ipaddrs", [])), 1):
                address, _, prefix = each.partition("/")
                lines += [f'IPADDR{number}="{address}"', f'PREFIX{number}="{prefix}"']
        elif key == "*dns":
            lines += [f'DNS{number}="{each}"' for number, each in enumerate(options.words(values.get("dns", [])), 1)]
        elif values.get(key) not in (None, ""):
            sign = {"-": "", "'": "'"}.get(name[0], '"')
            lines.append(f"{name.lstrip(chr(45) + chr(39))}={sign}{values[key]}{sign}")
    return "".join(f"{line}\n" for line in lines)


def routes(iface: str, wanted: Sequence[Mapping[str, object]]) -> tuple[str, str]:
    """Return (text of Red Hat's file route-NAME, text of route6-NAME) for the routes of a network interface."""
    texts = ["", ""]
    for route in wanted:
        line = f"# {route['name']}\n" if route.get("name") else ""
        line += str(route["ipaddr"]) + (f"/{route['netmask']}" if route.get("netmask") else "")
        line += f" via {route['gateway']}" if route.get("gateway") else f" dev {iface}"
        line += f" metric {route['metric']}" if route.get("metric") else ""
        texts[is_address(route["ipaddr"], 6)] += f"{line}\n"
    return texts[0], texts[1]


_GLOBAL = (
    "networking:NETWORKING networking_ipv6:NETWORKING_IPV6 hostname:HOSTNAME gateway:GATEWAY gatewaydev:GATEWAYDEV"
    " nisdomain:NISDOMAIN networkdelay:NETWORKDELAY devtimeout:DEVTIMEOUT nozeroconf:NOZEROCONF"
)


def system(settings: Mapping[str, object], current: Mapping[str, str]) -> str:
    """Return the text of /etc/sysconfig/network for the arguments of ``network.system``. ``current`` maps its current
    keys to values. Raise InvocationError for an invalid value, or if there is no host name.
    """
    given = {key.lower(): value for key, value in settings.items()}
    before = {key.lower(): value for key, value in current.items()}
    values: dict[str, object] = dict(before) if given.get("retain_settings") else {}
    quote = ""
    if "enabled" not in given:
        given["enabled"] = enabled = before.get("networking", "")
        quote = enabled[:1] if enabled[:1] in ("'", '"') else ""
    for key, name in (("enabled", "networking"), ("nozeroconf", "nozeroconf")):
        value = given.get(key)
        if value is None:
            continue
        bare = value.strip("'\"") if isinstance(value, str) else value
        if bare not in (*options.TRUE, *options.FALSE):
            raise InvocationError(f"Invalid network setting -- Setting: {name}, Expected: [yes|no]")
        values[name] = f"{quote}{'yes' if bare in options.TRUE else 'no'}{quote}"
    hostname = str(given.get("hostname") or before.get("hostname") or "").strip("'\"")
    if not hostname:
        raise InvocationError("Invalid network setting -- Setting: hostname, Expected: [server1.example.com]")
    values["hostname"] = f"{quote}{hostname}{quote}"
    for key in ("networking_ipv6", "gateway", "gatewaydev", "nisdomain", "networkdelay", "devtimeout"):
        if key in given:
            bare = str(given[key]).strip("'\"")
            values[key] = f"{quote}{bare}{quote}"
    lines = [f"{name}={values[key]}" for key, _, name in _rows(_GLOBAL) if values.get(key)]
    if given.get("enable_ipv6"):
        lines.append('IPV6INIT="yes"')
    if given.get("ipv6gateway"):
        lines.append(f'IPV6_DEFAULTGW="{given["ipv6gateway"]}"')
    return "".join(f"{line}\n" for line in lines)


def parse(text: str) -> dict[str, str]:
    """Map of KEY to value in the text of an ifcfg file, with quotes kept."""
    lines = (line.strip() for line in lines_of(text))
    rows = (line.partition("=") for line in lines if line and line[0] not in "!#")
    return {name.rstrip().upper(): value.strip() for name, sign, value in rows if sign}


def _rows(table: str) -> Iterable[tuple[str, str, str]]:
    return (row.partition(":") for row in table.split())
