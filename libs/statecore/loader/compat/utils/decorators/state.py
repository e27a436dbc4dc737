"""``salt.utils.decorators.state`` for users' state modules: checks and unifies the return of a state function."""

from __future__ import annotations

import functools
from collections.abc import Callable

from statecore.model.errors import CommandError


class OutputUnifier:
    """Decorator of a state function that checks and unifies its return. ``policies`` are "content_check" and "unify".

    "content_check" raises CommandError unless the return is a dict with name, changes, result and comment. "unify"
    joins a comment that is a list to text and makes the result a bool. The engine handles failed sub-states in
    ``changes``.
    """

    def __init__(self, *policies: str) -> None:
        self.policies = policies

    def __call__(self, function: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(function)
        def call(*args: object, **kwargs: object) -> object:
            found = function(*args, **kwargs)
            if "content_check" in self.policies:
                _check(found)
            if "unify" in self.policies and isinstance(found, dict):
                comment = found.get("comment")
                if isinstance(comment, list | tuple):
                    found["comment"] = "\n".join(str(line) for line in comment)
                if found.get("result") is not None:
                    found["result"] = bool(found.get("result"))
            return found

        return call


def _check(found: object) -> None:
    if not isinstance(found, dict):
        raise CommandError("Malformed state return. Data must be a dictionary type.")
    if not isinstance(found.get("changes"), dict):
        raise CommandError("'Changes' should be a dictionary.")
    missing = [key for key in ("name", "result", "changes", "comment") if key not in found]
    if missing:
        raise CommandError(f"The following keys were not present in the state return: {', '.join(missing)}.")
