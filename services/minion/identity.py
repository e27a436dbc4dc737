"""A minion's keys on disk: its own pair, and the master's public key once it is known (protocol section 4.1)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from saltwire.errors import OwnFault, PeerFault
from saltwire.keys import PrivateKey, PublicKey
from services.kit.options_reading import ConfigError

_PRIVATE = "minion.pem"
_PUBLIC = "minion.pub"
_MASTER = "minion_master.pub"


@dataclass(frozen=True)
class Identity:
    """Who this minion is."""

    id: str
    private: PrivateKey
    directory: Path

    @classmethod
    def load(cls, minion_id: str, directory: Path, keysize: int) -> Identity:
        """Reads the pair, or makes it. Raises ConfigError that names the file."""
        path = directory / _PRIVATE
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            if path.exists():
                private = PrivateKey.from_pem(path.read_bytes())
            else:
                private = PrivateKey.generate(keysize)
                _write(path, private.to_pem(), 0o400)
            _keep(directory / _PUBLIC, (private.public.pem + "\n").encode())
        except OSError as error:
            raise ConfigError(f"pki_dir: {error.filename}: {error.strerror}") from error
        except (OwnFault, ValueError) as error:
            raise ConfigError(f"{path}: {error}") from error
        return cls(minion_id, private, directory)

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
        _write(path, content, 0o644)


def _write(path: Path, content: bytes, mode: int) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    temporary.rename(path)
