"""Arguments of ``network.managed``: their names, and checks used by several formats of network files."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from statecore.model.errors import InvocationError
from statecore.model.values import to_int

TRUE = ("yes", "on", "true", "1", True)
FALSE = ("no", "off", "false", "0", False)

_MAC = re.compile(r"[0-9a-f]{2}([:-])[0-9a-f]{2}(\1[0-9a-f]{2}){4}", re.IGNORECASE)

#: All arguments of any OS family. Arguments that the current family does not use are ignored, so that one SLS fits all.
#: Salt: salt/states/network.py, salt/modules/debian_ip.py, rh_ip.py, netplan_ip.py.
_KNOWN = """
    accept_ra addr address addresses addrs ad_select advertise ageing arp_interval arp_ip_target arpcheck autoconf
    autoneg bootfile bootproto bridge bridge_ports bridgeprio broadcast bypassfirewall channels client clonenum_start
    dad-attempts dad-interval defroute delay dhcp dhcpv6c dns dns-nameservers dns-search dns_nameservers dns_search
    domain down_cmds downdelay driver-message-level dstaddr duplex enable_ipv4 enable_ipv6 endpoint ethernet-port
    ethtool fd filename forward_delay gateway gcint gro gso hashing-algorithm hello hostname hotplug hw hwaddr
    hwaddress id iface_type interfaces ipaddr ipaddr_end ipaddr_start ipaddrs ipv4_failure_fatal ipv6_autoconf
    ipv6_defroute ipv6_peerdns ipv6_peerroutes lacp_rate leasehours leasetime link local lro mac macaddr master
    max_bonds maxage maxwait media metric miimon mode mtu my_inner_ipaddr my_outer_ipaddr nameservers netmask network
    nickname nm_controlled noifupdown onboot onparent options parent pathcost peerdns peerntp peerroutes phys_dev
    pointopoint portprio ports post_down_cmds post_up_cmds pre_down_cmds pre_up_cmds preferred-lifetime prefix primary
    priority privext proto provider reorder_hdr rx scope search server sg slave slaves source speed srcaddr stp
    team_config team_master team_port_config tso ttl tx tx_queues ufo unit up_cmds updelay use_carrier userctl uuid
    vendor vlan vlan-raw-device vlan_id vlan_raw_device waitport wireless-essid wireless-mode wpa-ap-scan wpa-conf
    wpa-driver wpa-group wpa-key-mgmt wpa-pairwise wpa-proto wpa-psk wpa-roam wpa-ssid xmit_hash_policy zone
"""

#: Names of a bond's modes; the index is the mode's number.
BOND_MODES = ("balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb", "balance-alb")


def invalid(iface: str, option: str, expected: Iterable[object]) -> InvocationError:
    """Return an InvocationError with Salt's message for an invalid option of a network interface, naming the ``expected``
    values. The caller raises it.
    """
    return InvocationError(
        f"Invalid option -- Interface: {iface}, Option: {option}, Expected: [{'|'.join(str(each) for each in expected)}]"
    )


def known() -> frozenset[str]:
    """Return the names of all options of ``network.managed``, also those with the prefix ``ipv4`` or ``ipv6``."""
    return frozenset(prefix + name for name in _KNOWN.split() for prefix in ("", "ipv4", "ipv6"))


def switch(iface: str, settings: Mapping[str, object], option: str, on: str, off: str) -> str | None:
    """Return the text ``on`` or ``off`` for a boolean option of a network interface; None if the option is not given.

    Raises InvocationError for a value that is not boolean.
    """
    if option not in settings:
        return None
    value = settings[option]
    value = (
        value.lower() if isinstance(value, str) else str(value) if isinstance(value, int) and value in (0, 1) else value
    )
    if settings[option] is True or value in TRUE[:-1]:
        return on
    if settings[option] is False or value in FALSE[:-1]:
        return off
    raise invalid(iface, option, (*TRUE, *FALSE))


def integer(iface: str, settings: Mapping[str, object], option: str, default: object = None) -> object:
    """Return an integer option of a network interface as it was given; ``default`` if it is not given.

    Raises InvocationError for a value that is not a whole number.
    """
    if option not in settings:
        return default
    return checked(iface, option, settings[option], to_int, "integer")


def checked(iface: str, option: str, value: object, check: Callable[[object], object], expected: str) -> object:
    """Return the value of a network interface's option unchanged if ``check`` accepts it. Raises InvocationError that
    names the ``expected`` value.
    """
    try:
        check(value)
    except (TypeError, ValueError):
        raise invalid(iface, option, (expected,)) from None
    return value


def one_of(iface: str, option: str, value: object, valid: Sequence[str]) -> str:
    """Return the value of a network interface's option as text if it is one of ``valid``; else raise InvocationError."""
    if str(value) not in valid:
        raise invalid(iface, option, valid)
    return str(value)


