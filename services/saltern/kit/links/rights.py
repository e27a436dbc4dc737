"""Who may do what: one decision for operators' keys, users of ``external_auth``, and minions (``peer``). No I/O.

``rights_of_...`` finds a sender's rules in the master's options. ``decide`` compares them with a request and returns on which
targets each call is allowed. The caller then resolves these targets, and the request's own target after them.

The rules are Salt's. Expressions match from the beginning. A rule is one of:

- an expression of functions: they may be published to every minion;
- ``{TARGET: functions}``: they may be published to the minions of a compound target;
- ``@runner``, ``@wheel`` or ``@MODULE`` (all runners, all wheel functions, or those of one module), or
  ``{"@runner": functions}``.

One of ``functions`` is an expression, or ``{FUNCTION: {"args": [...], "kwargs": {...}}}``, which restricts the arguments. A
rule that is none of these allows nothing. Only ``control_acl`` is Saltern's own: its patterns match a whole function name.

Salt: salt/utils/minions.py, CkMinions; salt/daemons/masterapi.py; salt/acl; salt/utils/stringutils.py, expr_match
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any, NamedTuple

from saltwire.jid import is_jid
from statecore.model.regex import expression

#: The target of every minion.
EVERYWHERE = "*"

#: Rules that allow every runner.
_ALL_RUNNERS = frozenset({"@runner", "@runners"})

#: Functions of the module ``publish`` cannot be published by minions: that could go on for ever. As in Salt, nothing whose
#: name begins so.
_PUBLISHES = "publish"

#: Rows of control_acl that keys of the master have while the option names no other: the operator's commands may do
#: everything, and each role what its work needs. Every other key may do nothing until an option names it.
OWN_ROWS: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "cli": (".*", "@runner", "@wheel", "@jobs"),
        # Runners publish, start runners and administer keys by it.
        "mworker": (".*", "@runner", "@wheel", "@jobs"),
        # Reactions, and engines, which wait for the jobs and runners that they start.
        "reactor": (".*", "@runner", "@wheel", "@jobs"),
        "maintenance": ("@runner",),
        # Reads events. What its users do is decided by their own rights (``rights_of_user``).
        "api": ("@events",),
    }
)


class Kind(Enum):
    """The kind of a request that rights are checked for: publish a job, run a runner, call a wheel function, or look."""

    PUBLISH = "publish"
    RUNNER = "@runner"
    WHEEL = "@wheel"
    #: Read all jobs whole, and the parts of the master.
    JOBS = "@jobs"
    #: Read all events.
    EVENTS = "@events"
    #: Look at minions, at the own jobs, and at what other jobs did on minions that the sender's rules cover: any rule, of
    #: ``control_acl`` the rule @jobs.
    LOOK = "any right"


class Verb(Enum):
    """What an operator's command, or a route of the API, does."""

    #: It changes nothing that belongs to somebody.
    READ = "read"
    #: It starts something, which belongs to the sender.
    RUN = "run"
    #: It changes what is there: keys, jobs of others, the master.
    MANAGE = "manage"


class Call(NamedTuple):
    """The name of an execution, runner or wheel function, and the arguments with which a request calls it."""

    fun: str
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = {}


#: Runners of the module ``jobs`` that change a job. ``@jobs`` allows them for the own jobs alone; for others' jobs ``@runner``
#: must allow them. They do not exist in Salt.
CHANGE_A_JOB = frozenset({"jobs.cancel", "jobs.rerun"})

#: A call of the runner that shows any job.
_ANY_JOB = Call("jobs.lookup_jid")


@dataclass(frozen=True)
class Rights:
    """The access rules of one sender (operator, user or minion), and the name of the option that contains them."""

    #: Name of the option that holds them, for messages.
    option: str
    rules: Sequence[object] = ()
    #: The rules are patterns of whole function names and the words @runner, @wheel and @jobs.
    whole_names: bool = False
    #: The sender may not publish functions of the module ``publish``.
    no_circles: bool = False


