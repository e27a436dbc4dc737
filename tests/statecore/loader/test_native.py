"""Native modules: the protocol (VIRTUAL, available, ALIASES, OUTPUTTERS), lazily."""

from __future__ import annotations

import os
import subprocess
import sys
import types

import pytest

from statecore.loader import Loader
from statecore.loader.find import _VIRTUAL, ModuleFile
from statecore.loader.loaded_module import Unusable, native_module
from statecore.model.errors import NotAvailable


def module(text):
    made = types.ModuleType("native_example")
    exec(text, made.__dict__)
    return made


def source(tmp_path):
    return ModuleFile("modules", "pkg_apt", tmp_path / "pkg_apt.py", native=True)


def test_the_protocol(tmp_path, shelf):
    served = native_module(
        source(tmp_path),
        module(
            "from os.path import join\n"
            'VIRTUAL = "pkg"\nALIASES = {"list": "list_"}\nOUTPUTTERS = {"install": "nested"}\n'
            "def available(ctx): return None\n"
            "def install(ctx, name, version=None): 'Installs.'\n"
            "def list_(ctx, *names): return names\n"
            "def _hidden(ctx): pass\n"
        ),
        shelf.context(),
    )
    assert served.name == "pkg"
    assert sorted(served.functions) == ["install", "list"]
    assert served.outputters == {"install": "nested"}
    assert list(served.signature("install").parameters) == ["name", "version"]
    assert served.bound("list", shelf.context())("a", "b") == ("a", "b")
    assert served.bound("install", shelf.context()).__doc__ == "Installs."


def test_a_package_serves_the_functions_of_its_parts(tmp_path, shelf):
    part = types.ModuleType("native_part")
    exec("from os.path import join\ndef install(ctx, name): pass\ndef _hidden(ctx): pass\n", part.__dict__)
    whole = module("def purge(ctx, name): pass\n")
    whole.PARTS = (part,)
    served = native_module(source(tmp_path), whole, shelf.context())
    assert sorted(served.functions) == ["install", "purge"]


def test_a_method_that_modules_share_is_a_function(tmp_path, shelf):
    served = native_module(
        source(tmp_path),
        module(
            "class Store:\n"
            "    def get(self, ctx, key): 'Get.'; return key\n"
            "    def helper(self, key): pass\n"
            "get = Store().get\nhelper = Store().helper\n_kept = Store().get\n"
        ),
        shelf.context(),
    )
    assert sorted(served.functions) == ["get"]
    assert list(served.signature("get").parameters) == ["key"]
    assert served.parameters("get").required == ("key",)
    assert served.bound("get", shelf.context())("a") == served.call("get", shelf.context(), {"key": "a"}) == "a"
    assert served.bound("get", shelf.context()).__doc__ == "Get."


def test_unavailable_with_its_reason(tmp_path, shelf):
    with pytest.raises(Unusable, match="no apt here"):
        native_module(source(tmp_path), module("def available(ctx): return 'no apt here'"), shelf.context())


@pytest.mark.parametrize(
    "line", ['VIRTUAL = "pkg"', "VIRTUAL: str = 'pkg'", 'x = 1\nVIRTUAL: Final[str] = "pkg"  # why']
)
def test_virtual_names_are_read_from_the_text(line):
    assert _VIRTUAL.findall(line) == ["pkg"]


def test_functions_are_reached_by_name(shelf):
    ctx = shelf.context()
    assert ctx.call("test.echo", "x") == "x"
    assert ctx.call("test.true") is True
    assert ctx.functions["grains.get"]("os") == "Debian"
    assert "test.ping" in ctx.functions
    assert "test.true_" not in ctx.functions
    assert "test.Any" not in ctx.functions
    assert "grains.traverse" not in ctx.functions


@pytest.mark.parametrize("name", ["no.such", "test.nosuch", "test", "", "test.ping.more"])
def test_what_is_missing(shelf, name):
    ctx = shelf.context()
    with pytest.raises(NotAvailable, match=f"'{name}' is not available"):
        ctx.functions[name]
    assert name not in ctx.functions
    assert ctx.functions.get(name, 7) == 7


def test_the_nearest_name(shelf):
    assert shelf.loader.nearest("modules", "test.pign", shelf.context()) == "test.ping"
    assert shelf.loader.nearest("modules", "quite.different", shelf.context()) == ""


def test_listing(shelf):
    ctx = shelf.context()
    names = shelf.loader.names("modules", ctx)
    assert {"test.ping", "grains.items", "state.apply", "sys.doc"} <= set(names)
    assert names == sorted(names)
    assert "test.nop" in shelf.loader.names("states", ctx)
    assert len(ctx.functions) == len(list(ctx.functions)) == len(names)


@pytest.mark.parametrize("kind", ["modules", "states", "returners"])
def test_the_functions_of_each_module_alone_are_those_of_all(shelf, kind):
    ctx = shelf.context()
    names = shelf.loader.names(kind, ctx)
    modules = {name.partition(".")[0] for name in names}
    assert sorted(name for module in modules for name in shelf.loader.names(kind, ctx, module)) == names
    assert shelf.loader.names(kind, ctx, "nosuch") == []


def test_documentation_and_signatures(shelf):
    ctx = shelf.context()
    assert shelf.loader.doc("modules", "test.ping", ctx).startswith("Return True, which shows that the minion runs")
    assert shelf.loader.doc("modules", "test", ctx).startswith("Functions without side effects")
    assert shelf.loader.doc("states", "file", ctx).startswith("Salt's ``file`` states")
    assert shelf.loader.argspec("modules", "test.fib", ctx) == {
        "args": ["num"],
        "defaults": None,
        "varargs": None,
        "kwargs": None,
    }
    assert shelf.loader.argspec("modules", "test.arg", ctx)["varargs"] is True


def test_nothing_is_imported_before_it_is_asked_for():
    program = (
        "import sys; from statecore.loader import Loader; loader = Loader(); loader.sources('modules');"
        "assert not [name for name in sys.modules if name.startswith('statecore.builtin.modules.')]"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_after_index_a_look_up_lists_no_built_in_directory(monkeypatch):
    """A minion's jobs are processes of one call each: what each of them lists again costs every job."""
    Loader(None).index(("modules",))
    listed: list[str] = []
    ask = os.listdir

    def listdir(path):
        listed.append(str(path))
        return ask(path)

    monkeypatch.setattr(os, "listdir", listdir)
    assert Loader(None).known("modules", "pkg")
    assert listed == []
