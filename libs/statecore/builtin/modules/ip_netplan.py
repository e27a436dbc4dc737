"""Network interfaces in netplan's YAML files: the ``ip`` execution module on Debian hosts with netplan (Salt's
netplan_ip).

Each interface has its own file ``90-salt-NAME.yaml``, which overrides the installer's file. Its routes have another
file.
"""

from __future__ import annotations

from statecore.model.context import Context
from statecore.model.text_lines import lines_of
from statecore.system.hostfiles import interface_options as options
from statecore.system.hostfiles import netplan, network_files

VIRTUAL = "ip"

_DIRECTORY = "/etc/netplan"

#: Mode of the files. Netplan warns about files that others can read, because they may contain passwords.
_MODE = 0o600


def available(ctx: Context) -> str | None:
    """Return None on hosts of the Debian family with netplan; else return the reason as text."""
    if ctx.grains.get("os_family") != "Debian":
        return "the host is not of the family Debian"
    return None if _netplan_active(ctx) else "the host has no netplan, or no /etc/netplan"


def _netplan_active(ctx: Context) -> bool:
    """Return whether the host uses netplan: it has the program ``netplan`` and the directory /etc/netplan."""
    return ctx.host.which("netplan") is not None and ctx.host.path(_DIRECTORY).is_dir()


def get_interface(ctx: Context, iface: str) -> list[str]:
    """Return the lines of a network interface's netplan file, [] if there is none.

    CLI Example:

        salt '*' ip.get_interface eth0
    """
    return lines_of(network_files.text(ctx.host, _file(iface)), keepends=True)


def build_interface(ctx: Context, iface: str, iface_type: str, enabled: bool, **settings: object) -> list[str]:
    """Write the netplan file of a network interface and return its lines. With ``test`` nothing is written.
    ``settings`` are the arguments of the state ``network.managed``.

    iface_type
        eth, bond, bridge, slave or vlan
    enabled
        accepted, without effect: netplan brings up every configured interface
    """
    text = netplan.document(iface, iface_type.lower(), settings, netplan.renderer_of(_texts(ctx)))
    if not settings.get("test") and not ctx.test:
        network_files.write(ctx.host, _file(iface), text, _MODE)
    return lines_of(text, keepends=True)


def get_routes(ctx: Context, iface: str) -> list[str]:
    """Return the lines of the netplan file with a network interface's routes."""
    return lines_of(network_files.text(ctx.host, _file(f"{iface}-routes")), keepends=True)


def build_routes(ctx: Context, iface: str, **settings: object) -> list[str]:
    """Write the netplan file with a network interface's routes and return its lines. With ``test`` nothing is
    written.

    routes
        list of maps with ipaddr, netmask, gateway and metric
    """
    text = netplan.routes_document(iface, netplan.section_of(iface, _texts(ctx)), options.routes(iface, settings))
    if not settings.get("test") and not ctx.test:
        network_files.write(ctx.host, _file(f"{iface}-routes"), text, _MODE)
    return lines_of(text, keepends=True)


def up(ctx: Context, iface: str, iface_type: str = "eth") -> bool:
    """Run ``netplan apply``, which brings all configured network interfaces up. Return True. Raise CommandError with
    netplan's error.
    """
    return apply_network_settings(ctx)


def down(ctx: Context, iface: str, iface_type: str = "eth") -> str:
    """Take a network interface down until netplan brings it up again. Return the program's output. Raise CommandError
    if it fails.
    """
    return network_files.run(ctx.host, ["ip", "link", "set", "dev", iface, "down"])


def get_network_settings(ctx: Context) -> list[str]:
    """Return []: netplan has no settings of the whole host, only settings of interfaces."""
    return []


def build_network_settings(ctx: Context, **settings: object) -> list[str]:
    """Return [] and write nothing: netplan has no settings of the whole host, only settings of interfaces."""
    return []


def apply_network_settings(ctx: Context, **settings: object) -> bool:
    """Check all netplan files, then apply them. Return True. Raise CommandError with netplan's error."""
    network_files.run(ctx.host, ["netplan", "generate"])
    network_files.run(ctx.host, ["netplan", "apply"])
    return True


def _file(name: str) -> str:
    return f"{_DIRECTORY}/90-salt-{name}.yaml"


def _texts(ctx: Context) -> list[str]:
    found = sorted(path.name for path in ctx.host.path(_DIRECTORY).iterdir())
    return [network_files.text(ctx.host, f"{_DIRECTORY}/{name}") for name in found if name.endswith((".yaml", ".yml"))]
