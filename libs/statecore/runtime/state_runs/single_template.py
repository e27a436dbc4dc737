"""A template by itself (``state.template_str``): it is no SLS, so it includes, excludes and extends nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from statecore.model.types import High

#: What stands for its file in errors.
NAME = "<template-str>"

_NOT_HERE = ("include", "exclude", "extend", "extends")


def faults(data: Mapping[Any, Any]) -> list[str]:
    """What is wrong with what it rendered to, in Salt's words; [] when nothing is."""
    for word in _NOT_HERE:
        if word in data:
            return [f"The '{word}' declaration found on '{NAME}' is invalid when rendering single templates"]
    return [fault for name, body in data.items() for fault in _of_id(name, body)]


def _of_id(name: Any, body: Any) -> Iterator[str]:
    if not isinstance(body, Mapping):
        if not isinstance(body, str) or "." not in body:
            yield f"ID {name} in template {NAME} is not a dictionary"
        return
    seen: set[str] = set()
    for key in sorted(map(str, body)):
        module = key.partition(".")[0]
        if body.get(key) is None:
            yield (
                f"ID '{name}' in template {NAME} contains a short declaration ({key}) with a trailing colon."
                " When not passing any arguments to a state, the colon must be omitted."
            )
        elif module in seen:
            yield f"ID '{name}' in template '{NAME}' contains multiple state declarations of the same type"
        seen.add(module)


def high_of(data: Mapping[Any, Any]) -> High:
    """Its high data; short declarations are the compiler's to expand."""
    return {str(name): body if isinstance(body, str) else dict(body) for name, body in data.items()}
