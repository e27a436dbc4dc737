"""Write keys and certificates to files of the managed host, for the execution modules ``x509`` and ``ssh_pki``."""

from __future__ import annotations

from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context


def write_file(ctx: Context, path: str, data: bytes, mode: int | None = None) -> None:
    """Write a file of the host. A new file has mode 0600 by default. Raise HostError if this fails."""
    real_path = ctx.host.path(path)
    if mode is None and not real_path.exists():
        mode = 0o600
    managed_file.replace(ctx.host, real_path, data, Attributes(mode=mode))
