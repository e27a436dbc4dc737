"""Clients of a master for scripts: ``LocalClient``, ``RunnerClient``, ``WheelClient``, ``Events``, with Salt's methods.

A client may be used by several threads, and by a forked child, which connects anew.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Self

from saltern.client.addresses import Address, Login, address_of, login_of
from saltern.client.asynchronous import PASSED_ON, AsyncEvents, cached_answer, tag_matches
from saltern.client.connection import Event
from saltern.client.loop_thread import LoopThread
from saltern.client.master import AsyncMaster
from saltern.kit.config.master import as_opts, load_client
from statecore.clients.calls import CallReturn, RunnerCalls, WheelCalls, call_return
from statecore.clients.errors import SaltClientError
from statecore.clients.local import Answer, JobClient, listed
from statecore.model.ports import Master, MasterCall, MinionJob


class MasterThread:
    """One master for synchronous code: an ``AsyncMaster`` on a loop of its own."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._thread = LoopThread()
        self._master = AsyncMaster(address)

    def here(self) -> tuple[LoopThread, AsyncMaster]:
        """Return the loop and the master of this process; a forked child gets its own."""
        if self._thread.is_of_another_process:
            self._thread, self._master = LoopThread(), AsyncMaster(self.address)
        return self._thread, self._master

    def close(self) -> None:
        """Close the connection and end the loop."""
        if self._thread.is_running:
            self._thread.run(self._master.close())
            self._thread.stop()

    def abandon(self) -> None:
        """Close the connection without waiting: nobody uses the client any more."""
        self._thread.end_soon(self._master.close)


class MasterPort:
    """A master for one user: implements the port ``Master`` (``statecore.model.ports``) for scripts."""

    jid = ""

    def __init__(self, thread: MasterThread, login: Login) -> None:
        self._thread = thread
        self._login = login

    def ask(self, job: MinionJob, event_data: Mapping[str, object]) -> dict[str, dict[str, object]]:
        """Publish a job, wait for it, and return {minion id: {ret, retcode, jid, out}}."""
        loop, master = self._thread.here()
        return loop.run(master.ask(job, self._login))

    def batch(self, job: MinionJob) -> Iterator[tuple[str, dict[str, object]]]:
        """Run a batch and yield (minion id, {ret, retcode, jid, out}) for each minion, when its return arrives."""
        loop, master = self._thread.here()
        for name, answer in loop.iterate(master.returns(job, self._login)):
            if job.expected or not answer.get("failed"):
                yield name, answer

    def publish(self, job: MinionJob) -> dict[str, object]:
        """Publish a job without waiting; return {"jid", "minions"}, or {} if no minion matches."""
        loop, master = self._thread.here()
        return loop.run(master.publish(job, self._login))

    def follow(
        self, jid: str, minions: Sequence[str], timeout: float | None
    ) -> Iterator[tuple[str, dict[str, object]] | None]:
        """Yield (minion id, {ret, retcode, jid, out}) for each return of a published job; None whenever nothing has
        arrived for a moment.
        """
        loop, master = self._thread.here()
        yield from loop.iterate(master.follow(jid, minions, timeout, self._login))

    def start(self, call: MasterCall) -> dict[str, str]:
        """Start a runner without waiting for it; return its {"jid", "tag"}."""
        loop, master = self._thread.here()
        return loop.run(master.start(call, self._login))

    def run(self, calls: Sequence[MasterCall]) -> list[dict[str, object]]:
        """Run runners one after the other and return the data of their last events."""
        loop, master = self._thread.here()
        return [loop.run(master.run(call, self._login)) for call in calls]

    def run_within(self, call: MasterCall, seconds: float) -> dict[str, object]:
        """Run a runner and return the data of its last event. Raises SaltReqTimeoutError after ``seconds``; 0: no limit."""
        loop, master = self._thread.here()
        return loop.run(master.run(call, self._login, seconds))

    def wheel(self, call: MasterCall) -> dict[str, object]:
        """Call a wheel function; return tag and data of its last event."""
        loop, master = self._thread.here()
        return loop.run(master.wheel(call, self._login))

    def events(self, prefix: str, seconds: float) -> Iterator[tuple[str, Mapping[str, object]]]:
        """Raise SaltClientError: this client reads no events; ``saltern.Events`` does."""
        raise SaltClientError("read events with saltern.Events")

    def orders(self) -> dict[str, dict[str, object]]:
        """Return {}: operators give orders to orchestrations only."""
        return {}

    def end_orders(self) -> None:
        """Do nothing: operators give orders to orchestrations only."""


class _Client:
    """What the synchronous clients have in common: the master, its options, and the end of the connection."""

    def __init__(
        self,
        opts: str | Mapping[str, object] | None = None,
        mopts: Mapping[str, object] | None = None,
        *,
        master: Address | None = None,
        **_: object,
    ) -> None:
        """Prepare a connection; the first call opens it.

        ``opts``: path of the master's configuration, or its options (``saltern.config.master_config``); by default
        /etc/salt/master. ``master``: a ``Control`` or ``Api`` instead. Salt's further arguments are ignored.
        """
        self._thread = MasterThread(address_of(mopts or opts, master))
        weakref.finalize(self, self._thread.abandon).atexit = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self.destroy()

    def destroy(self) -> None:
        """Close the connection; users who signed in with a password are signed out. A later call connects again."""
        self._thread.close()

    @property
    def opts(self) -> dict[str, object]:
        """Options in the master's configuration file here."""
        return as_opts(load_client(getattr(self._thread.address, "config_dir", "") or None))

    def _port(self, low: dict[str, object]) -> MasterPort:
        return MasterPort(self._thread, login_of(low))


