"""The role maintenance: runs the master's periodic tasks.

TASKS has one row for each task. Of several replicas of the role, the one that holds the lock runs the tasks.
Source: docs/execution.md#maintenance
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import zmq

from masterstore.errors import StoreError, StoreUnavailable
from masterstore.event_codes import EventCodes
from masterstore.events import EventKeeper
from masterstore.keys import SCHEMA_VERSION
from masterstore.runner_jobs import SIGN_EVERY, SILENT_AFTER
from masterstore.store import Store
from saltern.kit.config.master import MasterOptions
from saltern.kit.config.reactor_rows import wanted_tags
from saltern.kit.keys.events_key import load_event_macs
from saltern.kit.links.answers import RunnerAnswer
from saltern.kit.links.control import ControlClient, ControlError, ControlTimeout
from saltern.kit.links.event_bus import EventSender
from saltern.kit.links.sockets import LinkKeys
from saltern.kit.process.service import Role, RoleProgram, run_role, unusable
from saltern.kit.trees.served_files import file_server
from saltern.kit.trees.updates import mirrors, roots_changes, tidy
from saltern.maintenance.fetches import BackendUpdates, Fetches
from saltern.maintenance.scheduled import Due, ScheduledRunners
from saltwire import tags
from statecore.sources.gitrepos.remotes import GITFS

#: Seconds between two checks for due tasks and for signals.
_TICK = 1.0

#: Time to live of the lock, milliseconds: another replica takes over after that.
_LOCK_MS = 15_000

_LOCK = "maintenance"

#: User of the schedule's runners.
_USER = "schedule"

#: Seconds to wait for the master's answer to the start of a runner; less than the lock's time to live.
_START_SECONDS = 5.0

#: Seconds between two updates of the metric of keys by state.
_COUNT_EVERY = 15.0

#: Seconds between two checks of the schema version.
_SCHEMA_CHECK_EVERY = 3600.0

#: A minion that works on a job is lost after so many presence windows of silence, but not before so many seconds.
_SILENT_WINDOWS, _SHORTEST_SILENCE = 3, 600

#: Seconds between two cleanups of Git mirrors.
_TIDY_EVERY = 3600.0

#: Milliseconds for which an ended job is kept with ``job_cache: False``: `salt` reads it once more before it ends.
_UNCACHED_MS = 300_000


@dataclass
class MaintenanceContext:
    """The argument of every maintenance task: the role, the store, an event sender, and values kept between two rounds."""

    role: Role
    store: Store
    fire: Callable[[str, Mapping[str, object]], bool]
    scheduled: ScheduledRunners
    #: Starts a runner and returns the master's answer. Raises ControlError, ControlTimeout.
    start: Callable[[Due], RunnerAnswer]
    #: Fencing token of the lock while this replica has it.
    token: int = 0
    #: Minions that were present in the last round; None before the first round.
    present: frozenset[str] | None = None
    #: Map of JID to the last sign of life of runners that were silent in the last round.
    silent: Mapping[str, int] = field(default_factory=dict)
    fetches: Fetches = field(default_factory=lambda: Fetches(()))
    backends: BackendUpdates = field(default_factory=lambda: BackendUpdates(()))
    #: Map of remote to its last error, so that each error is logged once.
    fetch_errors: dict[str, str] = field(default_factory=dict)


Work: TypeAlias = Callable[[MaintenanceContext], None]


@dataclass(frozen=True)
class Task:
    """A row of TASKS: a function that the role maintenance calls periodically, and the seconds between two calls."""

    #: Seconds between two runs.
    period: Callable[[MasterOptions], float]
    work: Work


def rotate_keys(context: MaintenanceContext) -> None:
    """Start a new epoch of the publication key after ``aes_rotation_interval``, and of the session keys after ``publish_session``.

    Source: docs/protocol.md#key-rotation
    """
    options, now = context.role.options, time.time()
    epochs = context.store.epochs.current()
    fence = (_LOCK, context.token)
    # The fence prevents a change if this process was paused meanwhile and has lost the lock.
    overdue = now - epochs.aes_since >= options.aes_rotation_interval
    if overdue and context.store.epochs.rotate_aes(fence) != epochs.aes:
        context.role.metrics.aes_rotations.inc()
        context.fire("key", {"rotate_aes_key": True})
        context.role.log.info("the key of publications was rotated")
    overdue = now - epochs.session_since >= options.publish_session
    if overdue and context.store.epochs.rotate_session(fence) != epochs.session:
        context.role.log.info("session keys were rotated")


def expire_jobs(context: MaintenanceContext) -> None:
    """Remove expired jobs from the indexes (Redis deletes the jobs themselves), and keep the job cache within
    ``job_cache_bytes``.
    """
    options, log, budget, now_ms = (
        context.role.options,
        context.role.log,
        context.store.job_budget,
        int(time.time() * 1000),
    )
    trimmed = context.store.jobs.expire(now_ms, options.keep_jobs_seconds)
    if trimmed:
        log.info("%d jobs left the job cache", trimmed)
    budget.forget(now_ms, options.keep_jobs_seconds)
    if not options.job_cache and (dropped := budget.drop_ended(now_ms - _UNCACHED_MS).jobs):
        log.info("%d jobs that had ended were dropped (job_cache is off)", dropped)
    if options.job_cache_bytes:
        evicted = budget.evict(options.job_cache_bytes)
        if evicted.jobs:
            context.role.metrics.jobs_evicted.inc(evicted.jobs)
            log.warning("%d jobs were dropped, the oldest, for job_cache_bytes: %d bytes", evicted.jobs, evicted.bytes)
    held = budget.bytes()
    context.role.metrics.jobs_bytes.set(held)
    if 0 < options.job_cache_bytes < held:
        log.error(
            "the job cache has %d bytes, more than job_cache_bytes: what is left is waited for, or the next round's",
            held,
        )


def check_schema(context: MaintenanceContext) -> None:
    """Log a warning if the data in Redis has an older schema version than this program, an error if it has a newer one."""
    version = context.store.schema.begin()
    if version < SCHEMA_VERSION:
        text = "Redis is of schema %d: jobs from before are not found by filters; `saltern store migrate` brings them to %d"
        context.role.log.warning(text, version, SCHEMA_VERSION)
    elif version > SCHEMA_VERSION:
        context.role.log.error(
            "Redis is of schema %d, and this version knows %d: use the newer one", version, SCHEMA_VERSION
        )


def give_up_minions(context: MaintenanceContext) -> None:
    """Give up jobs on minions: mark them as expired if the time to deliver them is over, as lost if the minion fell
    silent. Count and log them.
    """
    now_ms = int(time.time() * 1000)
    settled = context.store.jobs.settle(now_ms, now_ms - _silence_ms(context.role.options))
    for state, count in (("expired", settled.expired), ("lost", settled.lost)):
        if count:
            context.role.metrics.lives_ended.labels(state).inc(count)
            context.role.log.info("%d minions are %s to their jobs", count, state)


def _silence_ms(options: MasterOptions) -> int:
    """Return the milliseconds of silence after which the master gives up a minion that works on a job.

    By then several of the minion's reports are missing.
    """
    return max(_SILENT_WINDOWS * options.presence_window, _SHORTEST_SILENCE) * 1000


def end_lost_runners(context: MaintenanceContext) -> None:
    """End the jobs of runners whose process died: store a failed return and fire the ``ret`` event.

    A runner must be silent in two rounds, because no reports arrive while Redis is away.
    """
    now = context.store.runner_jobs.silent(int(SILENT_AFTER * 1000))
    before, context.silent = context.silent, now
    why = f"nothing was heard of it for more than {SILENT_AFTER:g} seconds; its process was killed, or its machine is gone"
    for jid in [jid for jid, sign in now.items() if before.get(jid) == sign]:
        lost = context.store.runner_jobs.lose(jid, why, ttl=context.role.options.keep_jobs_seconds)
        if lost is not None:
            context.fire(tags.run_ret(jid), lost)
            context.role.log.error("a runner was lost", extra={"jid": jid})


def start_scheduled(context: MaintenanceContext, due: Sequence[Due]) -> None:
    """Start the runners ``due`` of the master's schedule. A runner that the master refuses is logged as an error.

    Nothing is started after this replica has lost the lock.
    """
    for each in due:
        if context.store.locks.newest(_LOCK) != context.token:
            context.role.log.warning("%s of the schedule is left to whoever has the lock now", each.name)
            continue
        try:
            job = context.start(each)
        except (ControlError, ControlTimeout) as error:
            context.role.log.error("the job %s of the schedule was not started: %s", each.name, error)
            continue
        context.scheduled.began(each, str(job["jid"]))
        context.role.log.info("%s, as the schedule's job %s asks", each.fun, each.name, extra={"jid": job["jid"]})


def report_presence(context: MaintenanceContext) -> None:
    """Fire the events with the present minions and with the changes since the last round. Source: docs/protocol.md#event-tags"""
    options = context.role.options
    now = frozenset(context.store.presence.present(int((time.time() - options.presence_window) * 1000)))
    before, context.present = context.present, now
    context.role.metrics.minions_present.set(len(now))
    if not options.presence_events:
        return
    if before is not None and before != now:
        context.fire(tags.PRESENCE_CHANGE, {"new": sorted(now - before), "lost": sorted(before - now)})
    context.fire(tags.PRESENCE_PRESENT, {"present": sorted(now)})


