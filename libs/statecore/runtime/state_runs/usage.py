"""Which SLS files a minion's top file uses, and which lie about unused (``state.show_state_usage``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from statecore.model.ports import Files


def usage(files: Files, matches: Mapping[str, Sequence[str]]) -> dict[str, dict[str, Any]]:
    """saltenv -> ``used`` and ``unused`` SLS references, sorted, with counts. What is only included counts as unused."""
    return {env: _of_env(_references(files.paths(env)), set(matches.get(env, ()))) for env in files.envs()}


def _of_env(known: Sequence[str], chosen: set[str]) -> dict[str, Any]:
    used = [ref for ref in known if ref in chosen]
    unused = [ref for ref in known if ref not in chosen]
    return {
        "used": used,
        "unused": unused,
        "count_all": len(known),
        "count_used": len(used),
        "count_unused": len(unused),
    }


def _references(paths: Sequence[str]) -> list[str]:
    stems = {path.removesuffix(".sls") for path in paths if path.endswith(".sls")}
    return sorted({stem.removesuffix("/init").replace("/", ".") for stem in stems})
