"""``salt.utils.decorators.state``: what a state function returns, made regular."""

from __future__ import annotations

import functools
from collections.abc import Callable

from statecore.model.errors import CommandError


class OutputUnifier:
    """``@state_output_check`` and its kin: policies for what a state function returns.

    ``content_check``: the return must be a dict with name, changes, result and comment. ``unify``: a comment that is a list
    becomes text; ``result: False`` where a sub-state of ``changes`` failed is left to the engine.
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