def fetch_remotes(context: MaintenanceContext) -> None:
    """Take the results of ended fetches of Git remotes, log them and fire the fileserver event; start the fetches that are due."""
    log = context.role.log
    updates = context.fetches.poll(time.monotonic())
    for update in updates:
        name = update.mirror.remote.id
        if update.error and context.fetch_errors.get(name) != update.error:
            log.error("%s; what was fetched before stays", update.error)
        elif not update.error and name in context.fetch_errors:
            log.warning("%s can be fetched again", update.mirror.remote.shown)
        if update.changed:
            log.info("%s was fetched: it is another", update.mirror.remote.shown)
        context.fetch_errors.pop(name, None)
        if update.error:
            context.fetch_errors[name] = update.error
    served = [update for update in updates if update.mirror.remote.role == GITFS]
    if served and context.role.options.fileserver_events:
        changed = any(update.changed for update in served)
        context.fire(tags.fileserver_update("gitfs"), {"changed": changed, "backend": "gitfs"})


def report_roots_changes(context: MaintenanceContext) -> None:
    """Fire Salt's fileserver event with the files that changed in file_roots, if ``fileserver_events`` is on.

    An unwritable cache directory is logged as an error.
    """
    options = context.role.options
    if not options.fileserver_events or "roots" not in options.fileserver_backend:
        return
    try:
        context.fire(tags.fileserver_update("roots"), roots_changes(options))
    except OSError as error:
        context.role.log.error("file_roots: %s: %s", error.filename, error.strerror)


