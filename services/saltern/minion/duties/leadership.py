"""Leadership: the lock that decides which main process of a minion owns schedule, beacons and control socket.

A minion with several masters at once has one main process for each master. The process that holds the lock leads. If that
process ends, or if its master is away, another process takes the lead, because scheduled jobs would wait for a master that
does not answer. Salt: salt/minion.py, MinionManager (one schedule for all masters; a leader for beacons)
"""

from __future__ import annotations

import fcntl
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import zmq

from saltern.kit.config.minion_options import MinionOptions
from saltern.minion.duties.duties import Duties
from saltern.minion.ipc.control import ControlSocket
from statecore.host.content import private_files

_LOG = logging.getLogger("saltern.minion")

_LOCK = "leader.lock"

#: Seconds between two attempts to take the lead.
_EVERY = 1.0

#: Seconds that the leader's master may be away before the leader gives up the lead; the maximum of these seconds, which
#: double
#: while all masters are away; and the seconds before a former leader tries again.
PATIENCE, _MOST_PATIENCE, _OTHERS_TURN = 5.0, 80.0, 3.0

Send = Callable[[Sequence[Mapping[str, object]]], None]


class Leadership:
    """The leader's lock of a minion in one of its main processes. The process that holds the lock is the leader: it
    runs the schedule and the beacons, and serves the control socket.
    """

    def __init__(self, options: MinionOptions, *, shared: bool, start: str = "") -> None:
        """Prepare the leader's lock of a minion.

        ``shared``: whether other main processes try to take the lock. If not, this process is the leader at once.
        ``start``: text that identifies this start of the minion. A process that becomes leader later in the same start
        resumes the schedule of its predecessor.
        """
        self._options = options
        self._start = start
        self._patience = PATIENCE
        self._disconnected_since: float | None = None
        #: Duties of an earlier lead of this process: its schedule keeps its progress.
        self._former: Duties | None = None
        self._lock = -1
        self._next_try = 0.0 if shared else None
        self._send: Send = _log_lost_events
        self._control: ControlSocket | None = None
        self.duties: Duties | None = None
        if not shared:
            self._take_lead()

    def set_sender(self, send: Send) -> None:
        """Send events of beacons and schedule through ``send`` from now on; the zygote of the earlier master counts as lost."""
        self._send = send
        if self.duties is not None:
            self.duties.zygote_lost()

    def claim(self) -> bool:
        """Try to make this process the leader of its minion, by taking the lock file of the minion without waiting. As the
        leader it runs the minion's schedule and beacons and serves its control socket.

        Return True if this call made it the leader. Return False if it leads already, if another process holds the lock, or
        if the last attempt was less than a second ago. Call it often.
        """
        if self.duties is not None or self._next_try is None or time.monotonic() < self._next_try:
            return False
        self._next_try = time.monotonic() + _EVERY
        if not self._locked():
            return False
        self._take_lead()
        return True

    def release(self, *, connected: bool, now: float) -> bool:
        """Give up the leader's lock if the connection to the master has been lost for a while, so that another main
        process may take it. Return True if this call gave it up.

        ``connected``: whether there is a connection to the master. ``now``: monotonic seconds.
        """
        if self.duties is None or self._next_try is None:
            return False
        if connected:
            self._disconnected_since, self._patience = None, PATIENCE
            return False
        if self._disconnected_since is None:
            self._disconnected_since = now
        if now - self._disconnected_since < self._patience:
            return False
        self._patience = min(2 * self._patience, _MOST_PATIENCE)
        self._disconnected_since, self._next_try = None, now + _OTHERS_TURN
        self.duties.zygote_lost()
        self.duties = None
        if self._control is not None:
            self._control.close()
            self._control = None
        fcntl.flock(self._lock, fcntl.LOCK_UN)
        return True

    def is_idle(self) -> bool:
        """Return whether this process leads alone and starts no jobs by the clock."""
        return self._next_try is None and self.duties is not None and self.duties.is_idle()

    def register(self, poller: zmq.Poller) -> None:
        """Register the file descriptors of the control socket in the poller; ``serve`` reads them."""
        if self._control is not None:
            self._control.register(poller)

    def serve(self, ready: Mapping[object, int]) -> None:
        """Answer the control requests of jobs and salt-call about schedule and beacons. ``ready``: the poller's result."""
        if self._control is not None and self.duties is not None:
            self._control.serve(ready, self.duties.answer)

    def close(self) -> None:
        """Close the control socket and release the leader's lock."""
        if self._control is not None:
            self._control.close()
        if self._lock >= 0:
            os.close(self._lock)

    def _locked(self) -> bool:
        if self._lock < 0:
            self._lock = private_files.lock_file(private_files.top(Path(self._options.cachedir)) / _LOCK)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _led_before(self) -> bool:
        """Return whether another process of this start of the minion was the leader before; store that this process is
        the leader now.
        """
        if self._lock < 0:
            return False
        start = self._start.encode()
        known = os.pread(self._lock, len(start) + 1, 0)
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, start, 0)
        return bool(start) and known == start

    def _take_lead(self) -> None:
        led = self._led_before()
        if self._former is None:
            self._former = Duties(self._options, lambda events: self._send(events))
        if led:
            self._former.resume()
        self.duties = self._former
        directory = Path(self._options.cachedir)
        try:
            self._control = ControlSocket(directory)
        except OSError as error:
            # The file system may not support sockets. The minion runs without one.
            _LOG.error(
                "no socket in cachedir: %s: %s; schedule.*, beacons.* and beacons do not work",
                directory,
                error.strerror,
            )


def _log_lost_events(events: Sequence[Mapping[str, object]]) -> None:
    _LOG.warning("%d events are lost: there is no connection to a master", len(events))
