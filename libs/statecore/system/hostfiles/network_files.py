"""Read and write the host's network files and run its network programs, for ifupdown, Red Hat's files and netplan."""

from __future__ import annotations

from collections.abc import Sequence

from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.model.errors import CommandError
from statecore.model.ports import ManagedHost


def text(host: ManagedHost, file: str) -> str:
    """Return the text of a network file of the host; "" if it does not exist. Raises HostError if it is not a regular
    file.
    """
    return (managed_file.read(host.path(file), file) or b"").decode("utf-8", "surrogateescape")


def write(host: ManagedHost, file: str, new: str, mode: int | None = None) -> None:
    """Replace a network file of the host. Raises CommandError if its directory does not exist or it cannot be written."""
    place = host.path(file)
    if not place.parent.is_dir():
        raise CommandError(f"{file} cannot be written. {file.rpartition('/')[0]} does not exist")
    managed_file.replace(host, place, new.encode("utf-8", "surrogateescape"), Attributes(mode=mode))


def run(host: ManagedHost, words: Sequence[str]) -> str:
    """Run a network program of the host and return its output. Raises CommandError if it fails."""
    done = host.run(list(words))
    if done.retcode:
        output = done.stderr.strip() or done.stdout.strip()
        raise CommandError(f"{' '.join(words)} failed with exit code {done.retcode}: {output}")
    return done.stdout.rstrip("\n")
