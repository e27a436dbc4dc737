"""Network interfaces in /etc/network/interfaces: the ``ip`` execution module on Debian hosts without netplan (Salt's
debian_ip).

The file consists of stanzas, which begin with words such as ``auto eth0`` or ``iface eth0 inet dhcp``. Only the stanzas
of the given interface are written. The rest of the file stays unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping

from statecore.model.context import Context
from statecore.model.errors import InvocationError
from statecore.model.text_lines import lines_of
from statecore.system.hostfiles import ifupdown, ifupdown_arguments, network_files
from statecore.system.hostfiles import interface_options as options

VIRTUAL = "ip"

_FILE = "/etc/network/interfaces"
_DIRECTORY = "/etc/network/interfaces.d"
_MODPROBE = "/etc/modprobe.d"
_ROUTES = {"add": "/etc/network/if-up.d", "del": "/etc/network/if-down.d"}
_DEFAULTS = "/etc/default/networking"
_RESOLVER = "/etc/resolv.conf"

_NETWORKING = """\
# Configuration for networking init script being run during
# the boot sequence

# Set to 'no' to skip interfaces configuration on boot
CONFIGURE_INTERFACES={}

# Don't configure these interfaces. Shell wildcards supported/
#EXCLUDE_INTERFACES=

# Set to 'yes' to enable additional verbosity
#VERBOSE=no
"""

#: Type of interface -> the package that such interfaces need.
_PACKAGES = {"vlan": "vlan", "bridge": "bridge-utils", "bond": "ifenslave"}


def available(ctx: Context) -> str | None:
    """Return None on hosts of the Debian family without netplan; else return the reason as text."""
    if ctx.grains.get("os_family") != "Debian":
        return "the host is not of the family Debian"
    if ctx.host.which("netplan") and ctx.host.path("/etc/netplan").is_dir():
        return "the host uses netplan"
    return None


def get_interface(ctx: Context, iface: str) -> list[str]:
    """Return the lines of a network interface in /etc/network/interfaces, [] if it is not configured. For the name
    ``source``, return the lines that include other files.

    CLI Example:

        salt '*' ip.get_interface eth0
    """
    if iface == "source":
        return _as_lines("".join(f"{line}\n" for line in _sources(network_files.text(ctx.host, _FILE))))
    _, found = _find(ctx, iface)
    return _as_lines(found.render(iface)) if found else []


def build_interface(ctx: Context, iface: str, iface_type: str, enabled: bool, **settings: object) -> list[str]:
    """Write the stanzas of a network interface and return their lines. With ``test`` nothing is written. ``settings``
    are the arguments of the state ``network.managed``.

    iface_type
        eth, bond, bridge, slave, vlan or source
    filename
        file to write: a path, or a name in /etc/network/interfaces.d; default: the file that has the interface, else
        /etc/network/interfaces
    """
    type_ = iface_type.lower()
    if type_ == "source":
        return _build_source(ctx, settings)
    made = ifupdown_arguments.build(iface, type_, enabled, settings, carrier=_has_carrier(ctx))
    stanzas = made.render(iface)
    if not settings.get("test") and not ctx.test:
        _install(ctx, _PACKAGES.get(type_))
        place, _ = _find(ctx, iface)
        target = str(settings.get("filename") or place or _FILE)
        target = target if target.startswith("/") else f"{_DIRECTORY}/{target}"
        if place is not None and place != target:
            # The interface must be defined in one file only.
            network_files.write(ctx.host, place, ifupdown.put(network_files.text(ctx.host, place), iface, ""))
        network_files.write(ctx.host, target, ifupdown.put(network_files.text(ctx.host, target), iface, stanzas))
    return _as_lines(stanzas)


def get_bond(ctx: Context, iface: str) -> list[str] | str:
    """Return the lines of the modprobe file of a bond (a network interface that joins several), "" if there is none."""
    return _bond(ctx, iface) or ""


def _bond(ctx: Context, iface: str) -> list[str]:
    return lines_of(network_files.text(ctx.host, f"{_MODPROBE}/{iface}.conf"), keepends=True)


def build_bond(ctx: Context, iface: str, **settings: object) -> list[str]:
    """Write the modprobe file of a bond (a network interface that joins several), and load the kernel module
    ``bonding``. Return the file's lines. With ``test`` nothing is done.

    CLI Example:

        salt '*' ip.build_bond bond0 mode=balance-alb miimon=100
    """
    bond = ifupdown_arguments.bond_options(iface, settings, carrier=_has_carrier(ctx))
    # ifupdown accepts "on"; the kernel module needs a number.
    bond |= {"use_carrier": "1"} if bond.get("use_carrier") == "on" else {}
    text = f"alias {iface} bonding\noptions {iface} " + "".join(f"{key}={value} " for key, value in bond.items())
    if not settings.get("test") and not ctx.test:
        network_files.write(ctx.host, f"{_MODPROBE}/{iface}.conf", text)
        ctx.call("kmod.load", "bonding")
        _install(ctx, _PACKAGES["bond"])
    return lines_of(text, keepends=True)


def get_routes(ctx: Context, iface: str) -> list[str] | str:
    """Return the lines of the scripts that add and delete the routes of a network interface, "" if there are none."""
    return [
        line
        for place in _ROUTES.values()
        for line in lines_of(network_files.text(ctx.host, _script(place, iface)), keepends=True)
    ] or ""


def build_routes(ctx: Context, iface: str, **settings: object) -> list[str]:
    """Write the scripts that add and delete the routes of a network interface, and return their lines. With ``test``
    nothing is written.

    routes
        list of maps with ipaddr, netmask, gateway, metric, and name (written as a comment)
    """
    wanted = options.routes(iface, settings)
    made = []
    for verb, place in _ROUTES.items():
        lines = ["#!/bin/sh", f"# {verb}", f'test "${{IFACE}}" = "{iface}" || exit 0']
        for route in wanted:
            lines += [f"# {route['name']}"] if route.get("name") else []
            to = f"{route['ipaddr']}/{route['netmask']}" if route.get("netmask") else route["ipaddr"]
            via = f"via {route['gateway']}" if route.get("gateway") else ""
            metric = f" metric {route['metric']}" if route.get("metric") else ""
            lines.append(f"ip route {verb} {to} {via} dev {iface}{metric}")
        text = "".join(f"{line}\n" for line in lines)
        made += lines_of(text, keepends=True)
        if not settings.get("test") and not ctx.test:
            network_files.write(ctx.host, _script(place, iface), text, 0o755)
    return made


def up(ctx: Context, iface: str, iface_type: str = "eth") -> str | None:
    """Bring a network interface up with ``ifup``. Return its output, None for a slave, which its bond brings up. Raise
    CommandError with ifup's error.
    """
    return None if iface_type in ("slave", "source") else network_files.run(ctx.host, ["ifup", iface])


def down(ctx: Context, iface: str, iface_type: str = "eth") -> str | None:
    """Take a network interface down with ``ifdown``. Return its output, None for a slave, for which nothing is done.
    Raise CommandError with ifdown's error.
    """
    return None if iface_type in ("slave", "source") else network_files.run(ctx.host, ["ifdown", iface])


def get_network_settings(ctx: Context) -> list[str]:
    """Return the host's network settings as lines ``key=value`` with the keys NETWORKING, HOSTNAME, DOMAIN and
    SEARCH.
    """
    return _shown(_current(ctx))


def build_network_settings(ctx: Context, **settings: object) -> list[str]:
    """Write /etc/default/networking, and domain and search of /etc/resolv.conf. Return the settings as lines
    ``key=value``.

    With ``test`` nothing is written.

    enabled
        whether interfaces are configured at boot
    hostname
        the part after the first dot becomes the domain; ``ip.apply_network_settings`` sets the name itself
    search
        search domains of the resolver
    """
    current = _current(ctx)
    wanted = dict(current)
    if "enabled" in settings:
        value = options.switch("system", settings, "enabled", "yes", "no")
        wanted["networking"] = str(value)
    elif not current["networking"]:
        raise InvocationError("Invalid network setting -- Setting: networking, Expected: [yes|no]; give 'enabled'")
    name, _, domain = str(settings.get("hostname") or current["hostname"]).partition(".")
    if not name:
        raise InvocationError("Invalid network setting -- Setting: hostname, Expected: [server1.example.com]")
    if settings.get("apply_hostname") in options.TRUE:
        wanted["hostname"] = str(settings.get("hostname") or current["hostname"])
    wanted["domain"] = domain or current["domain"]
    if "search" in settings:
        wanted["search"] = " ".join(options.words(settings["search"]))
    if not settings.get("test") and not ctx.test:
        if wanted["networking"] != current["networking"]:
            network_files.write(ctx.host, _DEFAULTS, _NETWORKING.format(wanted["networking"]))
        _write_resolver(ctx, current, wanted)
    return _shown(wanted)


def apply_network_settings(ctx: Context, **settings: object) -> bool:
    """Restart the host's networking, unless ``require_reboot`` is set. With ``apply_hostname``, also set the host's
    name. Return whether all succeeded.
    """
    named = True
    if settings.get("apply_hostname") in options.TRUE:
        named = bool(settings.get("hostname")) and bool(ctx.call("network.mod_hostname", settings["hostname"]))
    if settings.get("require_reboot") in options.TRUE:
        return named
    return bool(ctx.call("service.stop", "networking")) and bool(ctx.call("service.start", "networking")) and named


# ------------------------------------------------------------------------------------------ helpers


def _has_carrier(ctx: Context) -> bool:
    """Return whether bonds of this host get the option ``use_carrier``. On Ubuntu they have not had it since 16.04."""
    return not (ctx.grains.get("os") == "Ubuntu" and int(str(ctx.grains.get("osrelease") or "0").split(".")[0]) >= 16)


def _find(ctx: Context, iface: str) -> tuple[str | None, ifupdown.IfupdownInterface | None]:
    for file in _files(ctx):
        if (found := ifupdown.find(network_files.text(ctx.host, file), iface)) is not None:
            return file, found
    return None, None


def _files(ctx: Context) -> list[str]:
    directory = ctx.host.path(_DIRECTORY)
    names = sorted(path.name for path in directory.iterdir()) if directory.is_dir() else []
    files = [_FILE, *(f"{_DIRECTORY}/{name}" for name in names)]
    return [file for file in files if ctx.host.path(file).is_file()]


def _sources(text: str) -> list[str]:
    return [f"source {words[1]}" for line in lines_of(text) if (words := line.split())[:1] == ["source"] and words[1:]]


def _build_source(ctx: Context, settings: Mapping[str, object]) -> list[str]:
    if not settings.get("source"):
        raise InvocationError("source is a required setting for interfaces of the type source")
    text = network_files.text(ctx.host, _FILE)
    line = f"source {settings['source']}"
    there = _sources(text)
    if line not in there and not settings.get("test") and not ctx.test:
        network_files.write(ctx.host, _FILE, f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{line}\n")
    return _as_lines("".join(f"{each}\n" for each in dict.fromkeys([*there, line])))


def _script(place: str, iface: str) -> str:
    # run-parts ignores scripts with a dot in their names.
    return f"{place}/route-{iface.replace('.', '_')}"


def _current(ctx: Context) -> dict[str, str]:
    rows = [
        line.partition("=") for line in lines_of(network_files.text(ctx.host, _DEFAULTS)) if not line.startswith("#")
    ]
    networking = next((value.strip().strip("\"'") for key, _, value in rows if key == "CONFIGURE_INTERFACES"), "")
    resolver = [line.split() for line in lines_of(network_files.text(ctx.host, _RESOLVER))]
    return {
        "networking": networking,
        "hostname": network_files.text(ctx.host, "/etc/hostname").partition("\n")[0].strip(),
        "domain": next((words[1] for words in resolver if words[:1] == ["domain"] and words[1:]), ""),
        "search": next((" ".join(words[1:]) for words in resolver if words[:1] == ["search"]), ""),
    }


def _shown(settings: Mapping[str, str]) -> list[str]:
    return [f"{key.upper()}={value}\n" for key, value in settings.items() if value]


def _write_resolver(ctx: Context, current: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    text = network_files.text(ctx.host, _RESOLVER)
    lines = lines_of(text)
    for key in ("search", "domain"):
        if wanted[key] == current[key]:
            continue
        line = f"{key} {wanted[key]}"
        at = next((number for number, each in enumerate(lines) if each.split()[:1] == [key]), None)
        if at is None:
            lines.insert(0, line)
        else:
            lines[at] = line
    new = "".join(f"{line}\n" for line in lines)
    if [line.rstrip("\n") for line in lines_of(text)] != lines:
        network_files.write(ctx.host, _RESOLVER, new)


def _install(ctx: Context, package: str | None) -> None:
    # Without a package manager, the administrator has to install the package.
    if package and "pkg.version" in ctx.functions and not ctx.call("pkg.version", package):
        ctx.call("pkg.install", package)


def _as_lines(text: str) -> list[str]:
    # Salt's form, with an empty line at the end. Users see it in diffs.
    return [f"{line}\n" for line in text.split("\n")] if text else []
