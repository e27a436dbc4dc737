"""``salt.utils.platform`` for users' modules: the operating system of this machine, which is always Linux."""

from __future__ import annotations

import platform as _platform
from pathlib import Path


def is_linux() -> bool:
    """Return True: Saltern runs on Linux only."""
    return True


def _no() -> bool:
    """Return False: Saltern runs on Linux only."""
    return False


is_windows = is_darwin = is_sunos = is_aix = is_freebsd = is_openbsd = is_netbsd = is_proxy = is_junos = _no
is_smartos = is_smartos_globalzone = is_smartos_zone = spawning_platform = _no


def is_fedora() -> bool:
    """Return whether this machine runs Fedora."""
    return _os_release_id() == "fedora"


def is_photonos() -> bool:
    """Return whether this machine runs Photon OS."""
    return _os_release_id() == "photon"


def is_aarch64() -> bool:
    """Return whether this machine has a 64-bit ARM processor."""
    return _platform.machine().startswith("aarch64")


def get_machine_identifier() -> dict[str, str]:
    """Return {"machine_id": content of /etc/machine-id or /var/lib/dbus/machine-id}; {} if there is no such file."""
    for path in (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id")):
        if path.exists():
            return {"machine_id": path.read_text("utf-8").strip()}
    return {}


def linux_distribution(full_distribution_name: bool = True) -> tuple[str, str, str]:
    """Return (name, version, codename) of the machine's distribution; its id instead of the name with
    ``full_distribution_name=False``.
    """
    release = _os_release()
    name = release.get("NAME" if full_distribution_name else "ID", "")
    return name, release.get("VERSION_ID", ""), release.get("VERSION_CODENAME", "")


def _os_release_id() -> str:
    return _os_release().get("ID", "")


def _os_release() -> dict[str, str]:
    try:
        return _platform.freedesktop_os_release()
    except OSError:
        return {}
