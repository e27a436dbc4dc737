"""Find undefined names in Jinja templates, including branches that were not rendered. Pure: works on the parsed
template.

Rendering reports only problems in the branches that it executes; this module also reads the branches for other systems.
Names that the template tests before use (``is defined``, ``default``, ``in``, ``get``) are not reported.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

import jinja2
from jinja2 import meta, nodes

from statecore.model.nearest import close_matches

#: Filters and tests that accept an undefined value.
_FORGIVING_FILTERS = frozenset({"default", "d"})
_FORGIVING_TESTS = frozenset({"defined", "undefined"})

_MISSING = object()


class Spot(NamedTuple):
    """A problem with one word of a Jinja template, found by ``statecore check``: rule, line, word, message and hint."""

    rule: str
    message: str
    #: Line of the template, from 1.
    line: int
    #: The word itself, to find its column in the line.
    word: str
    hint: str


def undefined_names(tree: nodes.Template, env: jinja2.Environment, known: Collection[str]) -> Iterator[Spot]:
    """Yield a Spot (line, word, message) for each name in a Jinja template that neither the template nor its context
    defines.

    ``known`` are the names in the context.
    """
    assigned = {name.name for name in tree.find_all(nodes.Name) if name.ctx in ("store", "param")}
    missing = meta.find_undeclared_variables(tree) - set(known) - set(env.globals) - assigned
    asked = {name.name for name in _asked_first(tree) if isinstance(name, nodes.Name)}
    reported: set[str] = set()
    for name in tree.find_all(nodes.Name):
        if name.name in missing - asked and name.name not in reported:
            reported.add(name.name)
            near = close_matches(name.name, sorted({*known, *assigned}), n=1)
            hint = f"the nearest is '{near[0]}'" if near else ""
            yield Spot("undefined-name", f"nothing defines '{name.name}'", name.lineno, name.name, hint)


def unknown_functions(
    tree: nodes.Template, exists: Callable[[str], bool], nearest: Callable[[str], str]
) -> Iterator[Spot]:
    """Yield a Spot (line, word, message) for each call ``salt['x.y']`` or ``salt.x.y`` in a Jinja template whose
    execution function does not exist.

    ``exists(name)`` tells whether a function exists; ``nearest(name)`` returns the most similar existing name, or "".
    """
    spared = {id(node) for node in _asked_first(tree)}
    probed = {name for node in tree.find_all(nodes.Compare) for name in _compared(node)}
    reported: set[str] = set()
    for node in tree.find_all((nodes.Getitem, nodes.Getattr)):
        name = _salt_function(node)
        if not name or name in reported or name in probed or id(node) in spared or exists(name):
            continue
        reported.add(name)
        near = nearest(name)
        hint = f"the nearest is '{near}'" if near else ""
        word = name if isinstance(node, nodes.Getitem) else name.partition(".")[2]
        yield Spot("unknown-salt-function", f"there is no function '{name}'", node.lineno, word, hint)


def undefined_pillar_keys(tree: nodes.Template, pillar: Mapping[str, object]) -> Iterator[Spot]:
    """Yield a Spot (line, word, message) for each pillar key that a Jinja template reads without a default and that the
    pillar lacks.
    """
    spared = {id(node) for node in _asked_first(tree)}
    # Code inside a condition may run only on minions that have the key.
    for branch in tree.find_all((nodes.If, nodes.CondExpr, nodes.Macro)):
        spared |= {id(node) for node in _with_below(branch)}
    reported: set[str] = set()
    for node in tree.find_all((nodes.Call, nodes.Getitem, nodes.Getattr)):
        path = _pillar_path(node)
        if path is None or id(node) in spared or _traversed(pillar, path) is not _MISSING:
            continue
        text = ":".join(path)
        if any(text == other or other.startswith(f"{text}:") for other in reported):
            continue
        reported.add(text)
        near = close_matches(path[-1], [str(key) for key in _siblings(pillar, path)], n=1)
        hint = f"the nearest is '{near[0]}'" if near else ""
        yield Spot("undefined-pillar-key", f"the pillar has no '{text}'", node.lineno, path[-1], hint)


def _asked_first(tree: nodes.Node) -> Iterator[nodes.Node]:
    """Yield each node of a parsed template where an undefined value causes no error: tests of presence, conditions,
    values with a default.
    """
    for test in tree.find_all(nodes.Test):
        if test.name in _FORGIVING_TESTS:
            yield from _with_below(test.node)
    for filtered in tree.find_all(nodes.Filter):
        if filtered.name in _FORGIVING_FILTERS and filtered.node is not None:
            yield from _with_below(filtered.node)
    for condition in tree.find_all(nodes.If):
        yield from _with_below(condition.test)
    for choice in tree.find_all(nodes.CondExpr):
        yield from _with_below(choice.test)
    for either in tree.find_all(nodes.Or):
        yield from _with_below(either.left)


def _with_below(node: nodes.Node) -> Iterator[nodes.Node]:
    yield node
    yield from node.find_all(nodes.Node)


def _compared(node: nodes.Compare) -> Iterator[str]:

    if isinstance(node.expr, nodes.Const) and any(operand.op in ("in", "notin") for operand in node.ops):
        yield str(node.expr.value)


def _salt_function(node: nodes.Node) -> str:
    if isinstance(node, nodes.Getitem) and _is_name(node.node, "salt") and isinstance(node.arg, nodes.Const):
        return str(node.arg.value)
    if isinstance(node, nodes.Getattr) and isinstance(node.node, nodes.Getattr) and _is_name(node.node.node, "salt"):
        return f"{node.node.attr}.{node.attr}"
    return ""


def _pillar_path(node: nodes.Node) -> tuple[str, ...] | None:
    """Return the keys that a node of a parsed template reads from the pillar; None if the node is no access to the
    pillar, if a key is not a constant, or if the access has a default.
    """
    if isinstance(node, nodes.Call):
        if len(node.args) == 1 and not node.kwargs and isinstance(node.args[0], nodes.Const):
            if _salt_function(node.node) == "pillar.get":
                return tuple(str(node.args[0].value).split(":"))
            return None
        return None
    keys: list[str] = []
    at: nodes.Node = node
    while isinstance(at, nodes.Getitem | nodes.Getattr):
        if isinstance(at, nodes.Getattr):
            # pillar.items() and pillar.get() are methods of the dict, not pillar keys.
            if hasattr(dict, at.attr):
                return None
            keys.append(at.attr)
        elif isinstance(at.arg, nodes.Const):
            keys.append(str(at.arg.value))
        else:
            return None
        at = at.node
    return tuple(reversed(keys)) if keys and _is_name(at, "pillar") else None


def _is_name(node: nodes.Node, name: str) -> bool:
    return isinstance(node, nodes.Name) and node.name == name


def _traversed(data: object, path: tuple[str, ...]) -> object:
    for key in path:
        if isinstance(data, list):
            return None
        if not isinstance(data, Mapping):
            return _MISSING
        if key in data:
            data = data[key]
        elif key.isdecimal() and int(key) in data:
            data = data[int(key)]
        else:
            return _MISSING
    return data


def _siblings(data: object, path: tuple[str, ...]) -> list[object]:
    above = _traversed(data, path[:-1])
    return list(above) if isinstance(above, Mapping) else []