@dataclass(frozen=True)
class Decision:
    """The result of ``decide``: for each call of a request the list of compound targets on which it is allowed.

    ``*`` means every minion; an empty list means that the call is allowed nowhere.
    """

    calls: Sequence[Call]
    targets: Sequence[Sequence[str]]

    @property
    def refused(self) -> list[str]:
        """Names of the functions that the sender may call on no minion, each once."""
        return self._functions(lambda targets: not targets)

    @property
    def everywhere(self) -> bool:
        """Whether the sender may make every call of the request on every minion."""
        return all(EVERYWHERE in targets for targets in self.targets)

    def refused_on(self, minions: frozenset[str], matching: Callable[[str], frozenset[str]]) -> list[str]:
        """Return the names of the functions that the sender may not call on all of ``minions``, each once.

        As in Salt, one allowed target must match all of these minions. ``matching`` returns the ids that a
        compound target matches.
        """
        return self._functions(lambda targets: not any(_is_in(minions, target, matching) for target in targets))

    def reach(self, matching: Callable[[str], frozenset[str]]) -> frozenset[str]:
        """Return the ids of the minions on which all calls of the request are allowed. Call only if ``everywhere``
        is False.

        ``matching`` returns the ids that a compound target matches.
        """
        joined = [
            frozenset().union(*(matching(target) for target in targets))
            for targets in self.targets
            if EVERYWHERE not in targets
        ]
        return frozenset.intersection(*joined)

    def _functions(self, wanted: Callable[[Sequence[str]], bool]) -> list[str]:
        pairs = zip(self.calls, self.targets, strict=True)
        return list(dict.fromkeys(call.fun for call, targets in pairs if wanted(targets)))


def decide(rights: Rights, kind: Kind, calls: Sequence[Call]) -> Decision:
    """Return a Decision: the targets on which the sender's rights allow each call of a request of this kind.

    A runner, a wheel function or a query that is allowed has the target ``*``.
    """
    return Decision(calls, [list(dict.fromkeys(_targets(rights, kind, call))) for call in calls])


def covered_targets(rights: Rights) -> list[str]:
    """Return the compound targets of the minions that the sender's rules cover: minions on which the sender may publish
    some function. ``*`` means every minion.

    A sender that may start all runners covers every minion, because runners reach them all.
    """
    found: list[str] = []
    for rule in rights.rules:
        if isinstance(rule, str):
            if rule in _ALL_RUNNERS or (rule and not rule.startswith("@")):
                return [EVERYWHERE]
        elif not rights.whole_names and isinstance(rule, Mapping) and len(rule) == 1:
            ((target, functions),) = rule.items()
            if functions and not str(target).startswith("@"):
                found.append(str(target))
    return [EVERYWHERE] if EVERYWHERE in found else list(dict.fromkeys(found))


# ------------------------------------------------------------------------------------------------------- rules of a sender


def rights_of_operator(
    control_acl: Mapping[str, Sequence[object]], publisher_acl: Mapping[str, Sequence[object]], client: str
) -> Rights:
    """Return the Rights of an operator's CurveZMQ key with the name ``client``.

    The first of these rows counts: the row ``client`` of control_acl; the row ``client`` of publisher_acl; the row
    ``*`` of control_acl, but for keys without a built-in row only if publisher_acl is empty; the built-in row
    (OWN_ROWS) of the operators' commands or of a role. Any other key has no rights.
    """
    if client in control_acl:
        return Rights("control_acl", control_acl[client], whole_names=True)
    if client in publisher_acl:
        return Rights("publisher_acl", publisher_acl[client])
    if EVERYWHERE in control_acl and (client in OWN_ROWS or not publisher_acl):
        return Rights("control_acl", control_acl[EVERYWHERE], whole_names=True)
    if client in OWN_ROWS:
        return Rights("control_acl", OWN_ROWS[client], whole_names=True)
    return Rights("publisher_acl" if publisher_acl else "control_acl", whole_names=not publisher_acl)


