"""Decrypts a request, authorises its sender, calls the command, and encrypts the answer.

A request never raises out of ``RequestHandler.answer``, and each request gets exactly one answer.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import msgpack

from masterstore.errors import StoreError, StoreUnavailable
from masterstore.keys import REQUEST_TTL
from masterstore.replays import Admission, Verdict
from saltern.kit.config.worker_pools import ONE_POOL, Pools
from saltern.kit.links.control import ControlError, ok, refused
from saltern.kit.links.rights import Call, Kind, Rights, barred_by_list, owned_job, question_of
from saltern.kit.links.sockets import NAMES
from saltern.kit.links.worker_link import AGAIN
from saltern.mworker import sign_in
from saltern.mworker.authorise import NotAllowed, decided, reached
from saltern.mworker.commands import (
    CONTROL_COMMANDS,
    MINION_COMMANDS,
    ControlCommand,
    ControlPolicy,
    MinionPolicy,
    Owner,
    Repeat,
)
from saltern.mworker.commands.control import call_of, calls_of
from saltern.mworker.commands.job_views import JobViews
from saltern.mworker.commands.pillar import compile_for
from saltern.mworker.commands.resend import send_waiting
from saltern.mworker.deferred_reply import DeferredReply, SealedDeferredReply
from saltern.mworker.senders import Sender, Way, is_role, on_behalf, sender_by_key, sender_by_token
from saltern.mworker.watchdog import Watchdog
from saltern.mworker.worker_context import WorkerContext
from saltwire import tags
from saltwire.envelope import Envelope, OpenedRequest, check_version, open_request, parse_request, seal_reply
from saltwire.errors import OwnFault, PeerFault
from saltwire.jid import is_jid
from saltwire.pack import MAX_VALUES, check_values, packb
from saltwire.pillar_transfer import seal_pillar

#: Answer to a message that cannot be decrypted; the minion signs in again. Source: docs/protocol.md#reply-order
BAD_LOAD = packb("bad load")

#: Commands of minions that are not rows of MINION_COMMANDS.
UNLISTED = frozenset({"_auth", "ping", "_pillar"})

#: Fields of an operator's request that say who sends it, and are no part of the command.
_ABOUT_SENDER = frozenset({"token", "on_behalf", "by_sender"})

#: Kinds of requests that look at something and name no function.
_LOOKS = frozenset({Kind.LOOK, Kind.JOBS, Kind.EVENTS})

#: Commands of operators whose refusal is recorded in the audit record.
_AUDITED = frozenset({"publish", "runner", "wheel"})

#: Commands that work without Redis; their success does not end an outage.
_WITHOUT_STORE = frozenset({"ping", "runner"})


@dataclass(frozen=True, slots=True)
class WrongPool:
    """The answer of a worker to a request that belongs to another worker pool (``pool``). This worker did nothing with
    the request.
    """

    pool: str


class _OtherPool(Exception):
    """Raised inside RequestHandler when the request belongs to the worker pool ``pool`` and not to this worker's."""

    def __init__(self, pool: str) -> None:
        super().__init__(pool)
        self.pool = pool


