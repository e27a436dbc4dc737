"""Runners that return the documentation of runners, execution functions and wheel functions."""

from __future__ import annotations

import inspect
from collections.abc import Mapping

from saltern.kit.links.control import wheel_functions
from saltern.mworker.runners.runner import Runner, RunnerTools


def documented(runners: Mapping[str, Runner], *names: str) -> dict[str, str]:
    """Return {runner: its documentation} of the named runners and of all runners in the named modules. Without names: of all
    runners.
    """
    wanted = {
        fun: function
        for fun, function in runners.items()
        if not names or any(fun == name or fun.startswith(f"{name}.") for name in names)
    }
    return {fun: inspect.getdoc(function) or "" for fun, function in sorted(wanted.items())}


def execution(tools: RunnerTools) -> dict[str, object]:
    """Return {execution function: its documentation} of all functions that any minion has."""
    found: dict[str, object] = {}
    for load in tools.ask("*", "glob", "sys.doc").returns.values():
        docs = load.get("return")
        if isinstance(docs, Mapping):
            found.update({str(fun): text for fun, text in docs.items() if fun not in found})
    return dict(sorted(found.items()))


def wheel(tools: RunnerTools) -> dict[str, str]:
    """Return {wheel function: its documentation}."""
    return wheel_functions(tools.control)("sys.doc")
