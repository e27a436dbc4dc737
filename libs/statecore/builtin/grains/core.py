"""The system and this process, under Salt's names. What describes the host is read from its own files.

Nothing here runs a program or asks a name server: all grains together take a few milliseconds.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from statecore.model.errors import HostError
from statecore.model.ports import ManagedHost
from statecore.system.hostfiles.plain_text import first_line, host_text, text, there

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


def init_system(host: ManagedHost, opts: Mapping[str, Any]) -> dict[str, Any]:
    """init: systemd where it runs; else of this machine what process 1 is, of a mounted host sysvinit where it has init scripts;
    else unknown. systemd: its version, where the host has it. SELinux where the host has its programs."""
    grains: dict[str, Any] = {"init": _init(host)}
    if host.which("systemctl") and host.which("localectl"):
        grains["systemd"] = {"version": _systemd_version(host), "features": ""}
    if host.which("selinuxenabled"):
        grains["selinux"] = _selinux()
    return grains


def machine(host: ManagedHost, opts: Mapping[str, Any]) -> dict[str, Any]:
    """machine_id, server_id, host_root, path, shell, cwd, transactional, and the master's name."""
    machine_id = first_line(host, "/etc/machine-id") or first_line(host, "/var/lib/dbus/machine-id")
    path = os.environ.get("PATH", "")
    found: dict[str, Any] = {
        "host_root": str(host.root),
        "path": path,
        "systempath": path.split(":"),
        "ps": "ps -efHww",
        "shell": os.environ.get("SHELL", "/bin/sh"),
        "cwd": _cwd(),
        "transactional": host.which("transactional-update") is not None,
        "server_id": int(hashlib.sha256(str(opts.get("id", "")).encode()).hexdigest(), 16) % 2**31,
    }
    if opts.get("master"):
        found["master"] = opts["master"]
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
        text = host_text(host, path)
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
    return _family(release).lower() if there(host, "/bin/sh") else "none"


def _init(host: ManagedHost) -> str:
    if there(host, "/run/systemd/system"):
        return "systemd"
    if host.mounted:
        return "sysvinit" if there(host, "/etc/init.d") else "unknown"
    words = text(Path("/proc/1/cmdline")).replace("\0", " ").split()
    program = host.which(words[0]) if words else None
    if program is not None and program.endswith("bin/init"):
        # As Salt tells them apart: each has its own name somewhere in its file.
        image = Path(program).read_bytes().lower()
        return next((name for name in ("upstart", "sysvinit", "systemd") if name.encode() in image), "unknown")
    if words == ["runit"] or "/sbin/my_init" in words:
        return "runit"
    return next((name for name in ("supervisord", "dumb-init", "tini") if host.which(name) in words), "unknown")


def _systemd_version(host: ManagedHost) -> str:
    """From the name of systemd's own library (libsystemd-shared-252.so), which every systemd since 231 has."""
    for folder in ("/usr/lib/systemd", "/lib/systemd", "/usr/lib/x86_64-linux-gnu/systemd"):
        try:
            names = [path.name for path in host.path(folder).glob("libsystemd-shared-*.so")]
        except (HostError, OSError):
            continue
        for name in names:
            found = re.match(r"libsystemd-shared-(\d+)", name)
            if found:
                return found[1]
    return ""


def _selinux() -> dict[str, Any]:
    """Of the kernel: enabled, and whether it enforces, in the words of getenforce."""
    state = text(Path("/sys/fs/selinux/enforce")).strip()
    return {"enabled": bool(state), "enforced": {"1": "Enforcing", "0": "Permissive"}.get(state, "Disabled")}


def _cwd() -> str:
    try:
        return str(Path.cwd())
    except OSError:
        # It was removed under us.
        return "unknown"


def _language() -> str:
    """As Python tells it: C.UTF-8 is en_US."""
    name = (os.environ.get("LC_ALL") or os.environ.get("LC_CTYPE") or os.environ.get("LANG") or "C").partition(".")
    return "en_US" if name[0] == "C" and name[2] else name[0]
