"""A minion without a master (``master_type: disable``): its schedule, its beacons, the states of its start, and nothing else.

Files and pillar are this host's. What jobs return goes to returners, and to ``minion_jobs`` with ``cache_jobs``; nobody is sent it.
Source: salt/minion.py (eval_master, tune_in).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgpack
import zmq

from saltern.kit.config.minion_options import MinionOptions
from saltern.minion.duties.leadership import Leadership
from saltern.minion.engine import zygote
from saltern.minion.engine.backends import LocalBackend
from saltern.minion.engine.zygote_client import GONE, ZygoteClient
from saltern.minion.master.masters import Masters
from saltern.minion.master.sign_in import Shutdown

_LOG = logging.getLogger("saltern.minion")

#: Milliseconds between looks at the clock when nothing happens.
_TICK = 250

#: Seconds that jobs have to finish when the minion is told to end.
_DRAIN_SECONDS = 5.0


class MasterlessMinion:
    """The main process of such a minion."""

    def __init__(self, options: MinionOptions, turn: Shutdown) -> None:
        self._options = options
        self._turns = turn
        self._affairs = Leadership(options, shared=False)
        self._affairs.speak_through(_unheard)
        self._engine = ZygoteClient(lambda: zygote.fork(options, Masters(""), LocalBackend(options)))
        self._ready = False
        turn.health.check("master", lambda: None)
        turn.health.check("pillar", lambda: None if self._ready else "no pillar yet")

    def run(self) -> None:
        """Until told to end."""
        _LOG.info("has no master, as master_type says", extra={"minion": self._options.id})
        self._engine.start()
        while not self._turns.ended():
            self._turn()
        self._drain()

    def close(self) -> None:
        """Ends what it started."""
        self._engine.close()
        self._affairs.close()

    def _turn(self) -> None:
        poller = zmq.Poller()
        engine = self._engine
        poller.register(engine.fileno(), zmq.POLLIN | (zmq.POLLOUT if engine.pending else 0))
        self._affairs.register(poller)
        ready = dict(poller.poll(_TICK))
        happened = ready.get(engine.fileno(), 0)
        if happened & zmq.POLLOUT:
            engine.flush()
        if happened & ~zmq.POLLOUT:
            self._hear()
        elif engine.ended():
            self._begin_again()
        self._affairs.serve(ready)
        if self._ready:
            self._run_due()

    def _hear(self) -> None:
        heard = self._engine.receive()
        duties = self._affairs.duties
        if heard is None or duties is None:
            return
        kind, content = heard
        if kind == zygote.READY:
            known = msgpack.unpackb(content, strict_map_key=False)
            duties.know(known["pillar"], known["grains"])
            if not self._ready:
                _LOG.info("is ready for its schedule", extra={"minion": self._options.id})
            self._ready = True
        elif kind == zygote.ENDED:
            duties.ended(content.decode())
        elif kind == zygote.UNWATCHED:
            duties.unwatched()
        elif kind == GONE:
            self._begin_again()

    def _begin_again(self) -> None:
        _LOG.error("the preloaded process ended; a new one is started")
        if self._affairs.duties is not None:
            self._affairs.duties.lost()
        self._engine.start()

    def _run_due(self) -> None:
        duties = self._affairs.duties
        if duties is None:
            return
        for job in duties.due():
            self._engine.tell({"job": {**job, "return_job": False}})
        if duties.watch_wanted():
            self._engine.tell({"watch": True})

    def _drain(self) -> None:
        """Lets jobs finish for a few seconds."""
        self._engine.tell({"end": _DRAIN_SECONDS})
        deadline = time.monotonic() + _DRAIN_SECONDS
        while not self._engine.ended() and time.monotonic() < deadline:
            self._engine.flush()
            time.sleep(_TICK / 5000)


def _unheard(events: Sequence[Mapping[str, Any]]) -> None:
    for event in events:
        _LOG.debug("an event that nobody hears, as there is no master: %s %s", event.get("tag"), event.get("data"))
