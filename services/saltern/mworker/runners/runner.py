"""Runs one runner in a process with its own connections, fires its result as an event and stores it in the job cache."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, TypeVar

import zmq

from masterstore.errors import StoreError, StoreUnavailable
from masterstore.event_codes import EventCodes
from masterstore.events import EventKeeper
from masterstore.record_mac import Records
from masterstore.runner_jobs import SIGN_EVERY
from masterstore.store import Store
from saltern.kit.command.arguments import on_the_wire
from saltern.kit.config.master import MasterOptions
from saltern.kit.config.reactor_rows import wanted_tags
from saltern.kit.jobs.returns import NO_MATCH
from saltern.kit.jobs.watch import JobWatch
from saltern.kit.keys.events_key import load_event_macs
from saltern.kit.keys.master_keys import read_secret, record_mac
from saltern.kit.links.answers import PublishAnswer
from saltern.kit.links.control import ControlClient, ControlError, ControlTimeout
from saltern.kit.links.event_bus import EventSender, EventSubscriber
from saltern.kit.links.sockets import LinkKeys
from saltern.mworker.durability import durability
from saltern.mworker.runners.calling import misuse
from saltern.mworker.senders import Behalf, owner_of
from saltwire import tags
from statecore.model.redaction import shown_arguments

_LOG = logging.getLogger("saltern.runner")

#: Seconds to wait for the event publisher; without the bus the result is still in the job cache.
_BUS_PATIENCE = 2.0

#: Seconds for which storing a result is retried while Redis does not answer, and between two tries.
_STORE_PATIENCE, _STORE_PAUSE = 300.0, 0.5

#: Exit code if no minion matched, as of ``salt``.
_NOBODY = 2

#: A runner: (tools, arguments...) -> its return value.
Runner: TypeAlias = Callable[..., object]


@dataclass(frozen=True)
class RunnerCall:
    """One call of a runner: JID, function with its name and arguments, the user, and the sender of the request."""

    jid: str
    fun: str
    function: Runner
    arg: Sequence[object]
    kwarg: Mapping[str, object]
    user: str
    behalf: Behalf


class RunnerFault(Exception):
    """Raised when a runner cannot do its work. The message becomes the runner's result, ``retcode`` its exit code."""

    def __init__(self, message: str, retcode: int = 1) -> None:
        super().__init__(message)
        self.retcode = retcode


@dataclass(frozen=True)
class Asked:
    """The result of publishing a job from a runner: the expected minions, and the returns that came in time."""

    #: Empty if no minion matched.
    jid: str
    expected: tuple[str, ...]
    returns: dict[str, dict[str, object]]

    def answers(self) -> dict[str, dict[str, object]]:
        """Return the map of minion id to return. Raises RunnerFault if no minion matched the job's target."""
        if not self.jid:
            raise RunnerFault(NO_MATCH, _NOBODY)
        return self.returns


@dataclass(frozen=True)
class RunnerTools:
    """The objects that runners use: the store, and connections to the master's port 4507 and event bus."""

    options: MasterOptions
    store: Store
    control: ControlClient
    events: EventSubscriber
    sender: EventSender
    user: str
    #: JID of the runner itself.
    jid: str
    #: Return RunnerTools with new connections, for a forked child: it may not use its parent's. They end with the child.
    reopened: Callable[[], RunnerTools]
    #: Directory of the worker's keys.
    key_dir: Path
    #: ``__context__`` of a user's runner; its ``retcode`` becomes the runner's return code.
    scratch: dict[str, object] = field(default_factory=dict)

    def ask(
        self,
        tgt: object,
        tgt_type: str,
        fun: str,
        arg: Sequence[object] = (),
        kwarg: Mapping[str, object] | None = None,
        *,
        timeout: float | None = None,
        gather_timeout: float | None = None,
        ret: str = "",
        jid: str = "",
    ) -> Asked:
        """Publish a job and wait for its returns as `salt` does: as long as a minion works on the job, but not for
        silent minions.

        ``timeout`` and ``gather_timeout`` are seconds (default: the options timeout and gather_job_timeout). ``jid``:
        the job's id; empty: the master chooses. Raises ControlError, ControlTimeout, and before publishing RunnerFault
        for invalid times.
        """
        for name, value in (("timeout", timeout), ("gather_job_timeout", gather_timeout)):
            if value is not None:
                seconds(value, name)
        self.events.subscribe("salt/job/")
        heard = self.events.ready(_BUS_PATIENCE)
        job = self.control.call(
            "publish",
            # The request id lets the master recognize a repeated request, so it does not publish a second job.
            request_id=os.urandom(16).hex(),
            tgt=tgt,
            tgt_type=tgt_type,
            fun=fun,
            arg=on_the_wire(list(arg), dict(kwarg or {})),
            ret=ret,
            jid=jid,
            user=self.user,
        )
        return self.follow(job, timeout=timeout, gather_timeout=gather_timeout, heard=heard)

    def follow(
        self,
        job: PublishAnswer,
        *,
        timeout: float | None = None,
        gather_timeout: float | None = None,
        heard: bool | None = None,
    ) -> Asked:
        """Wait for the returns of a job that is published already. Return an Asked: the ids of the minions that the job went to,
        and the returns that arrived. The wait ends when each minion has returned or is given up.

        ``job``: the master's answer to the publication, with the JID and the minions. ``timeout``: seconds to wait for returns
        before the minions are asked if they still run the job (default: the option timeout). ``gather_timeout``: seconds
        in which a minion must answer that question; otherwise it is given up (default: the option gather_job_timeout).
        ``heard``: True or False, if the caller has subscribed to the job's events: whether the event bus confirmed the
        subscription; None: subscribe here. Raise ControlError if the master refuses, ControlTimeout if it does not answer.
        """
        found: dict[str, dict[str, object]] = {}
        if not job["jid"]:
            return Asked("", (), found)
        if heard is None:
            self.events.subscribe("salt/job/")
            heard = self.events.ready(_BUS_PATIENCE)
        watch = JobWatch(self.control, self.events, time.monotonic, self.user, heard=heard)
        watch.follow(
            job,
            _Found(found),
            timeout=self.options.timeout if timeout is None else float(timeout),
            gather_timeout=self.options.gather_job_timeout if gather_timeout is None else float(gather_timeout),
        )
        watch.run()
        return Asked(job["jid"], tuple(job["minions"]), dict(sorted(found.items())))

    def minions(self, tgt: object, tgt_type: str) -> list[str]:
        """Return the accepted minions that a target matches, as far as the sender may look into them. Raises
        ControlError.
        """
        return self.control.call("targets", tgt=tgt, tgt_type=tgt_type)["minions"]