class RequestHandler:
    """Answers the requests of one worker: decrypts, authorises the sender, calls the command, and encrypts the result."""

    def __init__(self, context: WorkerContext, pools: Pools = ONE_POOL, watchdog: Watchdog | None = None) -> None:
        """Prepare to answer requests. ``watchdog``: records which command the worker is handling and since when."""
        self._context = context
        self._pools = pools
        self._watchdog = watchdog or Watchdog({}, context.options.request_deadline)
        #: This worker's pool while it decrypts a request of unknown command; empty if the request is known to belong here.
        self._opening_pool = ""
        #: Whether a worker that died had the request before.
        self._again = False
        #: Seconds. ``request_id`` of a minion's job is remembered for as long as a request may be older than the last one, twice.
        self._window = min(context.options.request_window, REQUEST_TTL // 2)
        self._redis_away = False
        #: The minion whose key the last request proved; empty if it proved none.
        self.sender = ""
        #: The store's error that was logged last.
        self._last_fault = ""

    def answer(
        self, side: bytes, client: str, payload: bytes, pool: str = ""
    ) -> bytes | SealedDeferredReply | WrongPool:
        """Return the answer to a request from port 4506 or port 4507.

        ``side``: "minion" for port 4506, AGAIN for a request from 4506 that another worker got before and did not
        finish, "control" for port 4507. ``client``: name of the operator's key. ``pool``: this worker's pool, if the
        request may belong to another pool because its command is not known yet; a request of another pool then returns
        WrongPool.
        """
        started = time.monotonic()
        reply: bytes | SealedDeferredReply
        self._opening_pool = pool
        self.sender = ""
        self._watchdog.begin()
        try:
            if side == b"control":
                cmd, outcome, reply = self._control(client, payload)
            else:
                self._again = side == AGAIN
                cmd, outcome, reply = self._minion(payload)
        except _OtherPool as other:
            return WrongPool(other.pool)
        finally:
            self._watchdog.end()
        if self._redis_away and outcome == "ok" and cmd not in _WITHOUT_STORE:
            self._redis_away = False
            self._context.log.warning("redis is back")
        self._context.metrics.requests.labels(cmd, outcome).inc()
        took = time.monotonic() - started
        self._context.metrics.request_seconds.labels(cmd).observe(took)
        self._context.log.debug(
            "answered %s: %s, after %.1f ms", cmd, outcome, took * 1000, extra={"client": client or None}
        )
        return reply

    def _begin(self, cmd: str) -> None:
        """Tell the watchdog which command is handled now. Raises _OtherPool if the command belongs to another worker pool."""
        if self._opening_pool and (pool := self._pools.of(cmd)) != self._opening_pool:
            raise _OtherPool(pool)
        self._watchdog.cmd = cmd

    def _minion(self, payload: bytes) -> tuple[str, str, bytes | SealedDeferredReply]:
        cmd = "unknown"
        self._context.request_bytes = len(payload)
        try:
            envelope = parse_request(payload)
            if envelope.enc == "clear":
                # Also for a sign-in: a minion of an older version would get keys that it may not use.
                check_version(envelope, self._context.options.minimum_auth_version)
                return self._clear(envelope)
            opened = self._open(envelope)
            named = str(opened.load.get("cmd"))
            cmd = named if named in MINION_COMMANDS or named == "_pillar" else "unknown"
            if self._context.log.isEnabledFor(logging.DEBUG):
                about = {"minion": opened.id, "jid": opened.load.get("jid")}
                self._context.log.debug("request %s%s", named, _subject(opened.load), extra=about)
            self._begin(named)
            self.sender = opened.id if opened.proved else ""
            return cmd, "ok", self._command(cmd, opened)
        except _OtherPool:
            raise
        except PeerFault as fault:
            self._context.log.debug("a request was refused: %s", fault)
            return cmd, "refused", fault.reply or BAD_LOAD
        except StoreUnavailable as error:
            # Not encrypted, because a minion would take an encrypted answer for an acknowledgement.
            self._log_outage(error, cmd)
            return cmd, "unavailable", packb(f"the master cannot reach Redis: {error}")
        except StoreError as error:
            # Not encrypted for the same reason. The error names the key in Redis; a stack trace would not help.
            self._log_fault(error, cmd)
            return cmd, "error", packb(f"the master cannot read a key in Redis: {error}")
        except Exception:
            self._context.log.exception("a request failed", extra={"cmd": cmd})
            return cmd, "error", packb("Some exception handling minion payload")

    def _clear(self, envelope: Envelope) -> tuple[str, str, bytes]:
        load = envelope.load
        if not isinstance(load, dict):
            raise PeerFault("the load of a clear request must be a map", reply=packb("payload and load must be a dict"))
        # Control commands are not served on this port. Failover minions send ping.
        self._begin(str(load.get("cmd")))
        if load.get("cmd") == "_auth":
            return "_auth", "ok", sign_in.answer(self._context, envelope.version, load, own=envelope.own)
        if load.get("cmd") == "ping":
            return "ping", "ok", packb(load)
        return "unknown", "refused", packb({})

    def _open(self, envelope: Envelope) -> OpenedRequest:
        before = self._context.epochs()
        try:
            return self._opened(envelope)
        except PeerFault:
            # The minion may use keys of an epoch, or of an acceptance of its key, that this worker has not read yet.
            known = self._context.newest_epochs() == before
            if not self._context.store.minion_keys.outdated(envelope.id) and known:
                raise
        return self._opened(envelope)

    def _opened(self, envelope: Envelope) -> OpenedRequest:
        return open_request(
            envelope,
            session_keys=self._context.session_keys,
            shared_keys=self._context.shared_keys(),
            public_pem_of=self._context.store.minion_keys.pem,
            now=time.time(),
            ttl=self._context.options.request_server_ttl,
            minimum_version=self._context.options.minimum_auth_version,
            tok_cache=self._context.tokens,
        )

    def _command(self, cmd: str, opened: OpenedRequest) -> bytes | SealedDeferredReply:
        if cmd == "_pillar":
            return self._pillar(opened)
        row = MINION_COMMANDS.get(cmd)
        if row is None:
            return seal_reply(opened, {})
        if not (opened.proved or row.unproved):
            raise PeerFault(f"{cmd} in version {opened.version} needs a token")
        admission = self._admission(opened, row.repeat, row.policy, heard=row.heard)
        if self._is_repeated(row.repeat, admission):
            return seal_reply(opened, row.repeated)
        if row.heard:
            self._hear(opened, admission)
        try:
            more = {"nonce": opened.nonce} if row.once else {}
            value = row.handler(self._context, opened.id, opened.load | more)
        except (StoreError, PeerFault):
            # Not encrypted: a minion takes an encrypted answer to a return for an acknowledgement.
            raise
        except Exception:
            # A stock master gives the same answer when a handler fails. Source: docs/protocol.md#traps
            self._context.log.exception("a command failed", extra={"cmd": cmd, "minion": opened.id})
            value = ""
        return _deferred(opened, value) if isinstance(value, DeferredReply) else seal_reply(opened, value)

    def _hear(self, opened: OpenedRequest, admission: Admission | None) -> None:
        """Record the minion's presence if its admission has not. Publish the jobs that wait for a stock minion again."""
        waits = None if admission is None else admission.waits
        if waits is None:
            waits = self._context.store.presence.arrived(opened.id, int(time.time() * 1000))
        if waits:
            send_waiting(self._context, opened.id, started=opened.load.get("tag") == tags.minion_start(opened.id))

    def _is_repeated(self, repeat: Repeat, admission: Admission | None) -> bool:
        """Return True if the same request was handled before: its answer is sent again, but its command is not carried
        out a second time.

        A request is carried out again if the worker that had it before died, because that worker may have done only
        half of it.
        """
        came_before = admission is not None and admission.verdict is Verdict.REPEATED
        return came_before and repeat is Repeat.ANSWERED and not self._again

    def _admission(
        self, opened: OpenedRequest, repeat: Repeat, policy: MinionPolicy = MinionPolicy.OWN, *, heard: bool = False
    ) -> Admission | None:
        """Compare the request's nonce and time with earlier requests in Redis; return the Admission. Return None without asking
        Redis if the answer would change nothing.

        ``heard``: a new request is recorded as the minion's presence in the same step. Raises PeerFault if the request
        is too old.
        """
        if repeat is Repeat.HARMLESS or self._window <= 0 or not opened.proved:
            return None
        nonce: str | None = None
        if repeat is Repeat.ANSWERED or policy is MinionPolicy.PEER:
            nonce = opened.nonce
            if nonce is None:
                if opened.version >= 2:
                    raise PeerFault("a request that changes something needs a nonce", BAD_LOAD)
                return None
        elif opened.sent is None or abs(time.time() - opened.sent) <= self._window:
            # Without a look into Redis: the command recognises its work for longer than a clock is usually wrong.
            return None
        seen_ms = int(time.time() * 1000) if heard else None
        admission = self._context.store.replays.admit(
            opened.id, nonce, opened.sent, window=self._window, seen_ms=seen_ms
        )
        if admission.verdict is Verdict.OLD:
            self._context.store.minion_keys.renew(opened.id)
            said = (
                "a request is %d s older than the last one (request_window: %d s): the minion's clock was set back, or somebody"
                " repeats old requests. The minion has to sign in again, which ends its earlier sessions"
            )
            self._context.log.warning(said, admission.late, self._window, extra={"minion": opened.id})
            raise PeerFault(f"the request is {admission.late} s older than the last one", BAD_LOAD)
        return admission

    def _pillar(self, opened: OpenedRequest) -> bytes:
        public = self._context.public_key_of(opened.id)
        if public is None:
            return BAD_LOAD
        if opened.nonce is None:
            return packb({"error": "Nonce not included in request"})
        came_before = self._is_repeated(Repeat.ANSWERED, self._admission(opened, Repeat.ANSWERED))
        return seal_pillar(
            compile_for(self._context, opened.id, opened.load, keep=not came_before),
            minion_pub=public,
            master_key=self._context.master_key_of(opened.id),
            nonce=opened.nonce,
            enc_algo=opened.enc_algo,
            sig_algo=opened.sig_algo,
        )

    def _control(self, client: str, payload: bytes) -> tuple[str, str, bytes | SealedDeferredReply]:
        cmd = "unknown"
        try:
            fields = _fields(payload)
            named = str(fields.get("cmd"))
            row = CONTROL_COMMANDS.get(named)
            if row is None:
                known = ", ".join(
                    sorted(each for each, row in CONTROL_COMMANDS.items() if row.policy is not ControlPolicy.REQSERVER)
                )
                return (
                    cmd,
                    "refused",
                    refused("UnknownCommand", f"there is no control command '{named}'; there are {known}"),
                )
            cmd = named
            if self._context.log.isEnabledFor(logging.DEBUG):
                self._context.log.debug("request %s%s", cmd, _subject(fields), extra={"client": client})
            self._begin(cmd)
            carrier = self._carrier(client, fields)
            sender = on_behalf(self._context.rows, carrier, fields.get("on_behalf")) or carrier
            by_sender = fields.get("by_sender") is True
            fields = {name: value for name, value in fields.items() if name not in _ABOUT_SENDER}
            if carrier.way is Way.USER:
                fields["user"] = carrier.name
            elif client and client not in NAMES:
                # An operator with an own key cannot act under another name.
                fields["user"] = client
            fields["within"] = self._authorise(sender if by_sender and not is_role(sender) else carrier, row, fields)
            value = row.handler(self._context, sender, fields)
            return cmd, "ok", self._deferred_answer(cmd, value) if isinstance(value, DeferredReply) else ok(value)
        except _OtherPool:
            raise
        except ControlError as error:
            if cmd in _AUDITED:
                self._context.audit.refused(client, cmd, error.name)
            return cmd, "refused", refused(error.name, error.message)
        except StoreUnavailable as error:
            self._log_outage(error, cmd)
            return cmd, "unavailable", refused("StoreUnavailable", str(error))
        except (StoreError, OwnFault) as error:
            self._context.log.error("%s", error, extra={"cmd": cmd, "client": client})
            return cmd, "error", refused(type(error).__name__, str(error))
        except Exception as error:
            self._context.log.exception("a command failed", extra={"cmd": cmd, "client": client})
            return (
                cmd,
                "error",
                refused("InternalError", f"{cmd} failed on the master: {error}; its log has the details"),
            )

    def _carrier(self, client: str, fields: Mapping[str, object]) -> Sender:
        """Return the sender whose rules allow the request: the user of the eauth token in the field ``token``, or the
        CurveZMQ key ``client`` for a request without one.

        Raises ControlError for a token that is unknown or has expired: such a request is never decided by the rights
        of its CurveZMQ key.
        """
        rows = self._context.rows
        if "token" not in fields:
            return sender_by_key(rows, client)
        text = fields["token"]
        found = self._context.store.tokens.find(text, time.time()) if isinstance(text, str) and text else None
        if found is None:
            raise ControlError("TokenAuthenticationError", "the token is unknown or has expired")
        return sender_by_token(rows, client, found)

    def _deferred_answer(self, cmd: str, deferred: DeferredReply) -> SealedDeferredReply:
        """Return the deferred reply to the operators' command ``cmd`` as a SealedDeferredReply: its work packs the
        value, or the error as a refusal.
        """
        work, log = deferred.work, self._context.log

        def answer() -> bytes:
            assert work is not None
            try:
                return ok(work())
            except ControlError as error:
                return refused(error.name, error.message)
            except StoreError as error:
                log.error("%s", error, extra={"cmd": cmd})
                return refused("StoreUnavailable", str(error))
            except Exception as error:
                log.exception("a command failed", extra={"cmd": cmd})
                return refused("InternalError", f"{cmd} failed on the master: {type(error).__name__}; see its log")

        busy = refused("Busy", f"the master has no process for {cmd} now; try again")
        return SealedDeferredReply(answer, busy, deferred.lost, deferred.requester)

    def _log_outage(self, error: StoreUnavailable, cmd: str) -> None:
        """Log that Redis does not answer, once for each outage: every minion repeats its requests meanwhile."""
        level = logging.DEBUG if self._redis_away else logging.ERROR
        self._redis_away = True
        self._context.log.log(level, "%s; requests are not served until Redis answers", error, extra={"cmd": cmd})

    def _log_fault(self, error: StoreError, cmd: str) -> None:
        """Log an error of the store. Successive errors with the same text are logged once, because every minion's
        request may cause them.
        """
        level = logging.DEBUG if self._last_fault == str(error) else logging.ERROR
        self._last_fault = str(error)
        self._context.log.log(level, "%s", error, extra={"cmd": cmd})

    def _authorise(self, sender: Sender, row: ControlCommand, fields: Mapping[str, object]) -> Collection[str] | None:
        """Return the minion ids to which the sender's publish request is restricted, or None for no restriction.

        Raises ControlError if the sender's rules do not allow the request.
        """
        rows, client, name, policy = self._context.rows, sender.client, sender.name or "this key", row.policy
        if policy is ControlPolicy.ANY:
            return None
        if policy is ControlPolicy.REQSERVER:
            if client != "reqserver":
                raise ControlError("AuthorizationError", f"{name} may not tell who is connected: the reqserver does")
            return None
        kind = Kind(policy.value)
        calls = calls_of(fields) if kind is Kind.PUBLISH else [call_of(fields)]
        if kind not in _LOOKS:
            who = [client, str(fields.get("user") or "")]
            published = [call.fun for call in calls] if kind is Kind.PUBLISH else []
            if named := barred_by_list(rows.publisher_acl_blacklist, who, published):
                raise ControlError("AuthorizationError", f"{named} is barred (option publisher_acl_blacklist)")
        rights = sender.rights
        if kind is not Kind.PUBLISH:
            if decided(rights, kind, calls).refused and not self._is_own_job(sender, row, calls[0]):
                what = "" if kind in _LOOKS or rights.whole_names else f" for {calls[0].fun}"
                said = Kind.JOBS.value if kind is Kind.LOOK else kind.value
                raise ControlError("AuthorizationError", f"{name} may not use {said}{what} ({_where(rights)})")
            return None
        question = question_of(fields)
        if question and not decided(rights, kind, calls).everywhere and self._may_ask(sender, *question):
            return question[1]
        delimiter = kwargs.get("delimiter") if isinstance(kwargs := fields.get("kwargs"), dict) else None
        tgt, tgt_type = fields.get("tgt", "*"), str(fields.get("tgt_type") or "glob")
        try:
            return reached(self._context, rights, calls, tgt, tgt_type, str(delimiter or ":")).within
        except NotAllowed as error:
            on = "" if rights.whole_names else f" on {tgt}"
            raise ControlError("AuthorizationError", f"{name} may not run {error}{on} ({_where(rights)})") from error

    def _may_ask(self, sender: Sender, jid: str, minions: frozenset[str]) -> bool:
        """Return whether an operator may ask which of these minions still run a job: the operator's own job, or any job
        for an operator who reads all jobs; only minions of that job.
        """
        jobs, views = self._context.store.jobs, JobViews(self._context, sender)
        load = jobs.load(jid)
        if load is None or not sender.rights.rules:
            return False
        # A job that a worker of the last release published carries no owner.
        own = views.is_own(load) or ("owner" not in load and load.get("user") == sender.name)
        return (own or views.everything) and minions <= set(jobs.expected(jid))

    def _is_own_job(self, sender: Sender, row: ControlCommand, call: Call) -> bool:
        """Return whether a runner that the access list does not allow is one that the owner of a job may use, and is about a
        job of the sender. A job may be repeated by whoever reads all jobs, too: the publication is decided for itself.
        """
        jid = owned_job(call) if row.owner is Owner.OWN_JOB else None
        if jid is None or not is_jid(jid) or not sender.rights.rules:
            return False
        views = JobViews(self._context, sender)
        if call.fun == "jobs.rerun" and views.everything:
            return True
        load = self._context.store.jobs.load(jid)
        return load is not None and views.is_own(load)


def _where(rights: Rights) -> str:
    """Return the option that contains the rights of an operator's key, as text for the message that refuses a request.
    If the key has no rights, the text advises to add a row for it.
    """
    if rights.rules:
        return f"option {rights.option}"
    return f"option {rights.option}: it gives this key no right; add a row for it to the master's configuration"


def _deferred(opened: OpenedRequest, deferred: DeferredReply) -> SealedDeferredReply:
    work = deferred.work
    return SealedDeferredReply(
        work=None if work is None else lambda: seal_reply(opened, work()),
        refused=seal_reply(opened, deferred.refused),
        lost=deferred.lost,
        requester=opened.id,
    )


def _fields(payload: bytes) -> Mapping[str, object]:
    try:
        check_values(payload, MAX_VALUES)
        fields = msgpack.unpackb(payload, strict_map_key=False)
    except PeerFault as fault:
        raise ControlError("BadRequest", str(fault)) from fault
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise ControlError("BadRequest", f"not msgpack: {error}") from error
    if not isinstance(fields, dict):
        raise ControlError("BadRequest", f"a request is a map, not a {type(fields).__name__}")
    return fields


def _subject(load: Mapping[str, object]) -> str:
    """Return the subject of a request as text for the log: its function, file or event tag, without its arguments and
    data.
    """
    named = [f"{name} {str(load[name])[:200]}" for name in ("fun", "tgt", "path", "saltenv", "tag") if load.get(name)]
    return f" ({', '.join(named)})" if named else ""
