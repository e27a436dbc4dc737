"""Finding 38.1: everything that a template can reach is data or a closed callable.

The walk starts at every variable, global and filter of a template's environment, and follows each attribute, item and call
that the environment allows. The table of objects has what users' modules may return by mistake. Both hold for all trees.
"""

from __future__ import annotations

import ast
import functools
import io
import re
import subprocess
import types
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jinja2
import pytest
from jinja2.runtime import Undefined

from statecore.builtin.modules import pillar as pillar_module
from statecore.loader.compat.utils.immutabletypes import ImmutableDict, ImmutableList
from statecore.loader.dunders import ModuleOpts, SaltTable
from statecore.lsp.rendering import PURE, SAFE_RENDERERS
from statecore.model.context import Context
from statecore.model.errors import StatecoreError
from statecore.render import SlsTree
from statecore.render.context import SlsSource
from statecore.render.jinja import closed
from statecore.render.jinja.closed import ClosedEnvironment
from statecore.render.jinja.functions import SaltFunctions
from statecore.render.jinja.sandbox import TreeEnvironment
from statecore.render.path_variables import sls_variables
from statecore.render.renderers import RENDERERS
from statecore.runtime.runtime import Runtime, local_runtime
from statecore.sources.local_tree import LocalFiles

ROOT = Path(__file__).resolve().parents[2]
SECRET = "hunter2-of-the-machine"

#: Renderers that run Python of the tree: whoever writes such a file has the rights of the process. None is run in the editor.
PYTHON = frozenset({"py", "pyobjects", "mako"})
#: Renderers that run templates in a ClosedEnvironment.
TEMPLATES = frozenset({"jinja", "stateconf"})
#: Renderers that read or decrypt data, and run nothing.
DATA = frozenset({"yaml", "yamlex", "json", "toml", "msgpack", "text", "gpg", "nacl"})


def made(tmp_path: Path, **more: Any) -> Runtime:
    (tmp_path / "tree").mkdir(exist_ok=True)
    opts = {
        "id": "web1",
        "file_roots": {"base": [str(tmp_path / "tree")]},
        "pillar_roots": {"base": []},
        "cachedir": str(tmp_path / "cache"),
        **more,
    }
    return local_runtime(opts, grains={"id": "web1", "roles": ["web"]}, pillar={"a": {"b": [1, "x"]}})


# ------------------------------------------------------------------------------------------------------------- the walk

#: Types of reached objects beside those of the table: they have no attributes, and calling them is what the table allows.
_CLOSED_TYPES = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.GeneratorType,
    types.GenericAlias,
    Undefined,
)

#: Names beside ``dir()`` that lead out of objects of Python and of this project.
_NAMES = (
    *(
        "args",
        "func",
        "keywords",
        "functions",
        "host",
        "root",
        "opts",
        "environment",
        "ctx",
        "loader",
        "run",
        "call",
        "bound_to",
    ),
    *(
        "__wrapped__",
        "__globals__",
        "__closure__",
        "__class__",
        "__self__",
        "__func__",
        "__dict__",
        "__init__",
        "__module__",
    ),
    *(
        "_functions",
        "_func",
        "_environment",
        "_context",
        "_TemplateReference__context",
        "_read",
        "gi_frame",
        "f_globals",
    ),
)


