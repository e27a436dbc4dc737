"""The master's commands for operators (port 4507): publish a job, resolve a target, read returns, start a runner."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from masterstore.errors import JidTaken, StoreError, StoreUnavailable
from masterstore.jobs import Published
from saltern.kit.command.arguments import on_the_wire, read_arguments
from saltern.kit.config.durations import seconds_of
from saltern.kit.links.answers import PublishAnswer, RunnerAnswer, TargetAnswer
from saltern.kit.links.control import ControlError
from saltern.kit.links.rights import Call
from saltern.mworker.authorise import Destination, Reach, published_to, targeted
from saltern.mworker.processes import TooManyRunners
from saltern.mworker.runners.runner import RunnerCall, load_of, run_runner
from saltern.mworker.senders import Sender
from saltern.mworker.worker_context import WorkerContext
from saltwire import tags
from saltwire.errors import OwnFault, PeerFault
from saltwire.jid import is_jid, next_jid
from saltwire.pack import packb, unpackb
from statecore.model.errors import InvocationError
from statecore.model.lazy import lazy_module
from statecore.model.nearest import close_matches
from statecore.model.redaction import shown_arguments

if TYPE_CHECKING:
    from saltern.mworker.runners import table, users
else:
    table = lazy_module("saltern.mworker.runners.table")
    users = lazy_module("saltern.mworker.runners.users")

#: Keyword arguments of publish that become fields of the publication. Source: docs/protocol.md#publications
_PASSED_ON = ("delimiter", "metadata", "module_executors", "executor_opts", "ret_config", "ret_kwargs", "start_event")

Kind = TypeVar("Kind", list[object], dict[str, object])

#: Functions that ask what runs now. They are not replayed: a minion that comes back later would get many useless ones.
_OF_THE_MOMENT = frozenset(f"saltutil.{name}" for name in ("find_job", "running", "is_running"))

#: Attempts to find a free JID. JIDs are microseconds, so only a few in a row can be taken.
_JID_TRIES = 100

#: Most seconds that a job may wait for minions; it stays in the job cache as long.
_LONGEST_WAIT = 30 * 86400


def ping(context: WorkerContext, sender: Sender, fields: Mapping[str, object]) -> dict[str, str]:
    """Return {"id": the master's id}, for an operator who asks whether the master answers."""
    return {"id": context.options.id}


def publish(context: WorkerContext, sender: Sender, fields: Mapping[str, object]) -> PublishAnswer:
    """Record a job and append it to the publications in one step; return {"jid", "minions", "missing"}.

    ``when_back``: how long the job waits for minions that are away, in seconds or as ``2h30m``. ``no_replay``: only
    minions that receive the publication now run the job. The result also has ``offline``, the minions that are away, if
    there are any, and for a waiting job ``when_back_until`` (milliseconds since 1970). A second request with the same
    ``request_id`` gets the same JID and publishes nothing. Raises ControlError with the name TargetError,
    InvocationError or JidError.
    """
    with context.tracing.of_peer("salt.req.recv.publish", fields, "SERVER", **{"salt.client": sender.client}) as span:
        answer = published(context, sender, fields, span.marked({}), Reach(None, _within(fields)))
        span.note(**{"salt.jid": str(answer["jid"])}, **{"salt.minions": len(answer["minions"])})
        return answer


def published(
    context: WorkerContext,
    sender: Sender,
    fields: Mapping[str, object],
    more: Mapping[str, object],
    reach: Reach,
) -> PublishAnswer:
    """Publish a job as the command ``publish`` does, with the fields of ``more`` added to its load; return {"jid",
    "minions", "missing"}, or ``jid`` None with ``error`` if no minion matches.

    Raises ControlError. ``reach``: what the sender's access list allows of the publication.
    """
    fun = _function(fields.get("fun"))
    arg, kwargs = published_arguments(fun, calls_of(fields)), _typed(fields, "kwargs", dict)
    place = published_to(
        context,
        sender,
        fields.get("tgt", "*"),
        str(fields.get("tgt_type") or "glob"),
        str(kwargs.get("delimiter") or ":"),
        reach=reach,
    )
    client, target, tgt, tgt_type = sender.client, place.target, place.tgt, place.tgt_type
    if not target.minions:
        text = f"Master could not resolve minions for target {fields.get('tgt', '*')}"
        return {"jid": None, "minions": [], "missing": list(target.missing), "error": text}
    load = {
        "fun": fun,
        "arg": arg,
        "tgt": tgt,
        "tgt_type": tgt_type,
        "ret": ",".join(filter(None, (str(fields.get("ret") or ""), context.options.ext_job_cache))),
        "user": str(fields.get("user") or context.options.user or client),
    }
    load |= {name: kwargs[name] for name in _PASSED_ON if name in kwargs} | dict(more)
    announced = {name: load[name] for name in ("fun", "arg", "tgt", "tgt_type", "user")}
    shown = {"arg": shown_arguments(fun, arg)}
    audited = context.audit.fields("publish", client, **{**announced, **shown}, minions=len(target.minions))
    published = _record(context, load, place, fields, audited, sender.owner)
    if published.created:
        lists = {"minions": list(target.minions), "missing": list(target.missing)}
        context.fire_all(
            (tags.job_new(published.jid), {"jid": published.jid, **announced, **shown, **lists, "owner": sender.owner}),
            (tags.job_publish(published.jid), {**load, **shown, "jid": published.jid}),
        )
        context.log.info("%s for %d minions", fun, len(target.minions), extra={"jid": published.jid, "client": client})
    answer: PublishAnswer = {
        "jid": published.jid,
        "minions": list(target.minions),
        "missing": list(target.missing),
    }
    if published.offline:
        answer["offline"] = list(published.offline)
    if when_back := _when_back(fields.get("when_back")):
        answer["when_back_until"] = int(time.time() + when_back) * 1000
    return answer


def _within(fields: Mapping[str, object]) -> Collection[str] | None:
    """Return the minions to which the sender's access list restricts a job, as RequestHandler has found them; None: all."""
    within = fields.get("within")
    return within if within is None or isinstance(within, Collection) else ()


def targets(context: WorkerContext, sender: Sender, fields: Mapping[str, object]) -> TargetAnswer:
    """Return {"minions": accepted minions that a target matches, "missing": ids in the target without an accepted key}.

    Raises ControlError with the name TargetError.
    """
    tgt, tgt_type = fields.get("tgt", "*"), str(fields.get("tgt_type") or "glob")
    found = targeted(context, sender, tgt, tgt_type, str(fields.get("delimiter") or ":"))
    return {"minions": list(found.minions), "missing": list(found.missing)}


def _record(
    context: WorkerContext,
    load: dict[str, object],
    place: Destination,
    fields: Mapping[str, object],
    audited: Mapping[str, object] | None,
    owner: str,
) -> Published:
    wanted = str(fields.get("jid") or "")
    if wanted and not is_jid(wanted):
        raise ControlError("JidError", f"'{wanted}' is not a JID (20 digits: UTC time to the microsecond)")
    request_id = str(fields.get("request_id") or os.urandom(16).hex())
    when_back, no_replay = _when_back(fields.get("when_back")), fields.get("no_replay")
    if no_replay not in (None, True, False):
        raise ControlError("InvocationError", f"no_replay must be true or false, not {no_replay!r}")
    if when_back and no_replay:
        raise ControlError(
            "InvocationError", "when_back waits for minions that are away, no_replay forbids it: leave one out"
        )
    options, jid = context.options, ""
    for _ in range(_JID_TRIES):
        now = time.time()
        jid = wanted or next_jid(now, jid)
        now_ms = int(now * 1000)
        try:
            return context.store.jobs.publish(
                load | {"jid": jid},
                place.target.minions,
                request_id=request_id,
                ttl=options.keep_jobs_seconds,
                now_ms=now_ms,
                away_since_ms=now_ms - options.presence_window * 1000,
                replay_until_ms=0
                if no_replay or _of_the_moment(load["fun"])
                else now_ms + max(options.replay_window, when_back) * 1000,
                when_back_until_ms=now_ms + when_back * 1000 if when_back else 0,
                pinned=place.by_name,
                owner=owner,
                audited=audited,
            )
        except JidTaken as error:
            if wanted:
                raise ControlError("JidError", f"a job with the JID {jid} exists already") from error
    raise ControlError("JidError", "Master failed to assign jid")


def _of_the_moment(fun: object) -> bool:
    """Return whether all these functions only report the present state (such as running jobs), so a late return is useless."""
    return all(name in _OF_THE_MOMENT for name in (fun if isinstance(fun, list) else [fun]))


def _when_back(value: object) -> int:
    """Return the seconds that a job waits for minions that are away; 0: it does not wait. Raises ControlError."""
    if value in (None, ""):
        return 0
    try:
        seconds = int(seconds_of(value))
    except ValueError as error:
        raise ControlError("InvocationError", f"when_back: {error}") from error
    if not 1 <= seconds <= _LONGEST_WAIT:
        said = f"when_back: '{value}' is {seconds} s; a job waits for 1 s to {_LONGEST_WAIT} s ({_LONGEST_WAIT // 86400} days)"
        raise ControlError("InvocationError", said)
    return seconds


def _function(fun: object) -> str | list[str]:
    if isinstance(fun, str) and fun:
        return fun
    if isinstance(fun, list) and fun and all(isinstance(name, str) and name for name in fun):
        return fun
    raise ControlError("InvocationError", f"fun must be the name of a function or a list of names, not {fun!r}")


def _typed(fields: Mapping[str, object], name: str, kind: type[Kind]) -> Kind:
    """Return a field of a request that must be a list or a map; an empty one if it is missing.

    Raises ControlError for another type.
    """
    value = fields.get(name)
    if value is None:
        return kind()
    if not isinstance(value, kind):
        raise ControlError("InvocationError", f"{name} must be a {kind.__name__}, not {value!r}")
    return value


def calls_of(fields: Mapping[str, object]) -> list[Call]:
    """Return a list of Calls: the functions of a publish request, each with its arguments as minions read them.

    The access lists check these Calls, and the publication is made of them. A request can hold bytes where a publication
    holds text, so the arguments are first read as a minion receives them. Raises ControlError for malformed arguments.
    """
    fun, arg = _function(fields.get("fun")), _typed(fields, "arg", list)
    try:
        received = unpackb(packb(arg))
    except (PeerFault, OwnFault) as error:
        raise ControlError("InvocationError", f"the arguments cannot be sent to a minion: {error}") from error
    groups = received if isinstance(received, list) else []
    if isinstance(fun, str):
        return [_call_of(fun, groups)]
    if len(groups) > len(fun) or not all(isinstance(group, list) for group in groups):
        raise ControlError("InvocationError", "arg must be a list of lists, one for each of several functions")
    groups += [[] for _ in fun[len(groups) :]]
    return [_call_of(name, group) for name, group in zip(fun, groups, strict=True)]


def _call_of(fun: str, arg: list[object]) -> Call:
    try:
        return Call(fun, *read_arguments(arg, sent=True))
    except InvocationError as error:
        raise ControlError("InvocationError", str(error)) from error


def published_arguments(fun: str | list[str], calls: Sequence[Call]) -> list[object]:
    """Return the field ``arg`` of a publication: the arguments of one function, or a list of them for several."""
    sent = [on_the_wire(call.args, call.kwargs) for call in calls]
    return sent[0] if isinstance(fun, str) else [*sent]


def call_of(fields: Mapping[str, object]) -> Call:
    """Return the function and arguments of a runner or wheel request as a Call; missing fields are empty."""
    kwarg = fields.get("kwarg")
    arg = fields.get("arg")
    return Call(
        str(fields.get("fun", "")),
        arg if isinstance(arg, list) else (),
        kwarg if isinstance(kwarg, Mapping) else {},
    )


def runner(context: WorkerContext, sender: Sender, fields: Mapping[str, object]) -> RunnerAnswer:
    """Start a runner in a child process; return {"tag", "jid"}. Raises ControlError if too many runners run already,
    StoreError if the audit record refuses the entry about the runner.

    The runner's result is fired as the event ``<tag>/ret`` and kept in the job cache. A second request with the same
    ``request_id`` gets the same JID and starts nothing.
    """
    arg, kwarg = _typed(fields, "arg", list), _typed(fields, "kwarg", dict)
    call = runner_call(
        context, str(fields.get("fun", "")), arg, kwarg, str(fields.get("user") or sender.client), sender
    )
    jid = call.jid
    request_id = str(fields.get("request_id") or os.urandom(16).hex())
    begun = begin_runner(context, request_id, call)
    if begun == jid:
        options, key_dir = context.options, context.key_dir
        audit_runner(context, sender.client, request_id, call)

        def work() -> None:
            run_runner(call, options, key_dir)

        try:
            context.start_runner(work, partial(end_lost, context, jid))
        except TooManyRunners as error:
            context.store.runner_jobs.drop(request_id, jid)
            raise ControlError("TooManyRunners", str(error)) from error
    return {"tag": tags.run(begun), "jid": begun}


def runner_call(
    context: WorkerContext, fun: str, arg: Sequence[object], kwarg: Mapping[str, object], user: str, sender: Sender
) -> RunnerCall:
    """Return a runner call with a new JID, on behalf of ``sender``. Raises ControlError if no runner has this name."""
    # As on minions, a user's module takes precedence over a built-in one of the same name.
    function = users.find(fun, context.options, table.RUNNERS) or table.RUNNERS.get(fun)
    if function is None:
        near = close_matches(fun, table.RUNNERS, n=1)
        hint = f" The nearest is '{near[0]}'." if near else ""
        if fun and any(name.startswith(f"{fun}.") for name in table.RUNNERS):
            hint = f" It is a module: `salt-run -d {fun}` shows its runners."
        raise ControlError("UnknownFunction", f"'{fun}' is not available.{hint}")
    return RunnerCall(next_jid(time.time(), ""), fun, function, arg, kwarg, user, sender.behalf)


def audit_runner(context: WorkerContext, who: str, request_id: str, call: RunnerCall) -> None:
    """Append an entry about a runner that begins to the audit record. Raises StoreError if Redis refuses the entry; the
    runner's job is then deleted.
    """
    arg = load_of(call, context.options)["arg"]
    try:
        context.audit.begin("runner", who, user=call.user, fun=call.fun, jid=call.jid, arg=arg)
    except StoreError:
        context.store.runner_jobs.drop(request_id, call.jid)
        raise


def begin_runner(context: WorkerContext, request_id: str, call: RunnerCall) -> str:
    """Record the runner's job and return its JID; a repeated ``request_id`` gets the JID of the first request.

    If Redis does not answer, return the call's own JID.
    """
    try:
        ttl = context.options.keep_jobs_seconds
        return context.store.runner_jobs.begin(request_id, load_of(call, context.options), context.options.id, ttl=ttl)
    except StoreUnavailable as error:
        context.log.warning("a runner is started without a check whether this request started it before: %s", error)
        return call.jid


def end_lost(context: WorkerContext, jid: str, how: str) -> None:
    """Record that a runner failed because its child process ended without a result, and fire its ``ret`` event.

    ``how``: in words how the process ended. An error of Redis is logged; maintenance then ends the job.
    """
    try:
        lost = context.store.runner_jobs.lose(jid, f"its process {how}", ttl=context.options.keep_jobs_seconds)
        if lost is not None:
            context.fire(tags.run_ret(jid), lost)
            context.log.error("a runner %s without a result", how, extra={"jid": jid})
    except StoreError as error:
        context.log.error("a runner %s; maintenance will end its job: %s", how, error, extra={"jid": jid})