def update_backends(context: MaintenanceContext) -> None:
    """Start the update of users' fileserver backends in a thread, unless one is in progress."""
    context.backends.start_round()


def tidy_mirrors(context: MaintenanceContext) -> None:
    """Delete exported files and mirrors of Git remotes that are not used any more."""
    tidy(context.role.options)


def count_keys(context: MaintenanceContext) -> None:
    """Set the metric that counts minion keys by state."""
    for state, ids in context.store.minion_keys.all().items():
        context.role.metrics.minions.labels(state).set(len(ids))


TASKS: Mapping[str, Task] = {
    "fetch_remotes": Task(lambda options: _TICK, fetch_remotes),
    "report_roots_changes": Task(lambda options: options.roots_update_interval, report_roots_changes),
    "update_backends": Task(lambda options: options.fileserver_users_interval, update_backends),
    "tidy_mirrors": Task(lambda options: _TIDY_EVERY, tidy_mirrors),
    "rotate_keys": Task(lambda options: min(options.loop_interval, options.aes_rotation_interval), rotate_keys),
    "end_lost_runners": Task(lambda options: SIGN_EVERY + 1.0, end_lost_runners),
    "check_schema": Task(lambda options: _SCHEMA_CHECK_EVERY, check_schema),
    "give_up_minions": Task(lambda options: options.loop_interval, give_up_minions),
    "expire_jobs": Task(lambda options: options.loop_interval, expire_jobs),
    "report_presence": Task(lambda options: options.loop_interval, report_presence),
    "count_keys": Task(lambda options: _COUNT_EVERY, count_keys),
}


