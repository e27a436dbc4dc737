"""Access lists of minions: the options ``peer`` (jobs on other minions) and ``peer_run`` (runners), evaluated without
I/O.

``peer`` maps regular expressions of minion ids to rules; ``peer_run`` maps them to regular expressions of runners.
Expressions match from the beginning, as in Salt. A rule is an expression of functions, or ``{TARGET: functions}``,
which allows the functions on the minions of a compound target. A function may be ``{FUNCTION: {"args": [...], "kwargs":
{...}}}``, which restricts its arguments.

Salt: salt/utils/minions.py, auth_check; salt/daemons/masterapi.py, minion_runner
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from saltern.kit.command.arguments import looks_like_keyword

#: A function that tells whether a compound target matches every minion of the job.
Covers = Callable[[str], bool]

#: The target of every minion.
EVERYWHERE = "*"

#: Functions of the module ``publish`` cannot be published by minions: that could go on for ever.
_PUBLISHES = "publish."


class PeerCall(NamedTuple):
    """The name of a function and its arguments, which an access list checks."""

    fun: str
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = {}


def granted_targets(rules: Mapping[str, object], minion_id: str, call: PeerCall) -> list[str]:
    """Return the compound targets on which the option ``peer`` allows the minion this call; ``*`` means every minion.
    An empty list: the call is not allowed anywhere.
    """
    if call.fun.startswith(_PUBLISHES):
        return []
    return list(dict.fromkeys(target for rule in _granted(rules, minion_id) for target in targets_of(rule, call)))


def may_publish(rules: Mapping[str, object], minion_id: str, calls: Sequence[PeerCall], covers: Covers) -> bool:
    """Return whether the option ``peer`` allows the minion to publish all of these calls."""
    return bool(calls) and all(
        any(target == EVERYWHERE or covers(target) for target in granted_targets(rules, minion_id, call))
        for call in calls
    )


def may_run(rules: Mapping[str, object], minion_id: str, fun: str) -> bool:
    """Return whether the option ``peer_run`` allows the minion to run this runner."""
    return any(isinstance(rule, str) and matches(rule, fun) for rule in _granted(rules, minion_id))


def nowhere(target: str) -> bool:
    """Return False: a ``Covers`` function for checks that ask which functions are allowed on every target."""
    return False


def matches(pattern: str, text: str) -> bool:
    """Return whether a regular expression of an access list matches the beginning of the text. An invalid one matches nothing."""
    try:
        return re.match(pattern, text) is not None
    except re.error:
        return False


def _granted(rules: Mapping[str, object], minion_id: str) -> Iterator[object]:
    for pattern, granted in rules.items():
        if isinstance(granted, list) and matches(str(pattern), minion_id):
            yield from granted


def grants(rule: object, call: PeerCall, covers: Covers) -> bool:
    """Return whether a rule of an access list allows a call on the minions that ``covers`` checks."""
    return any(target == EVERYWHERE or covers(target) for target in targets_of(rule, call))


def targets_of(rule: object, call: PeerCall) -> Iterator[str]:
    """Yield the compound target, or ``*``, on which a rule allows a call. Nothing: it does not allow the call."""
    if isinstance(rule, str):
        if matches(rule, call.fun):
            yield EVERYWHERE
    elif isinstance(rule, Mapping) and len(rule) == 1:
        ((target, functions),) = rule.items()
        # A rule for the master's own functions (@runner) is no target.
        if not str(target).startswith("@") and fits(functions, call):
            yield str(target)


def fits(functions: object, call: PeerCall) -> bool:
    """Return whether a call matches one of the functions of an access list: expressions, or ``{FUNCTION: arguments}``."""
    return any(_function_fits(condition, call) for condition in _listed(functions))


def _function_fits(condition: object, call: PeerCall) -> bool:
    if isinstance(condition, str):
        return matches(condition, call.fun)
    if not isinstance(condition, Mapping) or len(condition) != 1:
        return False
    ((pattern, arguments),) = condition.items()
    return matches(str(pattern), call.fun) and any(_arguments_fit(one, call) for one in _listed(arguments))


def _arguments_fit(condition: object, call: PeerCall) -> bool:
    if not isinstance(condition, Mapping):
        return False
    if any(looks_like_keyword(one) for one in call.args):
        # Minions of different releases may read it in different ways, so no condition can hold for it.
        return False
    args, kwargs = condition.get("args") or [], condition.get("kwargs") or {}
    if len(call.args) < len(args) or not kwargs.keys() <= call.kwargs.keys():
        return False
    pairs = [*zip(args, call.args, strict=False), *((wanted, call.kwargs[name]) for name, wanted in kwargs.items())]
    # None in a rule allows any value.
    return all(wanted is None or matches(str(wanted), str(given)) for wanted, given in pairs)


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]
