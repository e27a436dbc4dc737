"""A minion's keys on disk: its own pair, and the master's public key once it is known (protocol section 4.1)."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from pathlib import Path

from saltern.kit.config.reading import ConfigError
from saltwire.errors import OwnFault, PeerFault
from saltwire.keys import PrivateKey, PublicKey
from statecore.host.content import atomic_file

_PRIVATE = "minion.pem"
_PUBLIC = "minion.pub"
_MASTER = "minion_master.pub"


@dataclass
class Identity:
    """Who this minion is. Its pair may be another one later: ``saltutil.regen_keys`` takes it from a minion that runs."""

    id: str
    private: PrivateKey
    directory: Path
    #: Bits of a pair that is made.
    keysize: int = 2048
    #: The file that ``private`` was read from, to know another one by: to read a key takes a hundred times as long.
    _pem: bytes = field(default=b"", repr=False)

    @classmethod
    def load(cls, minion_id: str, directory: Path, keysize: int) -> Identity:
        """Reads the pair, or makes it. Raises ConfigError that names the file."""
        path = directory / _PRIVATE
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not path.exists():
                # The processes of several masters may look at the same moment: one of them is the first.
                atomic_file.create(path, PrivateKey.generate(keysize).to_pem(), 0o400)
            pem = path.read_bytes()
            private = PrivateKey.from_pem(pem)
            _keep(directory / _PUBLIC, (private.public.pem + "\n").encode())
        except OSError as error:
            raise ConfigError(f"pki_dir: {error.filename}: {error.strerror}") from error
        except (OwnFault, ValueError) as error:
            raise ConfigError(f"{path}: {error}") from error
        return cls(minion_id, private, directory, keysize, pem)

    def reread(self) -> None:
        """Takes the pair that lies in the directory now. Where it cannot be read, the one that is held stays."""
        with contextlib.suppress(OSError, OwnFault, ValueError):
            pem = (self.directory / _PRIVATE).read_bytes()
            if pem != self._pem:
                self.private, self._pem = PrivateKey.from_pem(pem), pem

    def renew(self) -> None:
        """The same; where the pair is gone a new one is made. For who signs the minion in. Raises ConfigError as ``load`` does."""
        if (self.directory / _PRIVATE).exists():
            self.reread()
        elif self.directory.is_dir() and os.access(self.directory, os.W_OK):
            made = Identity.load(self.id, self.directory, self.keysize)
            self.private, self._pem = made.private, made._pem

    def master(self) -> PublicKey | None:
        """The master's key that is trusted here, None before the first welcome. Raises ConfigError for a broken file."""
        path = self.directory / _MASTER
        try:
            return PublicKey.from_pem(path.read_bytes())
        except FileNotFoundError:
            return None
        except PeerFault as error:
            raise ConfigError(f"{path}: {error}; remove it to trust the master's key anew") from error

    def trust(self, master_pub: str) -> None:
        """Pins the master's key."""
        _keep(self.directory / _MASTER, (master_pub + "\n").encode())


def _keep(path: Path, content: bytes) -> None:
    """Writes a public file unless it holds just that: the directory may be read only."""
    if not path.exists() or path.read_bytes() != content:
        atomic_file.write(path, content, 0o644)
