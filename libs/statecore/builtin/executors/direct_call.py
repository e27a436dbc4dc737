"""Executor direct_call: call the function in the job's process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from statecore.model.context import Context


def execute(
    ctx: Context,
    data: Mapping[str, object],
    func: Callable[..., object],
    args: Sequence[object],
    kwargs: Mapping[str, object],
) -> object:
    """Call the execution function ``func`` of the job in this process, and return its result. Its exceptions are passed
    on.
    """
    return func(*args, **kwargs)