class _Found:
    """Collects the returns of a job that a runner published, as {minion id: return}."""

    def __init__(self, found: dict[str, dict[str, object]]) -> None:
        self._found = found

    def add(self, minion: str, load: Mapping[str, object]) -> None:
        """Store the return ``load`` of a minion in the map of minion id to return."""
        self._found[minion] = dict(load)

    def add_silent(self, minion: str, jid: str) -> None:
        """Ignore a minion that did not return."""


def seconds(value: object, name: str) -> float:
    """Return the value of a runner's argument as a number of seconds. Raises RunnerFault, whose message names the
    argument (``name``), for any other value.
    """
    try:
        found = float(value) if isinstance(value, int | float | str) else math.nan
    except (OverflowError, ValueError):
        found = math.nan
    if not 0 <= found < math.inf:
        raise RunnerFault(f"{name} must be a number of seconds, not {value!r}")
    return found


def load_of(call: RunnerCall, options: MasterOptions) -> dict[str, object]:
    """Return the load with which a runner's job is stored in the job cache: {jid, fun, arg, tgt, tgt_type, user, ret,
    owner}.
    """
    return {
        "jid": call.jid,
        "fun": f"runner.{call.fun}",
        "arg": shown_arguments(f"runner.{call.fun}", [*call.arg, *_kwargs_shown(call)]),
        "tgt": options.id,
        "tgt_type": "list",
        "user": call.user,
        "ret": "",
        "owner": owner_of(call.behalf),
    }


Result = TypeVar("Result")


def with_tools(
    jid: str, user: str, behalf: Behalf, options: MasterOptions, key_dir: Path, work: Callable[[RunnerTools], Result]
) -> Result:
    """Open RunnerTools with connections of this process, call ``work`` with them, and return its result.

    ``behalf``: the sender for whom the runner's requests to the master are decided. Must be called in a child process.
    """
    with contextlib.ExitStack() as stack:
        return work(_opened(jid, user, behalf, options, key_dir, stack))


def run_runner(call: RunnerCall, options: MasterOptions, key_dir: Path) -> dict[str, object]:
    """Run a runner, store and fire its result, and return the result: a map with fun, jid, user, fun_args, return and
    success. Must be called in a child process.
    """
    with contextlib.ExitStack() as stack:
        tools = _opened(call.jid, call.user, call.behalf, options, key_dir, stack)
        load = load_of(call, options)
        base = {"fun": load["fun"], "jid": call.jid, "user": call.user, "fun_args": load["arg"]}
        tools.sender.fire(tags.run_new(call.jid), {**base, "owner": load["owner"]})
        with _signs_of_life(call.jid, options):
            value, retcode = outcome(call, tools)
            result = {**base, "return": value, "success": not retcode}
            result |= {"retcode": retcode} if retcode else {}
            kept = {**result, "id": options.id, "retcode": retcode}
            _report(tools, load, kept, result)
        return result


