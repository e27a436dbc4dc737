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
from pathlib import Path
from typing import Any

from statecore.ports import ManagedHost

#: The version of Salt whose wire protocol and state semantics this is; trees compare it (``grains.saltversioninfo``).
SALT_VERSION = "3008.3"

#: os-release's ID -> what Salt calls the system, and its family.
_SYSTEMS: Mapping[str, tuple[str, str]] = {
    "debian": ("Debian", "Debian"),
    "ubuntu": ("Ubuntu", "Debian"),
    "raspbian": ("Raspbian", "Debian"),
    "linuxmint": ("Mint", "Debian"),
    "fedora": ("Fedora", "RedHat"),
    "rhel": ("RedHat", "RedHat"),
    "centos": ("CentOS Stream", "RedHat"),
    "rocky": ("Rocky", "RedHat"),
    "almalinux": ("AlmaLinux", "RedHat"),
    "amzn": ("Amazon", "RedHat"),
    "alpine": ("Alpine", "Alpine"),
    "arch": ("Arch", "Arch"),
    "opensuse-leap": ("Leap", "Suse"),
    "sles": ("SUSE", "Suse"),
}

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
    name, family = _SYSTEMS.get(release.get("ID", ""), (release.get("NAME", "Unknown"), "Unknown"))
    version = _version(host, release, name)
    grains |= {
        "os": name,
        "os_family": family,
        "osfullname": release.get("NAME", name).removesuffix(" GNU/Linux"),
        "osrelease": version,
        "osrelease_info": tuple(int(part) if part.isdecimal() else part for part in version.split("."))
        if version
        else (),
        "oscodename": release.get("VERSION_CODENAME", ""),
        "osarch": _ARCHITECTURES.get(family, {}).get(kernel.machine, kernel.machine),
        "lsb_distrib_id": release.get("NAME", ""),
        "lsb_distrib_codename": release.get("PRETTY_NAME", ""),
    }
    major = version.split(".")[0]
    grains["osmajorrelease"] = int(major) if major.isdecimal() else major
    grains["osfinger"] = f"{grains['osfullname']}-{version if name == 'Ubuntu' else major}"
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
    if host.path("/etc/init.d").is_dir():
        return {"init": "sysvinit"}
    return {"init": "unknown"}


def machine(host: ManagedHost, opts: Mapping[str, Any]) -> dict[str, Any]:
    """machine_id, host_root, path, shell."""
    machine_id = _first_line(host, "/etc/machine-id")
    found: dict[str, Any] = {"host_root": str(host.root), "path": os.environ.get("PATH", ""), "ps": "ps -efHww"}
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
        "locale_info": {"defaultlanguage": _language(), "defaultencoding": "UTF-8", "detectedencoding": "utf-8"},
    }


def _os_release(host: ManagedHost) -> dict[str, str]:
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        text = _text(host.path(path))
        if text:
            rows = (line.partition("=") for line in text.splitlines() if "=" in line and not line.startswith("#"))
            return {name.strip(): value.strip().strip("\"'") for name, _, value in rows}
    return {}


def _version(host: ManagedHost, release: Mapping[str, str], name: str) -> str:
    """Debian's point release is in a file of its own."""
    if name == "Debian":
        full = _first_line(host, "/etc/debian_version")
        if re.fullmatch(r"\d+(\.\d+)*", full):
            return full
    return release.get("VERSION_ID", "")


def _userland(host: ManagedHost, release: Mapping[str, str]) -> str:
    """The system's family in lower case, "none" for a plain directory tree in which nothing can run."""
    if not host.path("/bin/sh").exists():
        return "none"
    return _SYSTEMS.get(release.get("ID", ""), ("", release.get("ID", "unknown")))[1].lower()


def _fqdn(host: ManagedHost, node: str) -> str:
    """The first name of /etc/hosts that begins with ours; a resolver could hang."""
    for line in _text(host.path("/etc/hosts")).splitlines():
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
    return _text(host.path(path)).partition("\n")[0].strip()


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