def steps(environment: ClosedEnvironment, context: Any, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield (step, object) for each object that a template gets from a value in one step."""
    names = {*dir(type(value)), *getattr(type(value), "__slots__", ()), *_NAMES}
    if type(value) is jinja2.environment.TemplateModule:
        names |= {*vars(value)}
    for name in sorted(names):
        for how, get in (
            ("getattr", environment.getattr),
            ("getitem", environment.getitem),
            ("attr", environment.attribute),
        ):
            found = answered(lambda get=get, name=name: get(value, name))
            if not isinstance(found, Undefined):
                yield f"{how} {name}", found
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | bytearray | type):
        for number, item in enumerate(answered(lambda: list(first(value, 4))) or ()):
            yield f"item {number}", item
            found = answered(lambda item=item: environment.getitem(value, item))
            if not isinstance(found, Undefined):
                yield f"[{number}]", found
    arguments: tuple[tuple[Any, ...], ...] = ((), ("a",), (1,), ("pillar.get",))
    if answered(lambda: environment.is_safe_callable(value)) and not isinstance(value, Undefined):
        for given in arguments:
            yield f"call {given}", answered(lambda given=given: environment.call(context, value, *given))


def first(values: Iterable[Any], count: int) -> Iterator[Any]:
    for _, value in zip(range(count), values, strict=False):
        yield value


def answered(call: Callable[[], Any]) -> Any:
    """Return the result of a call that a template makes, None if it raises an error."""
    try:
        return call()
    except Exception:  # noqa: BLE001 - a function may raise anything
        return None


def is_closed(value: Any) -> bool:
    """Return whether a template may hold an object: data, Jinja's own types, or a callable that shows nothing."""
    kind = type(value)
    if kind in closed._OPEN or kind is closed.TemplateReference or isinstance(value, _CLOSED_TYPES):
        return True
    if isinstance(value, type):
        return value in closed._CLASSES
    is_iterator = isinstance(value, Iterator) and kind.__module__ in ("builtins", "itertools")
    is_view = kind.__module__ in ("collections.abc",) or not closed._DATA.isdisjoint(kind.__mro__)
    return is_iterator or is_view


def walked(environment: ClosedEnvironment, context: Any, starts: Iterable[tuple[str, Any]]) -> tuple[list[str], int]:
    """Return (paths to objects that are no data, number of reached objects)."""
    waiting = deque(starts)
    seen: set[int] = set()
    kept: list[Any] = []
    kinds: dict[tuple[type, Any], int] = {}
    wrong: list[str] = []
    while waiting and len(kept) < 20_000:
        path, value = waiting.popleft()
        if id(value) in seen:
            continue
        seen.add(id(value))
        # An object that is still referred to keeps its id.
        kept.append(value)
        if not is_closed(value) or isinstance(value, Context):
            wrong.append(f"{path}: {type(value)}")
            continue
        # A few objects of each kind are enough.
        key = (type(value), getattr(value, "__qualname__", None))
        kinds[key] = kinds.get(key, 0) + 1
        if kinds[key] <= 3:
            waiting.extend((f"{path} . {step}", found) for step, found in steps(environment, context, value))
    return wrong, len(kept)


MACROS = """{% macro m(a) %}{{ a }}{{ caller is defined }}{% endmacro %}{% set n = namespace(a=1) %}
{% set c = cycler('a', 'b') %}{% set j = joiner() %}{% block b %}x{% endblock %}
{% for x in [1, 2] recursive %}{{ keep(loop) }}{{ keep(loop.cycle) }}{% endfor %}
{{ keep(m) }}{{ keep(n) }}{{ keep(c) }}{{ keep(j) }}{{ keep(self) }}{{ keep(self.b) }}{{ keep(nothing) }}
{{ keep('x'|escape) }}{{ keep([1]|map('upper')) }}{{ keep({}.keys()) }}{{ keep(salt.test) }}{{ keep('{}'.format) }}
{% import 'lib.jinja' as lib %}{{ keep(lib) }}{% from 'lib.jinja' import given with context %}{{ keep(given) }}
{{ keep(salt.keys()) }}{{ keep(salt.items()) }}{{ keep(range(3)) }}{{ keep(1.5) }}{{ keep(none) }}{{ keep(true) }}{{ keep(b) }}
"""


def started(tmp_path: Path, *, untrusted: bool) -> tuple[TreeEnvironment, Any, list[tuple[str, Any]]]:
    """Return (environment, context of a rendering, its variables) of an SLS in a tree whose functions are the pure ones."""
    runtime = made(tmp_path, whitelist_modules=sorted({name.partition(".")[0] for name in PURE} | {"test"}))
    (tmp_path / "tree/lib.jinja").write_text("{% macro given(a) %}{{ a }}{% endmacro %}{% set data = [1] %}")
    (tmp_path / "tree/a.sls").write_text("a: 1\n")
    functions = {
        name: runtime.functions[name] for name in (*sorted(PURE), "test.echo", "test.arg") if name in runtime.functions
    }
    tree = SlsTree(
        LocalFiles({"base": [tmp_path / "tree"]}),
        opts=runtime.opts,
        grains=runtime.grains,
        pillar=runtime.pillar,
        functions=functions,
        extra={"tag": "a/b", "data": {"id": "web1"}},
        untrusted=untrusted,
    )
    kept: list[tuple[str, Any]] = []
    text = MACROS + "{% set stopped = keep_all(show_full_context) %}"

    @jinja2.pass_context
    def keep(context: Any, value: Any) -> str:
        kept.append((f"kept {type(value).__name__}", value))
        contexts.append(context)
        return ""

    contexts: list[Any] = []
    names = {**sls_variables("a.sls", "a", "base", str(tmp_path / "tree/a.sls")), "keep": keep, "keep_all": keep}
    tree.templates.render(text, "jinja", names, saltenv="base", source="salt://a.sls")
    environment = contexts[-1].environment
    variables = {
        name: contexts[-1].resolve(name) for name in contexts[-1].get_all() if name not in ("keep", "keep_all")
    }
    return environment, contexts[-1], [*variables.items(), *kept]


@pytest.mark.parametrize("untrusted", [False, True], ids=["a tree of the minion", "a stranger's tree"])
def test_all_that_a_template_reaches_is_data_or_closed(tmp_path: Path, untrusted: bool) -> None:
    environment, context, starts = started(tmp_path, untrusted=untrusted)
    names = {name for name, _ in starts}
    assert {
        "salt",
        "opts",
        "grains",
        "pillar",
        "data",
        "tag",
        "slspath",
        "dict",
        "lipsum",
        "kept Macro",
        "kept LoopContext",
    } <= names
    wrong, reached = walked(environment, context, starts)
    assert wrong == []
    assert reached > 500


@pytest.mark.parametrize("untrusted", [False, True], ids=["a tree of the minion", "a stranger's tree"])
def test_all_that_a_filter_returns_is_data_or_closed(tmp_path: Path, untrusted: bool) -> None:
    environment, context, starts = started(tmp_path, untrusted=untrusted)
    values = [value for _, value in starts if not isinstance(value, Undefined)]
    values += [
        "a",
        "1",
        {"a": 1},
        [1, 2],
        ["a"],
        [{"key": "a", "value": 1}],
        {"args": 1},
        datetime.now(UTC),
        [environment.globals["salt"]],
    ]
    given = (
        (),
        ("args",),
        (1,),
        ("a", 1),
        ([1],),
        ("_functions",),
        ({"a": 1},),
        ("format", environment.globals["lipsum"]),
    )
    results = []
    # These take their time, or leave the machine.
    for name in sorted(environment.filters.keys() - {"dns_check", "http_query", "random_sample"}):
        for value in values:
            for arguments in given:
                found = answered(
                    lambda name=name, value=value, arguments=arguments: environment.call_filter(
                        name, value, arguments, context=context
                    )
                )
                results.append((f"{name}{arguments}", found))
                if isinstance(found, Iterator):
                    results += [
                        (f"{name}{arguments} item", item)
                        for item in answered(lambda found=found: list(first(found, 3))) or ()
                    ]
    assert [f"{path}: {type(value)}" for path, value in results if not is_closed(value)] == []
    assert len(results) > 5000


def test_a_function_shows_nothing(tmp_path: Path) -> None:
    """Neither the environment nor Python's own look at its public attributes leads from a function to its Context."""
    environment, _, _ = started(tmp_path, untrusted=False)
    table = environment.globals["salt"]
    assert isinstance(table, SaltFunctions)
    for name in table:
        function = table[name]
        assert [each for each in dir(function) if not each.startswith("_")] == []
        assert vars(function) == {}
        assert function.__doc__ is None or isinstance(function.__doc__, str)
    assert table["pillar.get"].__doc__ == pillar_module.get.__doc__


# ----------------------------------------------------------------------------------------- objects that a function returns

Point = namedtuple("Point", ("x", "y"))


class _Thing:
    """An object of a user's module."""

    secret = SECRET

    def run(self) -> str:
        return SECRET

    def __getitem__(self, key: object) -> str:
        return SECRET

    def __call__(self) -> str:
        return SECRET


class _Getting:
    """An object of a user's module with a method of maps."""

    def get(self, key: str) -> str:
        return SECRET


class _Dict(dict[str, object]):
    """A map of a user's module with a method of its own."""

    secret = SECRET

    def run(self) -> str:
        return SECRET

    def get(self, key: str, default: object = None) -> object:
        return SECRET


class _Text(str):
    """A text of a user's module with a method of its own."""

    __slots__ = ()

    def run(self) -> str:
        return SECRET


#: Object -> (what a user's function returns, template that looks into ``thing``).
OBJECTS: Mapping[str, tuple[Callable[[Path, Context], Any], str]] = {
    "a path": (lambda path, ctx: path, "{{ thing.read_text() }}"),
    "a path's parent": (lambda path, ctx: path, "{{ thing.parent.joinpath('secret').read_text() }}"),
    "an open file": (lambda path, ctx: path.open(), "{{ thing.read() }}"),
    "an open file's lines": (lambda path, ctx: path.open(), "{{ thing.readlines() }}"),
    "a buffer": (lambda path, ctx: io.StringIO(SECRET), "{{ thing.getvalue() }}"),
    "a module": (lambda path, ctx: subprocess, "{{ thing.getoutput('echo ' ~ word) }}"),
    "a module's item": (lambda path, ctx: subprocess, "{{ thing['getoutput']('echo ' ~ word) }}"),
    "a class": (lambda path, ctx: subprocess.Popen, "{{ thing(['echo', word], stdout=-1).communicate() }}"),
    "a class that is called": (lambda path, ctx: _Thing, "{{ thing().run() }}"),
    "a class's attribute": (lambda path, ctx: _Thing, "{{ thing.secret }}"),
    "an object's attribute": (lambda path, ctx: _Thing(), "{{ thing.secret }}"),
    "an object's method": (lambda path, ctx: _Thing(), "{{ thing.run() }}"),
    "an object's item": (lambda path, ctx: _Thing(), "{{ thing['a'] }}"),
    "an object that is called": (lambda path, ctx: _Thing(), "{{ thing() }}"),
    "an object's attribute, by attr": (lambda path, ctx: _Thing(), "{{ thing|attr('secret') }}"),
    "an object's attribute, by map": (lambda path, ctx: _Thing(), "{{ [thing]|map(attribute='secret')|list }}"),
    "an object's attribute, by join": (lambda path, ctx: _Thing(), "{{ [thing]|join('', attribute='secret') }}"),
    "an object's attribute, by groupby": (
        lambda path, ctx: _Thing(),
        "{{ [thing]|groupby('secret')|map('first')|list }}",
    ),
    "an object's attribute, by format": (lambda path, ctx: _Thing(), "{{ '{0.secret}'.format(thing) }}"),
    "an object's item, by format": (lambda path, ctx: _Thing(), "{{ '{0[a]}'.format(thing) }}"),
    "an object's method, by method_call": (lambda path, ctx: _Thing(), "{{ thing|method_call('run') }}"),
    "an object's method, by map": (lambda path, ctx: _Thing(), "{{ [thing]|map('method_call', 'run')|list }}"),
    "an object in a list": (lambda path, ctx: [_Thing()], "{{ thing[0].run() }}"),
    "an object in a map": (lambda path, ctx: {"a": _Thing()}, "{{ thing.a.run() }}"),
    "a map's own method": (lambda path, ctx: _Dict(), "{{ thing.run() }}"),
    "a map's own attribute": (lambda path, ctx: _Dict(), "{{ thing.secret }}"),
    "a map's overridden method": (lambda path, ctx: _Dict(), "{{ thing.get('a') }}"),
    "a text's own method": (lambda path, ctx: _Text("a"), "{{ thing.run() }}"),
    "a partial's arguments": (lambda path, ctx: functools.partial(print, SECRET), "{{ thing.args }}"),
    "a partial's keywords": (lambda path, ctx: functools.partial(print, end=SECRET), "{{ thing.keywords }}"),
    "a partial that is called": (lambda path, ctx: functools.partial(str, SECRET), "{{ thing() }}"),
    "a pattern's match": (lambda path, ctx: re.match(".*", SECRET), "{{ thing.string }}"),
    "the Context": (lambda path, ctx: ctx, "{{ thing.functions['test.echo'](word) }}"),
    "__salt__": (lambda path, ctx: SaltTable(ctx.functions), "{{ thing['test.echo'](word) }}"),
    "__salt__, by attributes": (lambda path, ctx: SaltTable(ctx.functions), "{{ thing.test.echo(word) }}"),
    "__salt__, by dict": (lambda path, ctx: SaltTable(ctx.functions), "{{ dict(thing)['test.echo'](word) }}"),
    "__salt__, by odict": (lambda path, ctx: SaltTable(ctx.functions), "{{ odict(thing)['test.echo'](word) }}"),
    "__salt__, by update": (
        lambda path, ctx: SaltTable(ctx.functions),
        "{% set d = {} %}{% do d.update(thing) %}{{ d['test.echo'](word) }}",
    ),
    "__salt__, by items": (
        lambda path, ctx: SaltTable(ctx.functions),
        "{% for name, f in thing|items if name == 'test.echo' %}{{ f(word) }}{% endfor %}",
    ),
    "__salt__, by dictsort": (
        lambda path, ctx: SaltTable(ctx.functions),
        "{% for name, f in thing|dictsort if name == 'test.echo' %}{{ f(word) }}{% endfor %}",
    ),
    "__salt__, by to_entries": (
        lambda path, ctx: SaltTable(ctx.functions),
        "{% for each in thing|to_entries if each.key == 'test.echo' %}{{ each.value(word) }}{% endfor %}",
    ),
    "__salt__, by json_query": (
        lambda path, ctx: SaltTable(ctx.functions),
        "{{ (thing|json_query('\"test.echo\"'))(word) }}",
    ),
    "__salt__, by traverse": (
        lambda path, ctx: SaltTable(ctx.functions),
        "{{ (thing|traverse('test.echo'))(word) }}",
    ),
    "__salt__, in a list": (
        lambda path, ctx: [SaltTable(ctx.functions)],
        "{{ dict(thing[0])['test.echo'](word) }}",
    ),
    "__salt__, in a map": (
        lambda path, ctx: {"a": (SaltTable(ctx.functions),)},
        "{{ (thing.a[0]|traverse('test.echo'))(word) }}",
    ),
    "an object's method get, by json_query": (lambda path, ctx: _Getting(), "{{ thing|json_query('a') }}"),
    "the tables": (lambda path, ctx: ctx.tables, "{{ dict(thing) }}{{ (thing|traverse('modules:test.echo'))(word) }}"),
    "__opts__": (lambda path, ctx: ModuleOpts(ctx), "{{ thing.ctx.functions['test.echo'](word) }}"),
    "__utils__": (lambda path, ctx: ctx.functions, "{{ thing['test.echo'](word) }}"),
    "the host": (lambda path, ctx: ctx.host, "{{ thing.run(['echo', word]) }}"),
    "an error": (lambda path, ctx: OSError(SECRET), "{{ thing.args }}"),
}


def shown(tmp_path: Path, value: Callable[[Path, Context], Any], template: str) -> str:
    """Return what a template renders to, whose variable ``thing`` is what a user's function returned; "" if it failed."""
    (tmp_path / "secret").write_text(SECRET)
    ctx = made(tmp_path).context
    tree = SlsTree(
        LocalFiles({"base": [tmp_path]}),
        opts=ctx.opts,
        grains={},
        pillar={},
        functions={"own.thing": lambda: value(tmp_path / "secret", ctx)},
    )
    text = "{% set word = 'hunter2-' ~ 'of-the-machine' %}{% set thing = salt['own.thing']() %}" + template
    try:
        return tree.templates.render(text, "jinja", {}, saltenv="base")
    except StatecoreError:
        return ""


@pytest.mark.parametrize("attack", OBJECTS)
def test_an_object_that_a_function_returns_shows_nothing(tmp_path: Path, attack: str) -> None:
    assert SECRET not in shown(tmp_path, *OBJECTS[attack])


#: Data of users' functions -> (what the function returns, template, its text).
DATA_OF_FUNCTIONS: Mapping[str, tuple[Any, str, str]] = {
    "a namedtuple": (Point(1, 2), "{{ thing.x }} {{ thing[1] }} {{ thing.count(1) }}", "1 2 1"),
    "an ordered map": (OrderedDict(a=1), "{{ thing.a }} {{ thing['a'] }} {{ thing.keys()|list }}", "1 1 ['a']"),
    "a map of its own class": (_Dict(a=1), "{{ thing['a'] }} {{ thing.a }} {{ thing.items()|list }}", "1 1 [('a', 1)]"),
    "a text of its own class": (_Text("a"), "{{ thing.upper() }} {{ thing[0] }}", "A a"),
    "an immutable map": (ImmutableDict({"a": [1]}), "{{ thing.a }} {{ thing.items()|list }}", "[1] [('a', [1])]"),
    "an immutable list": (ImmutableList([1, 2]), "{{ thing[0] }} {{ thing|last }} {{ thing is iterable }}", "1 2 True"),
    "a map with a default": (defaultdict(int, a=1), "{{ thing.a }} {{ thing['b'] }}", "1 0"),
    "a counter": (Counter("aab"), "{{ thing.a }} {{ thing['b'] }} {{ thing['c'] }}", "2 1 0"),
    "a date": (datetime(2026, 11, 29, tzinfo=UTC), "{{ thing.year }} {{ thing.isoformat() }}", "2026 2026-11-29T00:00:00+00:00"),
    "bytes": (b"ab", "{{ thing.decode() }} {{ thing[0] }}", "ab 97"),
    "a set": ({1}, "{{ thing.union([2])|sort }}", "[1, 2]"),
    "nothing": (None, "{{ thing.a is defined }}", "False"),
    "nested": ({"a": [{"b": (1, 2)}]}, "{{ thing.a[0].b[1] }} {{ thing|traverse('a:0:b') }}", "2 (1, 2)"),
}  # fmt: skip


@pytest.mark.ordinary
@pytest.mark.parametrize(
    "template", ["{{ nothing.a.b }}", "{{ nothing['a'].b }}", "{{ nothing[0][1] }}", "{{ nothing._a }}"]
)
def test_an_undefined_value_that_chains_still_does(template: str) -> None:
    assert ClosedEnvironment(undefined=jinja2.ChainableUndefined).from_string(template).render() == ""


@pytest.mark.ordinary
@pytest.mark.parametrize("case", DATA_OF_FUNCTIONS)
def test_data_that_a_function_returns_is_read_as_before(tmp_path: Path, case: str) -> None:
    value, template, text = DATA_OF_FUNCTIONS[case]
    assert shown(tmp_path, lambda path, ctx: value, template) == text


# ---------------------------------------------------------------------------------------------------------- the whole tree


def test_each_renderer_is_sandboxed_or_python_by_design() -> None:
    """A renderer that runs Python of the tree is for trusted trees only; the editor runs none."""
    assert sorted(PYTHON | TEMPLATES | DATA) == sorted(RENDERERS)
    assert not SAFE_RENDERERS & PYTHON


def _sources(*folders: str) -> Iterator[tuple[str, ast.Module]]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text("utf-8"))


