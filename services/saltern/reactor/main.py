"""The role reactor: reads events, renders the reactor SLS for their tags, and sends the reactions to the master's port 4507.

The main loop reads events from the stream in Redis (``inbox``) and renders. A few threads send requests to the master, each
over its own connection, so that a slow answer blocks no event. The reactions to one event run in one thread, in their order.
``caller`` reactions run in the main loop, because modules belong to one thread.

Source: docs/execution.md#reactor
"""

from __future__ import annotations

import glob
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import zmq

from masterstore.errors import StoreError
from masterstore.store import Store
from saltern.kit.command.arguments import on_the_wire
from saltern.kit.config.engine_rows import EngineRow, engine_rows
from saltern.kit.config.reactor_rows import rows_of
from saltern.kit.links.control import ControlClient, ControlError, ControlTimeout
from saltern.kit.links.event_bus import EventSender
from saltern.kit.links.sockets import LinkKeys
from saltern.kit.process.service import DRAIN_SECONDS, Role, RoleProgram, run_role, unusable
from saltern.reactor import event_return, job_cache
from saltern.reactor.event_store import event_stores
from saltern.reactor.inbox import EventTask, Inbox
from saltern.reactor.pool import Pool, Worker
from saltern.reactor.reactions import USER, Reaction, ReactionError, files_for, is_own, reactions
from saltern.reactor.table import ReactorTable
from statecore.model.errors import SlsError
from statecore.model.lazy import deferred, lazy_module

if TYPE_CHECKING:
    from saltern.reactor import engines as reactor_engines
    from saltern.reactor import sls as reactor_sls
else:
    # The state engine, which a reactor without reactions and engines does not need.
    reactor_engines = lazy_module("saltern.reactor.engines")
    reactor_sls = lazy_module("saltern.reactor.sls")

#: Seconds to wait for the master's answer to a reaction.
_CONTROL_TIMEOUT = 30.0

#: Names of errors by which the master says that it cannot answer now; they do not count as a failed attempt.
_MASTER_AWAY = frozenset({"StoreUnavailable", "NoWorker", "TooManyRunners", "Busy"})


@dataclass
class Reactor:
    """Renders the reactions to an event and hands them to the threads that send them."""

    role: Role
    sls: reactor_sls.ReactorSls
    table: ReactorTable
    #: Submits an event to the thread pool; returns False if the queue is full.
    submit: Callable[[EventTask], bool]
    #: Called with an event when work on it has ended.
    finished: Callable[[EventTask], None]

    def react(self, task: EventTask) -> None:
        """Start all reactions to an event that are not done yet. A reaction that fails is recorded; the others go on."""
        if not is_own(task.data) and self.table.is_leader:
            self._react(task)
        if not task.to_ask:
            self.finished(task)
        elif not self.submit(task):
            task.waits_for = "the threads that ask the master are busy (reactor_worker_threads)"
            self.finished(task)

    def _react(self, task: EventTask) -> None:
        for pattern in files_for(task.tag, self.table.files()):
            for path in self._paths(pattern, task):
                for number, reaction in enumerate(self._read(path, task)):
                    name = f"{path}#{number}"
                    if name in task.done:
                        continue
                    if reaction.client == "caller":
                        perform(self.role, partial(self.caller, reaction), reaction, name, task)
                    else:
                        task.to_ask.append((name, reaction))

    def caller(self, reaction: Reaction) -> None:
        """Run the execution function of a ``caller`` reaction in the reactor's own process."""
        returned = self.sls.call(reaction.fun, reaction.arg, reaction.kwarg)
        if not returned.success:
            raise ReactionError(f"caller.{reaction.fun}: {returned.value}")

    def _paths(self, pattern: str, task: EventTask) -> list[Path]:
        """Return the local paths of the reactor SLS files that a path, a glob or a salt:// URL names.

        If there is none, log an error, record the failure in the event's task, and return an empty list.
        """
        if pattern.startswith("salt://"):
            found = self.sls.fetch(pattern.removeprefix("salt://"))
            paths = [found] if found is not None else []
        else:
            paths = [Path(name) for name in sorted(glob.glob(pattern))]  # noqa: PTH207 - the pattern may be absolute
        if not paths:
            self.role.log.error("reactor: there is no file %s", pattern)
            task.failures.append(f"there is no file {pattern}")
        return paths

    def _read(self, path: Path, task: EventTask) -> Iterator[Reaction]:
        try:
            yield from reactions(self.sls.chunks(path, task.tag, task.data))
        except (SlsError, ReactionError, OSError, UnicodeDecodeError) as error:
            self.role.log.error("reactor: %s, for event %s: %s", path, task.tag, error)
            task.failures.append(f"{path}: {error}")


def perform(role: Role, work: Callable[[], None], reaction: Reaction, name: str, task: EventTask) -> None:
    """Run one reaction to an event by calling ``work``. Record in the event's task that it is done, why it failed, or that the
    master could not be reached; no exception is raised.
    """
    try:
        work()
    except ControlTimeout as error:
        task.waits_for = str(error)
    except (ControlError, ReactionError) as error:
        if isinstance(error, ControlError) and error.name in _MASTER_AWAY:
            task.waits_for = str(error)
            return
        role.log.error("reaction %s to %s: %s", reaction.id, task.tag, error)
        role.metrics.reactions.labels("failed").inc()
        task.failures.append(f"{reaction.id}: {error}")
    except Exception as error:
        role.log.exception("reaction %s to %s failed", reaction.id, task.tag)
        role.metrics.reactions.labels("failed").inc()
        task.failures.append(f"{reaction.id}: {type(error).__name__}: {error}")
    else:
        task.done.add(name)
        role.metrics.reactions.labels("done").inc()
        role.log.info("%s.%s, as %s asks for event %s", reaction.client, reaction.fun, reaction.id, task.tag)


