"""The main process of a minion without a master (``master_type: disable``).

It runs the schedule, beacons and startup_states. Files and pillar come from this host. Returns go to returners, and to the
directory ``minion_jobs`` if ``cache_jobs`` is set; they are not sent to a master.
Salt: salt/minion.py, eval_master and tune_in
Source: docs/execution.md#masterless
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence

import msgpack
import zmq

from saltern.kit.config.minion_options import MinionOptions
from saltern.minion.duties.leadership import Leadership
from saltern.minion.engine import zygote
from saltern.minion.engine.backends import LocalBackend
from saltern.minion.engine.zygote_client import GONE, ZygoteClient
from saltern.minion.ipc.messages import BEACONS_ENDED, OWN_JOB_ENDED, READY, Targeting
from saltern.minion.master.masters import Masters
from saltern.minion.master.sign_in import Shutdown

_LOG = logging.getLogger("saltern.minion")

#: Milliseconds of one turn of the main loop while nothing happens.
_TICK = 250
_IDLE_TICK = 1000

#: Seconds for jobs to finish after the minion was asked to end.
_DRAIN_SECONDS = 5.0


class MasterlessMinion:
    """The main process of a minion without a master: runs its schedule, beacons and startup_states."""

    def __init__(self, options: MinionOptions, shutdown: Shutdown) -> None:
        self._options = options
        self._shutdown = shutdown
        self._leadership = Leadership(options, shared=False)
        self._leadership.set_sender(_log_events)
        self._zygote = ZygoteClient(lambda: zygote.fork(options, Masters(""), LocalBackend(options)))
        self._ready = False
        shutdown.health.check("master", lambda: None)
        shutdown.health.check("pillar", lambda: None if self._ready else "no pillar yet")

    def run(self) -> None:
        """Run until the minion is asked to end."""
        _LOG.info("starting without a master (master_type: disable)", extra={"minion": self._options.id})
        self._zygote.start()
        while not self._shutdown.ended():
            self._loop_once()
        self._drain()

    def close(self) -> None:
        """End the zygote and close the control socket."""
        self._zygote.close()
        self._leadership.close()

    def _loop_once(self) -> None:
        poller = zmq.Poller()
        client = self._zygote
        poller.register(client.fileno(), zmq.POLLIN | (zmq.POLLOUT if client.pending else 0))
        self._leadership.register(poller)
        # A signal ends the wait.
        poller.register(self._shutdown.stop.fileno(), zmq.POLLIN)
        idle = self._ready and self._leadership.is_idle()
        ready = dict(poller.poll(_IDLE_TICK if idle else _TICK))
        happened = ready.get(client.fileno(), 0)
        if happened & zmq.POLLOUT:
            client.flush()
        if happened & ~zmq.POLLOUT:
            self._receive_from_zygote()
        elif client.ended():
            self._restart_zygote()
        self._leadership.serve(ready)
        if self._ready:
            self._run_due()

    def _receive_from_zygote(self) -> None:
        heard = self._zygote.receive()
        duties = self._leadership.duties
        if heard is None or duties is None:
            return
        kind, content = heard
        if kind == READY:
            known: Targeting = msgpack.unpackb(content, strict_map_key=False)
            duties.update(known["pillar"], known["grains"])
            if not self._ready:
                _LOG.info("ready for scheduled jobs", extra={"minion": self._options.id})
            self._ready = True
        elif kind == OWN_JOB_ENDED:
            duties.job_ended(content.decode())
        elif kind == BEACONS_ENDED:
            duties.beacon_process_ended()
        elif kind == GONE:
            self._restart_zygote()

    def _restart_zygote(self) -> None:
        _LOG.error("the zygote (process that forks jobs) ended; a new one is started")
        if self._leadership.duties is not None:
            self._leadership.duties.zygote_lost()
        self._zygote.start()

    def _run_due(self) -> None:
        duties = self._leadership.duties
        if duties is None:
            return
        for job in duties.due():
            self._zygote.send({"job": {**job, "return_job": False}})
        if duties.beacon_process_due():
            self._zygote.send({"watch": True})
        if duties.engines_due():
            self._zygote.send({"engines": True})

    def _drain(self) -> None:
        """Wait a few seconds for running jobs to finish."""
        self._zygote.send({"end": _DRAIN_SECONDS})
        deadline = time.monotonic() + _DRAIN_SECONDS
        while not self._zygote.ended() and time.monotonic() < deadline:
            self._zygote.flush()
            time.sleep(_TICK / 5000)


def _log_events(events: Sequence[Mapping[str, object]]) -> None:
    for event in events:
        _LOG.debug("an event is dropped, because there is no master: %s %s", event.get("tag"), event.get("data"))
