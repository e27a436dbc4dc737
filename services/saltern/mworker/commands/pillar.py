"""Commands of minions that return the minion's compiled pillar, and the SLS files that the master's ``master_tops``
modules assign to it. Source: docs/protocol.md#pillar-transfer
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from masterstore.errors import TooLarge
from saltern.kit.config.master import as_opts, public_options
from saltern.mworker.pillar_overrides import is_published
from saltern.mworker.quotas import Quota
from saltern.mworker.worker_context import WorkerContext
from statecore.model.secret_values import SECRET_PILLAR, secret_paths
from statecore.runtime.master_data import MinionDataRequest, as_data, pillar_of, tops_of
from statecore.runtime.runtime import Runtime

#: Seconds for which a minion's pillar is not compiled, for each second of CPU time of a compilation that was stopped.
_REST = 9.0

#: Number of minions above which entries that have ended are deleted.
_MOST_SLOW = 1000

_TOO_SLOW = (
    "Compiling the pillar took longer than {} seconds of CPU time (master_render_time_limit); the master tries again"
    " in {} s"
)


def compile_for(
    context: WorkerContext, minion_id: str, load: Mapping[str, object], *, keep: bool = True
) -> dict[str, object]:
    """Return the minion's pillar, compiled now or from ``pillar_cache``; errors are under ``_errors``.

    Stores the pillar and the request's grains for targeting. With ``keep`` False, for a repeated request, nothing is
    stored.

    Grains above ``grains_max_bytes`` are not stored: the master would go on targeting the minion by its earlier
    grains. The pillar then has an error with this reason, so that state runs of the minion fail.
    """
    grains = _grains(load.get("grains"), minion_id)
    keep = keep and context.options.minion_data_cache
    if keep:
        try:
            context.store.cache.set_grains(minion_id, grains, most=context.options.grains_max_bytes)
        except TooLarge as error:
            why = f"{error}: not stored for targeting; make the minion's grains smaller"
            context.quotas.refused(Quota.GRAINS, minion_id, why)
            pillar = compile_pillar(context, minion_id, load, grains, keep=False)
            errors = pillar.get("_errors")
            said = f"{why} (limit: option grains_max_bytes of the master)"
            return {**pillar, "_errors": [*(errors if isinstance(errors, list) else []), said]}
        context.fire(f"minion/refresh/{minion_id}", {"Minion data cache refresh": minion_id})
    return compile_pillar(context, minion_id, load, grains, keep=keep)


def compile_pillar(
    context: WorkerContext, minion_id: str, load: Mapping[str, object], grains: Mapping[str, object], *, keep: bool
) -> dict[str, object]:
    """Return the minion's pillar, compiled now or from ``pillar_cache``; errors are under ``_errors``.

    ``load``: the minion's request. ``keep``: store the pillar for targeting, unless it has errors.
    """
    override = _map(load.get("pillar_override"))
    seen = override is not None and is_published(context, minion_id, override)
    wanted = MinionDataRequest(
        minion_id,
        _text(load.get("saltenv")),
        _text(load.get("pillarenv")),
        override if seen else None,
        _map(load.get("ext")),
        None if seen else override,
    )
    cached = context.options.pillar_cache and override is None and wanted.on_demand is None
    environments = f"{wanted.saltenv or ''} {wanted.pillarenv or ''}"
    if cached:
        if load.get("clean_cache"):
            context.store.cache.drop_pillar(minion_id)
        elif (kept := context.cached_pillar(minion_id, environments)) is not None:
            return kept
    if (left := context.slow_pillars.get(minion_id, 0.0) - time.monotonic()) > 0:
        return {"_errors": [_TOO_SLOW.format(context.options.master_render_time_limit, math.ceil(left))]}
    live: dict[str, object] = {}
    runtime = _runtime(context, minion_id, grains, live, saltenv=wanted.saltenv)
    began = time.process_time()
    result = pillar_of(
        runtime.context, runtime.loader, wanted, live, own_id=context.options.id, memory=context.pillar_memory
    )
    _note_time(context, minion_id, time.process_time() - began)
    for error in result.errors:
        context.log.error("pillar: %s", error, extra={"minion": minion_id})
    if context.options.secret_pillar:
        result = result._replace(data=_with_secret_paths(result.data, context.options.secret_pillar))
    if context.options.pillar_opts:
        result = result._replace(data={**result.data, "master": public_options(context.options)})
    plain = override is None and wanted.on_demand is None and not result.errors
    if keep and plain:
        context.keep_pillar(minion_id, result.data)
    if cached and not result.errors:
        context.cache_pillar(minion_id, environments, result.data)
    return as_data(result)


def _note_time(context: WorkerContext, minion_id: str, seconds: float) -> None:
    """Remember a minion whose pillar used up ``master_render_time_limit``: its next pillar requests are refused for a while.

    ``seconds``: CPU time that the compilation took. So one minion takes at most a tenth of a worker's time.
    """
    most, now = context.options.master_render_time_limit, time.monotonic()
    slow = context.slow_pillars
    slow.pop(minion_id, None)
    if most and seconds >= most:
        slow[minion_id] = now + _REST * seconds
        for name in [name for name, until in slow.items() if until < now] if len(slow) > _MOST_SLOW else ():
            del slow[name]


def _with_secret_paths(pillar: dict[str, object], paths: Sequence[str]) -> dict[str, object]:
    """Return a minion's pillar with the paths of the master's option ``secret_pillar`` added to the pillar's own key
    ``secret_pillar``, so that the minion hides the values at these paths.

    If the value of that key is malformed, the pillar is returned unchanged: the minion logs the error.
    """
    try:
        return {**pillar, SECRET_PILLAR: [*paths, *secret_paths(pillar.get(SECRET_PILLAR))]}
    except ValueError:
        return pillar


def master_tops(context: WorkerContext, minion_id: str, load: Mapping[str, object]) -> dict[str, list[str]]:
    """Return {saltenv: SLS names} that the modules of the option ``master_tops`` assign to the minion."""
    if not context.options.master_tops:
        return {}
    given = _map(load.get("opts")) or {}
    grains = _grains(given.get("grains"), minion_id)
    runtime = _runtime(context, minion_id, grains, {})
    # The id in the request is replaced by the proved id of the session.
    return tops_of(runtime.context, runtime.loader, {**given, "id": minion_id, "grains": grains})


def _runtime(
    context: WorkerContext, minion_id: str, grains: Mapping[str, object], pillar: Mapping[str, object], **opts: object
) -> Runtime:
    """Return the Runtime (state engine) that compiles the pillar of one minion from the master's files."""
    own = as_opts(context.options, id=minion_id, file_client="local", **opts)
    directory = context.options.extension_modules
    return Runtime(
        own, files=context.files, grains=grains, pillar=pillar, extension_dir=Path(directory) if directory else None
    )


def _grains(given: object, minion_id: str) -> dict[str, object]:
    return {**(given if isinstance(given, Mapping) else {}), "id": minion_id}


def _map(value: object) -> Mapping[str, object] | None:
    return value if isinstance(value, Mapping) and value else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
