"""Access lists of operators: the options ``control_acl``, ``publisher_acl`` and ``publisher_acl_blacklist``, evaluated
without I/O.

``control_acl`` is Saltern's own: patterns that match a whole function name, and the words @runner, @wheel and @jobs.
``publisher_acl`` is Salt's, with names of operators in place of system users. Its rules are: regular expressions that
match the beginning of a function name; ``{TARGET: functions}`` as in the option ``peer``; @runner, @wheel or @MODULE
for all runners, all wheel functions, or those of one module; and ``{"@runner": expressions}``.

Salt: salt/utils/minions.py, auth_check and runner_check; salt/acl; salt/utils/stringutils.py, expr_match
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from saltern.mworker.peer_acl import Covers, PeerCall, fits, grants
from saltwire.jid import is_jid

#: The function by which `salt` finds out which minions still run a job.
_FIND_JOB = "saltutil.find_job"

#: Fields of the question `salt` asks about a job that it waits for. Any other field with a value makes a request another one.
_QUESTION = frozenset({"cmd", "fun", "arg", "tgt", "tgt_type", "user", "request_id", "traceparent", "tracestate"})


def barred_by_list(blacklist: Mapping[str, Sequence[str]], users: Sequence[str], functions: Sequence[str]) -> str:
    """Return the first user or function that the blacklist matches; empty if it matches none."""
    for kind, names in (("users", users), ("modules", functions)):
        for name in names:
            if any(_is_meant(name, str(pattern)) for pattern in blacklist.get(kind) or ()):
                return name
    return ""


def rows_of(
    control_acl: Mapping[str, Sequence[str]], publisher_acl: Mapping[str, Sequence[object]], client: str, *, own: bool
) -> tuple[str, Sequence[object]]:
    """Return (name of the option that decides for this operator, the operator's row in it).

    A row for the operator in control_acl counts first, then one in publisher_acl. Without either, the row ``*`` of
    control_acl counts. Exception: if publisher_acl is set, operators that it does not name may do nothing; ``own``
    marks the master's own roles, which keep the row ``*``.
    """
    if client in control_acl:
        return "control_acl", control_acl[client]
    if client in publisher_acl:
        return "publisher_acl", publisher_acl[client]
    if publisher_acl and not own:
        return "publisher_acl", ()
    return "control_acl", control_acl.get("*", ())


def barred_functions(option: str, row: Sequence[Any], calls: Sequence[PeerCall], covers: Covers) -> list[str]:
    """Return the functions of a job that the operator's row in an access list does not allow, each once."""
    if option == "control_acl":
        patterns = [rule for rule in row if not rule.startswith("@")]
        barred = [call.fun for call in calls if not any(re.fullmatch(pattern, call.fun) for pattern in patterns)]
    else:
        barred = [call.fun for call in calls if not any(grants(rule, call, covers) for rule in row)]
    return list(dict.fromkeys(barred))


def question_of(fields: Mapping[str, object]) -> tuple[str, frozenset[str]] | None:
    """Return (JID, minion ids) if a publish request is the bare question which of these minions still run a job.

    None for any other request: an operator who may not publish saltutil.find_job may ask this question about an own
    job, but with no returner, executor or other option, and no minions that the job has not.
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


def may_use(option: str, row: Sequence[object], policy: str, call: PeerCall) -> bool:
    """Return whether an operator's row in an access list allows the runner or wheel function of ``call``, or queries about jobs.

    ``policy`` is @runner, @wheel or @jobs.
    """
    if option == "control_acl":
        return policy in row
    # As in Salt, where every user who may publish can read all jobs.
    return bool(row) if policy == "@jobs" else any(_allows(rule, policy, call) for rule in row)


def _allows(rule: object, policy: str, call: PeerCall) -> bool:
    module, _, function = call.fun.partition(".")
    whole, of_module = (policy, f"{policy}s"), f"@{module}"
    if isinstance(rule, str):
        return rule in (*whole, of_module)
    if not isinstance(rule, Mapping) or len(rule) != 1:
        return False
    ((name, functions),) = rule.items()
    if name in whole:
        return fits(functions, call)
    return bool(name == of_module) and fits(functions, call._replace(fun=function))


def _is_meant(name: str, pattern: str) -> bool:
    """Return whether a pattern of Salt's lists matches a name.

    A pattern is an equal name, a glob, or a regular expression for the whole name.
    """
    if name == pattern or fnmatchcase(name, pattern):
        return True
    try:
        return re.fullmatch(pattern, name) is not None
    except re.error:
        return False
