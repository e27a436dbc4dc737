"""Functions of ``pkg`` about names of RPM packages, for dnf and zypper."""

from __future__ import annotations

from statecore.builtin.modules.pkg_rpm import inventory, rpm
from statecore.model.context import Context


def normalize_name(ctx: Context, name: str) -> str:
    """Return a package name without its architecture, if that is the host's own (``bash.x86_64`` -> ``bash``)."""
    return inventory.plain_name(ctx, name)


def parse_arch(ctx: Context, name: str) -> dict[str, str | None]:
    """Split a package name such as ``glibc.i686`` into {"name", "arch"}. The value of "arch" is None for a name without
    architecture.
    """
    plain, named = rpm.split_name(name)
    return {"name": plain, "arch": named}
