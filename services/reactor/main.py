"""The reactor: events in, reactor SLS by the tag, reactions out through the control link (seed 004)."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zmq

from services.kit.arguments import on_the_wire
from services.kit.bus import EventSubscriber
from services.kit.config import MasterOptions, as_opts
from services.kit.control import ControlClient, ControlError, ControlTimeout
from services.kit.links import LinkKeys
from services.kit.service import Role, run_role
from services.reactor.reactions import USER, Reaction, ReactionError, files_for, is_own, prefixes, reactions
from statecore.compile import compile_sls
from statecore.errors import SlsError
from statecore.files import LocalFiles
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
    """Performs what reactor SLS ask for."""

    role: Role
    control: ControlClient
    runtime: Runtime

    def react(self, tag: str, data: Mapping[str, Any]) -> int:
        """Does everything that the event calls for; the number of reactions done. What fails is logged, and the rest goes on."""
        if is_own(data):
            return 0
        done = 0
        for pattern in files_for(tag, self.role.options.reactor):
            for path in self._paths(pattern):
                for reaction in self._read(path, tag, data):
                    done += self._perform(reaction, tag)
        return done

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

    def _perform(self, reaction: Reaction, tag: str) -> int:
        try:
            _CLIENTS[reaction.client](self, reaction)
        except (ControlError, ControlTimeout, ReactionError) as error:
            self.role.log.error("reaction %s to %s: %s", reaction.id, tag, error)
            self.role.metrics.reactions.labels("failed").inc()
            return 0
        self.role.metrics.reactions.labels("done").inc()
        self.role.log.info("%s.%s, as %s asks for event %s", reaction.client, reaction.fun, reaction.id, tag)
        return 1

    def local(self, reaction: Reaction) -> None:
        """Publishes a job."""
        job = self.control.call(
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

    def runner(self, reaction: Reaction) -> None:
        """Starts a runner; its result comes as an event."""
        fields = {"arg": list(reaction.arg), "kwarg": dict(reaction.kwarg), "user": USER}
        # With an id of its own, so that a request that is sent again does not start it twice.
        request_id = os.urandom(16).hex()
        self.control.call("runner", timeout=_PATIENCE, fun=reaction.fun, request_id=request_id, **fields)

    def wheel(self, reaction: Reaction) -> None:
        """Administers keys."""
        self.control.call("wheel", timeout=_PATIENCE, fun=reaction.fun, kwarg=dict(reaction.kwarg))

    def caller(self, reaction: Reaction) -> None:
        """Runs an execution function here, in the reactor's own container."""
        returned = self.runtime.call(reaction.fun, reaction.arg, reaction.kwarg)
        if not returned.success:
            raise ReactionError(f"caller.{reaction.fun}: {returned.value}")


_CLIENTS: Mapping[str, Callable[[Reactor, Reaction], None]] = {
    "local": Reactor.local,
    "runner": Reactor.runner,
    "wheel": Reactor.wheel,
    "caller": Reactor.caller,
}


def runtime_of(options: MasterOptions) -> Runtime:
    """statecore as reactor SLS see it: the master's options and state tree, no pillar."""
    opts = as_opts(options, file_client="local", cachedir="")
    return Runtime(opts, files=LocalFiles(options.file_roots, options.hash_type), pillar={})


def _loop(role: Role) -> None:
    wanted = prefixes(role.options.reactor)
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    keys = LinkKeys.load(role.keys)
    subscriber = EventSubscriber(context, role.options, keys)
    control = ControlClient(context, role.options, keys)
    heard = False
    role.health.check("events", lambda: None if heard else f"no echo from the event publisher at {subscriber.endpoint}")
    reactor = Reactor(role, control, runtime_of(role.options))
    for prefix in wanted:
        subscriber.subscribe(prefix)
    try:
        while role.running():
            if not heard:
                # Events that come while the echo is waited for belong to nobody yet: the role is not ready.
                heard = subscriber.ready(_TURN)
                continue
            event = subscriber.next(_TURN)
            if event is not None:
                reactor.react(*event)
    finally:
        subscriber.close()
        control.close()
        context.term()


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of ``saltern reactor``."""
    return run_role("reactor", _loop, argv)
