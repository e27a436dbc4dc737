"""Requests of minions about other minions: jobs (option ``peer``) and runners (option ``peer_run``).

A refused request gets an empty map, as from Salt's master; the reason is logged. The load of a published job contains
the id of the minion that published it, and only that minion can read its returns by ``pub_ret``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from saltern.kit.command.arguments import parse_arguments
from saltern.kit.links.answers import PublishAnswer
from saltern.kit.links.control import ControlError
from saltern.kit.links.rights import Call, Kind, rights_of_minion, runners_of_minion
from saltern.mworker.authorise import NotAllowed, decided, reached
from saltern.mworker.commands import control
from saltern.mworker.deferred_reply import DeferredReply
from saltern.mworker.runners.runner import RunnerTools, load_of, run_runner, with_tools
from saltern.mworker.worker_context import WorkerContext
from saltwire.errors import PeerFault

#: Fields that a publish request must have.
_NEEDED = ("fun", "arg", "tgt", "ret")

#: Most seconds that a minion may wait for returns; the reqserver forgets a deferred request after that (DEFERRED_SECONDS).
_LONGEST_WAIT = 3600.0


def pub(context: WorkerContext, minion_id: str, load: Mapping[str, object]) -> dict[str, Any]:
    """Answer a minion's ``minion_pub``: publish a job on other minions and return its ``jid`` and ``minions``."""
    try:
        job = _published(context, minion_id, load)
    except ControlError as error:
        return _refused(context, minion_id, load, str(error))
    # Salt's master returns 0 if no minion matches.
    return {"jid": job["jid"] or 0, "minions": job["minions"]}


def pub_ret(context: WorkerContext, minion_id: str, load: Mapping[str, object]) -> dict[str, dict[str, Any]]:
    """Return the returns so far of a job that this minion published: {minion id: {"ret": value}}, with ``out`` if the
    return names one.
    """
    jid = str(load.get("jid") or "")
    known = context.store.jobs.load(jid) if jid else None
    if known is None or known.get("id") != minion_id:
        return {}
    return {
        minion: {"ret": result.get("return")} | ({"out": result["out"]} if "out" in result else {})
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
    gather = partial(_gathered, job=job, timeout=timeout, full=load.get("form") == "full")
    return DeferredReply(
        partial(with_tools, job["jid"], minion_id, context.options, context.key_dir, gather), refused={}
    )


def runner(context: WorkerContext, minion_id: str, load: Mapping[str, Any]) -> Any:
    """Answer a minion's ``minion_runner``: run a runner in a child process and reply with its value later.

    A refused request gets {}. A request that is repeated with the same nonce runs the runner only once.
    """
    fun = load.get("fun")
    if not isinstance(fun, str) or not isinstance(load.get("arg"), list):
        return {}
    try:
        decision = decided(runners_of_minion(context.options.peer_run, minion_id), Kind.RUNNER, [Call(fun)])
    except ControlError as error:
        return _refused(context, minion_id, load, error.message)
    if decision.refused:
        return _refused(context, minion_id, load, "the option peer_run does not let it")
    arg, kwarg = _parsed(load["arg"], load.get("no_parse"))
    try:
        call = control.runner_call(context, fun, arg, kwarg, minion_id)
    except ControlError as error:
        return error.message
    if control.begin_runner(context, _request_id(minion_id, load), call) != call.jid:
        # The child process that the first message started answers.
        return DeferredReply(None, refused={})
    context.audit.record("runner", minion_id, fun=fun, jid=call.jid, arg=load_of(call, context.options)["arg"])
    work = partial(run_runner, call, context.options, context.key_dir)
    return DeferredReply(work, refused={}, lost=partial(control.end_lost, context, call.jid))


# ---------------------------------------------------------------------------------------------------------------- the parts


def _published(context: WorkerContext, minion_id: str, load: Mapping[str, object]) -> PublishAnswer:
    """Publish the job that a minion requests, and return its PublishAnswer: JID, minions, missing ids.

    Raises ControlError if the minion may not publish it or if the load is malformed.
    """
    if any(name not in load for name in _NEEDED) or not isinstance(load["arg"], list):
        raise ControlError("InvocationError", f"a job needs {', '.join(_NEEDED)}")
    parsed = _calls(load)
    fun = [call.fun for call in parsed] if len(parsed) > 1 else parsed[0].fun
    asked = {"fun": fun, "arg": control.published_arguments(fun, parsed)}
    # Parsed words can be texts that minions read as keyword arguments: rights are decided by what minions read.
    calls = control.calls_of(asked)
    tgt, tgt_type = load["tgt"], str(load.get("tgt_type") or "glob")
    if tgt_type.startswith("node"):
        tgt_type = "nodegroup"
    rights = rights_of_minion(context.options.peer, minion_id)
    try:
        target, within = reached(context, rights, calls, tgt, tgt_type, peer=True)
    except NotAllowed as error:
        raise ControlError("AuthorizationError", f"the option peer does not let it publish {error} there") from error
    fields = {
        **asked,
        "tgt": tgt,
        "tgt_type": tgt_type,
        "ret": load["ret"],
        "user": minion_id,
        "request_id": _request_id(minion_id, load),
        "within": within,
    }
    return control.published(context, minion_id, fields, {"id": minion_id}, target)


def _calls(load: Mapping[str, Any]) -> list[Call]:
    """Return a list of Calls: the functions of a minion's publish request, each with its arguments.

    ``fun`` may name several functions with commas; each argument is then a list, or words with spaces. Raises ControlError.
    """
    fun, no_parse = load["fun"], load.get("no_parse")
    if not isinstance(fun, str) or not fun:
        raise ControlError("InvocationError", f"fun must be the name of a function, not {fun!r}")
    if "," not in fun:
        return [Call(fun, *_parsed(load["arg"], no_parse))]
    names = [name.strip() for name in fun.split(",")]
    groups = [one.split() if isinstance(one, str) else one for one in load["arg"]]
    groups += [[] for _ in names[len(groups) :]]
    if len(groups) != len(names) or not all(isinstance(group, list) for group in groups):
        raise ControlError("InvocationError", "of several functions each needs arguments of its own")
    return [Call(name, *_parsed(group, no_parse)) for name, group in zip(names, groups, strict=True)]


def _parsed(given: Sequence[object], no_parse: object) -> tuple[list[Any], dict[str, Any]]:
    """Return (positional, keyword) arguments: texts are parsed as on a command line, other values stay as they are."""
    as_text = no_parse if isinstance(no_parse, list) else []
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    for one in given:
        if isinstance(one, str):
            words, named = parse_arguments([one], as_text)
            positional += words
            keywords |= named
        elif isinstance(one, Mapping) and one.get("__kwarg__") is True:
            keywords |= {str(name): value for name, value in one.items() if name != "__kwarg__"}
        else:
            positional.append(one)
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
    return {}
