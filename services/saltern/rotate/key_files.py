"""The directory that ``saltern keygen`` wrote, as a rotation changes it: each step is brought to the roles before the next.

Where roles see copies of the directory (Secrets, other hosts), ``--apply`` names the command that brings a changed directory
to them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from statecore.host.content import atomic_file


class RotationError(Exception):
    """Raised when a rotation cannot go on. The message says what is in force, why, and what to do next."""


def tell(text: str) -> None:
    """Print a line about the progress of a rotation."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


@dataclass(frozen=True)
class KeyFiles:
    """A key directory and the way of its changes to the roles."""

    directory: Path
    #: Seconds until every role has seen a change.
    wait: float
    #: Shell command that copies the changed directory to the roles; empty: they read the directory itself.
    apply: str = ""
    sleep: Callable[[float], None] = time.sleep

    def write(self, name: str, content: bytes, mode: int = 0o600) -> None:
        """Replace a file below the directory at once; it gets the owner of its directory. Raises OSError."""
        path = self.directory / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        atomic_file.write(path, content, mode, exact=True)
        if os.geteuid() == 0:
            status = path.parent.stat()
            os.chown(path, status.st_uid, status.st_gid)

    def remove(self, name: str) -> None:
        """Remove a file below the directory; it may be missing. Raises OSError."""
        (self.directory / name).unlink(missing_ok=True)

    def bring(self) -> None:
        """Bring what was changed to the roles, and wait until all have seen it. Raises RotationError."""
        if self.apply:
            done = subprocess.run(self.apply, shell=True, stdin=subprocess.DEVNULL, check=False)
            if done.returncode:
                raise RotationError(
                    f"`{self.apply}` ended with exit code {done.returncode}: the roles have the keys that they had. "
                    "Mend it and run the same `saltern rotate` again: it goes on from here"
                )
        self.sleep(self.wait)
