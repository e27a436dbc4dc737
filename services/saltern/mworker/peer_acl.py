"""What minions may ask of the master for others: the options ``peer`` (jobs) and ``peer_run`` (runners), decided without I/O.

``peer`` maps a regular expression of minion ids to rules, ``peer_run`` to regular expressions of runners; expressions match from
the start, as in Salt. A rule is an expression of functions, or ``{TARGET: functions}``: these are allowed on minions that the
compound target means, and may be ``{FUNCTION: {"args": [...], "kwargs": {...}}}``, which lays down arguments.

Source: salt/utils/minions.py (auth_check), salt/daemons/masterapi.py (minion_runner).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

#: Whether a compound target means every minion that the job is for.
Covers = Callable[[str], bool]

#: Functions of this module cannot be published: minions would command each other in circles.
_PUBLISHES = "publish."


class PeerCall(NamedTuple):
    """A function, and what it is called with."""

    fun: str
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = {}


def may_publish(rules: Mapping[str, Any], minion_id: str, calls: Sequence[PeerCall], covers: Covers) -> bool:
    """Whether ``peer`` lets the minion publish all of these."""
    granted = list(_granted(rules, minion_id))
    return bool(calls) and all(
        not call.fun.startswith(_PUBLISHES) and any(grants(rule, call, covers) for rule in granted) for call in calls
    )


def may_run(rules: Mapping[str, Any], minion_id: str, fun: str) -> bool:
    """Whether ``peer_run`` lets the minion run this runner."""
    return any(isinstance(rule, str) and matches(rule, fun) for rule in _granted(rules, minion_id))


def nowhere(target: str) -> bool:
    """Stands for ``covers`` where it is asked what is allowed whatever the job is for."""
    return False


def matches(pattern: str, text: str) -> bool:
    """Whether the text begins as the expression says; one that is none matches nothing."""
    try:
        return re.match(pattern, text) is not None
    except re.error:
        return False


def _granted(rules: Mapping[str, Any], minion_id: str) -> Iterator[Any]:
    for pattern, granted in rules.items():
        if isinstance(granted, list) and matches(str(pattern), minion_id):
            yield from granted


def grants(rule: Any, call: PeerCall, covers: Covers) -> bool:
    """Whether a rule lets somebody publish this call for the minions that ``covers`` knows."""
    if isinstance(rule, str):
        return matches(rule, call.fun)
    if not isinstance(rule, Mapping) or len(rule) != 1:
        return False
    ((target, functions),) = rule.items()
    # An entry of an access list that is about the master's own functions (@runner) means no minion.
    if str(target).startswith("@") or (target != "*" and not covers(str(target))):
        return False
    return fits(functions, call)


def fits(functions: Any, call: PeerCall) -> bool:
    """Whether a call is one of these: expressions, or ``{FUNCTION: arguments}``."""
    return any(_function_fits(condition, call) for condition in _listed(functions))


def _function_fits(condition: Any, call: PeerCall) -> bool:
    if isinstance(condition, str):
        return matches(condition, call.fun)
    if not isinstance(condition, Mapping) or len(condition) != 1:
        return False
    ((pattern, arguments),) = condition.items()
    return matches(str(pattern), call.fun) and any(_arguments_fit(one, call) for one in _listed(arguments))


def _arguments_fit(condition: Any, call: PeerCall) -> bool:
    if not isinstance(condition, Mapping):
        return False
    args, kwargs = condition.get("args") or [], condition.get("kwargs") or {}
    if len(call.args) < len(args) or not kwargs.keys() <= call.kwargs.keys():
        return False
    pairs = [*zip(args, call.args, strict=False), *((wanted, call.kwargs[name]) for name, wanted in kwargs.items())]
    # None allows any value.
    return all(wanted is None or matches(str(wanted), str(given)) for wanted, given in pairs)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
