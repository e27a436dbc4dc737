"""What a minion asks for beyond itself: jobs on other minions (``peer``), runners of the master (``peer_run``).

A refusal is answered with an empty map, as Salt's master does; why is in the master's log. A job carries the id of the minion that
published it: nobody else may have its returns from here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from saltern.kit.command.arguments import on_the_wire, parse_arguments
from saltern.kit.links.control import ControlError
from saltern.mworker.commands import control
from saltern.mworker.deferred_reply import DeferredReply
from saltern.mworker.peer_acl import PeerCall, may_publish, may_run, nowhere
from saltern.mworker.runners.runner import RunnerTools, run_runner, with_tools
from saltern.mworker.targets import resolve
from saltern.mworker.worker_context import WorkerContext
from saltwire.errors import PeerFault
from statecore.model.errors import TargetError

#: Without these a load asks for nothing.
_NEEDED = ("fun", "arg", "tgt", "ret")

#: Seconds that a minion may wait for the returns of its job: for longer no answer is remembered (saltern/reqserver/dispatch.py).
_LONGEST_WAIT = 3600.0

#: Target types whose expressions could be used to find out, letter by letter, what others' pillars hold -> those that cannot. What
#: the master's own node groups say is its own affair.
_EXACT: Mapping[str, str] = {
    "pillar": "pillar_exact",
    "pillar_pcre": "pillar_exact",
    "compound": "compound_pillar_exact",
}


def pub(context: WorkerContext, minion_id: str, load: Mapping[str, Any]) -> dict[str, Any]:
    """``minion_pub``: publishes a job; its ``jid`` and ``minions``."""
    try:
        job = _published(context, minion_id, load)
    except ControlError as error:
        return _refused(context, minion_id, load, str(error))
    # 0 is what Salt's master says where nobody is meant.
    return {"jid": job["jid"] or 0, "minions": job["minions"]}


def pub_ret(context: WorkerContext, minion_id: str, load: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What came back so far of a job that this minion published: {minion: {"ret": value}}, with ``out`` where it says so."""
    jid = str(load.get("jid") or "")
    known = context.store.jobs.load(jid) if jid else None
    if known is None or known.get("id") != minion_id:
        return {}
    return {
        minion: {"ret": result.get("return")} | ({"out": result["out"]} if "out" in result else {})
        for minion, result in context.store.jobs.returns(jid).items()
    }


def publish(context: WorkerContext, minion_id: str, load: Mapping[str, Any]) -> Any:
    """``minion_publish``: publishes a job and answers with the returns once they are there; with ``form: full`` all that came."""
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
    """``minion_runner``: runs a runner; what it returned. Sent twice with one nonce it runs once, and is answered once."""
    fun = load.get("fun")
    if not isinstance(fun, str) or not isinstance(load.get("arg"), list):
        return {}
    if not may_run(context.options.peer_run, minion_id, fun):
        return _refused(context, minion_id, load, "the option peer_run does not let it")
    arg, kwarg = _parsed(load["arg"], load.get("no_parse"))
    try:
        call = control.runner_call(context, fun, arg, kwarg, minion_id)
    except ControlError as error:
        return error.message
    if control.begin_runner(context, _request_id(minion_id, load), call) != call.jid:
        # Whoever began it answers.
        return DeferredReply(None, refused={})
    work = partial(run_runner, call, context.options, context.key_dir)
    return DeferredReply(work, refused={}, lost=partial(control.end_lost, context, call.jid))


# ---------------------------------------------------------------------------------------------------------------- the parts