def words(value: object) -> list[str]:
    """Return a list, or a text separated by blanks or commas, as a list of texts."""
    if isinstance(value, list | tuple):
        return [str(each) for each in value]
    return str(value).replace(",", " ").split()


def is_mac(value: object) -> bool:
    """Return True if the value is a MAC address."""
    return _MAC.fullmatch(str(value)) is not None


def is_address(value: object, version: int) -> bool:
    """Return True if the value is an address of this IP version, with or without prefix length."""
    try:
        return ipaddress.ip_interface(str(value)).version == version
    except ValueError:
        return False


def is_netmask(value: object) -> bool:
    """Return True if the value is a netmask in dotted form."""
    try:
        return str(ipaddress.ip_network(f"0.0.0.0/{value}").netmask) == str(value)
    except ValueError:
        return False


def bond_mode(iface: str, settings: Mapping[str, object]) -> str:
    """Return the number of a network bond's mode, as text, from its number or name.

    Raises InvocationError for an unknown mode.
    """
    numbers = [str(number) for number in range(len(BOND_MODES))]
    mode = one_of(iface, "mode", settings.get("mode"), [*numbers, *BOND_MODES])
    return mode if mode in numbers else str(BOND_MODES.index(mode))


def arp_targets(iface: str, settings: Mapping[str, object]) -> str:
    """Return the addresses that a network bond monitors by ARP as text, separated by commas.

    Raises InvocationError unless the option is a list of 1 to 16 addresses.
    """
    targets = settings.get("arp_ip_target")
    if not isinstance(targets, list) or not 1 <= len(targets) <= 16:
        raise invalid(iface, "arp_ip_target", ["list of ips (up to 16)"])
    return ",".join(str(each) for each in targets)


def ethtool(iface: str, settings: Mapping[str, object]) -> dict[str, str]:
    """Map of each given ethtool option (autoneg, duplex, speed) of a network interface to its value as text.

    Raises InvocationError for a value that the option does not allow.
    """
    found: dict[str, str] = {}
    if (autoneg := switch(iface, settings, "autoneg", "on", "off")) is not None:
        found["autoneg"] = autoneg
    if "duplex" in settings:
        found["duplex"] = one_of(iface, "duplex", settings["duplex"], ("full", "half"))
    if "speed" in settings:
        found["speed"] = one_of(iface, "speed", settings["speed"], ("10", "100", "1000", "10000"))
    return found


def offload(iface: str, settings: Mapping[str, object]) -> dict[str, str]:
    """Map of each given ethtool offload option (work done by the hardware instead of the kernel: rx, tx, tso, ...) of a network
    interface to "on" or "off".

    Raises InvocationError for a value that is not boolean.
    """
    names = ("rx", "tx", "sg", "tso", "ufo", "gso", "gro", "lro")
    chosen = {name: switch(iface, settings, name, "on", "off") for name in names}
    return {name: value for name, value in chosen.items() if value is not None}


def routes(iface: str, settings: Mapping[str, object]) -> list[Mapping[str, object]]:
    """List of the routes in the argument ``routes`` of ``network.routes``, each a map. Raises InvocationError that
    names the invalid route.
    """
    wanted = settings.get("routes")
    if not isinstance(wanted, list) or not all(isinstance(each, Mapping) for each in wanted):
        raise InvocationError(f"Invalid option -- Route interface: {iface}, Option: routes, Expected: [List of routes]")
    names = ("name", "ipaddr", "netmask", "gateway", "metric", "destination")
    for route in wanted:
        if strange := [str(key) for key in route if key not in names]:
            raise InvocationError(
                f"routes of {iface}: '{strange[0]}' is not a key of a route; there are {', '.join(names)}"
            )
        if "\n" in str(route.get("name", "")):
            raise InvocationError(f"routes of {iface}: a name is one line")
        for key in ("ipaddr", "gateway"):
            value = route.get(key)
            if value is None and (key == "gateway" or "destination" in route or "gateway" in route):
                continue
            if value != "default" and not is_address(value, 4) and not is_address(value, 6):
                raise InvocationError(f"routes of {iface}: {key} {value!r} is not an IP address")
    return [{**route, "ipaddr": route.get("ipaddr") or route.get("destination") or "default"} for route in wanted]
