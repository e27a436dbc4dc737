"""What the name of an operator's key may do: control_acl, publisher_acl and publisher_acl_blacklist, decided without I/O.

``control_acl`` is this master's own: function patterns that have to fit whole, and @runner, @wheel, @jobs. ``publisher_acl`` is
Salt's, with names of keys for users: expressions of functions that have to fit at the start; ``{TARGET: functions}``, as in
``peer``; @runner, @wheel or @MODULE for all runners, wheel functions, or those of one module; ``{"@runner": expressions}``.

Source: salt/utils/minions.py (auth_check, runner_check), salt/acl, salt/utils/stringutils.py (expr_match).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from saltern.mworker.peer_acl import Covers, PeerCall, fits, grants

#: What every operator may publish: `salt` asks with it who works on a job.
_ALWAYS = frozenset({"saltutil.find_job"})


def barred_by_list(blacklist: Mapping[str, Sequence[str]], users: Sequence[str], functions: Sequence[str]) -> str:
    """Who or what of these the blacklist names; empty: nothing."""
    for kind, names in (("users", users), ("modules", functions)):
        for name in names:
            if any(_is_meant(name, str(pattern)) for pattern in blacklist.get(kind) or ()):
                return name
    return ""


def rows_of(
    control_acl: Mapping[str, Sequence[str]], publisher_acl: Mapping[str, Sequence[Any]], client: str, *, own: bool
) -> tuple[str, Sequence[Any]]:
    """(name of the option that counts for a client, its row there).

    A row of its own in control_acl goes first, then one in publisher_acl. Without either the row ``*`` of control_acl counts, but
    where there is a publisher_acl for the master's ``own`` names alone: operators whom it does not name may do nothing.
    """
    if client in control_acl:
        return "control_acl", control_acl[client]
    if client in publisher_acl:
        return "publisher_acl", publisher_acl[client]
    if publisher_acl and not own:
        return "publisher_acl", ()
    return "control_acl", control_acl.get("*", ())


def barred_functions(option: str, row: Sequence[Any], calls: Sequence[PeerCall], covers: Covers) -> list[str]:
    """Functions of a job that a row does not let its client publish, each once."""
    asked = [call for call in calls if call.fun not in _ALWAYS]
    if option == "control_acl":
        patterns = [rule for rule in row if not rule.startswith("@")]
        barred = [call.fun for call in asked if not any(re.fullmatch(pattern, call.fun) for pattern in patterns)]
    else:
        barred = [call.fun for call in asked if not any(grants(rule, call, covers) for rule in row)]
    return list(dict.fromkeys(barred))


def may_use(option: str, row: Sequence[Any], policy: str, call: PeerCall) -> bool:
    """Whether a row lets its client use @runner or @wheel for this function, or @jobs to ask for jobs."""
    if option == "control_acl":
        return policy in row
    # As under Salt, where whoever may publish hears of all jobs.
    return bool(row) if policy == "@jobs" else any(_allows(rule, policy, call) for rule in row)


def _allows(rule: Any, policy: str, call: PeerCall) -> bool:
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
    """As Salt's lists name things: itself, a glob, or a regular expression of the whole."""
    if name == pattern or fnmatchcase(name, pattern):
        return True
    try:
        return re.fullmatch(pattern, name) is not None
    except re.error:
        return False
