"""The master's key pair and secret, as ``saltern keygen`` writes them for the roles that need them."""

from __future__ import annotations

import base64
import binascii
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC

from saltern.kit.config.master import ConfigError, MasterOptions
from saltern.kit.links.sockets import file_state
from saltwire.errors import OwnFault
from saltwire.keys import SIG_ALGOS, PrivateKey, derive_key_string

_LOG = logging.getLogger("saltern.keys")

#: Names of the files of the master's key, and of the key before while it is replaced (``saltern rotate master``).
PRIVATE, PREVIOUS = "master.pem", "master.previous.pem"

#: Seconds between two looks at the files.
_LOOK_SECONDS = 1.0

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
    #: The key before, while it is replaced: minions that know no other are answered with it.
    previous: PrivateKey | None = None
    #: The same as ``signatures``, of the key before.
    previous_signatures: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def all(self) -> tuple[PrivateKey, ...]:
        """Return the master's private keys, the newest first: one, or two while ``saltern rotate master`` replaces the key."""
        return (self.private,) if self.previous is None else (self.private, self.previous)

    @cached_property
    def pems(self) -> tuple[str, ...]:
        """Return the master's public keys as PEM texts, the newest first: one, or two while the key is replaced."""
        return tuple(key.public.pem for key in self.all)

    def signature(self, key: PrivateKey, algo: str) -> str | None:
        """Return the stored signature (base64) of one of the master's public keys, made by the master's signing key.

        None if the option ``master_sign_pubkey`` is off.
        """
        return (self.previous_signatures if key is self.previous else self.signatures).get(algo)

    def known_to(self, fingerprint: str | None) -> PrivateKey:
        """Return the master's private key whose signature a minion accepts.

        ``fingerprint``: the recorded fingerprint of the key that the minion accepts. If no key has this fingerprint,
        return the older key.
        """
        return next((key for key in self.all if key.public.fingerprint() == fingerprint), self.all[-1])

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
            signer = PrivateKey.from_pem(content)
            made = _signatures(signer, keys.private)
            before = {} if keys.previous is None else _signatures(signer, keys.previous)
            return replace(keys, signatures=made, previous_signatures=before)
        except OSError as error:
            raise ConfigError(
                f"{path}: {error.strerror}; master_sign_pubkey needs it (`salt-key --gen-signature --auto-create`)"
            ) from error
        except (OwnFault, UnicodeDecodeError) as error:
            raise ConfigError(f"{path}: {error}") from error

    @classmethod
    def load(cls, directory: Path) -> MasterKeys:
        """Return the master's keys from the files ``master.pem``, ``master.previous.pem`` (if it exists) and
        ``master.secret`` in ``directory``.

        Raises ConfigError whose message names the missing file and the command that makes it.
        """
        try:
            private = PrivateKey.from_pem((directory / PRIVATE).read_bytes())
            earlier = directory / PREVIOUS
            previous = PrivateKey.from_pem(earlier.read_bytes()) if earlier.exists() else None
        except OSError as error:
            raise ConfigError(
                f"{error.filename}: {error.strerror}. The master's keys are made by `saltern keygen --out DIR`"
            ) from error
        except OwnFault as error:
            raise ConfigError(f"{directory / 'master.pem'}: {error}") from error
        if previous is not None and previous.public.pem == private.public.pem:
            previous = None
        return cls(private, read_secret(directory), previous=previous)


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


def _signatures(signer: PrivateKey, key: PrivateKey) -> dict[str, str]:
    pem = key.public.pem.encode()
    return {algo: binascii.b2a_base64(signer.sign(pem, algo)).decode("ascii") for algo in SIG_ALGOS}


class KeptMasterKeys:
    """The master's keys of a role, which are read again when they were replaced (``saltern rotate master``)."""

    def __init__(self, directory: Path, options: MasterOptions | None = None) -> None:
        """Read the master's keys from ``directory``, and their signatures as ``options`` say; None: no signatures.

        Raises ConfigError for a missing or malformed key.
        """
        self._directory, self._options = directory, options
        self._seen = self._signature()
        self._next_look = time.monotonic() + _LOOK_SECONDS
        self._told = ""
        self.current = self._read()

    def follow(self) -> bool:
        """Read the keys again if their files changed, at most once a second. Return whether ``current`` changed.

        Unreadable files are logged and tried again. A changed ``master.secret`` is logged and not used: it needs a restart.
        """
        now = time.monotonic()
        if now < self._next_look:
            return False
        self._next_look = now + _LOOK_SECONDS
        seen = self._signature()
        if seen == self._seen:
            return False
        try:
            read = self._read()
        except ConfigError as error:
            if str(error) != self._told:
                self._told = str(error)
                _LOG.error("%s; the keys in use stay", error)
            return False
        self._seen, self._told = seen, ""
        if read.secret != self.current.secret:
            _LOG.error(
                "%s was replaced: this needs a restart, and is not used until then", self._directory / "master.secret"
            )
            read = replace(read, secret=self.current.secret)
        if read.pems == self.current.pems and read.signatures == self.current.signatures:
            return False
        self.current = read
        _LOG.warning("the master's key is %s, the key before is %s", *_told(read))
        return True

    def _read(self) -> MasterKeys:
        if self._options is None:
            return MasterKeys.load(self._directory)
        return MasterKeys.load_for(self._directory, self._options)

    def _signature(self) -> tuple[object, ...]:
        names = [PRIVATE, PREVIOUS, "master.secret"]
        if self._options is not None:
            names += [f"{self._options.master_sign_key_name}.pem", self._options.master_pubkey_signature]
        return tuple(file_state(self._directory / name) for name in names)


def _told(keys: MasterKeys) -> tuple[str, str]:
    return keys.private.public.fingerprint(), keys.previous.public.fingerprint() if keys.previous else "gone"


def record_mac(secret: bytes) -> Callable[[str, bytes], bytes]:
    """Return a function mac(kind, record) that returns the authentication code of a record in Redis, as hexadecimal digits.

    The key is derived from the master's secret, so every worker and publisher of a master makes the same codes.
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
