"""Runner ``saltutil``: fetches users' modules of the master from the master's own state tree.

The modules are stored in ``extension_modules`` of the worker that ran the runner. Workers on several machines need
a shared directory, or one call on each machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from saltern.kit.config.master import as_opts
from saltern.kit.trees.served_files import file_server
from saltern.mworker.runners.runner import Runner, RunnerFault, RunnerTools
from statecore.model.errors import CommandError
from statecore.sources.extension_modules import sync

#: Kinds of modules, each in ``salt://_<kind>``, in Salt's order.
KINDS = (
    *("clouds", "modules", "states", "grains", "renderers", "returners", "output", "proxymodules", "runners", "wheel"),
    *("engines", "thorium", "queues", "pillar", "utils", "sdb", "cache", "fileserver", "tops", "tokens", "serializers"),
    *("executors", "roster"),
)

#: Kind -> suffix of its ``sync_`` function, if the name differs from the kind.
_FUNCTIONS = {"tokens": "eauth_tokens"}


def sync_all(
    tools: RunnerTools, saltenv: str = "base", extmod_whitelist: object = None, extmod_blacklist: object = None
) -> dict[str, list[str]]:
    """Fetch users' modules of every kind from the state tree: {kind: modules that are new or changed}."""
    return {kind: _sync(tools, kind, saltenv, extmod_whitelist, extmod_blacklist) for kind in KINDS}


def _of(kind: str) -> Runner:
    def sync_kind(
        tools: RunnerTools, saltenv: str = "base", extmod_whitelist: object = None, extmod_blacklist: object = None
    ) -> list[str]:
        return _sync(tools, kind, saltenv, extmod_whitelist, extmod_blacklist)

    return sync_kind


def _sync(
    tools: RunnerTools, kind: str, saltenv: str | Iterable[str], whitelist: object, blacklist: object
) -> list[str]:
    options = tools.options
    envs = saltenv.split(",") if isinstance(saltenv, str) else list(saltenv)
    files = file_server(options)
    try:
        return sync(files, Path(options.extension_modules), kind, envs, as_opts(options), whitelist, blacklist)
    except CommandError as error:
        raise RunnerFault(str(error)) from error


#: Runner name -> function.
SYNCS: Mapping[str, Runner] = {
    "saltutil.sync_all": sync_all,
    **{f"saltutil.sync_{_FUNCTIONS.get(kind, kind)}": _of(kind) for kind in (*KINDS, "wrapper")},
}
