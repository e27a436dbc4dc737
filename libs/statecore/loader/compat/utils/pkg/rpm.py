"""``salt.utils.pkg.rpm`` for users' modules: names and architectures of RPM packages."""

from __future__ import annotations

import platform

#: Architecture names of 32-bit packages.
ARCHES_32 = ("i386", "i486", "i586", "i686", "armv7hl", "armv7l")


def get_osarch() -> str:
    """Return the architecture of RPM packages for the minion's own machine."""
    return platform.machine() or "unknown"


def check_32(arch: str, osarch: str | None = None) -> bool:
    """Return True if both an RPM package's architecture and the machine's architecture (``osarch``) are 32-bit ones."""
    return arch in ARCHES_32 and (osarch or get_osarch()) in ARCHES_32


def resolve_name(name: str, arch: str, osarch: str | None = None) -> str:
    """Return a package's name, with its architecture (``name.arch``) if that is not the machine's."""
    own = osarch or get_osarch()
    return name if check_32(arch, own) or arch in (own, "noarch") else f"{name}.{arch}"
