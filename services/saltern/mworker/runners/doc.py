"""What runners and execution functions say of themselves."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from saltern.mworker.runners.runner import Runner, RunnerTools


def documented(runners: Mapping[str, Runner], *names: str) -> dict[str, str]:
    """{runner: its documentation}, of those that are named, or whose module is; of all without a name."""
    wanted = {
        fun: function
        for fun, function in runners.items()
        if not names or any(fun == name or fun.startswith(f"{name}.") for name in names)
    }
    return {fun: inspect.getdoc(function) or "" for fun, function in sorted(wanted.items())}


def execution(tools: RunnerTools) -> dict[str, Any]:
    """{execution function: its documentation}, of all that minions have."""
    found: dict[str, Any] = {}
    for load in tools.ask("*", "glob", "sys.doc").returns.values():
        docs = load.get("return")
        if isinstance(docs, Mapping):
            found.update({str(fun): text for fun, text in docs.items() if fun not in found})
    return dict(sorted(found.items()))


def wheel(tools: RunnerTools) -> dict[str, str]:
    """{wheel function: its documentation}."""
    documented: dict[str, str] = tools.control.call("wheel", fun="sys.doc")
    return documented