def local(control: ControlClient, reaction: Reaction, request_id: str) -> None:
    """Publish the job of a reaction. If the request is repeated with the same ``request_id``, the master publishes once.

    Raises ControlError, ControlTimeout, and ReactionError if no minion matches.
    """
    job = control.call(
        "publish",
        timeout=_CONTROL_TIMEOUT,
        tgt=reaction.tgt,
        tgt_type=reaction.tgt_type,
        fun=reaction.fun,
        arg=on_the_wire(list(reaction.arg), dict(reaction.kwarg)),
        ret=reaction.ret,
        user=USER,
        request_id=request_id,
    )
    if not job.get("jid"):
        raise ReactionError(str(job.get("error") or f"no minion matches {reaction.tgt}"))


def runner(control: ControlClient, reaction: Reaction, request_id: str) -> None:
    """Start a runner for a reaction without waiting; the runner's result arrives as an event."""
    fields = {"arg": list(reaction.arg), "kwarg": dict(reaction.kwarg), "user": USER}
    control.call("runner", timeout=_CONTROL_TIMEOUT, fun=reaction.fun, request_id=request_id, **fields)


def wheel(control: ControlClient, reaction: Reaction, request_id: str) -> None:
    """Call the wheel function of a reaction. A repetition changes nothing more, so ``request_id`` is not needed."""
    fields = {"arg": list(reaction.arg), "kwarg": dict(reaction.kwarg), "user": USER}
    control.call("wheel", timeout=_CONTROL_TIMEOUT, fun=reaction.fun, **fields)


#: Map of a reaction's client to the function that sends its request.
_CLIENTS: Mapping[str, Callable[[ControlClient, Reaction, str], None]] = {
    "local": local,
    "runner": runner,
    "wheel": wheel,
}


def asker(role: Role, control: ControlClient, finished: Callable[[EventTask], None]) -> Worker[EventTask]:
    """Return two functions for one thread: one sends the reactions of an EventTask to the master, one closes the connection.

    ``finished`` is called with the EventTask after its reactions were sent.
    """

    def work(task: EventTask) -> None:
        for name, reaction in task.to_ask:
            ask = partial(_CLIENTS[reaction.client], control, reaction, task.request_id(name))
            perform(role, ask, reaction, name, task)
        finished(task)

    return work, control.close


def _prepare(role: Role) -> Callable[[], None]:
    options = role.options
    table = ReactorTable(rows_of(options.reactor), options.id)
    engines = engine_rows(options.engines)
    open_store = event_stores(role)
    with unusable(StoreError):
        store = open_store("reactor")
    return partial(_loop, role, table, store, open_store, LinkKeys.load(role.keys), engines)


def _loop(
    role: Role,
    table: ReactorTable,
    store: Store,
    open_store: Callable[[str], Store],
    keys: LinkKeys,
    engines: Sequence[EngineRow],
) -> None:
    options = role.options
    if options.reactor_niceness:
        os.nice(options.reactor_niceness)
    engine_parent = reactor_engines.EngineParent(role, engines) if engines else None
    role.watch_redis(store.unready)
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    sender = EventSender(context, options, keys)
    # With configured reactions the engine is loaded at once, otherwise at the first `salt-run reactor.add`.
    sls = reactor_sls.ReactorSls(options) if table.rows else deferred(lambda: reactor_sls.ReactorSls(options))
    inbox = Inbox(role, store, table, sender.fire)
    pool: Pool[EventTask] = Pool(
        options.reactor_worker_threads,
        options.reactor_worker_hwm,
        lambda: asker(role, ControlClient(context, options, keys), inbox.finished),
    )
    reactor = Reactor(role, sls, table, lambda task: pool.submit([task]), inbox.finished)
    ended = threading.Event()
    followers = [
        threading.Thread(
            target=work,
            args=(options, open_store, lambda: reactor_sls.runtime_of(options), ended),
            name=name,
            daemon=True,
        )
        for name, work in (
            *([("event-return", event_return.follow)] if options.event_return else []),
            *job_cache.followers(options),
        )
    ]
    for one in followers:
        one.start()
    try:
        while role.running():
            inbox.poll(reactor.react)
            if engine_parent is not None:
                engine_parent.check()
    finally:
        if engine_parent is not None:
            engine_parent.stop()
        ended.set()
        left = pool.close(DRAIN_SECONDS)
        inbox.close()
        if left or inbox.open_tasks:
            role.log.warning("%d events are left to the next reactor", inbox.open_tasks)
        for one in followers:
            one.join(DRAIN_SECONDS)
        sender.close()
        context.term()


PROGRAM = RoleProgram("reactor", _prepare)


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``saltern reactor`` and return its exit code."""
    return run_role(PROGRAM, argv)
