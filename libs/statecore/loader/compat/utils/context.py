"""``salt.utils.context`` for users' modules: temporary replacement of a function's global names."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import FunctionType


@contextlib.contextmanager
def func_globals_inject(func: FunctionType, **overrides: object) -> Iterator[None]:
    """Context manager that sets global names of a function's module (``name=value``) while its block runs, and restores
    them afterwards.
    """
    # A bound method has no globals of its own.
    function: FunctionType = getattr(func, "__func__", func)
    namespace = function.__globals__
    before = {name: namespace[name] for name in overrides if name in namespace}
    namespace.update(overrides)
    try:
        yield
    finally:
        for name in overrides:
            namespace.pop(name, None)
        namespace.update(before)