def test_one_module_makes_environments_of_templates() -> None:
    """Another environment of Jinja would let its templates read and call everything."""
    others = []
    for file, tree in _sources("libs", "services"):
        for node in ast.walk(tree):
            sandbox = isinstance(node, ast.ImportFrom) and str(node.module).startswith("jinja2.sandbox")
            called = isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in (
                *("Environment", "NativeEnvironment", "SandboxedEnvironment", "ImmutableSandboxedEnvironment"),
                *(("Template",) if "jinja2" in ast.unparse(node.func) else ()),
            )
            base = isinstance(node, ast.ClassDef) and any("Environment" in ast.unparse(each) for each in node.bases)
            if sandbox or called or base:
                others.append(file)
    assert sorted(set(others)) == ["libs/statecore/render/jinja/closed.py", "libs/statecore/render/jinja/sandbox.py"]


def test_no_filter_reads_attributes_or_variables_of_templates_itself() -> None:
    """A filter with Python's ``getattr``, or with the template's variables as limits, goes round the environment."""
    found = []
    for file, tree in _sources("libs/statecore/render/filters"):
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            # The names of ``_KINDS`` are a table.
            if called in ("getattr", "setattr", "eval", "exec", "operator.attrgetter", "operator.methodcaller"):
                found += [] if "_KINDS[" in ast.unparse(node) else [f"{file}:{node.lineno}: {called}"]
            if called.rpartition(".")[2] in ("resolve", "resolve_or_missing", "get_all", "get_exported"):
                found.append(f"{file}:{node.lineno}: {called}")
    assert found == []


def test_no_function_is_bound_by_a_partial_in_the_loader() -> None:
    """A partial shows its arguments, and so the Context, as ``args``."""
    found = [
        f"{file}:{node.lineno}"
        for file, tree in _sources("libs/statecore/loader", "libs/statecore/render")
        if "/compat/" not in file
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in ("partial", "partialmethod")
    ]
    assert found == []


def test_the_source_of_an_sls_is_no_variable() -> None:
    """``SlsSource`` and the trees are engine's objects: no template gets them."""
    assert not closed._OPEN & {SlsSource, SlsTree, Context, LocalFiles}
