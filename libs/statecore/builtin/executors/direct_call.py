"""Executor direct_call: call the function in the job's process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from statecore.model.context import Context


def execute(
    ctx: Context, data: Mapping[str, Any], func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Call the function and return its result."""
    return func(*args, **kwargs)
