"""Network interfaces in /etc/sysconfig/network-scripts: the ``ip`` execution module on hosts of the RedHat family
(Salt's rh_ip).
"""

from __future__ import annotations

from statecore.model.context import Context
from statecore.model.text_lines import lines_of
from statecore.system.hostfiles import ifcfg, network_files
from statecore.system.hostfiles import interface_options as options

VIRTUAL = "ip"

_SCRIPTS = "/etc/sysconfig/network-scripts"
_NETWORK = "/etc/sysconfig/network"

#: Kernel parameters that make a bridge's packets pass the packet filter.
_BRIDGE_FILTERS = tuple(f"net.bridge.bridge-nf-call-{each}" for each in ("ip6tables", "iptables", "arptables"))


def available(ctx: Context) -> str | None:
    """Return None on hosts of the RedHat family; else return the reason as text."""
    return None if ctx.grains.get("os_family") == "RedHat" else "the host is not of the family RedHat"


def get_interface(ctx: Context, iface: str) -> list[str]:
    """Return the lines of a network interface's file in /etc/sysconfig/network-scripts, [] if there is none.

    CLI Example:

        salt '*' ip.get_interface eth0
    """
    return _lines(network_files.text(ctx.host, f"{_SCRIPTS}/ifcfg-{iface}"))


def build_interface(ctx: Context, iface: str, iface_type: str, enabled: bool, **settings: object) -> list[str]:
    """Write the file of a network interface and return its lines. With ``test`` nothing is written. ``settings`` are
    the arguments of the state ``network.managed``.

    iface_type
        eth, bond, team, teamport, bridge, slave, vlan, alias, ipip or ib
    """
    type_ = iface_type.lower()
    hardware_address = ctx.call("network.interfaces").get(iface, {}).get("hwaddr")
    release = _release(ctx)
    cpus = int(ctx.grains.get("num_cpus") or 1)
    text = ifcfg.interface(iface, type_, enabled, settings, hwaddr=hardware_address, release=release, cpus=cpus)
    passes = options.switch(iface, settings, "bypassfirewall", "0", "1") or "0"
    if not settings.get("test") and not ctx.test:
        package = {"team": "teamd", "bridge": "bridge-utils" if release < 8 else None}.get(type_)
        if package and "pkg.version" in ctx.functions and not ctx.call("pkg.version", package):
            ctx.call("pkg.install", package)
        network_files.write(ctx.host, f"{_SCRIPTS}/ifcfg-{iface}", text)
        for name in _BRIDGE_FILTERS if type_ == "bridge" else ():
            if ctx.host.path("/proc/sys/" + name.replace(".", "/")).exists():
                ctx.call("sysctl.persist", name, int(passes))
    return _lines(text)


def get_routes(ctx: Context, iface: str) -> list[str]:
    """Return the lines of the files with a network interface's routes, first IPv4, then IPv6."""
    return [
        line
        for name in ("route", "route6")
        for line in _lines(network_files.text(ctx.host, f"{_SCRIPTS}/{name}-{iface}"))
    ]


def build_routes(ctx: Context, iface: str, **settings: object) -> list[str]:
    """Write the files with a network interface's routes and return their lines. With ``test`` nothing is written.

    routes
        list of maps with ipaddr, netmask, gateway, metric, and name (written as a comment)
    """
    texts = ifcfg.routes(iface, options.routes(iface, settings))
    if not settings.get("test") and not ctx.test:
        for name, text in zip(("route", "route6"), texts, strict=True):
            network_files.write(ctx.host, f"{_SCRIPTS}/{name}-{iface}", text)
    return [line for text in texts for line in _lines(text)]


def up(ctx: Context, iface: str, iface_type: str = "eth") -> str | None:
    """Bring a network interface up with ``ifup``. Return its output, None for a slave or teamport, which its bond or
    team brings up. Raise CommandError with ifup's error.
    """
    return None if iface_type.lower() in ("slave", "teamport") else network_files.run(ctx.host, ["ifup", iface])


def down(ctx: Context, iface: str, iface_type: str = "eth") -> str | None:
    """Take a network interface down with ``ifdown``. Return its output, None for a slave or teamport, for which nothing
    is done. Raise CommandError with ifdown's error.
    """
    return None if iface_type.lower() in ("slave", "teamport") else network_files.run(ctx.host, ["ifdown", iface])


def get_network_settings(ctx: Context) -> list[str]:
    """Return the lines of /etc/sysconfig/network."""
    return _lines(network_files.text(ctx.host, _NETWORK))


def build_network_settings(ctx: Context, **settings: object) -> list[str]:
    """Write /etc/sysconfig/network and return its lines. With ``test`` nothing is written.

    enabled, hostname, gateway, gatewaydev, nisdomain, nozeroconf, networking_ipv6, networkdelay, devtimeout
        values of the file
    retain_settings
        True: keep the values that are not given; else they are removed
    """
    text = ifcfg.system(settings, ifcfg.parse(network_files.text(ctx.host, _NETWORK)))
    if not settings.get("test") and not ctx.test:
        network_files.write(ctx.host, _NETWORK, text)
    return _lines(text)


def apply_network_settings(ctx: Context, **settings: object) -> bool:
    """Restart the host's network service, unless ``require_reboot`` is set. With ``apply_hostname``, also set the
    host's name. Return whether all succeeded.
    """
    named = True
    if settings.get("apply_hostname") in options.TRUE:
        named = bool(settings.get("hostname")) and bool(ctx.call("network.mod_hostname", settings["hostname"]))
    if settings.get("require_reboot") in options.TRUE:
        return named
    return bool(ctx.call("service.restart", "NetworkManager" if _release(ctx) >= 8 else "network")) and named


def _release(ctx: Context) -> int:
    """Return the major number of the RedHat release whose format the host's network files have."""
    given = str(ctx.grains.get("osmajorrelease") or ctx.grains.get("osrelease") or "9").partition(".")[0]
    number = int(given) if given.isdecimal() else 9
    if ctx.grains.get("os") == "Fedora":
        return 8 if number >= 28 else 7
    return 7 if ctx.grains.get("os") == "Amazon" else number


def _lines(text: str) -> list[str]:
    return lines_of(text)
