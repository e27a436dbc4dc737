"""Jinja filters that read an attribute of a value, or call a function that the template gives: both through the
template's environment, which decides what a template may read and call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jinja2
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context

from statecore.render.jinja.closed import ClosedEnvironment


@jinja2.pass_context
def method_call(context: Context, obj: object, f_name: str, *f_args: object, **f_kwargs: object) -> object:
    """Jinja filter: call a public method of a value and return the result; None if the value has no such method.

    Raise SecurityError for a name that begins with ``_``, and for values that are no data.
    """
    if f_name.startswith("_"):
        raise SecurityError(f"'{f_name}' is not a public method")
    environment = _environment(context)
    found = environment.method(obj, f_name)
    return None if found is None else environment.call(context, found, *f_args, **f_kwargs)


@jinja2.pass_context
def smallest(context: Context, *values: Any, **options: Any) -> object:
    """Jinja filter ``min``: return the smallest value of a list, or of several values, as Python's ``min`` does."""
    return min(*values, **_called(context, options))


@jinja2.pass_context
def largest(context: Context, *values: Any, **options: Any) -> object:
    """Jinja filter ``max``: return the largest value of a list, or of several values, as Python's ``max`` does."""
    return max(*values, **_called(context, options))


def _called(context: Context, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of ``min`` and ``max`` with a function ``key`` that is called through the environment."""
    key: Callable[..., Any] | None = options.get("key")
    if key is None:
        return options
    return {**options, "key": lambda value: _environment(context).call(context, key, value)}


def _environment(context: Context) -> ClosedEnvironment:
    environment = context.environment
    if not isinstance(environment, ClosedEnvironment):
        raise SecurityError("this filter calls functions in an environment of templates only")
    return environment
