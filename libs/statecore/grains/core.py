"""Facts about the managed host, under Salt's names. What describes the host is read from its own files; the machine's are ours.

Nothing here runs a program or asks a name server: all grains together take a few milliseconds.
"""

from __future__ import annotations

import fcntl
import os
import platform
import re
import socket
import struct
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from statecore.errors import HostError
from statecore.ports import ManagedHost

#: The version of Salt whose wire protocol and state semantics this is; trees compare it (``grains.saltversioninfo``).
SALT_VERSION = "3008.3"

#: os-release's ID -> what Salt calls the system, where that is not the file's NAME without "GNU/Linux" or "Linux".
_SYSTEMS: Mapping[str, str] = {
    "rhel": "RedHat",
    "linuxmint": "Mint",
    "ol": "OEL",
    "opensuse-leap": "SUSE",
    "opensuse-tumbleweed": "SUSE",
    "pop": "Pop",
    "sles": "SUSE",
    "sled": "SUSE",
}

#: os-release's ID, or an ID of its ID_LIKE, -> the family; what is not here is a family of its own.
_FAMILIES: Mapping[str, str] = {
    "alpine": "Alpine",
    "arch": "Arch",
    "centos": "RedHat",
    "debian": "Debian",
    "fedora": "RedHat",
    "gentoo": "Gentoo",
    "opensuse": "Suse",
    "rhel": "RedHat",
    "sles": "Suse",
    "suse": "Suse",
    "ubuntu": "Debian",
}

#: Systems whose osfinger has all of the release; of others it has the first number.
_WHOLE_RELEASE = ("Ubuntu", "Pop")

#: Systems whose osfinger has the short name.
_SHORT_FINGER = ("Debian", "Raspbian", "AlmaLinux")

#: dpkg's and others' names of architectures, by the kernel's.
_ARCHITECTURES: Mapping[str, Mapping[str, str]] = {
    "Debian": {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "armhf", "i686": "i386", "ppc64le": "ppc64el"},
}


def operating_system(host: ManagedHost, opts: Mapping[str, Any]) -> dict[str, Any]:
    """os, os_family, osrelease and their kin, from the host's os-release; "Unknown" where it has none."""
    release = _os_release(host)
    kernel = os.uname()
    grains: dict[str, Any] = {
        "kernel": kernel.sysname,
        "kernelrelease": kernel.release,
        "kernelversion": kernel.version,
    }
    grains |= {"cpuarch": kernel.machine, "userland": _userland(host, release)}
    full = release.get("NAME", "Unknown")
    name, family = _system(release), _family(release)
    version = release.get("VERSION_ID", "")
    info = tuple(int(part) if part.isdecimal() else part for part in version.split(".") if part)
    codename = release.get("VERSION_CODENAME") or _codename(release)
    grains |= {
        "os": name,
        "os_family": family,
        "osfullname": "Leap" if release.get("ID") == "opensuse-leap" else full,
        "oscodename": codename,
        "osrelease": version,
        "osrelease_info": info,
        "osarch": _ARCHITECTURES.get(family, {}).get(kernel.machine, kernel.machine),
        "lsb_distrib_id": full,
        "lsb_distrib_release": version,
        "lsb_distrib_codename": codename,
    }
    if info:
        finger = name if name in _SHORT_FINGER else grains["osfullname"]
        grains["osfinger"] = f"{finger}-{version if name in _WHOLE_RELEASE else info[0]}"
        grains |= {"osmajorrelease": info[0]} if isinstance(info[0], int) else {}
    return grains


def names(host: ManagedHost, opts: Mapping[str, Any]) -> dict[str, Any]:
    """host, fqdn, domain, nodename, localhost: the host's own /etc/hostname where it is mounted."""
    own = _first_line(host, "/etc/hostname") if host.mounted else ""
    node = own or socket.gethostname()
    fqdn = node if "." in node or host.mounted else _fqdn(host, node)
    short, _, domain = fqdn.partition(".")
    return {"nodename": node, "localhost": node, "fqdn": fqdn, "host": short, "domain": domain}


