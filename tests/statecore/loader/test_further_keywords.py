"""The table of execution functions that ignore keywords, beside the source of these functions; and calls with typos."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import statecore.builtin.modules as builtin
from statecore.loader.further_keywords import FURTHER
from statecore.runtime.calls import Returned
from statecore.runtime.runtime import local_runtime

MODULES = Path(next(iter(builtin.__path__)))

#: Function that reads few keywords, and also takes others as data or has a check of its own.
OWN = {"ethtool.set_offload", "ssh_pki.sign_remote_certificate", "x509.sign_remote_certificate"}


def _reads(function: ast.FunctionDef, kwargs: str) -> set[str] | None:
    """Return the keywords that a function reads from ``**kwargs``; None if it uses the map in another way."""
    parents = {child: node for node in ast.walk(function) for child in ast.iter_child_nodes(node)}
    found: set[str] = set()
    for node in ast.walk(function):
        if not isinstance(node, ast.Name) or node.id != kwargs:
            continue
        match parents[node]:
            case ast.Attribute(attr="get" | "pop") as access:
                call = parents[access]
                assert isinstance(call, ast.Call)
                key: ast.AST = call.args[0]
            case ast.Subscript(slice=key) | ast.Compare(left=key):
                pass
            case _:
                return None
        if not isinstance(key, ast.Constant):
            return None
        found.add(str(key.value))
    return found


def _functions() -> Iterator[tuple[str, str, ast.FunctionDef]]:
    """Yield (file name of the module, public name, function) of each built-in execution function with ``**kwargs``."""
    for path in sorted(MODULES.rglob("*.py")):
        stem = path.relative_to(MODULES).parts[0].removesuffix(".py")
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.args.kwarg and not node.name.startswith("_"):
                yield stem, node.name.removesuffix("_"), node


READ = {
    f"{stem}.{name}": reads
    for stem, name, node in _functions()
    if (reads := _reads(node, node.args.kwarg.arg)) is not None
}  # type: ignore[union-attr]


@pytest.mark.parametrize("name", sorted(READ.keys() - OWN))
def test_a_function_that_ignores_keywords_is_in_the_table(name: str) -> None:
    stem, _, function = name.partition(".")
    assert function in FURTHER.get(stem, {}), f"{name} reads only {sorted(READ[name])} from its **kwargs"
    assert READ[name] <= set(FURTHER[stem][function].split())


def test_the_table_names_functions_that_exist() -> None:
    known = {(stem, name) for stem, name, _ in _functions()}
    assert {(stem, name) for stem, row in FURTHER.items() for name in row} <= known


@pytest.fixture(scope="module")
def call(tmp_path_factory: pytest.TempPathFactory) -> Any:
    ext = tmp_path_factory.mktemp("ext")
    (ext / "modules").mkdir()
    (ext / "modules/own.py").write_text(
        "def any(cwd='', **kwargs):\n    return {k: v for k, v in kwargs.items() if k[:2] != '__'}\n"
        "def few(cwd=''):\n    return cwd\n"
    )
    runtime = local_runtime({"id": "m", "extension_modules": str(ext)}, grains={"id": "m", "os_family": "Debian"})

    def made(fun: str, *args: object, **kwargs: object) -> Returned:
        return runtime.call(fun, args, kwargs)

    return made


REFUSED: Mapping[str, tuple[Any, str]] = {
    "cmd.run": ({"cwdd": "/"}, "'cwdd' is no argument of cmd.run. Did you mean 'cwd'? Nothing was done."),
    "cmd.run_all": (
        {"time_out": 3},
        "'time_out' is no argument of cmd.run_all. Did you mean 'timeout'? Nothing was done.",
    ),
    "cmd.retcode": ({"runass": "x"}, "'runass' is no argument of cmd.retcode. Did you mean 'runas'? Nothing was done."),
    "cp.get_file": (
        {"makedir": True},
        "'makedir' is no argument of cp.get_file. Did you mean 'makedirs'? Nothing was done.",
    ),
    "state.apply": ({"tset": True}, "'tset' is no argument of a state run. Did you mean 'test'? Nothing was applied."),
    "test.ping": ({"a": 1}, "The following keyword arguments are not valid: a=1"),
    "test.echo": (
        {"txet": 1},
        "The following keyword arguments are not valid: txet=1. Did you mean 'text' instead of 'txet'?",
    ),
    "own.few": (
        {"cdw": 1},
        "The following keyword arguments are not valid: cdw=1. Did you mean 'cwd' instead of 'cdw'?",
    ),
}


@pytest.mark.parametrize("fun", REFUSED)
def test_a_misspelt_keyword_is_refused(fun: str, call: Any) -> None:
    keywords, says = REFUSED[fun]
    args = ["true"] if fun.startswith(("cmd.", "test.echo")) else []
    done = call(fun, *args, **keywords)
    assert (done.retcode, done.success) == (1, False)
    assert done.value == f"ERROR executing '{fun}': {says}"


@pytest.mark.parametrize(
    ("fun", "args", "keywords", "value"),
    [
        ("cmd.run", ["echo a"], {"nonsense": 1}, "a"),
        ("cmd.run", ["echo a"], {"__pub_jdi": 1, "cwd": "/"}, "a"),
        ("test.kwarg", [], {"kwrag": 1}, {"kwrag": 1}),
        ("own.any", [], {"cwdd": 1}, {"cwdd": 1}),
        ("grains.item", ["id"], {"other": 2}, {"id": "m"}),
    ],
)
def test_other_keywords_are_taken_as_in_salt(fun: str, args: list[Any], keywords: Any, value: Any, call: Any) -> None:
    assert call(fun, *args, **keywords).value == value


def test_a_template_may_pass_any_keyword(tmp_path: Path) -> None:
    """As in Salt: trees of users do."""
    runtime = local_runtime({"id": "m", "file_roots": {"base": [str(tmp_path)]}}, grains={"id": "m"})
    assert runtime.context.call("cmd.run", "echo a", cwdd="/") == "a"


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("state.aply", " Did you mean 'state.apply'?"),
        ("tset.ping", " Did you mean 'test.ping'?"),
        ("cmd.rnu", " Did you mean 'cmd.run'?"),
        ("own.fiew", " Did you mean 'own.few'?"),
        ("xyzzy.foo", ""),
        ("ping", ""),
        ("test.qqqqqqq", ""),
    ],
)
def test_an_unknown_function_names_the_nearest(wrong: str, hint: str, call: Any) -> None:
    done = call(wrong)
    assert (done.value, done.retcode) == (f"'{wrong}' is not available.{hint}", 1)
