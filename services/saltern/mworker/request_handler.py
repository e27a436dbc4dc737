"""The door of a worker: bytes in, bytes out. Nothing a peer sends can raise past here, and every request gets one answer."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgpack

from masterstore.errors import StoreError, StoreUnavailable
from saltern.kit.config.worker_pools import ONE_POOL, Pools
from saltern.kit.links.control import ControlError, ok, refused
from saltern.kit.links.sockets import NAMES
from saltern.mworker import operator_acl, sign_in
from saltern.mworker.commands import CONTROL_COMMANDS, MINION_COMMANDS, ControlPolicy
from saltern.mworker.commands.control import Reach, call_of, calls_of
from saltern.mworker.commands.pillar import compile_for
from saltern.mworker.deferred_reply import DeferredReply, SealedDeferredReply
from saltern.mworker.peer_acl import nowhere
from saltern.mworker.watchdog import Watchdog
from saltern.mworker.worker_context import WorkerContext
from saltwire.envelope import Envelope, OpenedRequest, open_request, parse_request, seal_reply
from saltwire.errors import OwnFault, PeerFault
from saltwire.pack import packb
from saltwire.pillar_transfer import seal_pillar

#: What a peer is told whose message cannot be opened: the signal to sign in again (protocol section 4.5).
BAD_LOAD = packb("bad load")

#: Commands of minions that are not rows of MINION_COMMANDS.
UNLISTED = frozenset({"_auth", "ping", "_pillar"})

#: Commands whose success says nothing about Redis.
_WITHOUT_STORE = frozenset({"ping", "runner"})


@dataclass(frozen=True, slots=True)
class WrongPool:
    """The request is of another pool; nothing was done about it."""

    pool: str


class _OtherPool(Exception):
    """Ends the work on a request before it begins."""

    def __init__(self, pool: str) -> None:
        super().__init__(pool)
        self.pool = pool


class RequestHandler:
    """Opens requests, checks who may, calls the handler, seals answers."""

    def __init__(self, context: WorkerContext, pools: Pools = ONE_POOL, watchdog: Watchdog | None = None) -> None:
        """``watch``: told what is worked on."""
        self._context = context
        self._pools = pools
        self._watchdog = watchdog or Watchdog({}, context.options.request_deadline)
        #: The pool that looks into the request which is worked on; empty where it is known to be right here.
        self._opening_pool = ""
        #: Checked tokens: the same token of the same key need not be recovered twice (protocol section 4.6).
        self._tokens: dict[Any, Any] = {}
        self._redis_away = False
        #: What was said last of a key in Redis that cannot be read.
        self._last_fault = ""

    def answer(
        self, side: bytes, client: str, payload: bytes, pool: str = ""
    ) -> bytes | SealedDeferredReply | WrongPool:
        """The one answer to a request from 4506 (side ``minion``) or 4507 (side ``control``).

        ``pool``: where it may be of another pool than this one, that is said instead.
        """
        started = time.monotonic()
        reply: bytes | SealedDeferredReply
        self._opening_pool = pool
        self._watchdog.begin()
        try:
            if side == b"control":
                cmd, outcome, reply = self._control(client, payload)
            else:
                cmd, outcome, reply = self._minion(payload)
        except _OtherPool as other:
            return WrongPool(other.pool)
        finally:
            self._watchdog.end()
        if self._redis_away and outcome == "ok" and cmd not in _WITHOUT_STORE:
            self._redis_away = False
            self._context.log.warning("redis is back")
        self._context.metrics.requests.labels(cmd, outcome).inc()
        self._context.metrics.request_seconds.labels(cmd).observe(time.monotonic() - started)
        return reply

    def _begin(self, cmd: str) -> None:
        """The command is known. Raises _OtherPool where it is not for this pool to work on it."""
        if self._opening_pool and (pool := self._pools.of(cmd)) != self._opening_pool:
            raise _OtherPool(pool)
        self._watchdog.cmd = cmd

    def _minion(self, payload: bytes) -> tuple[str, str, bytes | SealedDeferredReply]:
        cmd = "unknown"
        try:
            envelope = parse_request(payload)
            if envelope.enc == "clear":
                return self._clear(envelope)
            opened = self._open(envelope)
            named = str(opened.load.get("cmd"))
            cmd = named if named in MINION_COMMANDS or named == "_pillar" else "unknown"
            self._begin(named)
            return cmd, "ok", self._command(cmd, opened)
        except _OtherPool:
            raise
        except PeerFault as fault:
            self._context.log.debug("a request was refused: %s", fault)
            return cmd, "refused", fault.reply or BAD_LOAD
        except StoreUnavailable as error:
            # Not an encrypted answer: a minion must not take it for an acknowledgement.
            self._log_outage(error, cmd)
            return cmd, "unavailable", packb(f"the master's memory is away: {error}")
        except StoreError as error:
            # Not an encrypted answer either. It is the store's fault and has its name; where it was met is of no use.
            self._log_fault(error, cmd)
            return cmd, "error", packb(f"the master's memory cannot be read: {error}")
        except Exception:
            self._context.log.exception("a request failed", extra={"cmd": cmd})
            return cmd, "error", packb("Some exception handling minion payload")

    def _clear(self, envelope: Envelope) -> tuple[str, str, bytes]:
        load = envelope.load
        if not isinstance(load, dict):
            raise PeerFault("the load of a clear request must be a map", reply=packb("payload and load must be a dict"))
        # Administration does not exist on this port (design: security); ping is what failover minions ask.
        self._begin(str(load.get("cmd")))
        if load.get("cmd") == "_auth":
            return "_auth", "ok", sign_in.answer(self._context, envelope.version, load)
        if load.get("cmd") == "ping":
            return "ping", "ok", packb(load)
        return "unknown", "refused", packb({})

    def _open(self, envelope: Envelope) -> OpenedRequest:
        before = self._context.epochs()
        try:
            return self._opened(envelope)
        except PeerFault:
            # Another worker may have told the minion of keys that this one does not know yet.
            if self._context.newest_epochs() == before:
                raise
        return self._opened(envelope)

    def _opened(self, envelope: Envelope) -> OpenedRequest:
        return open_request(
            envelope,
            session_keys=self._context.session_keys,
            shared_keys=self._context.shared_keys(),
            public_key_of=self._context.public_key_of,
            now=time.time(),
            ttl=self._context.options.request_server_ttl,
            minimum_version=self._context.options.minimum_auth_version,
            tok_cache=self._tokens,
        )

    def _command(self, cmd: str, opened: OpenedRequest) -> bytes | SealedDeferredReply:
        if cmd == "_pillar":
            return self._pillar(opened)
        row = MINION_COMMANDS.get(cmd)
        if row is None:
            return seal_reply(opened, {})
        if not (opened.proved or row.unproved):
            raise PeerFault(f"{cmd} in version {opened.version} needs a token")
        try:
            more = {"nonce": opened.nonce} if row.once else {}
            value = row.handler(self._context, opened.id, opened.load | more)
        except (StoreError, PeerFault):
            # Not sealed: a minion takes a sealed answer to a return for an acknowledgement.
            raise
        except Exception:
            # What a stock master answers when a handler fails; minions cope with it (protocol section 13.7).
            self._context.log.exception("a command failed", extra={"cmd": cmd, "minion": opened.id})
            value = ""
        return _deferred(opened, value) if isinstance(value, DeferredReply) else seal_reply(opened, value)

    def _pillar(self, opened: OpenedRequest) -> bytes:
        public = self._context.public_key_of(opened.id)
        if public is None:
            return BAD_LOAD
        if opened.nonce is None:
            return packb({"error": "Nonce not included in request"})
        return seal_pillar(
            compile_for(self._context, opened.id, opened.load),
            minion_pub=public,
            master_key=self._context.keys.private,
            nonce=opened.nonce,
            enc_algo=opened.enc_algo,
            sig_algo=opened.sig_algo,
        )

    def _control(self, client: str, payload: bytes) -> tuple[str, str, bytes]:
        cmd = "unknown"
        try:
            fields = _fields(payload)
            named = str(fields.get("cmd"))
            row = CONTROL_COMMANDS.get(named)
            if row is None:
                known = ", ".join(sorted(CONTROL_COMMANDS))
                return (
                    cmd,
                    "refused",
                    refused("UnknownCommand", f"there is no control command '{named}'; there are {known}"),
                )
            cmd = named
            self._begin(cmd)
            if client and client not in NAMES:
                # An operator with a key of their own is nobody else.
                fields = {**fields, "user": client}
            fields = {**fields, "within": self._authorise(client, row.policy, fields)}
            return cmd, "ok", ok(row.handler(self._context, client, fields))
        except _OtherPool:
            raise
        except ControlError as error:
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

    def _log_outage(self, error: StoreUnavailable, cmd: str) -> None:
        """Said once an outage: every minion asks again and again while it lasts."""
        level = logging.DEBUG if self._redis_away else logging.ERROR
        self._redis_away = True
        self._context.log.log(level, "%s; requests are not served until it is back", error, extra={"cmd": cmd})

    def _log_fault(self, error: StoreError, cmd: str) -> None:
        """Said once: every minion may meet the same."""
        level = logging.DEBUG if self._last_fault == str(error) else logging.ERROR
        self._last_fault = str(error)
        self._context.log.log(level, "%s", error, extra={"cmd": cmd})

    def _authorise(self, client: str, policy: ControlPolicy, fields: Mapping[str, Any]) -> frozenset[str] | None:
        """Raises ControlError. Answers the minions that a publish may reach; None: whatever it is for."""
        options, name = self._context.options, client or "this key"
        if policy is ControlPolicy.ANY:
            return None
        calls = calls_of(fields) if policy is ControlPolicy.FUNCTION else [call_of(fields)]
        published = [call.fun for call in calls] if policy is ControlPolicy.FUNCTION else []
        if policy is not ControlPolicy.JOBS:
            who = [client, str(fields.get("user") or "")]
            if named := operator_acl.barred_by_list(options.publisher_acl_blacklist, who, published):
                raise ControlError("AuthorizationError", f"{named} is barred (option publisher_acl_blacklist)")
        option, row = operator_acl.rows_of(options.control_acl, options.publisher_acl, client, own=client in NAMES)
        if policy is not ControlPolicy.FUNCTION:
            if not operator_acl.may_use(option, row, policy.value, calls[0]):
                what = "" if policy is ControlPolicy.JOBS or option == "control_acl" else f" for {calls[0].fun}"
                raise ControlError("AuthorizationError", f"{name} may not use {policy.value}{what} (option {option})")
            return None
        if not operator_acl.barred_functions(option, row, calls, nowhere):
            return None
        reach = Reach(self._context, fields)
        if barred := operator_acl.barred_functions(option, row, calls, reach.covered):
            raise ControlError(
                "AuthorizationError",
                f"{name} may not run {', '.join(barred)}"
                + ("" if option == "control_acl" else f" on {fields.get('tgt', '*')} (option {option})"),
            )
        return reach.minions


def _deferred(opened: OpenedRequest, deferred: DeferredReply) -> SealedDeferredReply:
    work = deferred.work
    return SealedDeferredReply(
        work=None if work is None else lambda: seal_reply(opened, work()),
        refused=seal_reply(opened, deferred.refused),
        lost=deferred.lost,
        requester=opened.id,
    )


def _fields(payload: bytes) -> Mapping[str, Any]:
    try:
        fields = msgpack.unpackb(payload, strict_map_key=False)
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise ControlError("BadRequest", f"not msgpack: {error}") from error
    if not isinstance(fields, dict):
        raise ControlError("BadRequest", f"a request is a map, not a {type(fields).__name__}")
    return fields
