"""Pillar as the master compiles it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from services.kit.config import as_opts
from services.kit.served_files import file_server
from services.mworker.runners.runner import RunnerTools
from statecore.runtime import local_runtime


def show_pillar(tools: RunnerTools, minion: str = "*", **kwargs: Any) -> Mapping[str, Any]:
    """The pillar of a minion, compiled now with the grains that it told last; what cannot be compiled is under ``_errors``.

    saltenv, pillarenv
        environments
    any other name
        a grain of that name

    Without a minion the pillar that all have.
    """
    own = {name: kwargs.pop(name) for name in ("saltenv", "pillarenv") if name in kwargs}
    grains = {**(tools.store.cache.grains(minion) or {"fqdn": minion}), "id": minion, **kwargs}
    opts = as_opts(tools.options, id=minion, file_client="local", **own)
    return dict(local_runtime(opts, files=file_server(tools.options), grains=grains).pillar)