def rights_of_user(
    external_auth: Mapping[str, object],
    backend: str,
    user: str,
    groups: Sequence[str] = (),
    *,
    permissive: bool = False,
) -> Rights:
    """Return the Rights of a user that ``backend`` (a key of the option external_auth) has authenticated.

    The rows of the user and of the user's groups (``group%``) add up. The row ``*`` counts for users without a row of
    their own, with ``permissive`` for every user. Unlike in Salt, names are compared exactly: neither the names in the
    option nor the user's name are patterns.
    """
    rows = external_auth.get(backend)
    found: list[object] = []
    named = False
    for name, row in rows.items() if isinstance(rows, Mapping) else ():
        if name == EVERYWHERE and not permissive:
            continue
        of_group = str(name).endswith("%")
        meant = str(name).rstrip("%") in groups if of_group else name in (user, EVERYWHERE)
        if meant and isinstance(row, list):
            named = named or not of_group
            found += row
    if not permissive and not named and isinstance(rows, Mapping) and isinstance(every := rows.get(EVERYWHERE), list):
        found += every
    return Rights(f"external_auth, {backend}", found)


def rights_of_minion(peer: Mapping[str, object], minion_id: str) -> Rights:
    """Return the Rights of a minion to publish jobs, from the option ``peer``: the rules of all patterns that match its id."""
    return Rights("peer", list(_rows_of_minion(peer, minion_id)), no_circles=True)


def runners_of_minion(peer_run: Mapping[str, object], minion_id: str) -> Rights:
    """Return the Rights of a minion to start runners, from the option ``peer_run``; each rule is an expression of runners."""
    expressions = [rule for rule in _rows_of_minion(peer_run, minion_id) if isinstance(rule, str)]
    return Rights("peer_run", [{Kind.RUNNER.value: expressions}])


def wheels_of_minion(peer_run: Mapping[str, object], minion_id: str) -> Rights:
    """Return the Rights of a minion to call wheel functions on the master, from the option ``peer_run``.

    Only rules about wheel functions count: ``@wheel``, ``@MODULE``, ``{"@wheel": functions}``, ``{"@MODULE":
    functions}``.
    """
    rules = _rows_of_minion(peer_run, minion_id)
    return Rights(
        "peer_run",
        [rule for rule in rules if str(next(iter(rule), "") if isinstance(rule, Mapping) else rule)[:1] == "@"],
    )


def _rows_of_minion(rules: Mapping[str, object], minion_id: str) -> Iterator[object]:
    for pattern, granted in rules.items():
        if isinstance(granted, list) and matches(str(pattern), minion_id):
            yield from granted


# ------------------------------------------------------------------------------------------------ what a rule allows


def named(rights: Rights, fun: str) -> bool:
    """Return whether a rule of a minion names an execution function, for some target and some arguments.

    ``decide`` needs the arguments. This decision comes before they are parsed.
    """
    if rights.no_circles and fun.startswith(_PUBLISHES):
        return False
    return any(matches(pattern, fun) for rule in rights.rules for pattern in _patterns(rule))


def _patterns(rule: object) -> Iterator[str]:
    """Yield the expressions of execution functions in a rule."""
    if isinstance(rule, str):
        yield rule
    elif isinstance(rule, Mapping) and len(rule) == 1:
        ((target, functions),) = rule.items()
        for condition in () if str(target).startswith("@") else _listed(functions):
            if isinstance(condition, str):
                yield condition
            elif isinstance(condition, Mapping) and len(condition) == 1:
                yield str(next(iter(condition)))


def _targets(rights: Rights, kind: Kind, call: Call) -> Iterator[str]:
    if kind is Kind.PUBLISH:
        if rights.no_circles and call.fun.startswith(_PUBLISHES):
            return
        for rule in rights.rules:
            yield from _whole_name(rule, call.fun) if rights.whole_names else _published(rule, call)
    elif kind is Kind.LOOK:
        if Kind.JOBS.value in rights.rules if rights.whole_names else rights.rules:
            yield EVERYWHERE
    elif kind in (Kind.JOBS, Kind.EVENTS):
        if kind.value in rights.rules or _reads_all_jobs(rights) or (kind is Kind.EVENTS and _hears_the_bus(rights)):
            yield EVERYWHERE
    elif rights.whole_names:
        if kind.value in rights.rules:
            yield EVERYWHERE
    elif any(_allows(rule, kind.value, call) for rule in rights.rules):
        yield EVERYWHERE


