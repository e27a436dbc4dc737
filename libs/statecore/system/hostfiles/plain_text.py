"""Small files that say how a host or its kernel is: read whole, "" where there is nothing to read."""

from __future__ import annotations

from pathlib import Path

from statecore.model.errors import HostError
from statecore.model.ports import ManagedHost


def host_text(host: ManagedHost, path: str) -> str:
    """What is in a file of the host."""
    try:
        return text(host.path(path))
    except HostError:
        # A loop of links: as good as no file.
        return ""


def first_line(host: ManagedHost, path: str) -> str:
    """The first line of a file of the host, without white space around it."""
    return host_text(host, path).partition("\n")[0].strip()


def there(host: ManagedHost, path: str) -> bool:
    """Whether the host has a path."""
    try:
        return host.path(path).exists()
    except (HostError, OSError):
        return False


def text(path: Path) -> str:
    """What is in a file of this machine; a pipe is none, it would be waited for."""
    try:
        if not path.is_file():
            return ""
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
