"""The functions of the returners ``mysql``, ``postgres`` and ``pgjsonb``: the tables of ``job_tables`` in three databases."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from statecore.model.context import Context
from statecore.system.databases.job_tables import Connection, Dialect, JobTables
from statecore.system.returner_settings import settings_of


@dataclass(frozen=True)
class SqlReturner:
    """A returner that stores returns, jobs and events in one kind of SQL database. Its methods are the functions of the
    returner's module.
    """

    #: Start of the names of its options: "returner.postgres".
    name: str
    #: Each option and its default.
    defaults: Mapping[str, object]
    dialect: Dialect
    #: Opens a connection by the values of the options.
    connect: Callable[[Mapping[str, object]], Connection]

    def returner(self, ctx: Context, ret: Mapping[str, object]) -> None:
        """Store one minion's return of a job in the table ``salt_returns``. Raises CommandError if the server does not
        answer, the database driver's error if the server refuses.
        """
        self._tables(ctx, ret).store_return(ret)

    def event_return(self, ctx: Context, events: Sequence[Mapping[str, object]]) -> None:
        """Store events of the master, each a map of ``tag`` and ``data``, in the table ``salt_events``, all or none.
        Raises CommandError if the server does not answer, the database driver's error if the server refuses.
        """
        self._tables(ctx).store_events(events, str(ctx.opts.get("id", "")))

    def save_load(self, ctx: Context, jid: str, load: Mapping[str, object], minions: object = None) -> None:
        """Store the load of a job in the table ``jids``. If this JID has a load already, ``mysql`` and ``postgres`` keep
        that load, and ``pgjsonb`` replaces it.
        """
        self._tables(ctx).store_load(jid, load)

    def save_minions(self, ctx: Context, jid: str, minions: object, syndic_id: object = None) -> None:
        """Do nothing: the load that ``save_load`` stores names the job's minions."""

    def get_load(self, ctx: Context, jid: str) -> dict[str, object]:
        """Return the load of a job from the table ``jids``; {} for an unknown JID."""
        return self._tables(ctx).load(jid)

    def get_jid(self, ctx: Context, jid: str) -> dict[str, object]:
        """Return {minion id: return} of a job from the table ``salt_returns``, each return as the minion sent it; {} for
        an unknown JID.
        """
        return self._tables(ctx).returns(jid)

    def get_fun(self, ctx: Context, fun: str) -> dict[str, object]:
        """Return {minion id: newest return of the execution function ``fun``} from the table ``salt_returns``."""
        return self._tables(ctx).last_returns(fun)

    def get_jids(self, ctx: Context) -> dict[str, dict[str, object]]:
        """Return {JID: job} of all jobs in the table ``jids``. A job is a map with Function, Arguments, Target,
        Target-type, User and StartTime.
        """
        return self._tables(ctx).jobs()

    def get_minions(self, ctx: Context) -> list[str]:
        """Return the ids of all minions of which a return is stored in the table ``salt_returns``."""
        return self._tables(ctx).minions()

    def clean_old_jobs(self, ctx: Context) -> None:
        """Delete the jobs, returns and events that are older than ``keep_jobs_seconds``. With the option ``archive_jobs``
        they are first copied to the tables ``*_archive``.
        """
        seconds = int(ctx.opts.get("keep_jobs_seconds") or 0)
        if seconds > 0:
            self._tables(ctx).expire(seconds, archive=bool(ctx.opts.get("archive_jobs")))

    def _tables(self, ctx: Context, ret: Mapping[str, object] | None = None) -> JobTables:
        settings = settings_of(ctx.functions["config.option"], self.name, ret, self.defaults)
        return JobTables(self.dialect, lambda: self.connect(settings))