def _reads_all_jobs(rights: Rights) -> bool:
    """Return whether the sender may read every job: by ``@jobs``, or because it may start the runner that shows any job."""
    return not rights.whole_names and any(_allows(rule, Kind.RUNNER.value, _ANY_JOB) for rule in rights.rules)


def _hears_the_bus(rights: Rights) -> bool:
    """Return whether the sender is a key of the master with a right: it reads the event bus on port 4513 anyway."""
    return rights.whole_names and bool(rights.rules)


def _whole_name(rule: object, fun: str) -> Iterator[str]:
    """Yield ``*`` if a pattern of control_acl matches the whole name. An invalid pattern matches nothing."""
    try:
        if isinstance(rule, str) and not rule.startswith("@") and expression(rule).fullmatch(fun):
            yield EVERYWHERE
    except re.error:
        return


def _published(rule: object, call: Call) -> Iterator[str]:
    """Yield the compound target on which a rule allows a call, ``*`` for all minions.

    Yield nothing if the rule does not allow the call.
    """
    if isinstance(rule, str):
        if matches(rule, call.fun):
            yield EVERYWHERE
    elif isinstance(rule, Mapping) and len(rule) == 1:
        ((target, functions),) = rule.items()
        # A rule for the master's own functions (@runner) is no target.
        if not str(target).startswith("@") and _fits(functions, call):
            yield str(target)


def _allows(rule: object, policy: str, call: Call) -> bool:
    """Return whether a rule allows a runner or wheel function. ``policy``: @runner or @wheel."""
    module, dot, function = call.fun.partition(".")
    if not dot or "." in function:
        return False
    whole, of_module = (policy, f"{policy}s"), f"@{module}"
    # `@jobs` reads jobs: it allows no runner that changes one.
    by_module = call.fun not in CHANGE_A_JOB
    if isinstance(rule, str):
        return rule in whole or (by_module and rule == of_module)
    if not isinstance(rule, Mapping) or len(rule) != 1:
        return False
    ((name, functions),) = rule.items()
    return (name in whole and _fits(functions, call)) or (
        by_module and name == of_module and _fits(functions, call._replace(fun=function))
    )


def _fits(functions: object, call: Call) -> bool:
    """Return whether a rule's ``functions`` allow a call. A member of ``functions`` is an expression, or {FUNCTION:
    {"args": [...], "kwargs": {...}}}.
    """
    return any(_function_fits(condition, call) for condition in _listed(functions))


def _function_fits(condition: object, call: Call) -> bool:
    if isinstance(condition, str):
        return matches(condition, call.fun)
    if not isinstance(condition, Mapping) or len(condition) != 1:
        return False
    ((pattern, arguments),) = condition.items()
    return matches(str(pattern), call.fun) and any(_arguments_fit(one, call) for one in _listed(arguments))


def _arguments_fit(condition: object, call: Call) -> bool:
    if not isinstance(condition, Mapping):
        return False
    args, kwargs = condition.get("args", []), condition.get("kwargs", {})
    if not isinstance(args, list) or not isinstance(kwargs, Mapping):
        return False
    if len(call.args) < len(args) or not kwargs.keys() <= call.kwargs.keys():
        return False
    pairs = [*zip(args, call.args, strict=False), *((wanted, call.kwargs[name]) for name, wanted in kwargs.items())]
    # None in a rule allows any value.
    return all(wanted is None or matches(str(wanted), str(given)) for wanted, given in pairs)


def matches(pattern: str, text: str) -> bool:
    """Return whether an expression of a rule matches the beginning of the text. An invalid one matches nothing."""
    try:
        return expression(pattern).match(text) is not None
    except re.error:
        return False


