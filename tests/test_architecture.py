"""The walls between packages, rooms and roles, read from the AST: imports in functions and under TYPE_CHECKING count."""

from __future__ import annotations

import ast
import graphlib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from saltern.entry import COMMANDS

ROOT = Path(__file__).parents[1]
LIBRARIES = {name: ROOT / "libs" / name for name in ("statecore", "saltwire", "masterstore")}
PACKAGES = {**LIBRARIES, "saltern": ROOT / "services" / "saltern"}

#: Rooms from the ground up: a room imports itself and rooms before it. The loader finds ``builtin`` by name: nothing imports it.
LAYERS: Mapping[str, tuple[str, ...]] = {
    "statecore": (
        *(
            "model",
            "clients",
            "targeting",
            "host",
            "sources",
            "system",
            "render",
            "compile",
            "pillar",
            "loader",
            "engine",
        ),
        *("runtime", "analysis", "lsp", "builtin"),
    ),
    "saltern.kit": ("config", "command", "trees", "links", "jobs", "keys", "process"),
}

#: Package or role -> the packages of ours that it may import beside itself. A role never imports another role.
ROLES = (
    "eventpublisher",
    "lab",
    "maintenance",
    "moving",
    "mworker",
    "publisher",
    "reactor",
    "reqserver",
    "rotate",
    "storecheck",
)
MAY: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(LIBRARIES, ()),
    "saltern.kit": ("statecore", "saltwire"),
    # Makes the users of Redis from the store's table of keys. Only keygen, rotate, lab and master reach it.
    "saltern.kit.keys.redis_logins": ("saltern.kit", "statecore", "saltwire", "masterstore"),
    **dict.fromkeys(("saltern.cli", "saltern.minion"), ("saltern.kit", "statecore", "saltwire")),
    "saltern.master": ("saltern.kit", "saltern.moving", "statecore", "saltwire"),
    **dict.fromkeys(("saltern.entry", "saltern.start"), ("saltern.kit", "statecore")),
    **{f"saltern.{role}": ("saltern.kit", "statecore", "saltwire", "masterstore") for role in ROLES},
    # No road to Redis: what it remembers, workers remember for it.
    "saltern.api": ("saltern.kit", "statecore", "saltwire"),
    # Its Caller runs the functions of this host's minion.
    "saltern.client": ("saltern.kit", "saltern.minion", "statecore", "saltwire"),
}

#: A package itself -> what its ``__getattr__`` offers.
FRONT: Mapping[str, tuple[str, ...]] = {"saltern": ("saltern.client",)}

#: Package of others -> the rooms that may import it.
REDIS = (
    "masterstore",
    "statecore.builtin.returners.redis_return",
    "statecore.builtin.sdb.redis_sdb",
    "statecore.builtin.ext_pillar.redismod",
)
#: Libraries of the role api alone: workers have none of them.
WEB = {
    **dict.fromkeys(("starlette", "uvicorn", "websockets", "h11"), ("saltern.api",)),
    "httpx": ("saltern.client.api_connection",),
}
DOORS: Mapping[str, tuple[str, ...]] = {
    **WEB,
    # One package owns the parser of YAML, its bounds and the table of dialects.
    "yaml": ("statecore.model.yaml",),
    "_yaml": (),
    # Who asks for a target decides what it may be compared with: authorise knows the sender.
    "saltern.mworker.targets": ("saltern.mworker.authorise",),
    "redis": REDIS,
    "zmq": ("saltwire.zmq", "saltern"),
    "salt": (),
    # The master's own roles but the API are synchronous; a client library is not.
    "asyncio": ("saltern.api", "saltern.client", "saltern.kit.links.master_link", "saltern.kit.jobs.job_runs"),
    # The protocol of editors stays at the edge of the language server.
    **dict.fromkeys(("pygls", "lsprotocol"), ("statecore.lsp.server", "statecore.lsp.convert")),
}

#: Names that say nothing about what is inside; ``salt.utils`` is Salt's own name.
VAGUE = frozenset({"utils", "util", "helpers", "helper", "common", "misc", "base", "manager"})
NAMED_BY_SALT = "statecore.loader.compat.utils"
IMPORT = (ast.Import, ast.ImportFrom)

Tree = Mapping[str, str]  # module -> its source


def below(name: str, room: str) -> bool:
    return name == room or name.startswith(room + ".")


@cache
def real_tree() -> Tree:
    """Map each module of ours to its source; a package goes by its own name."""
    found = {}
    for package, folder in PACKAGES.items():
        for path in folder.rglob("*.py"):
            parts = path.relative_to(folder).with_suffix("").parts
            found[".".join((package, *(part for part in parts if part != "__init__")))] = path.read_text("utf-8")
    return found


