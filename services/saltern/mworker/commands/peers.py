"""Requests of minions about other minions and the master: jobs (option ``peer``), runners and wheel functions (option
``peer_run``).

A refused request gets an empty map, as from Salt's master; the reason is logged. Saltern's own minions ask for the reason
(``explain``, or ``form: full`` of a runner), and get it as ``refused``. The load of a published job contains
the id of the minion that published it, and only that minion can read its returns by ``pub_ret``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from saltern.kit.command.arguments import check_together, parse_arguments
from saltern.kit.config.master import MasterOptions
from saltern.kit.links.answers import PublishAnswer
from saltern.kit.links.control import ControlError
from saltern.kit.links.rights import Call, Kind, named, runners_of_minion, wheels_of_minion
from saltern.mworker.authorise import NotAllowed, decided, reached
from saltern.mworker.commands import control, wheel
from saltern.mworker.deferred_reply import DeferredReply
from saltern.mworker.runners.runner import RunnerCall, RunnerTools, run_runner, with_tools
from saltern.mworker.senders import sender_minion
from saltern.mworker.worker_context import WorkerContext
from saltwire.errors import PeerFault
from statecore.model.errors import InvocationError

#: Marks the reply to a runner's request with ``form: full``: a runner's own value could be any map.
_FULL: Mapping[str, Any] = MappingProxyType({"form": "full"})

#: Fields that a publish request must have.
_NEEDED = ("fun", "arg", "tgt", "ret")

#: Most seconds that a minion may wait for returns; the reqserver forgets a deferred request after that (DEFERRED_SECONDS).
_LONGEST_WAIT = 3600.0


def pub(context: WorkerContext, minion_id: str, load: Mapping[str, object]) -> dict[str, Any]:
    """Answer a minion's ``minion_pub``: publish a job on other minions and return its ``jid`` and ``minions``."""
    try:
        job = _published(context, minion_id, load)
    except ControlError as error:
        return _refused(context, minion_id, load, error.message)
    # Salt's master returns 0 if no minion matches.
    return {"jid": job["jid"] or 0, "minions": job["minions"]}


def pub_ret(context: WorkerContext, minion_id: str, load: Mapping[str, object]) -> dict[str, dict[str, Any]]:
    """Return the returns so far of a job that this minion published: {minion id: {"ret": value}}, with ``out`` if the
    return names one. With ``form: full`` also ``retcode`` and ``jid``.
    """
    jid = str(load.get("jid") or "")
    known = context.store.jobs.load(jid) if jid else None
    if known is None or known.get("id") != minion_id:
        return {}
    more = ("retcode", "jid") if load.get("form") == "full" else ()
    return {
        minion: {"ret": result.get("return")} | {name: result[name] for name in ("out", *more) if name in result}
        for minion, result in context.store.jobs.returns(jid).items()
    }


def publish(context: WorkerContext, minion_id: str, load: Mapping[str, Any]) -> Any:
    """Answer a minion's ``minion_publish``: publish a job on other minions, wait, and return its returns.

    With ``form: full`` the map holds the whole returns instead of their values.
    """
    try:
        timeout = _seconds(load, context.options.timeout)
        job = _published(context, minion_id, load)
    except ControlError as error:
        return _refused(context, minion_id, load, str(error))
    if not job["jid"]:
        return {}
    behalf = sender_minion(context.rows, minion_id).behalf
    gather = partial(_gathered, job=job, timeout=timeout, full=load.get("form") == "full")
    return DeferredReply(
        partial(with_tools, job["jid"], minion_id, behalf, context.options, context.key_dir, gather), refused={}
    )


