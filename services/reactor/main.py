"""The reactor: events in, reactor SLS by the tag, reactions out through the control link (seed 004).

The loop reads events and renders; a few threads ask the master, each over a link of its own, so that a slow answer holds no
event. Reactions of one event go to one thread, in their order. ``caller`` runs in the loop: modules belong to one thread.
"""

from __future__ import annotations

import glob
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import zmq

from services.kit.arguments import on_the_wire
from services.kit.bus import EventSender, EventSubscriber
from services.kit.config import MasterOptions, as_opts
from services.kit.control import ControlClient, ControlError, ControlTimeout
from services.kit.links import LinkKeys
from services.kit.served_files import file_server
from services.kit.service import DRAIN_SECONDS, Role, run_role
from services.reactor.event_return import follow
from services.reactor.pool import Pool, Worker
from services.reactor.reactions import USER, Reaction, ReactionError, files_for, is_own, reactions
from services.reactor.table import ReactorTable, rows_of
from statecore.compile import compile_sls
from statecore.errors import SlsError
from statecore.loader.tables import Table
from statecore.render import SlsTree, Source
from statecore.runtime import Runtime

#: Seconds to wait for an event before signals are looked at again.
_TURN = 0.5

#: Seconds that the master has to take a reaction.
_PATIENCE = 30.0

_ENVIRONMENT = "base"


@dataclass
class Reactor:
    """Reads what reactor SLS ask for, and hands it on."""

    role: Role
    runtime: Runtime
    table: ReactorTable
    #: Takes reactions of one event that the master is to be asked for; False when there is no place for them.
    hand_on: Callable[[Sequence[tuple[Reaction, str]]], bool]

    def react(self, tag: str, data: Mapping[str, Any]) -> None:
        """Begins everything that the event calls for. What fails is logged, and the rest goes on."""
        if is_own(data) or not self.table.is_leader:
            return
        asked: list[tuple[Reaction, str]] = []
        for pattern in files_for(tag, self.table.files()):
            for path in self._paths(pattern):
                for reaction in self._read(path, tag, data):
                    if reaction.client == "caller":
                        perform(self.role, partial(self.caller, reaction), reaction, tag)
                    else:
                        asked.append((reaction, tag))
        if asked and not self.hand_on(asked):
            self.role.metrics.reactions.labels("dropped").inc(len(asked))
            self.role.log.error(
                "%d reactions to %s are not carried out: the queue is full (reactor_worker_hwm, reactor_worker_threads)",
                len(asked),
                tag,
            )

    def caller(self, reaction: Reaction) -> None:
        """Runs an execution function here, in the reactor's own container."""
        returned = self.runtime.call(reaction.fun, reaction.arg, reaction.kwarg)
        if not returned.success:
            raise ReactionError(f"caller.{reaction.fun}: {returned.value}")

    def _paths(self, pattern: str) -> list[Path]:
        """Files of a path, glob or salt:// URL."""
        if pattern.startswith("salt://"):
            found = self.runtime.files.fetch(pattern.removeprefix("salt://"), _ENVIRONMENT)
            paths = [found] if found is not None else []
        else:
            paths = [Path(name) for name in sorted(glob.glob(pattern))]  # noqa: PTH207 - the pattern may be absolute
        if not paths:
            self.role.log.error("reactor: there is no file %s", pattern)
        return paths

    def _read(self, path: Path, tag: str, data: Mapping[str, Any]) -> Iterator[Reaction]:
        try:
            yield from reactions(self._chunks(path, tag, data))
        except (SlsError, ReactionError, OSError, UnicodeDecodeError) as error:
            self.role.log.error("reactor: %s, for event %s: %s", path, tag, error)

    def _chunks(self, path: Path, tag: str, data: Mapping[str, Any]) -> Sequence[dict[str, Any]]:
        runtime = self.runtime
        renderers = Table(runtime.loader, "renderers")
        renderers.attach(runtime.context)
        tree = SlsTree(
            runtime.files,
            opts=runtime.opts,
            grains=runtime.grains,
            pillar={},
            functions=runtime.functions,
            extra={"tag": tag, "data": data},
            renderers=renderers,
        )
        name = path.stem
        tree.add(Source(name, _ENVIRONMENT, path.name, str(path), path.read_text("utf-8"), str(path)))
        compiled = compile_sls(tree, {_ENVIRONMENT: [name]}, runtime.opts)
        if compiled.faults:
            raise SlsError(compiled.faults)
        return tuple(compiled.graph.chunks[node.position] for node in compiled.graph.order if not node.check)


