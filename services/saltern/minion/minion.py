"""The main process of a minion at one master: signs in, receives publications on port 4505, sends returns to port 4506.

The state engine is not loaded here. The zygote process gets the jobs and forks a jobber for each. A job's return is written
to the spool before it is sent. It stays in the spool until the master acknowledges it. Source: docs/execution.md#journey
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgpack
import zmq

from saltern.kit.config.minion_options import MinionOptions
from saltern.minion.duties.leadership import Leadership
from saltern.minion.engine import zygote
from saltern.minion.engine.zygote_client import GONE, ZygoteClient
from saltern.minion.ipc.messages import (
    BEACONS_ENDED,
    JOB_DIED,
    OWN_JOB_ENDED,
    READY,
    SPOOLED,
    CredentialFields,
    Targeting,
)
from saltern.minion.jobs.catch_up import COMMAND as CATCH_UP_COMMAND
from saltern.minion.jobs.catch_up import CatchUp
from saltern.minion.jobs.job_tracker import JobTracker
from saltern.minion.jobs.journal import Journal
from saltern.minion.jobs.outbox import Outbox
from saltern.minion.jobs.spool import Spool
from saltern.minion.master.away_flag import AwayFlag
from saltern.minion.master.channel import endpoint, session_of, source_of
from saltern.minion.master.failover import Failover
from saltern.minion.master.identity import Identity
from saltern.minion.master.masters import Masters, address
from saltern.minion.master.other_masters import OtherMasters
from saltern.minion.master.sign_in import Shutdown, SignInLoop
from saltwire import tags
from saltwire.busy import Busy
from saltwire.crypticle import Crypticle, SerialGate
from saltwire.envelope import ClientSession
from saltwire.errors import AuthenticationError, NonceError, PeerFault
from saltwire.handshake import Credentials
from saltwire.keys import MasterPublicKeys
from saltwire.publication import open_job
from saltwire.zmq import Connection, RequestSocket, subscribe
from statecore.model.errors import TargetError
from statecore.targeting.match import Subject, matches

_LOG = logging.getLogger("saltern.minion")

#: Milliseconds of one turn of the main loop while nothing happens: with work in hand, and without.
_TICK = 250
_IDLE_TICK = 1000

#: Seconds between two reads of the spool without a message: a jobber may outlive the process that would report its
#: return.
_SPOOL_CHECK = 2.0

#: Seconds for jobs to finish after the minion was asked to end.
_DRAIN_SECONDS = 5.0

#: Seconds after a sign-in in which a publication that cannot be decrypted is taken for one of an earlier key.
_FRESH_SECONDS = 1.0

#: Requests with events that may wait for the master. Beyond that the oldest is dropped.
_MOST_EVENTS = 1000


class Minion:
    """The minion's main process for as long as it is connected to one master."""

    def __init__(
        self,
        options: MinionOptions,
        masters: Masters,
        leadership: Leadership,
        shutdown: Shutdown,
        failover: Failover | None = None,
    ) -> None:
        """Prepare the connection to ``options.master``, one address.

        ``failover`` decides when to leave this master; None: never.
        """
        self._options = options
        self._masters = masters
        self._leadership = leadership
        self._shutdown = shutdown
        self._failover = failover
        self._identity = Identity.load(options.id, Path(options.pki_dir), options.keysize)
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        several = bool(masters.at_once)
        self._requests = RequestSocket(self._context, endpoint(options, options.source_ret_port), watched=several)
        state = masters.state(options.cachedir)
        self._spool = Spool(state / "spool")
        self._away_flag = AwayFlag(state, shared=several)
        self._other_masters = OtherMasters(masters, options)
        self._sign_in_loop = SignInLoop(self._requests, options, self._identity, shutdown, patient=failover is None)
        self._outbox = Outbox(self._spool, float(options.return_retry_timer), float(options.return_retry_timer_max))
        self._journal = Journal(state, options.minion_jid_queue_hwm)
        self._jobs = JobTracker(options, self._journal, self._spool)
        self._catch_up = CatchUp(options.replay_delay, options.replay_interval, known_until=self._journal.asked_until())
        self._connection: Connection | None = None
        self._connected = 0
        leadership.set_sender(self._send_events)
        self._subject: Subject | None = None
        self._sub: zmq.Socket[bytes] | None = None
        self._zygote = ZygoteClient(lambda: zygote.start(options, masters, self._identity, self._credentials))
        #: The request in flight.
        self._payload, self._nonce = b"", ""
        self._looked = 0.0
        shutdown.health.check("master", lambda: None if self._subject else "not signed in, or no pillar yet")

    def run(self) -> None:
        """Sign in, then run jobs until the minion is asked to end. Raise Rejected or NoMaster if the sign-in fails,
        MasterLost if the minion must change to another master, Ended, ConfigError.
        """
        self._use_credentials(self._sign_in_loop.sign_in())
        self._zygote.start()
        self._resume()
        while not self._shutdown.ended():
            self._loop_once()
            if self._failover is not None:
                self._failover.check(time.monotonic())
        self._drain()

    def close(self) -> None:
        """Close the sockets to the master. Jobs that still run finish by themselves and leave their returns in the spool."""
        self._zygote.close()
        if self._failover is not None:
            self._failover.close()
        if self._connection is not None:
            self._connection.close()
        if self._sub is not None:
            self._sub.close()
        self._requests.close()
        self._context.term()

    def _use_credentials(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._session: ClientSession = session_of(self._options, self._identity, credentials)
        self._aes = Crypticle(credentials.aes)
        self._gate = SerialGate()
        self._master = MasterPublicKeys.from_pem(credentials.master_pub)
        self._signed_in_at = time.monotonic()
        if self._sub is None:
            port = self._options.publish_port or credentials.publish_port
            self._sub = subscribe(
                self._context,
                f"tcp://{source_of(self._options, self._options.source_publish_port)}{address(self._masters.current, 0)[0]}:{port}",
                self._identity.id,
                recon_default=self._options.recon_default,
                recon_max=self._options.recon_max,
                randomize=self._options.recon_randomize,
                before=self._monitor_subscription,
            )
        self._catch_up.may_have_missed(time.monotonic())
        if self._zygote.started:
            fields: CredentialFields = {
                "aes": credentials.aes,
                "session": credentials.session,
                "publish_port": credentials.publish_port,
                "master_pub": credentials.master_pub,
                "own": credentials.own,
            }
            self._zygote.send({"credentials": fields})

    def _monitor_subscription(self, subscription: zmq.Socket[bytes]) -> None:
        self._connection = Connection(subscription)
        if self._failover is not None:
            self._failover.begin(self._context, self._connection, time.monotonic())

    def _sign_in_again(self) -> None:
        _LOG.info("the master's keys have changed; signing in again")
        self._shutdown.wait(random.uniform(0, self._options.random_reauth_delay))
        self._use_credentials(self._sign_in_loop.sign_in())

    # ------------------------------------------------------------------------------------------------------- main loop

    def _loop_once(self) -> None:
        poller = zmq.Poller()
        poller.register(self._requests.socket, zmq.POLLIN)
        client = self._zygote
        poller.register(client.fileno(), zmq.POLLIN | (zmq.POLLOUT if client.pending else 0))
        # Publications are read only after the zygote has announced the pillar.
        if self._subject is not None and self._sub is not None:
            poller.register(self._sub, zmq.POLLIN)
        self._leadership.register(poller)
        # A signal ends the wait.
        poller.register(self._shutdown.stop.fileno(), zmq.POLLIN)
        ready = dict(poller.poll(_IDLE_TICK if self._is_idle() else _TICK))
        happened = ready.get(client.fileno(), 0)
        if happened & zmq.POLLOUT:
            client.flush()
        if happened & ~zmq.POLLOUT:
            self._receive_from_zygote()
        elif client.ended():
            self._zygote_gone(b"")
        if self._requests.socket in ready:
            self._receive_reply()
        if self._sub is not None and self._sub in ready:
            self._receive_publication()
        self._leadership.serve(ready)
        self._run_due()
        self._check_jobs(time.monotonic())
        self._send_outbox()

    def _is_idle(self) -> bool:
        """Return whether the main loop has nothing in hand that needs the clock: no jobs, requests, schedule, other masters."""
        return (
            self._subject is not None
            and self._failover is None
            and self._leadership.is_idle()
            and not self._jobs
            and self._outbox.in_flight is None
            and not self._outbox.events
        )

    def _receive_publication(self) -> None:
        assert self._sub is not None
        frames = self._sub.recv_multipart()
        # A master with zmq_filtering sends a topic before the payload.
        job = self._opened(frames[-1])
        if job is not None:
            self._take_job(job)

    def _take_job(self, job: Mapping[str, object]) -> None:
        """Hand a published job to the zygote if its target matches this minion and the job is new; else ignore it."""
        if self._wanted(job) and (message := self._jobs.take(job)) is not None:
            _LOG.info("runs %s", job["fun"], extra={"jid": job["jid"], "minion": self._identity.id})
            if (event := job_started(job, self._identity.id)) is not None:
                self._outbox.events.append(event)
            self._zygote.send(message)

    def _check_jobs(self, now: float) -> None:
        """Check the jobs in progress, report long ones to the master, and ask the master for missed publications if that is due."""
        signs = self._jobs.check(now)
        ours = self._credentials.own > 0
        if signs and ours:
            self._outbox.events.append({"cmd": "_job_signs", "signs": signs})
        if self._connection is not None and (times := self._connection.times()) != self._connected:
            self._connected = times
            self._catch_up.may_have_missed(now)
        if ours and self._subject is not None and self._catch_up.is_due(now):
            self._outbox.events.append(self._catch_up.request())

    def _take_missed_jobs(self, answer: object) -> None:
        for job in self._catch_up.take_answer(answer, time.monotonic()):
            if str(job["jid"]) not in self._jobs:
                _LOG.info(
                    "running a missed job: %s", job["fun"], extra={"jid": job["jid"], "minion": self._identity.id}
                )
                self._take_job(job)
        self._journal.keep_asked_until(self._catch_up.known_until)

    def _run_due(self) -> None:
        """Start the jobs that the minion starts by itself (schedule, startup_states) and the beacon process.

        These jobs need the pillar, so nothing happens before the zygote has it.
        """
        if self._subject is None:
            return
        # Both connections count: publications may arrive from a master that does not receive requests.
        connected = self._requests.connected() and (self._connection is None or self._connection.up())
        now = time.monotonic()
        self._away_flag.check(connected=connected, now=now)
        if self._leadership.release(connected=connected, now=now):
            _LOG.warning("the master is away; another process of the minion takes over schedule and beacons")
            self._zygote.send({"watch": False})
            self._zygote.send({"engines": False})
        elif self._leadership.claim():
            self._update_duties()
        duties = self._leadership.duties
        if duties is None:
            return
        for job in duties.due():
            if self._jobs.has_room(str(job["jid"])):
                self._zygote.send({"job": job})
            else:
                duties.job_ended(str(job["jid"]))
        if duties.beacon_process_due():
            self._zygote.send({"watch": True})
        if duties.engines_due():
            self._zygote.send({"engines": True})

    def _update_duties(self) -> None:
        if self._leadership.duties is not None and self._subject is not None:
            self._leadership.duties.update(self._subject.pillar, self._subject.grains)

    def _send_events(self, events: Sequence[Mapping[str, object]]) -> None:
        waiting = self._outbox.events
        if len(waiting) >= _MOST_EVENTS:
            _LOG.error("%d requests with events wait for the master; the oldest is dropped", len(waiting))
            # The first one may be in flight, and the question for missed publications needs its answer.
            del waiting[1 if waiting[1]["cmd"] != CATCH_UP_COMMAND else 2]
        load: dict[str, object] = {"cmd": "_minion_event", "events": list(events), "pretag": None}
        waiting.append(load)
        self._other_masters.send(load)

    def _opened(self, payload: bytes) -> dict[str, object] | None:
        for last in (False, True):
            try:
                job = open_job(
                    payload, self._aes, gate=self._gate, master_pub=self._master, verify=self._options.sign_pub_messages
                )
                return None if job is None else dict(job)
            except AuthenticationError as error:
                if last:
                    _LOG.error("a publication cannot be decrypted even after a new sign-in: %s", error)
                    return None
                if time.monotonic() - self._signed_in_at < _FRESH_SECONDS:
                    # It was on its way when the key changed: many of these must not cause as many sign-ins.
                    _LOG.info("a publication of an earlier key was dropped; the master is asked for missed jobs")
                    self._catch_up.may_have_missed(time.monotonic())
                    return None
                self._sign_in_again()
            except PeerFault as error:
                _LOG.warning("a publication is invalid and was dropped: %s", error)
                return None
        return None

    def _wanted(self, job: Mapping[str, object]) -> bool:
        if str(job["jid"]) in self._jobs or self._subject is None:
            return False
        return is_for(job, self._subject, self._options.nodegroups)

    def _receive_reply(self) -> None:
        reply = self._requests.receive(0.001)
        if reply is None or self._outbox.in_flight is None:
            return
        now = time.monotonic()
        try:
            answer = self._session.open(reply, self._nonce)
        except NonceError:
            return
        except Busy as busy:
            _LOG.info("the master did not accept a return; it is sent again: %s", busy)
            self._outbox.refused(now, busy.retry_after)
            return
        except AuthenticationError as error:
            _LOG.info("the master did not accept a return; it is sent again: %s", error)
            self._outbox.failed(now)
            if "bad load" in str(error) or "authentication code" in str(error):
                self._sign_in_again()
            return
        except PeerFault as error:
            _LOG.warning("the answer to a return violates the protocol; the return is sent again: %s", error)
            self._outbox.failed(now)
            return
        request = self._outbox.in_flight
        self._outbox.answered()
        if isinstance(request, Mapping) and request.get("cmd") == CATCH_UP_COMMAND:
            self._take_missed_jobs(answer)
        elif answer is False:
            _LOG.error(
                "the master dropped a return: it is malformed, or this minion has stored too many returns of own or unknown"
                " jobs; the master's log says which"
            )

    def _send_outbox(self) -> None:
        now = time.monotonic()
        if now - self._looked > _SPOOL_CHECK:
            self._looked = now
            self._outbox.spooled()
        if self._outbox.overdue(now):
            _LOG.info("no answer to a return; it is sent again")
            self._outbox.unanswered(now)
        load = self._outbox.next_request(now)
        if load is not None:
            self._payload, self._nonce = self._session.seal(load, time.time())
            self._requests.send(self._payload)
        elif self._outbox.in_flight is not None and self._requests.lost():
            # The same bytes: the master recognises a request that it has carried out.
            self._requests.send(self._payload)

    #
    # ---------------------------------------------------------------------------------------------------------- zygote

    def _receive_from_zygote(self) -> None:
        handlers: Mapping[bytes, Callable[[bytes], None]] = {
            SPOOLED: lambda _: self._outbox.spooled(),
            JOB_DIED: self._job_died,
            OWN_JOB_ENDED: self._own_job_ended,
            BEACONS_ENDED: self._beacon_process_ended,
            READY: self._zygote_ready,
            GONE: self._zygote_gone,
        }
        heard = self._zygote.receive()
        if heard is not None:
            kind, content = heard
            handlers[kind](content)

    def _job_died(self, content: bytes) -> None:
        code, _, jid = content.decode().partition(" ")
        self._jobs.job_died(jid, int(code))

    def _own_job_ended(self, content: bytes) -> None:
        if self._leadership.duties is not None:
            self._leadership.duties.job_ended(content.decode())

    def _beacon_process_ended(self, _: bytes) -> None:
        if self._leadership.duties is not None:
            self._leadership.duties.beacon_process_ended()

    def _zygote_ready(self, content: bytes) -> None:
        known: Targeting = msgpack.unpackb(content, strict_map_key=False)
        first = self._subject is None
        self._subject = Subject(self._identity.id, known["grains"], known["pillar"])
        self._update_duties()
        if first:
            self._outbox.events.extend(start_events(self._options, self._identity.id, self._subject.grains))
            _LOG.info("is ready for jobs", extra={"minion": self._identity.id})

    def _zygote_gone(self, _: bytes) -> None:
        _LOG.error("the zygote (process that forks jobs) ended; a new one is started")
        if self._leadership.duties is not None:
            self._leadership.duties.zygote_lost()
        self._zygote.start()
        self._resume()

    def _resume(self) -> None:
        for message in self._jobs.resume():
            self._zygote.send(message)

    def _drain(self) -> None:
        """Wait a few seconds for jobs to finish, and send their returns."""
        self._subject = None
        self._zygote.send({"end": _DRAIN_SECONDS})
        deadline = time.monotonic() + _DRAIN_SECONDS
        poller = zmq.Poller()
        poller.register(self._requests.socket, zmq.POLLIN)
        while time.monotonic() < deadline:
            self._zygote.flush()
            self._outbox.spooled()
            self._send_outbox()
            if self._zygote.ended() and self._outbox.in_flight is None and not self._spool.waiting():
                break
            if dict(poller.poll(_TICK // 5)):
                self._receive_reply()
        if waiting := len(self._spool.waiting()):
            _LOG.warning("%d returns stay in the spool until the next start", waiting)


def is_for(job: Mapping[str, object], subject: Subject, nodegroups: Mapping[str, object]) -> bool:
    """Return whether the job's target matches this minion. An invalid target is logged and does not match."""
    try:
        return matches(
            job["tgt"],
            str(job.get("tgt_type") or "glob"),
            subject,
            delimiter=str(job.get("delimiter") or ":"),
            nodegroups=nodegroups,
        )
    except TargetError as error:
        _LOG.warning("the target of a job is invalid, and the job is ignored: %s", error, extra={"jid": job["jid"]})
        return False


def start_events(options: MinionOptions, minion_id: str, grains: Mapping[str, object]) -> list[dict[str, object]]:
    """Return the loads of the requests that fire this minion's start events at the master, old tag first if it is enabled.

    They carry the grains that ``start_event_grains`` names.
    """
    text = f"Minion {minion_id} started at {time.asctime()}"
    event = {name: grains[name] for name in options.start_event_grains if name in grains}
    names = [tags.MINION_START_LEGACY] if options.enable_legacy_startup_events else []
    base = {"cmd": "_minion_event", "data": text, "pretag": None, **({"grains": event} if event else {})}
    return [{**base, "tag": tag} for tag in (*names, tags.minion_start(minion_id))]


def job_started(job: Mapping[str, object], minion_id: str) -> dict[str, object] | None:
    """Return the request that fires the event "this minion starts the job"; None unless the job has ``start_event``."""
    if not job.get("start_event"):
        return None
    event = {"id": minion_id, **{name: job.get(name) for name in ("jid", "fun", "tgt", "tgt_type", "user")}}
    if job.get("metadata") is not None:
        event["metadata"] = job["metadata"]
    return {"cmd": "_minion_event", "data": event, "pretag": None, "tag": tags.job_start(str(job["jid"]), minion_id)}