def runner(context: WorkerContext, minion_id: str, load: Mapping[str, Any]) -> Any:
    """Answer a minion's ``minion_runner``: run a runner in a child process and reply with its value later.

    A refused request gets {}. A request that is repeated with the same nonce runs the runner only once. With ``form:
    full`` the reply is a map: ``form``, and either ``return``, ``success`` and ``jid``, or ``refused``.
    """
    fun = load.get("fun")
    if not isinstance(fun, str) or not isinstance(load.get("arg"), list):
        return {}
    full = load.get("form") == "full"
    try:
        decision = decided(runners_of_minion(context.rows.peer_run, minion_id), Kind.RUNNER, [Call(fun)])
    except ControlError as error:
        return _refused(context, minion_id, load, error.message)
    if decision.refused:
        return _refused(context, minion_id, load, _how_to_allow("peer_run", minion_id, fun, "", f"[{fun}]"))
    try:
        arg, kwarg = _parsed(load["arg"], load.get("no_parse"))
        call = control.runner_call(context, fun, arg, kwarg, minion_id, sender_minion(context.rows, minion_id))
    except ControlError as error:
        return {**_FULL, "return": error.message, "success": False, "jid": ""} if full else error.message
    request_id = _request_id(minion_id, load)
    if control.begin_runner(context, request_id, call) != call.jid:
        # The child process that the first message started answers.
        return DeferredReply(None, refused={})
    control.audit_runner(context, minion_id, request_id, call)
    work = partial(_run, call, context.options, context.key_dir, full=full)
    return DeferredReply(work, refused={}, lost=partial(control.end_lost, context, call.jid))


