"""The master's key pair and secret, as ``saltern keygen`` writes them for the roles that need them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC

from saltern.kit.config.master import ConfigError, MasterOptions
from saltwire.errors import OwnFault
from saltwire.keys import SIG_ALGOS, PrivateKey, derive_key_string

#: Bytes of ``master.secret``: as strong as the keys that are derived from it.
SECRET_BYTES = 32


@dataclass(frozen=True)
class MasterKeys:
    """The RSA keys that prove the master to minions, and the secret from which session and publication keys are derived."""

    private: PrivateKey
    secret: bytes
    #: Signature algorithm -> base64 signature of the master's public key, for minions with ``verify_master_pubkey_sign``
    #: (docs/protocol.md#sign-in-reply). Empty without ``master_sign_pubkey``.
    signatures: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def load_for(cls, directory: Path, options: MasterOptions) -> MasterKeys:
        """Return the master's keys from the key directory of a role.

        They include the signatures of the master's public key if the option ``master_sign_pubkey`` is set. Raises ConfigError.
        """
        keys = cls.load(directory)
        if not options.master_sign_pubkey:
            return keys
        signed, path = options.master_use_pubkey_signature, directory / f"{options.master_sign_key_name}.pem"
        if signed:
            path = directory / options.master_pubkey_signature
        try:
            content = path.read_bytes()
            if signed:
                return replace(keys, signatures=dict.fromkeys(SIG_ALGOS, content.decode("ascii").strip() + "\n"))
            signer, pem = PrivateKey.from_pem(content), keys.private.public.pem.encode()
            made = {algo: binascii.b2a_base64(signer.sign(pem, algo)).decode("ascii") for algo in SIG_ALGOS}
            return replace(keys, signatures=made)
        except OSError as error:
            raise ConfigError(
                f"{path}: {error.strerror}; master_sign_pubkey needs it (`salt-key --gen-signature --auto-create`)"
            ) from error
        except (OwnFault, UnicodeDecodeError) as error:
            raise ConfigError(f"{path}: {error}") from error

    @classmethod
    def load(cls, directory: Path) -> MasterKeys:
        """Return the master's keys from the files ``master.pem`` and ``master.secret`` in ``directory``.

        Raises ConfigError whose message names the missing file and the command that makes it.
        """
        try:
            private = PrivateKey.from_pem((directory / "master.pem").read_bytes())
        except OSError as error:
            raise ConfigError(
                f"{error.filename}: {error.strerror}. The master's keys are made by `saltern keygen --out DIR`"
            ) from error
        except OwnFault as error:
            raise ConfigError(f"{directory / 'master.pem'}: {error}") from error
        return cls(private, read_secret(directory))


def read_secret(directory: Path) -> bytes:
    """Return the master's secret from the file ``master.secret`` in ``directory``, without reading the RSA key.

    Raises ConfigError.
    """
    path = directory / "master.secret"
    try:
        secret = path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{path}: {error.strerror}. The master's keys are made by `saltern keygen --out DIR`"
        ) from error
    if len(secret) != SECRET_BYTES:
        raise ConfigError(f"{path}: must hold {SECRET_BYTES} bytes, holds {len(secret)}")
    return secret


def record_mac(secret: bytes) -> Callable[[str, bytes], bytes]:
    """Return the function that makes the codes of records in Redis (``masterstore.record_mac``), as hexadecimal digits.

    The key is derived from the master's secret, so every worker and publisher of a master has the same one.
    """
    key = base64.b64decode(derive_key_string(secret, purpose="records", epoch=0))
    # The HMAC of the cryptography package: Python's own hmac would load the system's OpenSSL as a second copy. A copy of a
    # keyed one takes half the time of a new one.
    keyed = HMAC(key, SHA256())

    def mac(kind: str, record: bytes) -> bytes:
        made = keyed.copy()
        made.update(kind.encode() + b"\0" + record)
        return made.finalize().hex().encode()

    return mac
