"""The master's own key pair and secret, as ``saltern keygen`` lays them into the directories of the roles that need them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from saltwire.errors import OwnFault
from saltwire.keys import PrivateKey
from services.kit.config import ConfigError

#: Bytes of ``master.secret``: as strong as the keys that are derived from it.
SECRET_BYTES = 32


@dataclass(frozen=True)
class MasterKeys:
    """What proves the master to minions, and what session and publication keys are derived from."""

    private: PrivateKey
    secret: bytes

    @classmethod
    def load(cls, directory: Path) -> MasterKeys:
        """Reads ``master.pem`` and ``master.secret``. Raises ConfigError that says what is missing and how it is made."""
        try:
            private = PrivateKey.from_pem((directory / "master.pem").read_bytes())
            secret = (directory / "master.secret").read_bytes()
        except OSError as error:
            raise ConfigError(
                f"{error.filename}: {error.strerror}. The master's keys are made by `saltern keygen --out DIR`"
            ) from error
        except OwnFault as error:
            raise ConfigError(f"{directory / 'master.pem'}: {error}") from error
        if len(secret) != SECRET_BYTES:
            raise ConfigError(f"{directory / 'master.secret'}: must hold {SECRET_BYTES} bytes, holds {len(secret)}")
        return cls(private, secret)