def _report(
    tools: RunnerTools, load: Mapping[str, object], kept: Mapping[str, object], result: Mapping[str, object]
) -> None:
    """Store a runner's result in the job cache, then fire its event.

    While Redis does not answer, fire the event first and retry the job cache.
    """
    jid, ttl, most = str(load["jid"]), tools.options.keep_jobs_seconds, tools.options.events_kept_count
    event = tools.sender.prepare(tags.run_ret(jid), {**result, "owner": load["owner"]})
    deadline, fired = time.monotonic() + _STORE_PATIENCE, False
    while True:
        try:
            if not tools.store.runner_jobs.end(load, kept, ttl=ttl, event=event.kept(), events_kept=most):
                _LOG.error("the runner was given up before its result came", extra={"jid": jid})
                return
            break
        except StoreError as error:
            if not fired:
                _LOG.error("the result is not in the job cache yet: %s", error, extra={"jid": jid})
                event.send()
            fired = True
            if not isinstance(error, StoreUnavailable) or time.monotonic() > deadline:
                return
            time.sleep(_STORE_PAUSE)
    if not fired:
        event.send()


@contextlib.contextmanager
def _signs_of_life(jid: str, options: MasterOptions) -> Iterator[None]:
    """Record in Redis every few seconds, in a thread, that this process works on the runner's job."""
    ended = threading.Event()
    where = f"process {os.getpid()} of worker {socket.gethostname()}"

    def signs() -> None:
        store = Store.open(options.redis_url, client_name="runner")
        while True:
            try:
                store.runner_jobs.alive(jid, where)
            except StoreError as error:
                # Nobody can miss a runner either while the store is away.
                _LOG.info("no sign of life: %s", error, extra={"jid": jid})
            if ended.wait(SIGN_EVERY):
                return

    thread = threading.Thread(target=signs, name="signs", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(2 * SIGN_EVERY)


def outcome(call: RunnerCall, tools: RunnerTools) -> tuple[object, int]:
    """Run a runner and return (its value or the reason for its failure, its return code)."""
    try:
        if wrong := misuse(call.fun, call.function, call.arg, call.kwarg, given=1):
            return wrong, 1
        value = call.function(tools, *call.arg, **call.kwarg)
        return value, retcode_of(value) or retcode_of(tools.scratch)
    except RunnerFault as fault:
        return str(fault), fault.retcode
    except (ControlError, ControlTimeout, StoreError) as error:
        return str(error), 1
    except Exception as error:  # noqa: BLE001 - a runner may be anybody's; its fault is its result
        _LOG.exception("the runner %s failed", call.fun, extra={"jid": call.jid})
        location = place_of(error, tools.options)
        return f"Exception occurred in runner {call.fun}: {type(error).__name__}: {error}{location}", 1


def _kwargs_shown(call: RunnerCall) -> list[dict[str, object]]:
    return [dict(call.kwarg)] if call.kwarg else []


def _opened(
    jid: str, user: str, behalf: Behalf, options: MasterOptions, key_dir: Path, stack: contextlib.ExitStack
) -> RunnerTools:
    """Return RunnerTools with new connections to Redis, the master and the event bus; ``stack`` closes them."""
    keys = LinkKeys.load(key_dir)
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    stack.callback(context.term)
    accept_unsigned = options.accept_unsigned_records
    store = Store.open(
        options.redis_url,
        client_name="runner",
        durability=durability(options),
        records=Records(record_mac(read_secret(key_dir)), accept_unsigned=accept_unsigned),
        event_codes=EventCodes(load_event_macs(key_dir), accept_unsigned=accept_unsigned),
    )
    keeper = EventKeeper(store.events, wanted_tags(options), options.events_kept_count)
    sender = EventSender(context, options, keys, keeper)
    stack.callback(sender.close)
    events = EventSubscriber(context, options, keys)
    stack.callback(events.close)
    control = ControlClient(context, options, keys, on_behalf=behalf)
    stack.callback(control.close)

    def reopened() -> RunnerTools:
        return _opened(jid, user, behalf, options, key_dir, contextlib.ExitStack())

    return RunnerTools(options, store, control, events, sender, user, jid, reopened, key_dir)


def place_of(error: BaseException, options: MasterOptions) -> str:
    """Return `` (FILE:LINE)`` of the innermost frame of an error in a user's file; empty text if there is none."""
    directories = [Path(each) for each in (*options.runner_dirs, *options.utils_dirs, options.extension_modules)]
    found, traceback = "", error.__traceback__
    while traceback is not None:
        path = Path(traceback.tb_frame.f_code.co_filename)
        if any(path.is_relative_to(each) for each in directories):
            found = f" ({path}:{traceback.tb_lineno})"
        traceback = traceback.tb_next
    return found


def retcode_of(value: object) -> int:
    """Return the ``retcode`` in a runner's value (orchestrations have one); else 0."""
    code = value.get("retcode") if isinstance(value, Mapping) else None
    return code if isinstance(code, int) else 0
