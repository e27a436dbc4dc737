"""Trees that are wrong somewhere: generated ones with a value of another type, a key too few, an item too many."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import strategies as st

from .conftest import Tree
from .generated import slses, written

Draw = Callable[[st.SearchStrategy[Any]], Any]

#: What stands where something else belongs.
WRONG: tuple[Any, ...] = (
    *(None, True, 0, 5, -1.5, "", "text", "two words", "test.nop", ".", "é", 10**30),
    *([], [[]], [None], [5], ["text"], [{"test": "i0"}], [{"test": ["i0"]}], [{}]),
    *({}, {"test": "i0"}, {"a": {"b": "c"}}, {5: 6}, {None: None}, {"sls": "a", "id": "i0"}),
)

#: Keys in place of others.
KEYS: tuple[Any, ...] = (
    *(None, True, 7, 1.5, "", ".", "test", "test.nop", "test.nop.more", "test.", ".nop", "__x__", "i0", "no such"),
    *(
        "include",
        "extend",
        "exclude",
        "names",
        "name",
        "order",
        "require",
        "watch_in",
        "use",
        "state",
        "fun",
        "__env__",
    ),
)


@st.composite
def trees(draw: Draw) -> Tree:
    """A generated tree with one to three faults."""
    made, opts = draw(slses())
    data: dict[str, Any] = copy.deepcopy({sls: each.data() for sls, each in made.items()})
    for _ in range(draw(st.integers(1, 3))):
        _break(draw, data)
    return written(data, opts)


def _break(draw: Draw, data: dict[str, Any]) -> None:
    places = list(_places(data))
    holder, key = draw(st.sampled_from(places))
    how = draw(st.integers(0, 9))
    if how < 5 or holder is data:
        holder[key] = copy.deepcopy(draw(st.sampled_from(WRONG)))
    elif how < 7 and isinstance(holder, dict):
        renamed = draw(st.sampled_from(KEYS))
        items = [(renamed if each == key else each, value) for each, value in holder.items()]
        holder.clear()
        holder.update(items)
    elif how < 8:
        del holder[key]
    elif isinstance(holder, dict):
        holder[draw(st.sampled_from(KEYS))] = copy.deepcopy(draw(st.sampled_from(WRONG)))
    else:
        holder.insert(key, copy.deepcopy(draw(st.sampled_from(WRONG))))


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    """(container, key or position) of everything inside."""
    items = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in items:
        yield node, key
        if isinstance(value, dict | list):
            yield from _places(value)
