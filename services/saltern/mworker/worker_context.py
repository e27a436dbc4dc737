"""What a worker has on its desk: everything a command may use. One for a process; commands keep nothing of their own."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from masterstore.epochs import Epochs
from masterstore.store import Store
from saltern.kit.config.master import MasterOptions
from saltern.kit.keys.master_keys import MasterKeys
from saltern.kit.links.event_bus import Prepared
from saltern.kit.process.metrics import Metrics
from saltern.kit.process.tracing import Tracing
from saltern.mworker.pillar_seal import pillar_seal
from saltwire.crypticle import Crypticle
from saltwire.errors import AuthenticationError, PeerFault
from saltwire.keys import PublicKey, derive_key_string
from statecore.pillar.memory import PillarMemory
from statecore.sources.fileserver import FileServer

#: Seconds for which an epoch read from Redis is believed: how long a worker may lag behind a rotation. The previous session key
#: is accepted too; where a lag would count, at a sign-in and for what cannot be opened, the newest epochs are asked for.
_EPOCH_AGE = 2.0


@dataclass
class WorkerContext:
    """The tools of one worker process."""

    options: MasterOptions
    keys: MasterKeys
    #: This role's key directory, for connections that a runner opens.
    key_dir: Path
    store: Store
    fire: Callable[[str, Mapping[str, Any]], bool]
    #: An event that is kept in one step with what it tells of.
    prepare: Callable[[str, Mapping[str, Any]], Prepared]
    files: FileServer
    pillar_memory: PillarMemory = field(default_factory=PillarMemory, init=False)
    metrics: Metrics
    log: logging.Logger
    #: Starts a runner in a process of its own; the second is told how the process ended, where it did not end well.
    start_runner: Callable[[Callable[[], None], Callable[[str], None]], None]
    tracing: Tracing = field(default_factory=lambda: Tracing({}, ""))
    _epochs: Epochs | None = None
    _epochs_read: float = 0.0
    #: Epoch and key string of publications: everybody who signs in is told the same.
    _aes: tuple[int, str] = (-1, "")
    #: minion id -> (epoch, fingerprint, keys): key derivation is done once an epoch.
    _sessions: dict[str, tuple[int, str, tuple[Crypticle, ...]]] = field(default_factory=dict)
    #: minion id -> pillar, and as it was sealed: a pillar is opened once each time that it changes.
    _pillars: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _sealed: dict[str, bytes] = field(default_factory=dict)

    def epochs(self) -> Epochs:
        """The epochs of session and publication keys, at most two seconds old. Raises StoreUnavailable if never read."""
        if self._epochs is None or time.monotonic() - self._epochs_read > _EPOCH_AGE:
            return self.newest_epochs()
        return self._epochs

    def newest_epochs(self) -> Epochs:
        """The epochs as Redis has them now. Raises StoreUnavailable."""
        return self.take_epochs(self.store.epochs.current())

    def take_epochs(self, epochs: Epochs) -> Epochs:
        """These were read just now."""
        self._epochs, self._epochs_read = epochs, time.monotonic()
        return epochs

    def aes_key_string(self) -> str:
        """The key of publications, as told to minions that sign in."""
        epoch = self.epochs().aes
        if self._aes[0] != epoch:
            self._aes = (epoch, derive_key_string(self.keys.secret, purpose="aes", epoch=epoch))
        return self._aes[1]

    def session_key_string(self, minion_id: str, public: PublicKey, epoch: int | None = None) -> str:
        """The session key of a minion, bound to its id and its key."""
        return derive_key_string(
            self.keys.secret,
            purpose="session",
            epoch=self.epochs().session if epoch is None else epoch,
            minion_id=minion_id,
            fingerprint=public.fingerprint(),
        )

    def public_key_of(self, minion_id: str) -> PublicKey | None:
        """The accepted key of a minion, None when it has none."""
        pem = self.store.minion_keys.pem(minion_id)
        return PublicKey.from_pem(pem) if pem else None

    def session_keys(self, minion_id: str) -> tuple[Crypticle, ...]:
        """The session keys that a minion may use now: this epoch's, then the last one's. Empty without an accepted key."""
        pem = self.store.minion_keys.pem(minion_id)
        if not pem:
            self._sessions.pop(minion_id, None)
            return ()
        epoch = self.epochs().session
        known = self._sessions.get(minion_id)
        if known is not None and known[0] == epoch and known[1] == pem:
            return known[2]
        public = PublicKey.from_pem(pem)
        keys = tuple(
            Crypticle(self.session_key_string(minion_id, public, number))
            for number in (epoch, epoch - 1)
            if number >= 0
        )
        self._sessions[minion_id] = (epoch, pem, keys)
        return keys

    def keep_pillar(self, minion_id: str, pillar: Mapping[str, Any]) -> None:
        """Remembers a minion's pillar for targets that ask for it. Redis gets it sealed: it holds no secret in the clear."""
        self.store.cache.set_pillar(minion_id, self._pillar_seal().dumps(pillar))

    def pillars(self) -> Mapping[str, Mapping[str, Any]]:
        """{minion: pillar} of those whose pillar was compiled under this master's secret. The map is shared: read only."""
        everybody = self.store.cache.all_pillars()
        for minion, sealed in everybody.items():
            known = self._sealed.get(minion)
            # What did not change is the very same object.
            if known is not sealed:
                self._open(minion, sealed)
        if len(self._sealed) > len(everybody):
            for minion in self._sealed.keys() - everybody.keys():
                self._pillars.pop(minion, None)
                del self._sealed[minion]
        return self._pillars

    def _open(self, minion: str, sealed: bytes) -> None:
        self._sealed[minion] = sealed
        try:
            self._pillars[minion] = self._pillar_seal().loads(sealed)
        except (PeerFault, AuthenticationError):
            # Of a master with another secret; it is written anew when the minion asks next.
            self._pillars.pop(minion, None)

    def cached_pillar(self, minion_id: str, environments: str) -> dict[str, Any] | None:
        """Pillar that is handed out as it is (option pillar_cache); None where there is none under this master's secret."""
        sealed = self.store.cache.kept_pillar(minion_id).get(environments)
        try:
            return None if sealed is None else dict(self._pillar_seal().loads(sealed))
        except (PeerFault, AuthenticationError):
            return None

    def cache_pillar(self, minion_id: str, environments: str, pillar: Mapping[str, Any]) -> None:
        """Keeps it for ``pillar_cache_ttl`` seconds."""
        sealed = self._pillar_seal().dumps(pillar)
        self.store.cache.keep_pillar(minion_id, environments, sealed, self.options.pillar_cache_ttl)

    def _pillar_seal(self) -> Crypticle:
        return pillar_seal(self.keys.secret)

    def shared_keys(self) -> tuple[Crypticle, ...]:
        """The publication key as minions of message version 2 use it for requests."""
        if self.options.minimum_auth_version >= 3:
            return ()
        return (Crypticle(self.aes_key_string()),)
