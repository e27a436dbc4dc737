"""The command ``_return``: store a minion's result in the job cache, fire its event, and acknowledge it, in this order.

An event that a reader wants later is stored in the same step as the result, so neither exists without the other.

Source: docs/protocol.md#returns
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from masterstore.jobs import UnaskedLimits
from masterstore.lives import jid_ms
from saltern.kit.links.event_bus import Prepared
from saltern.mworker.commands.resend import heard_of, send_waiting
from saltern.mworker.quotas import Quota
from saltern.mworker.state_failures import failed_states
from saltern.mworker.worker_context import WorkerContext
from saltwire import tags
from saltwire.jid import is_jid, new_jid
from statecore.model.redaction import shown_arguments

#: Fields that every return has.
_NEEDED = ("jid", "fun", "return")

#: Fields of a job that the event of a job of the minion's own has in addition. Salt: salt/utils/job.py, store_job
_ASKED = ("arg", "tgt", "tgt_type")

#: Fields of the message that do not become part of the stored result. A minion's own word about a job (_ASKED) would
#: change the job in the returner of ``master_job_cache``.
_MESSAGE_FIELDS = frozenset({"cmd", "nonce", "tok", "ts", "sig", "own_jid", "traceparent", "_stamp", *_ASKED})

#: JID in the return of a job that the minion started itself (salt-call, schedule), and the field with the minion's own id of the
#: job. By that id a repeated return does not become a second job. Stock minions send no such field; for them the nonce is used,
#: which recognises a message that is given to a second worker.
_OWN = "req"
_OWN_ID = "own_jid"

#: JID in a return that the master must not store (``return_job: nocache`` of a schedule).
_UNKEPT = "nocache"

#: Answer to a malformed ``_return``, as a stock master gives it, and to one above the minion's limits.
#: The minion does not repeat it.
_DROPPED = False


def store_return(context: WorkerContext, minion_id: str, load: Mapping[str, object]) -> object:
    """Store a minion's return, measured as a part of the job's trace. Return None if it is stored, False for a
    malformed load or above the minion's limits.
    """
    traced = {"salt.jid": str(load.get("jid")), "salt.minion": minion_id}
    with context.tracing.of_peer("salt.req.recv._return", load, "SERVER", **traced):
        return _stored(context, minion_id, load)


def _stored(context: WorkerContext, minion_id: str, load: Mapping[str, object]) -> object:
    """Store a minion's return in Redis. Return None if it is stored, False for a malformed load or above the minion's limits.

    Raises StoreUnavailable: the minion then gets no acknowledgement.
    """
    if any(name not in load for name in _NEEDED):
        context.log.warning(
            "a return without %s was dropped", [n for n in _NEEDED if n not in load], extra={"minion": minion_id}
        )
        return _DROPPED
    result = {name: value for name, value in load.items() if name not in _MESSAGE_FIELDS} | {"id": minion_id}
    if "fun_args" in result:
        result["fun_args"] = shown_arguments(result["fun"], result["fun_args"])
    if result["jid"] in (_OWN, _UNKEPT):
        outcome = _store_own(context, minion_id, result, _own_id(load))
        heard_of(context, minion_id)
        if outcome == "refused":
            return _refused(context, minion_id, "the return of a job that the minion started itself")
    elif not is_jid(result["jid"]):
        context.log.warning(
            "a return with the malformed JID %r was dropped", result["jid"], extra={"minion": minion_id}
        )
        return _DROPPED
    else:
        now_ms = int(time.time() * 1000)
        options = context.options
        event = _prepared_event(context, minion_id, result)
        recorded = context.store.jobs.record_return(
            result,
            ttl=options.keep_jobs_seconds,
            now_ms=now_ms,
            compress_above=options.compress_return_bytes,
            heard=True,
            event=event.kept(),
            events_kept=options.events_kept_count,
            unasked=_limits(context),
        )
        if recorded.refused:
            known = "a job that does not expect the minion" if recorded.known_job else "a job that is not in the cache"
            return _refused(context, minion_id, f"a return for {known}")
        if recorded.first:
            event.send()
        outcome = "late" if recorded.late else "first" if recorded.first else "duplicate"
        if recorded.complete and recorded.first and (made := jid_ms(str(result["jid"]))):
            context.metrics.job_seconds.observe(max(0, now_ms - made) / 1000)
        if not recorded.known_job:
            context.log.warning(
                "a return for a job that is not in the cache", extra={"minion": minion_id, "jid": result["jid"]}
            )
        if recorded.differs:
            context.log.warning(
                "a second result of a job, which is not that of the first, was dropped: two minions may have this id and its key"
                " (a machine that was copied); give one another id, or remove its keys from its pki_dir",
                extra={"minion": minion_id, "jid": result["jid"]},
            )
        if recorded.waited_for:
            send_waiting(context, minion_id)
    context.metrics.returns.labels(outcome).inc()
    if outcome != "duplicate":
        for tag, data in failed_states(result):
            if not context.quotas.may_fire(minion_id):
                break
            context.fire(tag, data)
    context.log.info("return of %s", result["fun"], extra={"minion": minion_id, "jid": result["jid"]})
    return None


def _store_own(context: WorkerContext, minion_id: str, result: dict[str, object], own_id: str) -> str:
    """Store the return of a job that the minion started itself; return duplicate, unkept, external or refused for the metrics.

    The result gets a JID, the same one for each repetition of the return.
    """
    kept, ttl = result["jid"] == _OWN, context.options.keep_jobs_seconds
    if not context.store.jobs.may_store_own(minion_id, own_id, _limits(context)):
        return "refused"
    jid = new_jid(time.time())
    result["jid"] = context.store.jobs.own_jid(minion_id, own_id, jid, ttl=ttl) if own_id else jid
    if result["jid"] != jid and (not kept or context.store.jobs.returns(str(result["jid"]), [minion_id])):
        return "duplicate"
    if not kept:
        # The event is fired, but nothing is stored.
        context.fire(*_event(minion_id, result))
        return "unkept"
    job = _load_of(result, minion_id)
    # Such a job has no event of its own, so the event of the return also contains the job's fields.
    event = _prepared_event(context, minion_id, {**result, **{name: job[name] for name in _ASKED}})
    first = context.store.jobs.store_external(
        str(result["jid"]),
        job,
        result,
        ttl=ttl,
        compress_above=context.options.compress_return_bytes,
        event=event.kept(),
        events_kept=context.options.events_kept_count,
        counted=True,
    )
    if not first:
        return "duplicate"
    event.send()
    return "external"


def _limits(context: WorkerContext) -> UnaskedLimits:
    options = context.options
    return UnaskedLimits(
        options.unasked_returns_per_hour, options.unasked_return_bytes_per_hour, options.unknown_return_seconds
    )


def _refused(context: WorkerContext, minion_id: str, what: str) -> object:
    """Count and log a return that is dropped because its minion is above its limits. Return _DROPPED, the command's
    answer.
    """
    context.metrics.returns.labels("refused").inc()
    why = f"{what} was dropped: the minion stored too many such returns within an hour"
    context.quotas.refused(Quota.RETURNS, minion_id, why)
    return _DROPPED


def _prepared_event(context: WorkerContext, minion_id: str, result: Mapping[str, object]) -> Prepared:
    return context.prepare(*_event(minion_id, result))


def _event(minion_id: str, result: Mapping[str, object]) -> tuple[str, dict[str, object]]:
    """Return the (tag, data) of the event about a minion's return."""
    return tags.job_ret(str(result["jid"]), minion_id), {**result, "cmd": "_return"}


def _own_id(load: Mapping[str, object]) -> str:
    own = str(load.get(_OWN_ID) or "")
    return own if is_jid(own) else str(load.get("nonce") or "")


def _load_of(result: Mapping[str, object], minion_id: str) -> dict[str, object]:
    return {
        "jid": result["jid"],
        "fun": result["fun"],
        "arg": result.get("fun_args", []),
        "tgt": minion_id,
        "tgt_type": "glob",
        "user": result.get("user", minion_id),
        "ret": "",
    }
