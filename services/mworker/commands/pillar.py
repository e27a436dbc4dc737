"""Pillar, compiled for the minion that asks (protocol section 7.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from services.kit.config import as_opts
from services.mworker.desk import Desk
from statecore.pillar import compile_pillar
from statecore.runtime import Runtime


def compile_for(desk: Desk, minion_id: str, load: Mapping[str, Any]) -> dict[str, Any]:
    """The minion's pillar; faults come under ``_errors``. Keeps it, and the grains that came with the
    request, for targeting."""
    grains = load.get("grains")
    grains = {**(grains if isinstance(grains, Mapping) else {}), "id": minion_id}
    if desk.options.minion_data_cache:
        desk.store.cache.set_grains(minion_id, grains)
        desk.fire(f"minion/refresh/{minion_id}", {"Minion data cache refresh": minion_id})
    saltenv, pillarenv = load.get("saltenv"), load.get("pillarenv")
    opts = as_opts(desk.options, id=minion_id, file_client="local", cachedir="", saltenv=saltenv, pillarenv=pillarenv)
    override = load.get("pillar_override") or None
    runtime = Runtime(opts, files=desk.pillar_files, grains=grains, pillar={})
    result = compile_pillar(
        desk.pillar_files,
        minion_id=minion_id,
        grains=grains,
        opts=opts,
        functions=runtime.functions,
        saltenv=saltenv,
        pillarenv=pillarenv,
        override=override if isinstance(override, Mapping) else None,
    )
    for error in result.errors:
        desk.log.error("pillar: %s", error, extra={"minion": minion_id})
    if desk.options.minion_data_cache and override is None and not result.errors:
        desk.keep_pillar(minion_id, result.data)
    return result.data | ({"_errors": list(result.errors)} if result.errors else {})


def master_tops(desk: Desk, minion_id: str, load: Mapping[str, Any]) -> dict[str, list[str]]:
    """{}: no tops interface is configured."""
    return {}