def wheel_function(context: WorkerContext, minion_id: str, load: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a minion's ``minion_wheel``: call a wheel function and return a map with ``return`` and ``success``.

    A refused request gets a map with ``refused``. Only rows ``@wheel`` of the option peer_run allow wheel functions.
    """
    fun, arg, kwarg = load.get("fun"), load.get("arg") or [], load.get("kwarg") or {}
    if not isinstance(fun, str) or not isinstance(arg, list) or not isinstance(kwarg, dict):
        return {}
    call = Call(fun, arg, kwarg)
    try:
        decision = decided(wheels_of_minion(context.rows.peer_run, minion_id), Kind.WHEEL, [call])
        if decision.refused:
            return _refused(
                context, minion_id, load, _how_to_allow("peer_run", minion_id, fun, "", f"[{{'@wheel': [{fun}]}}]")
            )
        return {
            "return": wheel.wheel(
                context, sender_minion(context.rows, minion_id), {"fun": fun, "arg": arg, "kwarg": kwarg}
            ),
            "success": True,
        }
    except ControlError as error:
        return {"return": error.message, "success": False}


# ---------------------------------------------------------------------------------------------------------------- the parts


def _run(call: RunnerCall, options: MasterOptions, key_dir: Path, *, full: bool) -> object:
    """Run a runner in this child process and return the reply to the minion: the runner's value, or with ``full`` a
    map with ``return``, ``success`` and ``jid``.
    """
    result = run_runner(call, options, key_dir)
    if not full:
        return result["return"]
    return {**_FULL, **{name: result[name] for name in ("return", "success", "jid")}}


def _how_to_allow(option: str, minion_id: str, fun: str, place: str, row: str) -> str:
    return (
        f"the master's option {option} does not let {minion_id} call {' '.join([fun, place]).strip()}; it would with"
        f" `{option}: {{'{re.escape(minion_id)}$': {row}}}`"
    )


def _published(context: WorkerContext, minion_id: str, load: Mapping[str, object]) -> PublishAnswer:
    """Publish the job that a minion requests, and return its PublishAnswer: JID, minions, missing ids.

    Raises ControlError if the minion may not publish it or if the load is malformed.
    """
    if any(name not in load for name in _NEEDED) or not isinstance(load["arg"], list):
        raise ControlError("InvocationError", f"a job needs {', '.join(_NEEDED)}")
    sender = sender_minion(context.rows, minion_id)
    # Rights by name come first: a minion without them has no argument parsed.
    if unnamed := [name for name in _functions(load) if not named(sender.rights, name)]:
        raise _not_allowed(minion_id, unnamed[0])
    parsed = _calls(load)
    fun = [call.fun for call in parsed] if len(parsed) > 1 else parsed[0].fun
    asked = {"fun": fun, "arg": control.published_arguments(fun, parsed)}
    # Parsed words can be texts that minions read as keyword arguments: rights are decided by what minions read.
    calls = control.calls_of(asked)
    tgt, tgt_type = load["tgt"], str(load.get("tgt_type") or "glob")
    if tgt_type.startswith("node"):
        tgt_type = "nodegroup"
    try:
        reach = reached(context, sender.rights, calls, tgt, tgt_type, peer=True)
    except NotAllowed as error:
        raise _not_allowed(minion_id, str(error)) from error
    fields = {
        **asked,
        "tgt": tgt,
        "tgt_type": tgt_type,
        "ret": load["ret"],
        "user": minion_id,
        "request_id": _request_id(minion_id, load),
    }
    return control.published(context, sender, fields, {"id": minion_id}, reach)


def _not_allowed(minion_id: str, fun: str) -> ControlError:
    return ControlError("AuthorizationError", _how_to_allow("peer", minion_id, fun, "there", f"[{fun}]"))


def _functions(load: Mapping[str, Any]) -> list[str]:
    """Return the names of the functions of a minion's publish request. Raises ControlError."""
    fun = load["fun"]
    if not isinstance(fun, str) or not fun:
        raise ControlError("InvocationError", "fun must be the name of a function, or several names with commas")
    return [name.strip() for name in fun.split(",")] if "," in fun else [fun]


def _calls(load: Mapping[str, Any]) -> list[Call]:
    """Return a list of Calls: the functions of a minion's publish request, each with its arguments.

    ``fun`` may name several functions with commas; each argument is then a list, or words with spaces. Raises ControlError.
    """
    names, no_parse = _functions(load), load.get("no_parse")
    if "," not in load["fun"]:
        return [Call(names[0], *_parsed(load["arg"], no_parse))]
    groups = [one.split() if isinstance(one, str) else one for one in load["arg"]]
    groups += [[] for _ in names[len(groups) :]]
    if len(groups) != len(names) or not all(isinstance(group, list) for group in groups):
        raise ControlError("InvocationError", "of several functions each needs arguments of its own")
    return [Call(name, *_parsed(group, no_parse)) for name, group in zip(names, groups, strict=True)]


def _parsed(given: Sequence[object], no_parse: object) -> tuple[list[Any], dict[str, Any]]:
    """Return (positional, keyword) arguments: texts are parsed as on a command line, other values stay as they are.

    Raises ControlError if a text is too long to be parsed.
    """
    as_text = no_parse if isinstance(no_parse, list) else []
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    try:
        check_together(given)
        for one in given:
            if isinstance(one, str):
                words, by_name = parse_arguments([one], as_text, sent=True)
                positional += words
                keywords |= by_name
            elif isinstance(one, Mapping) and one.get("__kwarg__") is True:
                keywords |= {str(name): value for name, value in one.items() if name != "__kwarg__"}
            else:
                positional.append(one)
    except InvocationError as error:
        raise ControlError("InvocationError", str(error)) from error
    return positional, keywords


def _seconds(load: Mapping[str, Any], default: float) -> float:
    given = load.get("timeout", load.get("tmo", default))
    try:
        return min(float(int(given)), _LONGEST_WAIT)
    except (TypeError, ValueError, OverflowError) as error:
        raise ControlError("InvocationError", f"the timeout {given!r} is no number of seconds") from error


def _request_id(minion_id: str, load: Mapping[str, object]) -> str:
    """Return an id that is the same for each repetition of the message. Raises PeerFault without a nonce."""
    nonce = load.get("nonce")
    if not isinstance(nonce, str) or not nonce:
        raise PeerFault("a request without a nonce cannot be distinguished from its repetition")
    return f"{minion_id}:{nonce}"


def _gathered(tools: RunnerTools, *, job: PublishAnswer, timeout: float, full: bool) -> dict[str, Any]:
    returns = tools.follow(job, timeout=timeout).returns
    if not full:
        return {minion: load.get("return") for minion, load in returns.items()}
    told: dict[str, Any] = {}
    for minion, load in returns.items():
        told[minion] = {name: value for name, value in load.items() if name != "return"} | {"ret": load.get("return")}
    return told | {"__jid__": job["jid"]}


def _refused(context: WorkerContext, minion_id: str, load: Mapping[str, object], why: str) -> dict[str, Any]:
    context.log.warning("%s of %s is refused: %s", load.get("cmd"), load.get("fun"), why, extra={"minion": minion_id})
    if load.get("form") == "full" and load.get("cmd") == "minion_runner":
        return {**_FULL, "refused": why}
    return {"refused": why} if load.get("explain") is True else {}
