"""Kernel parameters of the managed host, in the kernel and in a configuration file: Salt's ``sysctl`` execution
module.
"""

from __future__ import annotations

import re
from typing import Literal

from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.text_lines import lines_of

_HEAD = "#\n# Kernel sysctl configuration\n#\n"


def default_config(ctx: Context) -> str:
    """Return the path of the configuration file in which the host stores kernel parameters."""
    booted = ctx.host.path("/run/systemd/system").is_dir()
    return "/etc/sysctl.d/99-salt.conf" if booted else "/etc/sysctl.conf"


def show(ctx: Context, config_file: str | Literal[False] | None = False) -> object:
    """Return a map of kernel parameter to its value in the kernel. With ``config_file``, return the values of this
    file; [] if the file does not exist.

    CLI Example:

        salt '*' sysctl.show
    """
    if not config_file:
        rows = (line.partition(" = ") for line in lines_of(ctx.host.run(["sysctl", "-a"]).stdout))
        return {name: value for name, sign, value in rows if sign}
    data = managed_file.read(ctx.host.path(config_file), config_file)
    if data is None:
        return []
    lines = (line.strip() for line in lines_of(data.decode("utf-8", "replace")))
    pairs = (line.partition("=") for line in lines if "=" in line and not line.startswith("#"))
    return {name.rstrip(): value.lstrip() for name, _, value in pairs}


def get(ctx: Context, name: str) -> str:
    """Return the kernel's value of a kernel parameter, "" for an unknown parameter.

    CLI Example:

        salt '*' sysctl.get net.ipv4.ip_forward
    """
    result = ctx.host.run(["sysctl", "-n", name])
    return result.stdout.rstrip("\n") if result.retcode == 0 else ""


def assign(ctx: Context, name: str, value: object) -> dict[str, str]:
    """Set the kernel's value of a kernel parameter. Return {name: value}. Raise CommandError for an unknown parameter,
    or with sysctl's message.
    """
    _known(ctx, name)
    result = ctx.host.run(["sysctl", "-w", f"{name}={value}"])
    confirmed = re.fullmatch(rf"{re.escape(name)}\s+=\s+{re.escape(str(value))}\n?", result.stdout)
    if confirmed is None or "Invalid argument" in result.stderr:
        raise CommandError(f"sysctl -w failed: {(result.stderr if result.retcode else result.stdout).strip()}")
    return {name: str(value)}


def persist(ctx: Context, name: str, value: object, config: str | None = None) -> str:
    """Set the kernel's value of a kernel parameter, and store it in a configuration file. Return "Updated" or "Already
    set". Raise CommandError for an unknown parameter, or with sysctl's message.
    """
    file = config or default_config(ctx)
    _known(ctx, name)
    real_path = ctx.host.path(file)
    text = (managed_file.read(real_path, file) or b"").decode("utf-8", "surrogateescape")
    lines = lines_of(text if real_path.is_file() else _HEAD, keepends=True)
    done = False
    for at, line in enumerate(lines):
        key, sign, old = (part.strip() for part in line.partition("="))
        if not sign or key != name:
            continue
        if _blanks(old) == _blanks(value):
            if _blanks(get(ctx, name)) == _blanks(value):
                return "Already set"
            assign(ctx, name, value)
            return "Updated"
        lines[at] = f"{name} = {value}\n"
        done = True
    if not done:
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += "\n"
        lines.append(f"{name} = {value}\n")
    managed_file.make_directories(ctx.host, real_path.parent, Attributes(), ctx.host.root)
    managed_file.replace(ctx.host, real_path, "".join(lines).encode("utf-8", "surrogateescape"), Attributes())
    assign(ctx, name, value)
    return "Updated"


def _known(ctx: Context, name: str) -> None:
    # In /proc/sys dots and slashes are exchanged: net.ipv4.conf.eth0/1.forwarding is net/ipv4/conf/eth0.1/forwarding.
    proc_path = name.translate(str.maketrans("./", "/."))
    if ".." in proc_path.split("/") or not ctx.host.path(f"/proc/sys/{proc_path}").exists():
        raise CommandError(f"sysctl {name} does not exist")


def _blanks(value: object) -> str:
    return re.sub(r"\s+", "\t", str(value))
