"""Read small files that describe a host or its kernel. A missing or unreadable file reads as ""."""

from __future__ import annotations

from pathlib import Path

from statecore.model.errors import HostError
from statecore.model.ports import ManagedHost
from statecore.model.text_lines import text_of


def host_text(host: ManagedHost, path: str) -> str:
    """Return the text of a file of the managed host; "" if it is missing or unreadable."""
    try:
        return text(host.path(path))
    except HostError:
        # A loop of symbolic links counts as a missing file.
        return ""


def first_line(host: ManagedHost, path: str) -> str:
    """Return the first line of a file of the managed host, stripped; "" if it is missing or unreadable."""
    return host_text(host, path).partition("\n")[0].strip()


def exists(host: ManagedHost, path: str) -> bool:
    """Return True if the path exists on the managed host."""
    try:
        return host.path(path).exists()
    except (HostError, OSError):
        return False


def text(path: Path) -> str:
    """Return the text of a file of this machine; "" if it is missing or unreadable. A pipe reads as "", because reading
    it could block.
    """
    try:
        if not path.is_file():
            return ""
        return text_of(path)
    except OSError:
        return ""
