"""Zones and services of firewalld: Salt's ``firewalld`` execution module.

Functions change the stored configuration; ``firewalld.reload_rules`` makes it active. With ``permanent=False`` they change
the active configuration only. They return the output of firewall-cmd, which is "success" after a change, and raise
CommandError with its message.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.text_lines import lines_of

log = logging.getLogger(__name__)

_PROGRAM = "firewall-cmd"


def available(ctx: Context) -> str | None:
    """Return None if the host has firewall-cmd; else return the reason as text."""
    return None if ctx.host.which(_PROGRAM) else "the host has no firewall-cmd: install its package firewalld"


def version(ctx: Context) -> str:
    """Return the version of firewalld as text.

    CLI Example:

        salt '*' firewalld.version
    """
    return _run(ctx, "--version")


def reload_rules(ctx: Context) -> str:
    """Make the stored configuration of firewalld the active one. Return firewall-cmd's output, "success".

    CLI Example:

        salt '*' firewalld.reload_rules
    """
    return _run(ctx, "--reload")


def make_permanent(ctx: Context) -> str:
    """Store the active configuration of firewalld, so that it is used after a restart. Return firewall-cmd's output,
    "success".

    CLI Example:

        salt '*' firewalld.make_permanent
    """
    return _run(ctx, "--runtime-to-permanent")


# --------------------------------------------------------------------------------------------------------------- zones


def default_zone(ctx: Context) -> str:
    """Return the name of firewalld's default zone: the zone of interfaces and connections that no other zone names.

    CLI Example:

        salt '*' firewalld.default_zone
    """
    return _run(ctx, "--get-default-zone")


def set_default_zone(ctx: Context, zone: str) -> str:
    """Set firewalld's default zone: the zone of interfaces and connections that no other zone names. Return
    firewall-cmd's output, "success".

    CLI Example:

        salt '*' firewalld.set_default_zone damian
    """
    return _run(ctx, f"--set-default-zone={zone}")


def list_zones(ctx: Context, permanent: bool = True) -> dict[str, dict[str, list[str]]]:
    """Return all zones of firewalld: a map of zone to a map of setting (services, ports, interfaces ...) to a list
    of values.

    CLI Example:

        salt '*' firewalld.list_zones
    """
    return parse_zones(_run(ctx, "--list-all-zones", permanent=permanent))


def get_zones(ctx: Context, permanent: bool = True) -> list[str]:
    """Return the names of all zones of firewalld.

    CLI Example:

        salt '*' firewalld.get_zones
    """
    return _run(ctx, "--get-zones", permanent=permanent).split()


def list_all(ctx: Context, zone: str | None = None, permanent: bool = True) -> dict[str, dict[str, list[str]]]:
    """Return the settings of one zone of firewalld in the form of ``firewalld.list_zones``: {zone: {setting:
    values}}. Without ``zone``, the default zone is meant.

    CLI Example:

        salt '*' firewalld.list_all my_zone
    """
    return parse_zones(_zone(ctx, zone, "--list-all", permanent=permanent))


def new_zone(ctx: Context, zone: str, restart: bool = True) -> str:
    """Add a zone to the stored configuration of firewalld. Return firewall-cmd's output, "success"; raise
    CommandError with its message, such as that the zone exists.

    restart
        False: do not reload firewalld, so that the zone is not active yet

    CLI Example:

        salt '*' firewalld.new_zone my_zone
    """
    return _define(ctx, f"--new-zone={zone}", restart=restart)


def delete_zone(ctx: Context, zone: str, restart: bool = True) -> str:
    """Delete a zone from the stored configuration of firewalld. Return firewall-cmd's output, "success"; raise
    CommandError with its message. ``restart`` as in ``firewalld.new_zone``.

    CLI Example:

        salt '*' firewalld.delete_zone my_zone
    """
    return _define(ctx, f"--delete-zone={zone}", restart=restart)


# ------------------------------------------------------------------------------------------------------------ services


def get_services(ctx: Context, permanent: bool = True) -> list[str]:
    """Return the names of all services that firewalld knows.

    CLI Example:

        salt '*' firewalld.get_services
    """
    return _run(ctx, "--get-services", permanent=permanent).split()


def new_service(ctx: Context, name: str, restart: bool = True) -> str:
    """Add a service to the stored configuration of firewalld. Return firewall-cmd's output, "success"; raise
    CommandError with its message, such as that the service exists. ``restart`` as in ``firewalld.new_zone``.

    CLI Example:

        salt '*' firewalld.new_service my_service
    """
    return _define(ctx, f"--new-service={name}", restart=restart)


def delete_service(ctx: Context, name: str, restart: bool = True) -> str:
    """Delete a service from the stored configuration of firewalld. Return firewall-cmd's output, "success"; raise
    CommandError with its message. ``restart`` as in ``firewalld.new_zone``.

    CLI Example:

        salt '*' firewalld.delete_service my_service
    """
    return _define(ctx, f"--delete-service={name}", restart=restart)


def list_services(ctx: Context, zone: str | None = None, permanent: bool = True) -> list[str]:
    """Return the names of the services that a zone of firewalld lets in; without ``zone`` those of the default zone.

    CLI Example:

        salt '*' firewalld.list_services my_zone
    """
    return _zone(ctx, zone, "--list-services", permanent=permanent).split()


def add_service(ctx: Context, service: str, zone: str | None = None, permanent: bool = True) -> str:
    """Let a service into a zone of firewalld (without ``zone``: the default zone). Return firewall-cmd's output,
    "success".

    CLI Example:

        salt '*' firewalld.add_service ssh my_zone
    """
    return _zone(ctx, zone, f"--add-service={service}", permanent=permanent)


def remove_service(ctx: Context, service: str, zone: str | None = None, permanent: bool = True) -> str:
    """Let a service into a zone of firewalld no more (without ``zone``: the default zone). Return firewall-cmd's
    output, "success".

    CLI Example:

        salt '*' firewalld.remove_service ssh my_zone
    """
    return _zone(ctx, zone, f"--remove-service={service}", permanent=permanent)


def add_service_port(ctx: Context, service: str, port: str) -> str:
    """Add a port, such as 80/tcp, to a service of firewalld. Return firewall-cmd's output, "success". Raise
    CommandError for an unknown service.

    CLI Example:

        salt '*' firewalld.add_service_port my_service 80/tcp
    """
    _existing(ctx, service)
    return _service(ctx, service, f"--add-port={port}")


def remove_service_port(ctx: Context, service: str, port: str) -> str:
    """Remove a port, such as 80/tcp, from a service of firewalld. Return firewall-cmd's output, "success". Raise
    CommandError for an unknown service.

    CLI Example:

        salt '*' firewalld.remove_service_port my_service 80/tcp
    """
    _existing(ctx, service)
    return _service(ctx, service, f"--remove-port={port}")


def get_service_ports(ctx: Context, service: str) -> list[str]:
    """Return the ports of a service of firewalld, such as ["80/tcp"].

    CLI Example:

        salt '*' firewalld.get_service_ports my_service
    """
    return _service(ctx, service, "--get-ports").split()


def add_service_protocol(ctx: Context, service: str, protocol: str) -> str:
    """Add a protocol, such as esp, to a service of firewalld. Return firewall-cmd's output, "success".

    CLI Example:

        salt '*' firewalld.add_service_protocol my_service ssh
    """
    return _service(ctx, service, f"--add-protocol={protocol}")


def remove_service_protocol(ctx: Context, service: str, protocol: str) -> str:
    """Remove a protocol, such as esp, from a service of firewalld. Return firewall-cmd's output, "success".

    CLI Example:

        salt '*' firewalld.remove_service_protocol my_service ssh
    """
    return _service(ctx, service, f"--remove-protocol={protocol}")


def get_service_protocols(ctx: Context, service: str) -> list[str]:
    """Return the protocols of a service of firewalld, such as ["esp"].

    CLI Example:

        salt '*' firewalld.get_service_protocols my_service
    """
    return _service(ctx, service, "--get-protocols").split()


# -------------------------------------------------------------------------------------------- masquerading, ports, ICMP


def get_masquerade(ctx: Context, zone: str | None = None, permanent: bool = True) -> bool:
    """Return whether a zone of firewalld masquerades; without ``zone`` the default zone.

    CLI Example:

        salt '*' firewalld.get_masquerade zone
    """
    return "no" not in [settings["masquerade"][0] for settings in list_all(ctx, zone, permanent).values()]


def add_masquerade(ctx: Context, zone: str | None = None, permanent: bool = True) -> str:
    """Let a zone of firewalld masquerade (without ``zone``: the default zone). Return firewall-cmd's output,
    "success".

    CLI Example:

        salt '*' firewalld.add_masquerade dmz
    """
    return _zone(ctx, zone, "--add-masquerade", permanent=permanent)


def remove_masquerade(ctx: Context, zone: str | None = None, permanent: bool = True) -> str:
    """Let a zone of firewalld masquerade no more (without ``zone``: the default zone). Return firewall-cmd's output,
    "success".

    CLI Example:

        salt '*' firewalld.remove_masquerade dmz
    """
    return _zone(ctx, zone, "--remove-masquerade", permanent=permanent)


def list_ports(ctx: Context, zone: str, permanent: bool = True) -> list[str]:
    """Return the ports that a zone of firewalld lets in, such as ["443/tcp"].

    CLI Example:

        salt '*' firewalld.list_ports internal
    """
    return _zone(ctx, zone, "--list-ports", permanent=permanent).split()


def add_port(ctx: Context, zone: str, port: str, permanent: bool = True, force_masquerade: bool = False) -> str:
    """Let a port, such as 443/tcp, into a zone of firewalld. Return firewall-cmd's output, "success".

    force_masquerade
        True: also let the zone masquerade

    CLI Example:

        salt '*' firewalld.add_port internal 443/tcp
    """
    if force_masquerade and not get_masquerade(ctx, zone):
        add_masquerade(ctx, zone)
    return _zone(ctx, zone, f"--add-port={port}", permanent=permanent)


def remove_port(ctx: Context, zone: str, port: str, permanent: bool = True) -> str:
    """Let a port, such as 443/tcp, into a zone of firewalld no more. Return firewall-cmd's output, "success".

    CLI Example:

        salt '*' firewalld.remove_port internal 443/tcp
    """
    return _zone(ctx, zone, f"--remove-port={port}", permanent=permanent)


def list_port_fwd(ctx: Context, zone: str, permanent: bool = True) -> list[dict[str, str]]:
    """Return the forwarded ports of a zone of firewalld: a list of maps with "Source port", "Protocol", "Destination
    port" and "Destination address".

    CLI Example:

        salt '*' firewalld.list_port_fwd public
    """
    return [parse_forward(line) for line in lines_of(_zone(ctx, zone, "--list-forward-ports", permanent=permanent))]


def add_port_fwd(
    ctx: Context,
    zone: str,
    src: str | int,
    dest: str | int,
    proto: str = "tcp",
    dstaddr: str = "",
    permanent: bool = True,
    force_masquerade: bool = False,
) -> str:
    """Forward the port ``src`` of a zone of firewalld to the port ``dest``, or with ``dstaddr`` to that port of
    another host. Return firewall-cmd's output, "success".

    force_masquerade
        True: also let the zone masquerade, which forwarding to another host needs

    CLI Example:

        salt '*' firewalld.add_port_fwd public 80 443 tcp
    """
    if force_masquerade and not get_masquerade(ctx, zone):
        add_masquerade(ctx, zone)
    return _zone(ctx, zone, f"--add-forward-port={_forward(src, dest, proto, dstaddr)}", permanent=permanent)


def remove_port_fwd(
    ctx: Context,
    zone: str,
    src: str | int,
    dest: str | int,
    proto: str = "tcp",
    dstaddr: str = "",
    permanent: bool = True,
) -> str:
    """Remove the forwarding of a port from a zone of firewalld. Return firewall-cmd's output, "success". The
    arguments are those of ``firewalld.add_port_fwd``.

    CLI Example:

        salt '*' firewalld.remove_port_fwd public 80 443 tcp
    """
    return _zone(ctx, zone, f"--remove-forward-port={_forward(src, dest, proto, dstaddr)}", permanent=permanent)


def get_icmp_types(ctx: Context, permanent: bool = True) -> list[str]:
    """Return the names of the types of ICMP messages that firewalld knows.

    CLI Example:

        salt '*' firewalld.get_icmp_types
    """
    return _run(ctx, "--get-icmptypes", permanent=permanent).split()


def list_icmp_block(ctx: Context, zone: str, permanent: bool = True) -> list[str]:
    """Return the names of the types of ICMP messages that a zone of firewalld blocks.

    CLI Example:

        salt '*' firewalld.list_icmp_block zone
    """
    return _zone(ctx, zone, "--list-icmp-blocks", permanent=permanent).split()


def block_icmp(ctx: Context, zone: str, icmp: str, permanent: bool = True) -> str | bool:
    """Block a type of ICMP messages in a zone of firewalld. Return firewall-cmd's output, "success"; False if
    firewalld does not know the type.

    CLI Example:

        salt '*' firewalld.block_icmp zone echo-reply
    """
    if icmp not in get_icmp_types(ctx, permanent):
        log.error("firewalld knows no ICMP type %s", icmp)
        return False
    if icmp in list_icmp_block(ctx, zone, permanent):
        return "success"
    return _zone(ctx, zone, f"--add-icmp-block={icmp}", permanent=permanent)


def allow_icmp(ctx: Context, zone: str, icmp: str, permanent: bool = True) -> str | bool:
    """Block a type of ICMP messages in a zone of firewalld no more. Return firewall-cmd's output, "success"; False
    if firewalld does not know the type.

    CLI Example:

        salt '*' firewalld.allow_icmp zone echo-reply
    """
    if icmp not in get_icmp_types(ctx, permanent):
        log.error("firewalld knows no ICMP type %s", icmp)
        return False
    if icmp not in list_icmp_block(ctx, zone, permanent):
        return "success"
    return _zone(ctx, zone, f"--remove-icmp-block={icmp}", permanent=permanent)


# --------------------------------------------------------------------------------------- interfaces, sources, rich rules


def get_interfaces(ctx: Context, zone: str, permanent: bool = True) -> list[str]:
    """Return the names of the network interfaces in a zone of firewalld.

    CLI Example:

        salt '*' firewalld.get_interfaces zone
    """
    return _zone(ctx, zone, "--list-interfaces", permanent=permanent).split()


def add_interface(ctx: Context, zone: str, interface: str, permanent: bool = True) -> str:
    """Put a network interface into a zone of firewalld. Return firewall-cmd's output, "success".

    CLI Example:

        salt '*' firewalld.add_interface zone eth0
    """
    if interface in get_interfaces(ctx, zone, permanent):
        log.info("the interface %s is already in the zone %s", interface, zone)
    return _zone(ctx, zone, f"--add-interface={interface}", permanent=permanent)


def remove_interface(ctx: Context, zone: str, interface: str, permanent: bool = True) -> str:
    """Take a network interface out of a zone of firewalld. Return firewall-cmd's output, "success".

    CLI Example:

        salt '*' firewalld.remove_interface zone eth0
    """
    if interface not in get_interfaces(ctx, zone, permanent):
        log.info("the interface %s is not in the zone %s", interface, zone)
    return _zone(ctx, zone, f"--remove-interface={interface}", permanent=permanent)


def get_sources(ctx: Context, zone: str, permanent: bool = True) -> list[str]:
    """Return the source addresses of a zone of firewalld, as texts.

    CLI Example:

        salt '*' firewalld.get_sources zone
    """
    return _zone(ctx, zone, "--list-sources", permanent=permanent).split()


def add_source(ctx: Context, zone: str, source: str, permanent: bool = True) -> str:
    """Put a source address, such as 192.168.1.0/24, into a zone of firewalld. Return firewall-cmd's output,
    "success".

    CLI Example:

        salt '*' firewalld.add_source zone 192.168.1.0/24
    """
    if source in get_sources(ctx, zone, permanent):
        log.info("the source %s is already in the zone %s", source, zone)
    return _zone(ctx, zone, f"--add-source={source}", permanent=permanent)


def remove_source(ctx: Context, zone: str, source: str, permanent: bool = True) -> str:
    """Take a source address, such as 192.168.1.0/24, out of a zone of firewalld. Return firewall-cmd's output,
    "success".

    CLI Example:

        salt '*' firewalld.remove_source zone 192.168.1.0/24
    """
    if source not in get_sources(ctx, zone, permanent):
        log.info("the source %s is not in the zone %s", source, zone)
    return _zone(ctx, zone, f"--remove-source={source}", permanent=permanent)


def get_rich_rules(ctx: Context, zone: str, permanent: bool = True) -> list[str]:
    """Return the rich rules of a zone of firewalld, each as a line of text.

    CLI Example:

        salt '*' firewalld.get_rich_rules zone
    """
    return lines_of(_zone(ctx, zone, "--list-rich-rules", permanent=permanent))


def add_rich_rule(ctx: Context, zone: str, rule: str, permanent: bool = True) -> str:
    """Add a rich rule (text in firewalld's rule language) to a zone of firewalld. Return firewall-cmd's output,
    "success".

    CLI Example:

        salt '*' firewalld.add_rich_rule zone 'rule service name="http" accept'
    """
    return _zone(ctx, zone, f"--add-rich-rule={rule}", permanent=permanent)


def remove_rich_rule(ctx: Context, zone: str, rule: str, permanent: bool = True) -> str:
    """Remove a rich rule (text in firewalld's rule language) from a zone. Return firewall-cmd's output, "success".

    CLI Example:

        salt '*' firewalld.remove_rich_rule zone 'rule service name="http" accept'
    """
    return _zone(ctx, zone, f"--remove-rich-rule={rule}", permanent=permanent)


# -------------------------------------------------------------------------------------------------------------- parsers


def parse_zones(text: str) -> dict[str, dict[str, list[str]]]:
    """Return the output of ``firewall-cmd --list-all`` as a map of zone to a map of setting to a list of values.

    A zone's line has no indentation. A line that begins with a tab is one more value of the setting before it.
    """
    zones: dict[str, dict[str, list[str]]] = {}
    settings: dict[str, list[str]] = {}
    values: list[str] = []
    for line in lines_of(text):
        if not line.strip():
            continue
        if not line[0].isspace():
            settings = zones.setdefault(line.rstrip(), {})
        elif line.startswith("\t"):
            values.append(line.strip())
        else:
            name, _, value = line.partition(":")
            values = settings[name.strip()] = [value.strip()]
    return zones


def parse_forward(text: str) -> dict[str, str]:
    """Return a line of ``firewall-cmd --list-forward-ports`` as a map with "Source port", "Protocol", "Destination
    port" and "Destination address" (which may be an IPv6 address).
    """
    fields: Mapping[str, str] = {
        key: value for key, _, value in (part.partition("=") for part in text.strip().split(":", 3))
    }
    return {
        "Source port": fields.get("port", ""),
        "Protocol": fields.get("proto", ""),
        "Destination port": fields.get("toport", ""),
        "Destination address": fields.get("toaddr", ""),
    }


def _forward(src: object, dest: object, proto: str, dstaddr: str) -> str:
    return f"port={src}:proto={proto}:toport={dest}:toaddr={dstaddr}"


def _existing(ctx: Context, service: str) -> None:
    if service not in get_services(ctx):
        raise CommandError("The service does not exist.")


def _define(ctx: Context, option: str, *, restart: bool) -> str:
    said = _run(ctx, option, permanent=True)
    return reload_rules(ctx) if restart and said == "success" else said


def _service(ctx: Context, service: str, option: str) -> str:
    return _run(ctx, "--permanent", f"--service={service}", option)


def _zone(ctx: Context, zone: str | None, option: str, *, permanent: bool) -> str:
    return _run(ctx, *([f"--zone={zone}"] if zone else []), option, permanent=permanent)


def _run(ctx: Context, *options: str, permanent: bool = False) -> str:
    words = [ctx.host.which(_PROGRAM) or _PROGRAM, *options, *(["--permanent"] if permanent else [])]
    done = ctx.host.run(words)
    if done.retcode:
        message = done.stderr.strip() or done.stdout.strip() or f"exit code {done.retcode}"
        raise CommandError(f"firewall-cmd failed: {message}")
    return done.stdout.rstrip("\n")