def _published(context: WorkerContext, minion_id: str, load: Mapping[str, Any]) -> dict[str, Any]:
    """The job that was recorded. Raises ControlError that says why the minion may not, or nothing can be made of the load."""
    if any(name not in load for name in _NEEDED) or not isinstance(load["arg"], list):
        raise ControlError("InvocationError", f"a job needs {', '.join(_NEEDED)}")
    calls = _calls(load)
    tgt, tgt_type = load["tgt"], str(load.get("tgt_type") or "glob")
    if tgt_type.startswith("node"):
        tgt_type = "nodegroup"
    within = _authorise(context, minion_id, calls, tgt, tgt_type)
    arguments = [on_the_wire(call.args, call.kwargs) for call in calls]
    several = len(calls) > 1
    fields = {
        "fun": [call.fun for call in calls] if several else calls[0].fun,
        "arg": arguments if several else arguments[0],
        "tgt": tgt,
        "tgt_type": tgt_type,
        "ret": load["ret"],
        "user": minion_id,
        "request_id": _request_id(minion_id, load),
        "within": within,
    }
    return control.published(context, minion_id, fields, {"id": minion_id})


def _authorise(
    context: WorkerContext, minion_id: str, calls: Sequence[PeerCall], tgt: Any, tgt_type: str
) -> set[str] | None:
    """Raises ControlError. Answers the minions that the job may reach; None: whatever it is for."""
    try:
        meant = set(resolve(context, tgt, tgt_type).minions)
        if tgt_type in _EXACT and meant - set(resolve(context, tgt, _EXACT[tgt_type]).minions):
            raise ControlError("AuthorizationError", "pillar is matched exactly here: no globs, no regular expressions")
    except TargetError as error:
        raise ControlError("TargetError", str(error)) from error

    def covers(target: str) -> bool:
        try:
            return meant <= set(resolve(context, target, "compound").minions)
        except TargetError as error:
            context.log.error("peer: the target %s is not understood and allows nothing: %s", target, error)
            return False

    if may_publish(context.options.peer, minion_id, calls, nowhere):
        return None
    if not may_publish(context.options.peer, minion_id, calls, covers):
        raise ControlError("AuthorizationError", "the option peer does not let it")
    return meant


def _calls(load: Mapping[str, Any]) -> list[PeerCall]:
    """The functions with their arguments: of several (with commas) an argument is a list, or words with spaces, for each."""
    fun, no_parse = load["fun"], load.get("no_parse")
    if not isinstance(fun, str) or not fun:
        raise ControlError("InvocationError", f"fun must be the name of a function, not {fun!r}")
    if "," not in fun:
        return [PeerCall(fun, *_parsed(load["arg"], no_parse))]
    names = [name.strip() for name in fun.split(",")]
    groups = [one.split() if isinstance(one, str) else one for one in load["arg"]]
    groups += [[] for _ in names[len(groups) :]]
    if len(groups) != len(names) or not all(isinstance(group, list) for group in groups):
        raise ControlError("InvocationError", "of several functions each needs arguments of its own")
    return [PeerCall(name, *_parsed(group, no_parse)) for name, group in zip(names, groups, strict=True)]


def _parsed(given: Sequence[Any], no_parse: Any) -> tuple[list[Any], dict[str, Any]]:
    """Words as a command line means them; what is no text stays."""
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


def _request_id(minion_id: str, load: Mapping[str, Any]) -> str:
    """One for each message: it may be sent again, or be handed to another worker when one dies."""
    nonce = load.get("nonce")
    if not isinstance(nonce, str) or not nonce:
        raise PeerFault("a request without a nonce cannot be told from its repetition")
    return f"{minion_id}:{nonce}"


def _gathered(tools: RunnerTools, *, job: Mapping[str, Any], timeout: float, full: bool) -> dict[str, Any]:
    returns = tools.follow(job, timeout=timeout).returns
    if not full:
        return {minion: load.get("return") for minion, load in returns.items()}
    told: dict[str, Any] = {}
    for minion, load in returns.items():
        told[minion] = {name: value for name, value in load.items() if name != "return"} | {"ret": load.get("return")}
    return told | {"__jid__": job["jid"]}


def _refused(context: WorkerContext, minion_id: str, load: Mapping[str, Any], why: str) -> dict[str, Any]:
    context.log.warning("%s of %s is refused: %s", load.get("cmd"), load.get("fun"), why, extra={"minion": minion_id})
    return {}