def perform(role: Role, work: Callable[[], None], reaction: Reaction, tag: str) -> None:
    """Does one reaction; counts and logs what became of it."""
    try:
        work()
    except (ControlError, ControlTimeout, ReactionError) as error:
        role.log.error("reaction %s to %s: %s", reaction.id, tag, error)
        role.metrics.reactions.labels("failed").inc()
        return
    except Exception:
        role.log.exception("reaction %s to %s failed", reaction.id, tag)
        role.metrics.reactions.labels("failed").inc()
        return
    role.metrics.reactions.labels("done").inc()
    role.log.info("%s.%s, as %s asks for event %s", reaction.client, reaction.fun, reaction.id, tag)


def local(control: ControlClient, reaction: Reaction) -> None:
    """Publishes a job."""
    job = control.call(
        "publish",
        timeout=_PATIENCE,
        tgt=reaction.tgt,
        tgt_type=reaction.tgt_type,
        fun=reaction.fun,
        arg=on_the_wire(list(reaction.arg), dict(reaction.kwarg)),
        ret=reaction.ret,
        user=USER,
        request_id=os.urandom(16).hex(),
    )
    if not job.get("jid"):
        raise ReactionError(str(job.get("error") or f"no minion matches {reaction.tgt}"))


def runner(control: ControlClient, reaction: Reaction) -> None:
    """Starts a runner; its result comes as an event."""
    fields = {"arg": list(reaction.arg), "kwarg": dict(reaction.kwarg), "user": USER}
    # With an id of its own, so that a request that is sent again does not start it twice.
    request_id = os.urandom(16).hex()
    control.call("runner", timeout=_PATIENCE, fun=reaction.fun, request_id=request_id, **fields)


def wheel(control: ControlClient, reaction: Reaction) -> None:
    """Administers keys and trees."""
    fields = {"arg": list(reaction.arg), "kwarg": dict(reaction.kwarg), "user": USER}
    control.call("wheel", timeout=_PATIENCE, fun=reaction.fun, **fields)


#: Client of a reaction -> what asks the master for it.
_CLIENTS: Mapping[str, Callable[[ControlClient, Reaction], None]] = {"local": local, "runner": runner, "wheel": wheel}


def asker(role: Role, control: ControlClient) -> Worker[tuple[Reaction, str]]:
    """What a thread of the pool does, over a link of its own."""

    def work(asked: tuple[Reaction, str]) -> None:
        reaction, tag = asked
        perform(role, partial(_CLIENTS[reaction.client], control, reaction), reaction, tag)

    return work, control.close


def runtime_of(options: MasterOptions) -> Runtime:
    """statecore as reactor SLS see it: the master's options and state tree, no pillar."""
    opts = as_opts(options, file_client="local")
    return Runtime(opts, files=file_server(options), pillar={})


def _loop(role: Role) -> None:
    options = role.options
    table = ReactorTable(rows_of(options.reactor), options.id)
    if options.reactor_niceness:
        os.nice(options.reactor_niceness)
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    keys = LinkKeys.load(role.keys)
    subscriber = EventSubscriber(context, options, keys)
    sender = EventSender(context, options, keys)
    pool = Pool(
        options.reactor_worker_threads,
        options.reactor_worker_hwm,
        lambda: asker(role, ControlClient(context, options, keys)),
    )
    role.metrics.reactor_backlog.set_function(pool.waiting)
    heard = False
    role.health.check("events", lambda: None if heard else f"no echo from the event publisher at {subscriber.endpoint}")
    ended = threading.Event()
    returning = threading.Thread(
        target=follow,
        args=(options, keys, context, partial(runtime_of, options), ended),
        name="event-return",
        daemon=True,
    )
    if options.event_return:
        returning.start()
    reactor = Reactor(role, runtime_of(options), table, pool.submit)
    listening: set[str] = set()
    try:
        while role.running():
            for prefix in set(table.wanted()) - listening:
                subscriber.subscribe(prefix)
                listening.add(prefix)
            if not heard:
                # Events that come while the echo is waited for belong to nobody yet: the role is not ready.
                heard = subscriber.ready(_TURN)
                continue
            event = subscriber.next(_TURN)
            if event is None:
                continue
            answer = table.obey(*event)
            if answer is not None:
                sender.fire(*answer)
            else:
                reactor.react(*event)
    finally:
        subscriber.close()
        ended.set()
        if returning.ident is not None:
            returning.join(DRAIN_SECONDS)
        if left := pool.close(DRAIN_SECONDS):
            role.log.error("reactions to %d events are not carried out: the reactor ends", left)
        sender.close()
        context.term()


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of ``saltern reactor``."""
    return run_role("reactor", _loop, argv)
