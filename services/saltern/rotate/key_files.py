"""Writes and delivers key files during a rotation: each changed file of the directory that ``saltern keygen`` wrote
reaches the roles before the next step.

If the roles have copies of the directory (Secrets, other hosts), ``--apply`` names the command that copies the changed
directory to them.
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
    """Raised when a rotation cannot continue. The message says which keys are valid now, the reason, and the next thing to do."""


def tell(text: str) -> None:
    """Print one line about the progress of a rotation to stdout."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


@dataclass(frozen=True)
class KeyFiles:
    """Writes files of a key directory, and delivers the changed directory to the roles."""

    directory: Path
    #: Seconds until every role has seen a change.
    wait: float
    #: Shell command that copies the changed directory to the roles; empty: they read the directory itself.
    apply: str = ""
    sleep: Callable[[float], None] = time.sleep

    def write(self, name: str, content: bytes, mode: int = 0o600) -> None:
        """Replace or create a file in the key directory atomically. As root: give it the owner of its directory. Raises OSError."""
        path = self.directory / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        atomic_file.write(path, content, mode, exact=True)
        if os.geteuid() == 0:
            status = path.parent.stat()
            os.chown(path, status.st_uid, status.st_gid)

    def remove(self, name: str) -> None:
        """Remove a file from the key directory; a missing file is ignored. Raises OSError."""
        (self.directory / name).unlink(missing_ok=True)

    def bring(self) -> None:
        """Run the operator's command of ``--apply``, if one was given: it copies the changed key directory to the
        hosts of the master's roles. Then wait until the roles have read the new files.

        Raises RotationError if the command fails.
        """
        if self.apply:
            done = subprocess.run(self.apply, shell=True, stdin=subprocess.DEVNULL, check=False)
            if done.returncode:
                raise RotationError(
                    f"`{self.apply}` ended with exit code {done.returncode}: the roles have the keys that they had. "
                    "Mend it and run the same `saltern rotate` again: it goes on from here"
                )
        self.sleep(self.wait)
