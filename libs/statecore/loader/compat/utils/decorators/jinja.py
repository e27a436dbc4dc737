"""``salt.utils.decorators.jinja``: functions that a module offers to templates."""

from __future__ import annotations

from collections.abc import Callable


class _Named:
    """A decorator that returns the function unchanged: users' modules cannot add template filters, tests or globals."""

    def __init__(self, name: str | None = None) -> None:
        self.name = name

    def __call__(self, function: Callable[..., object]) -> Callable[..., object]:
        return function


jinja_filter = jinja_test = jinja_global = JinjaFilter = JinjaTest = JinjaGlobal = _Named
