"""Store: all operations on the master's data in Redis."""

from __future__ import annotations

from masterstore import keys
from masterstore.audit import Audit
from masterstore.cache import Banks, Cache, Presence
from masterstore.client import Client
from masterstore.durability import Durability, trouble_with
from masterstore.epochs import EpochStore
from masterstore.errors import StoreError, StoreUnavailable
from masterstore.event_codes import EventCodes
from masterstore.event_groups import EventGroups
from masterstore.events import Events
from masterstore.job_budget import JobBudget
from masterstore.job_find import JobFinder
from masterstore.jobs import Jobs
from masterstore.locks import Locks
from masterstore.master_keys import MasterKeyRecords
from masterstore.minion_keys import MinionKeys
from masterstore.overview import Overview
from masterstore.publications import Publications
from masterstore.record_mac import Records
from masterstore.replays import Replays
from masterstore.runner_jobs import RunnerJobs
from masterstore.schema import Schema
from masterstore.sign_ins import SignIns
from masterstore.tokens import Tokens


class Store:
    """The master's data in Redis: jobs, keys, grains, pillar, events, locks. One attribute for each group of
    operations.

    Creating it does not connect; every operation raises StoreUnavailable if Redis does not answer.
    """

    def __init__(
        self,
        client: Client,
        durability: Durability = Durability(),  # noqa: B008 - it is frozen
        records: Records = Records(),  # noqa: B008 - it never changes
        event_codes: EventCodes = EventCodes(),  # noqa: B008 - it never changes
    ) -> None:
        self._client = client
        self._durability = durability
        #: Malformed data that was found in Redis and skipped.
        self.faults = client.faults
        self.audit = Audit(client, records)
        self.jobs = Jobs(client, durability, records, event_codes, self.audit)
        self.job_budget = JobBudget(client)
        self.found_jobs = JobFinder(client, self.jobs)
        self.runner_jobs = RunnerJobs(client, self.jobs)
        self.minion_keys = MinionKeys(client, records)
        self.master_keys = MasterKeyRecords(client)
        self.cache = Cache(client, records)
        self.banks = Banks(client)
        self.publications = Publications(client, records)
        self.events = Events(client, event_codes)
        self.event_groups = EventGroups(client, event_codes)
        self.presence = Presence(client)
        self.replays = Replays(client)
        self.epochs = EpochStore(client)
        self.sign_ins = SignIns(client, records)
        self.tokens = Tokens(client, records)
        self.locks = Locks(client)
        self.overview = Overview(client)
        self.schema = Schema(client)

    @classmethod
    def open(
        cls,
        url: str,
        *,
        timeout: float = 2.0,
        client_name: str,
        durability: Durability = Durability(),  # noqa: B008 - it is frozen
        records: Records = Records(),  # noqa: B008 - it never changes
        event_codes: EventCodes = EventCodes(),  # noqa: B008 - it never changes
    ) -> Store:
        """Return a Store for a Redis URL (``masterstore.address``); nothing is sent yet. Raises StoreError for a
        malformed URL.

        ``timeout``: seconds for connecting and for each answer. ``client_name``: name that Redis shows for the
        connection. ``durability``: replicas and disks that must confirm publications and returns. ``records``:
        makes and checks the authentication codes of the records that the master acts on. ``event_codes``: the same
        for events.
        """
        return cls(Client(url, timeout=timeout, client_name=client_name), durability, records, event_codes)

    def ping(self) -> None:
        """Raise StoreUnavailable unless Redis answers."""
        self._client.call("ping")

    def trouble(self) -> str | None:
        """Return the reason why a role cannot start, None if it can.

        Reasons: Redis does not answer, or this Redis server can never give the required durability.
        """
        try:
            self.ping()
            return trouble_with(self._client, self._durability)
        except StoreError as error:
            return str(error)

    def unready(self) -> str | None:
        """Return the reason why a role is not ready, None if it is. Readiness probes call this.

        Reasons: those of ``trouble``, and a Redis that refuses writes (its memory is full, or it is a replica).
        """
        if why := self.trouble():
            return why
        try:
            # A write that changes nothing and creates no key, but is refused like any other.
            self._client.call("execute_command", "SETRANGE", keys.WRITE_PROBE, 0, "")
        except StoreUnavailable as error:
            return str(error)
        except StoreError:
            # A malformed key or a missing permission is reported by the operations that need the key.
            return None
        return None