@cache
def nodes(text: str) -> list[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Return each import statement of a source, and whether it stands in a function."""
    tree = list(ast.walk(ast.parse(text)))
    functions = [node for node in tree if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    inside = {id(node) for function in functions for node in ast.walk(function) if isinstance(node, IMPORT)}
    return [(node, id(node) in inside) for node in tree if isinstance(node, IMPORT)]


def imports(module: str, tree: Tree) -> Iterator[tuple[str, int, bool]]:
    """Yield (imported module, line, whether in a function); ``from a import b`` is a.b where the tree has that module."""
    for node, inside in nodes(tree[module]):
        assert isinstance(node, ast.Import) or not node.level, f"{module}:{node.lineno}: relative import"
        start = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names:
            whole = start + alias.name
            yield whole if whole in tree or not start else start[:-1], node.lineno, inside


def room_of(module: str, packages: Mapping[str, object]) -> str:
    return next((name for name in sorted(packages, key=len, reverse=True) if below(module, name)), "")


def broken(tree: Tree) -> Iterator[str]:
    """Yield a sentence for every broken wall."""
    for module in tree:
        own = room_of(module, MAY)
        if not own and module != "saltern":
            yield f"{module} has no row in MAY"
        if module.rpartition(".")[2].strip("_") in VAGUE and not below(module, NAMED_BY_SALT):
            yield f"{module}: the name says nothing about what is inside"
        for target, line, inside in imports(module, tree):
            text, ours = f"{module}:{line} imports {target}", target.split(".")[0] in PACKAGES
            if ours and inside:
                yield f"{text} inside a function"
            allowed = (own, *MAY.get(own, ())) if own else FRONT.get(module, ())
            if ours and not any(below(target, name) for name in allowed):
                yield f"{text}: {own} may import {MAY.get(own, ())}"
            for outside, rooms in DOORS.items():
                if below(target, outside) and not any(below(module, room) for room in rooms):
                    yield f"{text}: only {rooms or 'nobody'} may"
            for root, layers in LAYERS.items():
                here, there = (name.removeprefix(root + ".").split(".")[0] for name in (module, target))
                ours_too = below(module, root) and below(target, root) and here in layers and here != there
                if ours_too and (there not in layers[: layers.index(here)] or there == "builtin"):
                    yield f"{text}: {here} lies below {there}"


def test_no_wall_is_broken() -> None:
    assert list(broken(real_tree())) == []


def test_no_ring_of_imports() -> None:
    tree = real_tree()
    graph = {module: {target for target, *_ in imports(module, tree) if target in tree} - {module} for module in tree}
    list(graphlib.TopologicalSorter(graph).static_order())


def test_a_managed_host_has_no_road_to_redis() -> None:
    tree = real_tree()
    reached = [name for name in tree if below(name, "saltern.minion")]
    for module in reached:
        reached += {target for target, *_ in imports(module, tree) if target in tree}.difference(reached)
    assert [name for name in reached if below(name, "masterstore")] == []


@pytest.mark.parametrize(
    ("module", "text", "said"),
    [
        ("statecore.model.x", "from statecore.loader import Loader", "model lies below loader"),
        ("saltern.kit.links.x", "from saltern.kit.process import health", "links lies below process"),
        ("saltern.cli.x", "def f():\n    from saltern.minion import call", "inside a function"),
        ("saltern.minion.x", "if TYPE_CHECKING:\n    import masterstore.store", "saltern.minion may import"),
        ("saltern.publisher.x", "from saltern.mworker import main", "saltern.publisher may import"),
        ("saltern.mworker.x", "import asyncio.events", "only ('saltern.api', "),
        ("saltern.api.x", "from yaml.nodes import Node", "only ('statecore.model.yaml',) may"),
        ("statecore.builtin.modules.x", "def f():\n    import yaml", "only ('statecore.model.yaml',) may"),
        ("saltern.mworker.x", "from saltern.mworker.targets import resolve", "only ('saltern.mworker.authorise',) may"),
        ("statecore.host.x", "import zmq", "only ('saltwire.zmq', 'saltern') may"),
        ("saltern.scheduler.main", "", "no row in MAY"),
        ("saltern.cli.helpers", "", "says nothing"),
    ],
)
def test_a_broken_wall_is_seen(module: str, text: str, said: str) -> None:
    assert [line for line in broken({module: text}) if said in line], f"{text!r} in {module} went unnoticed"


def test_every_command_of_saltern_is_a_module() -> None:
    assert {row.module for row in COMMANDS.values()} <= set(real_tree())