@dataclass
class TaskSchedule:
    """The time at which each maintenance task runs next, in seconds of one monotonic clock."""

    options: MasterOptions
    due: dict[str, float] = field(default_factory=dict)

    def take(self, now: float) -> list[str]:
        """Return the names of the maintenance tasks to run now, and schedule each again after its period."""
        names = [name for name in TASKS if self.due.get(name, now) <= now]
        for name in names:
            self.due[name] = now + TASKS[name].period(self.options)
        return names


def run_due_tasks(context: MaintenanceContext, schedule: TaskSchedule, owner: str) -> None:
    """Take or renew the lock; if this replica has it, run the maintenance tasks and scheduled runners whose time has come.

    A malformed key in Redis stops only the task that reads it. Raises StoreError if Redis or the lock fails.
    """
    store = context.store
    token = store.locks.acquire(_LOCK, owner, _LOCK_MS)
    due = list(context.scheduled.due(store.runner_jobs.running() if context.role.options.schedule else ()))
    if token is None:
        return
    context.token = token
    start_scheduled(context, due)
    for name in schedule.take(time.monotonic()):
        try:
            TASKS[name].work(context)
        except StoreUnavailable:
            raise
        except StoreError as error:
            # A malformed key stops only the task that reads it.
            context.role.log.error("%s: %s", name, error)


def _prepare(role: Role) -> Callable[[], None]:
    codes = EventCodes(load_event_macs(role.keys, role.log), accept_unsigned=role.options.accept_unsigned_records)
    with unusable(StoreError):
        store = Store.open(role.options.redis_url, client_name="maintenance", event_codes=codes)
    return partial(_loop, role, store, LinkKeys.load(role.keys))


def _loop(role: Role, store: Store, keys: LinkKeys) -> None:
    zmq_context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    keeper = EventKeeper(store.events, wanted_tags(role.options), role.options.events_kept_count)
    sender = EventSender(zmq_context, role.options, keys, keeper)
    control = ControlClient(zmq_context, role.options, keys)

    def start(due: Due) -> RunnerAnswer:
        return control.call(
            "runner",
            timeout=_START_SECONDS,
            fun=due.fun,
            arg=due.arg,
            kwarg=due.kwarg,
            request_id=due.request_id,
            user=_USER,
        )

    context = MaintenanceContext(role, store, sender.fire, ScheduledRunners(role.options.schedule), start)
    context.fetches = Fetches(mirrors(role.options))
    context.backends = BackendUpdates(file_server(role.options).users)
    schedule = TaskSchedule(role.options)
    owner = f"{socket.gethostname()}-{os.getpid()}"
    role.watch_redis(store.unready)
    role.watch_faults(store.faults)
    away = False
    try:
        while role.running():
            try:
                run_due_tasks(context, schedule, owner)
                away = False
            except StoreError as error:
                # A malformed key does not end the role: it goes on as soon as the key is repaired.
                if not away:
                    role.log.error("%s; tasks wait until it is back", error)
                away = True
            role.stop.wait(_TICK)
        if not away:
            with contextlib.suppress(StoreError):
                # Without the release the lock expires by itself.
                store.locks.release(_LOCK, owner)
    finally:
        sender.close()
        control.close()
        zmq_context.term()


PROGRAM = RoleProgram("maintenance", _prepare, caches=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``saltern maintenance`` and return its exit code."""
    return run_role(PROGRAM, argv)
