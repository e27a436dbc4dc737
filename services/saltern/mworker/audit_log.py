"""A worker's entries in the audit record, and the times at which it seals them by a digest with an authentication
code. Source: docs/security.md#audit
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from masterstore.audit import Audit
from masterstore.errors import StoreCorrupt, StoreError, StoreUnavailable
from saltern.kit.config.master import MasterOptions

#: Seconds between a worker's first entry and its seal, and between two looks for entries that an ended worker left.
_SEAL_AFTER, _LOOK_AFTER = 1.0, 10.0

#: Refusals of one client key that a worker records in a minute. More would push everything else out of the record.
_REFUSALS = 60

#: Client keys whose refusals are counted at once.
_MOST_CLIENTS = 1000


@dataclass
class AuditLog:
    """Writes a worker's entries to the audit record, and seals them: appends a digest with an authentication code
    (``masterstore.audit``). Does nothing if ``audit`` is off.
    """

    options: MasterOptions
    audit: Audit
    log: logging.Logger
    clock: Callable[[], float] = time.monotonic
    _seal_at: float = 0.0
    #: Start of the minute that is counted; refusals of each client key in it.
    _minute: float = 0.0
    _refusals: dict[str, int] = field(default_factory=dict)

    def fields(self, act: str, who: str, **more: object) -> Mapping[str, object] | None:
        """Return an entry of the audit record as {field: value}, for a change that the store writes in the same step as the entry.

        None if the option ``audit`` is off. ``act``: the kind of action; ``who``: a client key's name or a minion id.
        """
        return {"act": act, "who": who, **more} if self.options.audit else None

    def record(self, act: str, who: str, **more: object) -> None:
        """Append an entry about an action that happened to the audit record.

        While Redis does not answer, the worker keeps the entry and writes it later. An entry that Redis refuses is logged.
        ``act``: the kind of action; ``who``: a client key's name or a minion id.
        """
        try:
            self.begin(act, who, **more)
        except StoreError as error:
            self.log.error("audit: not recorded: %s: %s", self.fields(act, who, **more), error)

    def begin(self, act: str, who: str, **more: object) -> None:
        """Append an entry about an action that begins now. Raises StoreError if Redis refuses the entry: the caller then
        refuses the action.

        While Redis does not answer, the worker keeps the entry and writes it later. ``act``: the kind of action;
        ``who``: a client key's name or a minion id.
        """
        entry = self.fields(act, who, **more)
        if entry is None:
            return
        try:
            self.audit.append(entry, int(time.time() * 1000))
        except StoreUnavailable as error:
            self.log.error("audit: recorded when Redis answers again: %s: %s", entry, error)

    def refused(self, client: str, cmd: str, why: str) -> None:
        """Record a refused command of an operator, at most 60 in a minute of one client key; further ones are logged."""
        now = self.clock()
        if now - self._minute >= 60:
            self._minute, self._refusals = now, {}
        count = self._refusals.get(client, 0) + 1
        if client in self._refusals or len(self._refusals) < _MOST_CLIENTS:
            self._refusals[client] = count
        if count <= _REFUSALS:
            more = (
                {"more": "further refusals within a minute are in the worker's log only"} if count == _REFUSALS else {}
            )
            self.record("refused", client, cmd=cmd, why=why, **more)
        elif self.options.audit:
            self.log.warning("a command was refused: %s", why, extra={"cmd": cmd, "client": client})

    def seal_when_due(self) -> None:
        """Seal the new entries of the audit record by a digest with an authentication code: once a second while this
        worker writes entries, else every ten seconds.

        Errors are logged; the next seal covers the same entries.
        """
        now = self.clock()
        if now < self._seal_at or not self.options.audit:
            return
        if self.audit.unsealed or now >= self._seal_at + _LOOK_AFTER - _SEAL_AFTER:
            self._seal_at = now + _SEAL_AFTER
            self.seal()

    def seal(self) -> None:
        """Append a seal (digest with an authentication code) over those entries of the audit record that no seal
        covers yet. Errors are logged, not raised.
        """
        if not self.options.audit:
            return
        try:
            options = self.options
            self.audit.seal(int(time.time() * 1000), kept=options.audit_kept, most_bytes=options.audit_max_bytes)
        except StoreCorrupt as error:
            self.log.error("audit: %s", error)
        except StoreUnavailable as error:
            self.log.debug("audit: not sealed yet: %s", error)
        except StoreError as error:
            self.log.error("audit: not sealed: %s", error)