def _is_in(minions: frozenset[str], target: str, matching: Callable[[str], frozenset[str]]) -> bool:
    return target == EVERYWHERE or minions <= matching(target)


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


# ------------------------------------------------------------------------------------------- addresses, and a blacklist


def may_come_from(api_acl: Mapping[str, object], user: str, address: str) -> bool:
    """Return whether the setting ``api_acl`` of the API lets a user use it from an address.

    ``user``: the name by which external_auth knows the user. Addresses are compared as text, ``*`` is every address. The
    row ``*`` counts for users without a row. Names that differ in case or in spaces around them are one name, because a
    directory takes them for one. A row that is no list allows nothing.
    """
    users = api_acl.get("users")
    if not users:
        return True
    if not isinstance(users, Mapping):
        return False
    own = [row for name, row in users.items() if _folded(str(name)) == _folded(user) and name != EVERYWHERE]
    return all(
        isinstance(row, list) and not {EVERYWHERE, address}.isdisjoint(map(str, row))
        for row in own or [users.get(EVERYWHERE)]
    )


def _folded(name: str) -> str:
    return " ".join(name.casefold().split())


# ------------------------------------------------------------------------------------------- blacklist, and a question


def barred_by_list(blacklist: Mapping[str, Sequence[str]], users: Sequence[str], functions: Sequence[str]) -> str:
    """Return the first of the users and functions that the option ``publisher_acl_blacklist`` matches; "" if it
    matches none.
    """
    for kind, names in (("users", users), ("modules", functions)):
        for name in names:
            if any(_is_meant(name, str(pattern)) for pattern in blacklist.get(kind) or ()):
                return name
    return ""


def _is_meant(name: str, pattern: str) -> bool:
    """Return whether a pattern of Salt's lists matches a name: an equal name, a glob, or a regular expression for the
    whole name. As in Salt, the anchors bind more tightly than ``|`` in the expression.
    """
    if name == pattern or fnmatchcase(name, pattern):
        return True
    return any(matches(expression, name) for expression in (rf"\A{pattern}\Z", f"{pattern}\\Z"))


#: Runners that the owner of a job may use about it; the first argument is its JID.
_OF_A_JOB = CHANGE_A_JOB | {f"state.{name}" for name in ("pause", "set_pause", "resume", "rm_pause", "soft_kill")}


def owned_job(call: Call) -> str | None:
    """Return the JID of the job that a runner changes, if the job's owner may use the runner; None for any other runner,
    and for a call that does not name one job.
    """
    given = [*call.args[:1], *([call.kwargs["jid"]] if "jid" in call.kwargs else [])]
    return str(given[0]) if call.fun in _OF_A_JOB and len(given) == 1 else None


#: The function by which `salt` finds out which minions still run a job.
_FIND_JOB = "saltutil.find_job"

#: Fields of the question `salt` asks about a job that it waits for. Any other field with a value makes a request another one.
_QUESTION = frozenset({"cmd", "fun", "arg", "tgt", "tgt_type", "user", "request_id", "traceparent", "tracestate"})


def question_of(fields: Mapping[str, object]) -> tuple[str, frozenset[str]] | None:
    """Return (JID, minion ids) if a publish request only asks which of these minions still run a job
    (``saltutil.find_job``).

    None for any other request, such as one with a returner or executor. Operators may ask this about their
    own jobs without the right to publish saltutil.find_job.
    """
    arg, tgt = fields.get("arg"), fields.get("tgt")
    if fields.get("fun") != _FIND_JOB or fields.get("tgt_type") != "list":
        return None
    if not isinstance(arg, list) or len(arg) != 1 or not is_jid(arg[0]):
        return None
    if not isinstance(tgt, list) or not all(isinstance(minion, str) for minion in tgt):
        return None
    if any(value for name, value in fields.items() if name not in _QUESTION):
        return None
    return str(arg[0]), frozenset(tgt)
