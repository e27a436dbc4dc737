"""Grains of the operating system, the machine and the minion's process, with Salt's names and values.

Facts about the host are read from the host's own files. No program is run and no name server is asked, so that all
grains together
take a few milliseconds.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from statecore.model.errors import HostError
from statecore.model.ports import ManagedHost
from statecore.model.salt_version import SALT_VERSION
from statecore.model.text_lines import lines_of
from statecore.system.hostfiles.plain_text import exists, first_line, host_text, text

#: ID of os-release -> grain os, if it differs from NAME without "GNU/Linux" or "Linux".
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

#: ID or ID_LIKE of os-release -> grain os_family. A system that is not listed is a family of its own.
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

#: Systems whose osfinger contains the whole release; that of others contains its first number.
_WHOLE_RELEASE = ("Ubuntu", "Pop")

#: Systems whose osfinger starts with the grain os; that of others starts with osfullname.
_SHORT_FINGER = ("Debian", "Raspbian", "AlmaLinux")

#: os_family -> kernel's name of an architecture -> the package manager's name.
_ARCHITECTURES: Mapping[str, Mapping[str, str]] = {
    "Debian": {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "armhf", "i686": "i386", "ppc64le": "ppc64el"},
}


def operating_system(host: ManagedHost, opts: Mapping[str, object]) -> dict[str, object]:
    """Return the grains os, os_family, osrelease and related ones, from the host's os-release file. Without this file,
    the names are "Unknown".
    """
    release = _os_release(host)
    kernel = os.uname()
    grains: dict[str, object] = {
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


def init_system(host: ManagedHost, opts: Mapping[str, object]) -> dict[str, object]:
    """Return the grains init, systemd and selinux of the host.

    ``init`` is "systemd" if systemd runs. Otherwise it is derived from process 1 of this machine; for a mounted host it
    is "sysvinit" if /etc/init.d exists, else "unknown". ``systemd`` has its version and exists if the host has systemd's
    programs. ``selinux`` exists if the host has SELinux's programs.
    """
    grains: dict[str, object] = {"init": _init(host)}
    if host.which("systemctl") and host.which("localectl"):
        grains["systemd"] = {"version": _systemd_version(host), "features": ""}
    if host.which("selinuxenabled"):
        grains["selinux"] = _selinux()
    return grains


def machine(host: ManagedHost, opts: Mapping[str, object]) -> dict[str, object]:
    """Return the grains machine_id, server_id, host_root, path, shell, cwd, transactional, master and related ones."""
    machine_id = first_line(host, "/etc/machine-id") or first_line(host, "/var/lib/dbus/machine-id")
    path = os.environ.get("PATH", "")
    found: dict[str, object] = {
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


def process(host: ManagedHost, opts: Mapping[str, object]) -> dict[str, object]:
    """Return the grains of the minion's process: Python version, Salt version, user, process id and locale."""
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
            rows = (line.partition("=") for line in lines_of(text) if "=" in line and not line.startswith("#"))
            return {name.strip(): value.strip().strip("\"'") for name, _, value in rows}
    return {}


def _system(release: Mapping[str, str]) -> str:
    short = re.sub(r"\W(?:gnu/)?linux", "", release.get("NAME", "Unknown"), flags=re.IGNORECASE).strip()
    return _SYSTEMS.get(release.get("ID", ""), short)


def _family(release: Mapping[str, str]) -> str:
    """Return the grain os_family from the fields of os-release. ID_LIKE lists parent systems from near to far; the
    farthest known one is the family.
    """
    ids = [release.get("ID", ""), *release.get("ID_LIKE", "").split()]
    known = [_FAMILIES[each] for each in reversed(ids) if each in _FAMILIES]
    return known[0] if known else ids[-1].capitalize() or "Unknown"


def _codename(release: Mapping[str, str]) -> str:
    """Return the codename of the distribution that VERSION of os-release has in parentheses; for distributions without
    VERSION_CODENAME.
    """
    found = re.match(r"\d[\d.+\-a-z]* \((.+)\)", release.get("VERSION", ""))
    return found[1] if found and release.get("ID") in ("almalinux", "rocky") else ""


def _userland(host: ManagedHost, release: Mapping[str, str]) -> str:
    """Return the os_family of the host's programs in lower case; "none" for a plain directory tree without /bin/sh."""
    return _family(release).lower() if exists(host, "/bin/sh") else "none"


def _init(host: ManagedHost) -> str:
    if exists(host, "/run/systemd/system"):
        return "systemd"
    if host.mounted:
        return "sysvinit" if exists(host, "/etc/init.d") else "unknown"
    words = text(Path("/proc/1/cmdline")).replace("\0", " ").split()
    program = host.which(words[0]) if words else None
    if program is not None and program.endswith("bin/init"):
        # As in Salt: each init program contains its own name.
        image = Path(program).read_bytes().lower()
        return next((name for name in ("upstart", "sysvinit", "systemd") if name.encode() in image), "unknown")
    if words == ["runit"] or "/sbin/my_init" in words:
        return "runit"
    return next((name for name in ("supervisord", "dumb-init", "tini") if host.which(name) in words), "unknown")


def _systemd_version(host: ManagedHost) -> str:
    """Return the version of the host's systemd, from the file name of its library (libsystemd-shared-252.so), which
    exists since version 231; "" without the library.
    """
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


def _selinux() -> dict[str, object]:
    """Return the grain selinux: ``enabled`` (True if the kernel uses SELinux) and ``enforced`` (its mode in the words
    of getenforce).
    """
    state = text(Path("/sys/fs/selinux/enforce")).strip()
    return {"enabled": bool(state), "enforced": {"1": "Enforcing", "0": "Permissive"}.get(state, "Disabled")}


def _cwd() -> str:
    try:
        return str(Path.cwd())
    except OSError:
        # The directory was removed.
        return "unknown"


def _language() -> str:
    """Return the language of the process's locale, as Python's locale module does: C.UTF-8 is en_US."""
    name = (os.environ.get("LC_ALL") or os.environ.get("LC_CTYPE") or os.environ.get("LANG") or "C").partition(".")
    return "en_US" if name[0] == "C" and name[2] else name[0]
