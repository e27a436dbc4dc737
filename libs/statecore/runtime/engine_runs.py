"""Runs one engine: the function ``start`` of a built-in or user's module of the kind ``engines``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from statecore.runtime.runtime import Runtime


def run_engine(runtime: Runtime, name: str, module: str, arguments: Mapping[str, object]) -> None:
    """Call ``start`` of the engine's module with the arguments of the option ``engines``. Return when ``start`` returns.

    ``name``: the engine's name, which the module finds as ``__engine_name__``. Raises NotAvailable if there is no such
    module, and whatever ``start`` raises.
    """
    ctx = runtime.context
    ctx = replace(ctx, opts={**ctx.opts, "__engine_name__": name})
    served, function = runtime.loader.function("engines", f"{module}.start", ctx)
    served.bound(function, ctx)(**arguments)
