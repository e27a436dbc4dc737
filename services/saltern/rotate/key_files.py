"""Writes and delivers key files during a rotation: each changed file of the directory that ``saltern keygen`` wrote
reaches the roles before the next step.

If the roles have copies of the directory (Secrets, other hosts), ``--apply`` names the command that copies the changed
directory to them.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from statecore.host.content.guarded_tree import GuardedTree


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
        self._tree.put(name, content, mode)

    def exists(self, name: str) -> bool:
        """Return whether the key directory has a file of this name. Raises OSError."""
        return self._tree.exists(name)

    def read(self, name: str) -> bytes:
        """Return the content of a file of the key directory. Raises OSError."""
        return self._tree.read(name)

    def names(self) -> list[str]:
        """Return the sorted names of all files of the key directory, such as ``cli/known/reqserver.pub``. Raises OSError."""
        return self._tree.names()

    def remove(self, name: str) -> None:
        """Remove a file from the key directory; a missing file is ignored. Raises OSError."""
        self._tree.remove(name)

    @property
    def _tree(self) -> GuardedTree:
        return GuardedTree(self.directory)

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