class LocalClient(_Client, JobClient):
    """Publishes jobs to minions and waits for their returns."""

    NAME = "saltern.LocalClient"
    PASSED_ON = PASSED_ON

    @property
    def event(self) -> Events:
        """The events of the master's bus."""
        return Events(master=self._thread.address)

    def gather_minions(self, tgt: object, expr_form: str = "glob") -> list[str]:
        """Return the ids of the minions that a target matches, by the grains that the master has."""
        loop, master = self._thread.here()
        return loop.run(master.gather_minions(*listed(tgt, expr_form), Login()))

    def get_cache_returns(self, jid: str) -> dict[str, Answer]:
        """Return {minion id: {"ret": return}} of a job from the job cache, with ``out`` if the return names an
        outputter. Nothing is waited for.
        """
        loop, master = self._thread.here()
        return {name: cached_answer(load) for name, load in loop.run(master.job_returns(str(jid), Login())).items()}

    def _master_for(self, what: str, further: dict[str, object]) -> Master:
        return self._port(further)

    def _batch(self, job: MinionJob, master: Master) -> Iterator[tuple[str, Mapping[str, object]]]:
        assert isinstance(master, MasterPort)
        yield from master.batch(job)


class RunnerClient(_Client, RunnerCalls):
    """Calls runner functions of the master. A runner runs on the master, not in this process."""

    NAME = "saltern.RunnerClient"

    def _done(self, call: MasterCall) -> Mapping[str, object]:
        (done,) = self._port({}).run([call])
        return done

    def get_docs(self, arg: str | None = None) -> dict[str, str]:
        """Return {runner name: documentation} of the runners whose names start with ``arg``; without ``arg``, of all."""
        found = self.cmd("doc.runner")
        shown = found if isinstance(found, Mapping) else {}
        return {str(name): str(text) for name, text in shown.items() if str(name).startswith(arg or "") and text}

    def _master_for(self, what: str, low: dict[str, object]) -> Master:
        return self._port(low)

    def _run(self, master: Master, call: MasterCall, timeout: float | None) -> Mapping[str, object]:
        assert isinstance(master, MasterPort)
        return master.run_within(call, timeout or 0)


class WheelClient(_Client, WheelCalls):
    """Calls wheel functions of the master."""

    NAME = "saltern.WheelClient"

    def _called(self, what: str, call: MasterCall, low: dict[str, object]) -> CallReturn:
        return call_return(self._port(low).wheel(call))


class Events:
    """The events of the master's bus: ``for event in Events("salt/job/")``. Events are received from the construction
    on.

    ``tag``: the start of the tags, or a glob (``salt/job/*/ret/*``).
    """

    def __init__(
        self, tag: str = "", opts: str | Mapping[str, object] | None = None, *, master: Address | None = None
    ) -> None:
        self._thread = LoopThread()
        self._events = AsyncEvents(tag, opts, master=master)
        weakref.finalize(self, self._thread.end_soon, self._events.close).atexit = False
        self._thread.run(self._events.start())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self.destroy()

    def __iter__(self) -> Iterator[Event]:
        return self.iter_events()

    @property
    def lost(self) -> int:
        """Number of events that were dropped, because 10,000 events waited to be read."""
        return self._events.lost

    def iter_events(self, tag: str = "") -> Iterator[Event]:
        """Yield events without end; with ``tag`` those alone whose tags start with it, or match it as a glob."""
        while True:
            event = self.next(None)
            if event is not None and tag_matches(event.tag, tag):
                yield event

    def next(self, seconds: float | None = 5.0) -> Event | None:
        """Return the next event; None after so many seconds. ``seconds`` None waits without limit."""
        return self._thread.run(self._events.next(seconds))

    def get_event(self, wait: float | None = 5, tag: str = "", full: bool = False) -> Mapping[str, object] | None:
        """Return the data of the next event, with ``full`` {"tag": ..., "data": ...}; None after ``wait`` seconds. 0 or
        None waits without limit. ``tag``: as for ``iter_events``; other events are dropped.
        """
        end = None if not wait else time.monotonic() + wait
        while True:
            left = None if end is None else end - time.monotonic()
            event = self.next(left) if left is None or left > 0 else None
            if event is None:
                return None
            if tag_matches(event.tag, tag):
                return {"tag": event.tag, "data": event.data} if full else event.data

    def fire_event(self, data: Mapping[str, object], tag: str) -> bool:
        """Fire an event on the master's bus (by the runner ``event.send``); return whether the bus accepted it."""
        return self._thread.run(self._events.fire_event(data, tag))

    def destroy(self) -> None:
        """Stop to receive events and close the connection."""
        if self._thread.is_running:
            self._thread.run(self._events.close())
            self._thread.stop()


def get_local_client(c_path: str | None = None, mopts: Mapping[str, object] | None = None, **_: object) -> LocalClient:
    """Return a LocalClient. Salt's further arguments are ignored."""
    return LocalClient(c_path, mopts)
