"""The objects that the commands of a worker use. Each process has one WorkerContext; commands keep no state of their own."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from masterstore.epochs import Epochs
from masterstore.store import Store
from saltern.kit.config.access_rows import AccessRows, LiveRows
from saltern.kit.config.master import MasterOptions
from saltern.kit.keys.master_keys import MasterKeys
from saltern.kit.links.event_bus import Prepared
from saltern.kit.process.metrics import Metrics
from saltern.kit.process.tracing import Tracing
from saltern.mworker.audit_log import AuditLog
from saltern.mworker.bounded_cache import BoundedCache
from saltern.mworker.pillar_seal import PillarSeal
from saltern.mworker.quotas import Quotas
from saltwire.crypticle import Crypticle
from saltwire.keys import PrivateKey, PublicKey, derive_key_string
from statecore.pillar.memory import PillarMemory
from statecore.sources.fileserver import FileServer

#: Seconds for which epochs read from Redis are reused, so a worker may lag behind a key rotation for so long. That is harmless,
#: because the previous session key is accepted, too; a sign-in and a request that cannot be decrypted read the newest epochs.
_EPOCH_AGE = 2.0

#: Seconds without use after which the copies of all minions' grains and pillars are dropped.
_COPIES_KEPT = 300.0


#: A minion's facts (epoch, public key, acceptance), and its session keys of two epochs.
Session = tuple[tuple[int, str, int], tuple[Crypticle, ...]]

#: Bytes of an entry beside the texts in it, measured: two keys with their ciphers and HMAC states, or a pair.
_SESSION_BYTES = 1600
_TOKEN_BYTES = 300


@dataclass
class WorkerContext:
    """Options, keys, store, event sender and file server of one worker process."""

    options: MasterOptions
    keys: MasterKeys
    #: This role's key directory, for connections that a runner opens.
    key_dir: Path
    store: Store
    fire: Callable[[str, Mapping[str, object]], bool]
    #: Fires several events, each (tag, data), with one question to Redis.
    fire_all: Callable[..., bool]
    #: Prepares an event that the store writes in the same step as the change that the event reports.
    prepare: Callable[[str, Mapping[str, object]], Prepared]
    files: FileServer
    pillar_memory: PillarMemory = field(default_factory=PillarMemory, init=False)
    metrics: Metrics
    log: logging.Logger
    #: Runs its first argument in a child process; calls its second one with the reason if the child fails.
    start_runner: Callable[[Callable[[], None], Callable[[str], None]], None]
    tracing: Tracing = field(default_factory=lambda: Tracing({}, ""))
    #: Who may do what, read again when the master's files change; None: as in ``options``.
    access: LiveRows | None = None
    #: What each minion may store and fire.
    quotas: Quotas = field(init=False)
    #: Who did what.
    audit: AuditLog = field(init=False)
    #: Size of the request that is being answered, bytes.
    request_bytes: int = 0
    _access: LiveRows = field(init=False)
    #: Minion id -> monotonic seconds until which its pillar is not compiled, because that took too long.
    slow_pillars: dict[str, float] = field(default_factory=dict)
    _epochs: Epochs | None = None
    _epochs_read: float = 0.0
    #: (epoch, key string) of publications; a cache, because each sign-in needs it.
    _aes: tuple[int, str] = (-1, "")
    #: Map of minion id to ((epoch, public key, acceptance), session keys); a cache, so that keys are derived once an epoch.
    _sessions: BoundedCache[Session] = field(init=False)
    #: Map of minion id to the last (public key, token) that passed, so that a token is verified once.
    tokens: BoundedCache[tuple[str, bytes]] = field(init=False)
    #: Maps of minion id to the pillar and to its encrypted form; a pillar is decrypted again only after a change.
    _pillars: dict[str, Mapping[str, object]] = field(default_factory=dict)
    _sealed: dict[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._access = self.access or LiveRows(self.options)
        most = self.options.worker_cache_bytes
        self._sessions = BoundedCache(most, lambda session: _SESSION_BYTES + len(session[0][1]))
        self.tokens = BoundedCache(most, lambda known: _TOKEN_BYTES + len(known[0]) + len(known[1]))
        self.metrics.worker_cache_bytes.set_function(lambda: float(self._sessions.bytes + self.tokens.bytes))
        self.metrics.worker_copies_bytes.set_function(lambda: float(self.store.cache.copied_bytes))
        self.quotas = Quotas(self.options, self.metrics.quota_refusals, self.log)
        self.audit = AuditLog(self.options, self.store.audit, self.log)

    @property
    def rows(self) -> AccessRows:
        """Return the options that say who may do what, as the master's files have them now."""
        return self._access.current()

    def epochs(self) -> Epochs:
        """Return the epochs of session and publication keys, at most two seconds old. Raises StoreUnavailable if they
        were never read.
        """
        if self._epochs is None or time.monotonic() - self._epochs_read > _EPOCH_AGE:
            return self.newest_epochs()
        return self._epochs

    def newest_epochs(self) -> Epochs:
        """Read the epochs of session and publication keys from Redis and return them. Raises StoreUnavailable."""
        return self.take_epochs(self.store.epochs.current())

    def take_epochs(self, epochs: Epochs) -> Epochs:
        """Remember the epochs of session and publication keys, just read from Redis, for two seconds; return them."""
        self._epochs, self._epochs_read = epochs, time.monotonic()
        return epochs

    def aes_key_string(self) -> str:
        """Return the current key string with which publications are encrypted."""
        epoch = self.epochs().aes
        if self._aes[0] != epoch:
            self._aes = (epoch, derive_key_string(self.keys.secret, purpose="aes", epoch=epoch))
        return self._aes[1]

    def session_key_string(
        self, minion_id: str, public: PublicKey, *, epoch: int | None = None, acceptance: int | None = None
    ) -> str:
        """Return the session key string of a minion in an epoch (default: the current one). It depends on the minion's
        id and public key, and on the number of the key's acceptance: a session does not survive the deletion or
        rejection of its key, even if the same key is accepted again. ``acceptance`` is read if it is None.
        """
        if acceptance is None:
            acceptance = self.store.minion_keys.acceptance(minion_id)
        fingerprint = public.fingerprint()
        return derive_key_string(
            self.keys.secret,
            purpose="session",
            epoch=self.epochs().session if epoch is None else epoch,
            minion_id=minion_id,
            # 0: an older release accepted the key.
            fingerprint=f"{fingerprint} {acceptance}" if acceptance else fingerprint,
        )

    def public_key_of(self, minion_id: str) -> PublicKey | None:
        """Return the accepted PublicKey of a minion; None if its key is not accepted."""
        pem = self.store.minion_keys.pem(minion_id)
        return PublicKey.from_pem(pem) if pem else None

    def master_key_of(self, minion_id: str) -> PrivateKey:
        """Return the master's private key whose signature the minion accepts. While the master's key is replaced, this
        is the key that the minion knew at its last sign-in.
        """
        if self.keys.previous is None:
            return self.keys.private
        return self.keys.known_to(self.store.master_keys.known_to(minion_id))

    def session_keys(self, minion_id: str) -> tuple[Crypticle, ...]:
        """Return a minion's session keys of the current and the previous epoch as Crypticles; () without an accepted key."""
        pem = self.store.minion_keys.pem(minion_id)
        if not pem:
            self._sessions.pop(minion_id, None)
            return ()
        epoch, acceptance = self.epochs().session, self.store.minion_keys.acceptance(minion_id)
        facts = (epoch, pem, acceptance)
        known = self._sessions.get(minion_id)
        if known is not None and known[0] == facts:
            return known[1]
        public = PublicKey.from_pem(pem)
        keys = tuple(
            Crypticle(self.session_key_string(minion_id, public, epoch=number, acceptance=acceptance))
            for number in (epoch, epoch - 1)
            if number >= 0
        )
        self._sessions[minion_id] = (facts, keys)
        return keys

    def keep_pillar(self, minion_id: str, pillar: Mapping[str, object]) -> None:
        """Store a minion's pillar, encrypted, for targeting by pillar."""
        self.store.cache.set_pillar(minion_id, self._pillar_seal().seal(minion_id, pillar))

    def pillars(self) -> Mapping[str, Mapping[str, object]]:
        """Return {minion id: pillar} of all pillars that were encrypted under this master's secret. The map is shared:
        do not change it.
        """
        everybody = self.store.cache.all_pillars()
        for minion, sealed in everybody.items():
            known = self._sealed.get(minion)
            # The store returns the same bytes object for an unchanged pillar.
            if known is not sealed:
                self._open(minion, sealed)
        if len(self._sealed) > len(everybody):
            for minion in self._sealed.keys() - everybody.keys():
                self._pillars.pop(minion, None)
                del self._sealed[minion]
        return self._pillars

    def release_copies(self, now: float) -> None:
        """Drop the copies of all minions' grains and pillars if no target has needed them for five minutes. ``now``: monotonic
        seconds. Call it while no request is in hand.
        """
        if self.store.cache.release_copies(now - _COPIES_KEPT):
            self._pillars, self._sealed = {}, {}

    def _open(self, minion: str, sealed: bytes) -> None:
        self._sealed[minion] = sealed
        pillar = self._pillar_seal().open(minion, sealed)
        if pillar is None:
            # Written by a master with another secret, or for another minion. It is replaced when the minion asks for pillar.
            self._pillars.pop(minion, None)
        else:
            self._pillars[minion] = pillar

    def cached_pillar(self, minion_id: str, environments: str) -> dict[str, object] | None:
        """Return a minion's pillar for these environments (saltenv and pillarenv) from ``pillar_cache``; None if it is
        not cached.
        """
        sealed = self.store.cache.kept_pillar(minion_id).get(environments)
        if sealed is None:
            return None
        return self._pillar_seal().open(minion_id, sealed, environments, self.options.pillar_cache_ttl)

    def cache_pillar(self, minion_id: str, environments: str, pillar: Mapping[str, object]) -> None:
        """Store a minion's pillar for these environments (saltenv and pillarenv) in ``pillar_cache`` for
        ``pillar_cache_ttl`` seconds.
        """
        sealed = self._pillar_seal().seal(minion_id, pillar, environments)
        self.store.cache.keep_pillar(minion_id, environments, sealed, self.options.pillar_cache_ttl)

    def _pillar_seal(self) -> PillarSeal:
        return PillarSeal(self.keys.secret, accept_unbound=self.options.accept_unsigned_records)

    def shared_keys(self) -> tuple[Crypticle, ...]:
        """Return the publication key as a tuple of one Crypticle if requests of message version 2 are allowed; else ().

        Minions of that version encrypt requests with the publication key.
        """
        if self.options.minimum_auth_version >= 3:
            return ()
        return (Crypticle(self.aes_key_string()),)