def hardware(host: ManagedHost, opts: Mapping[str, Any]) -> dict[str, Any]:
    """num_cpus, cpu_model, cpu_flags, mem_total and swap_total (MiB), virtual, gpus left out."""
    cpuinfo = _text(Path("/proc/cpuinfo"))
    memory = dict(re.findall(r"^(\w+):\s+(\d+) kB", _text(Path("/proc/meminfo")), re.MULTILINE))
    model = re.search(r"^(?:model name|Processor)\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    flags = re.search(r"^(?:flags|Features)\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    return {
        "num_cpus": os.cpu_count() or 1,
        "cpu_model": model[1].strip() if model else platform.processor() or "Unknown",
        "cpu_flags": flags[1].split() if flags else [],
        "mem_total": int(memory.get("MemTotal", 0)) // 1024,
        "swap_total": int(memory.get("SwapTotal", 0)) // 1024,
        "virtual": _virtual(cpuinfo),
    }


def network(host: ManagedHost, opts: Mapping[str, Any]) -> dict[str, Any]:
    """Addresses by interface, as the kernel has them: ip_interfaces, ipv4, ipv6, hwaddr_interfaces."""
    four, six, hardware_addresses = _addresses4(), _addresses6(), _hardware_addresses()
    every = sorted({*four, *six, *hardware_addresses})
    return {
        "ip4_interfaces": {name: four.get(name, []) for name in every},
        "ip6_interfaces": {name: six.get(name, []) for name in every},
        "ip_interfaces": {name: [*four.get(name, []), *six.get(name, [])] for name in every},
        "ipv4": sorted({address for addresses in four.values() for address in addresses}),
        "ipv6": sorted({address for addresses in six.values() for address in addresses}),
        "hwaddr_interfaces": hardware_addresses,
    }


def init_system(host: ManagedHost, opts: Mapping[str, Any]) -> dict[str, Any]:
    """init: systemd where it runs and can be reached, sysvinit where the host has init scripts, else unknown."""
    if not host.mounted and Path("/run/systemd/system").is_dir():
        return {"init": "systemd", "systemd": {"version": "", "features": ""}}
    if _there(host, "/etc/init.d"):
        return {"init": "sysvinit"}
    return {"init": "unknown"}


def machine(host: ManagedHost, opts: Mapping[str, Any]) -> dict[str, Any]:
    """machine_id, host_root, path, shell."""
    machine_id = _first_line(host, "/etc/machine-id")
    path = os.environ.get("PATH", "")
    found: dict[str, Any] = {
        "host_root": str(host.root),
        "path": path,
        "systempath": path.split(":"),
        "ps": "ps -efHww",
    }
    found["shell"] = os.environ.get("SHELL", "/bin/sh")
    return found | ({"machine_id": machine_id} if machine_id else {})


def process(host: ManagedHost, opts: Mapping[str, Any]) -> dict[str, Any]:
    """What runs: Python, Saltern, the user."""
    uid, gid = os.geteuid(), os.getegid()
    return {
        "pythonversion": [*sys.version_info[:3], sys.version_info.releaselevel, sys.version_info.serial],
        "pythonexecutable": sys.executable,
        "pythonpath": sys.path,
        "saltpath": str(Path(__file__).resolve().parent.parent),
        "saltversion": SALT_VERSION,
        "saltversioninfo": [int(part) for part in SALT_VERSION.split(".")],
        "uid": uid,
        "gid": gid,
        "pid": os.getpid(),
        "username": host.user_name(uid) if not host.mounted else str(uid),
        "groupname": host.group_name(gid) if not host.mounted else str(gid),
        "locale_info": {"defaultlanguage": _language(), "defaultencoding": "UTF-8", "detectedencoding": "utf-8"}
        | {"timezone": datetime.now().astimezone().tzname() or "unknown"},
    }


def _os_release(host: ManagedHost) -> dict[str, str]:
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        text = _host_text(host, path)
        if text:
            rows = (line.partition("=") for line in text.splitlines() if "=" in line and not line.startswith("#"))
            return {name.strip(): value.strip().strip("\"'") for name, _, value in rows}
    return {}


def _system(release: Mapping[str, str]) -> str:
    short = re.sub(r"\W(?:gnu/)?linux", "", release.get("NAME", "Unknown"), flags=re.IGNORECASE).strip()
    return _SYSTEMS.get(release.get("ID", ""), short)


def _family(release: Mapping[str, str]) -> str:
    """The oldest ancestor that is known: ID_LIKE goes from the nearest to the farthest."""
    ids = [release.get("ID", ""), *release.get("ID_LIKE", "").split()]
    known = [_FAMILIES[each] for each in reversed(ids) if each in _FAMILIES]
    return known[0] if known else ids[-1].capitalize() or "Unknown"


def _codename(release: Mapping[str, str]) -> str:
    """The name in the parentheses of VERSION, of those that say it nowhere else."""
    found = re.match(r"\d[\d.+\-a-z]* \((.+)\)", release.get("VERSION", ""))
    return found[1] if found and release.get("ID") in ("almalinux", "rocky") else ""


def _userland(host: ManagedHost, release: Mapping[str, str]) -> str:
    """The system's family in lower case, "none" for a plain directory tree in which nothing can run."""
    return _family(release).lower() if _there(host, "/bin/sh") else "none"


def _fqdn(host: ManagedHost, node: str) -> str:
    """The first name of /etc/hosts that begins with ours; a resolver could hang."""
    for line in _host_text(host, "/etc/hosts").splitlines():
        names_of_line = line.partition("#")[0].split()[1:]
        if node in names_of_line:
            return next((name for name in names_of_line if name.startswith(f"{node}.")), node)
    return node


def _virtual(cpuinfo: str) -> str:
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        return "container"
    product = (_text(Path("/sys/class/dmi/id/product_name")) + _text(Path("/sys/class/dmi/id/sys_vendor"))).lower()
    for word, kind in (
        ("kvm", "kvm"),
        ("qemu", "kvm"),
        ("vmware", "VMware"),
        ("virtualbox", "VirtualBox"),
        ("microsoft", "HyperV"),
    ):
        if word in product:
            return kind
    return "kvm" if " hypervisor" in cpuinfo else "physical"


def _addresses4() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for _, name in socket.if_nameindex():
        address = _address4(name)
        if address:
            found.setdefault(name, []).append(address)
    return found


def _address4(name: str) -> str:
    """The interface's first address, by SIOCGIFADDR."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            answer = fcntl.ioctl(probe.fileno(), 0x8915, struct.pack("256s", name.encode()[:15]))
        except OSError:
            return ""
    return socket.inet_ntoa(answer[20:24])


def _addresses6() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in _text(Path("/proc/net/if_inet6")).splitlines():
        fields = line.split()
        address = socket.inet_ntop(socket.AF_INET6, bytes.fromhex(fields[0]))
        found.setdefault(fields[5], []).append(address)
    return found


def _hardware_addresses() -> dict[str, str]:
    found = {}
    for _, name in socket.if_nameindex():
        address = _text(Path(f"/sys/class/net/{name}/address")).strip()
        if address:
            found[name] = address
    return found


def _language() -> str:
    return (os.environ.get("LC_ALL") or os.environ.get("LANG") or "C").partition(".")[0]


def _first_line(host: ManagedHost, path: str) -> str:
    return _host_text(host, path).partition("\n")[0].strip()


def _there(host: ManagedHost, path: str) -> bool:
    try:
        return host.path(path).exists()
    except HostError:
        return False


def _host_text(host: ManagedHost, path: str) -> str:
    try:
        return _text(host.path(path))
    except HostError:
        # A loop of links: as good as no file.
        return ""


def _text(path: Path) -> str:
    """What is in a file, "" where there is none; a pipe is none, it would be waited for."""
    try:
        if not path.is_file():
            return ""
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
