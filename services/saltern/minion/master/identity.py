"""A minion's keys in ``pki_dir``: its key pair, and the master's public key after the first sign-in.

Source: docs/protocol.md#keys-and-algorithms
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from pathlib import Path

from saltern.kit.config.reading import ConfigError
from saltwire.errors import OwnFault, PeerFault
from saltwire.keys import MIN_BITS, MasterPublicKeys, PrivateKey
from statecore.host.content import private_files

_PRIVATE = "minion.pem"
_PUBLIC = "minion.pub"
_MASTER = "minion_master.pub"


@dataclass
class Identity:
    """Id and RSA key pair of this minion. ``saltutil.regen_keys`` may replace the pair while the minion runs."""

    id: str
    private: PrivateKey
    directory: Path
    #: Bits of a newly made key pair.
    keysize: int = 2048
    #: Content of the file of ``private``. Comparing it is a hundred times faster than reading the key again.
    _pem: bytes = field(default=b"", repr=False)

    @classmethod
    def load(cls, minion_id: str, directory: Path, keysize: int) -> Identity:
        """Return the identity with the key pair from ``directory``; make the pair if it is missing.

        ``keysize``: bits of a new pair, at least 2048. Raise ConfigError with the file's path.
        """
        path = directory / _PRIVATE
        try:
            private_files.top(directory)
            if not path.exists():
                # Several main processes may do this at the same moment; ``create`` lets only one of them write.
                private_files.create(path, PrivateKey.generate(max(keysize, MIN_BITS)).to_pem(), unchanging=True)
            pem = path.read_bytes()
            private = PrivateKey.from_pem(pem)
            _keep(directory / _PUBLIC, (private.public.pem + "\n").encode())
        except OSError as error:
            raise ConfigError(f"pki_dir: {error.filename}: {error.strerror}") from error
        except (OwnFault, ValueError) as error:
            raise ConfigError(f"{path}: {error}") from error
        return cls(minion_id, private, directory, keysize, pem)

    def reread(self) -> None:
        """Read the minion's key pair from disk again. If it cannot be read, keep the pair in memory."""
        with contextlib.suppress(OSError, OwnFault, ValueError):
            pem = (self.directory / _PRIVATE).read_bytes()
            if pem != self._pem:
                self.private, self._pem = PrivateKey.from_pem(pem), pem

    def renew(self) -> None:
        """Read the minion's key pair again; make a new one if the file is gone. Called before a sign-in. Raise ConfigError."""
        if (self.directory / _PRIVATE).exists():
            self.reread()
        elif self.directory.is_dir() and os.access(self.directory, os.W_OK):
            made = Identity.load(self.id, self.directory, self.keysize)
            self.private, self._pem = made.private, made._pem

    def master(self) -> MasterPublicKeys | None:
        """Return the stored public keys of the master (one, or two while it is replaced); None before the first sign-in.

        Raise ConfigError for an invalid file.
        """
        path = self.directory / _MASTER
        try:
            return MasterPublicKeys.from_pem(path.read_bytes())
        except FileNotFoundError:
            return None
        except PeerFault as error:
            raise ConfigError(f"{path}: {error}; remove it to trust the master's key anew") from error

    def trust(self, master_pub: str) -> None:
        """Store the master's public key (PEM text; two texts while it is replaced). The minion then accepts no other key."""
        _keep(self.directory / _MASTER, (master_pub + "\n").encode())


def _keep(path: Path, content: bytes) -> None:
    """Write a key file if its content differs. An unchanged file is not written, because the directory may be read-only."""
    if not path.exists() or path.read_bytes() != content:
        private_files.write(path, content)
