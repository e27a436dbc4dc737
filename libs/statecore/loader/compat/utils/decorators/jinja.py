"""``salt.utils.decorators.jinja`` for users' modules: decorators that return the function unchanged. In Salt they add
Jinja filters, tests and globals; here they exist for the import alone.
"""

from __future__ import annotations

from collections.abc import Callable


class _Named:
    """Decorator that returns the function unchanged: users' modules cannot add Jinja filters, tests or globals."""

    def __init__(self, name: str | None = None) -> None:
        self.name = name

    def __call__(self, function: Callable[..., object]) -> Callable[..., object]:
        return function


jinja_filter = jinja_test = jinja_global = JinjaFilter = JinjaTest = JinjaGlobal = _Named
