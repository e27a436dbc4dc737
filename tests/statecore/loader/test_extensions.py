"""Salt extensions: packages that a test writes beside their metadata, as pip installs them."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from statecore.loader import extensions
from statecore.model.errors import NotAvailable
from statecore.runtime.runtime import Runtime, local_runtime

_NUMBERS = itertools.count()

#: A package with several kinds of modules; PACKAGE stands for its name.
FILES = {
    "__init__.py": "",
    "modules/__init__.py": "",
    "modules/acmemod.py": """
import salt.exceptions
import PACKAGE.utils.client as client

__virtualname__ = "acme"
__func_alias__ = {"list_": "list"}


def __virtual__():
    return __virtualname__


def list_(name="all"):
    '''The things of that name.'''
    return client.things(name, __grains__["id"])


def fail():
    raise salt.exceptions.CommandExecutionError("no such thing")


def same():
    return client.salt.exceptions is salt.exceptions
""",
    "modules/needy.py": "def __virtual__():\n    return (False, 'the library acme is missing')\ndef f():\n    return 1\n",
    "states/acme_thing.py": """
def present(name, colour="red"):
    there = colour in __salt__["acme.list"](name)
    result = None if __opts__["test"] else True
    return {"name": name, "result": result, "comment": "made", "changes": {} if there else {"new": colour}}
""",
    "grains/acme.py": "def acme():\n    return {'acme': __opts__['id']}\n",
    "utils/__init__.py": "",
    "utils/client.py": """
import salt.exceptions


def things(name, where):
    return [name, where]
""",
    "renderers/shout.py": """
def render(data, saltenv="base", sls="", **kwargs):
    return str(data.read() if hasattr(data, "read") else data).upper()
""",
    "returners/acme_return.py": """
def __virtual__():
    return "acme"


def returner(ret):
    with open(__opts__["acme_file"], "a") as file:
        file.write(ret["fun"])
""",
    "beacons/acme.py": """
def validate(config):
    return True, "valid"


def beacon(config):
    return [{"tag": "thing", "seen": 1}]
""",
    "pillar/acme_pillar.py": "def ext_pillar(minion_id, pillar, *args):\n    return {'acme': [minion_id, *args]}\n",
    "tops/acme.py": "def top(**kwargs):\n    return {'base': ['from_acme']}\n",
    "sdb/acme.py": "def get(key, profile=None):\n    return [key, profile]\n",
}


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """Function that installs a package of these files (path -> text) with an entry point, and returns the package's name."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    before = set(sys.modules)

    def make(files: dict[str, str], name: str = "NAME", value: str = "PACKAGE", extra: str = "") -> str:
        package = f"acme_extension_{next(_NUMBERS)}"
        for path, text in files.items():
            (site / package / path).parent.mkdir(parents=True, exist_ok=True)
            (site / package / path).write_text(text.replace("PACKAGE", package))
        metadata = site / f"{package}-1.2.dist-info"
        metadata.mkdir()
        entry = f"[console_scripts]\nacme = a:b\n\n[salt.loader]\n{name} = {value}{extra}\n\n[other]\nx = y\n"
        (metadata / "entry_points.txt").write_text(entry.replace("PACKAGE", package))
        return package

    yield make
    for each in set(sys.modules) - before:
        if each.startswith("acme_extension_"):
            del sys.modules[each]


def minion(tmp_path: Path, **opts: Any) -> Runtime:
    (tmp_path / "tree").mkdir(exist_ok=True)
    return local_runtime({"id": "web1", "file_roots": {"base": [str(tmp_path / "tree")]}, **opts})


def test_functions_states_and_grains(install: Callable[..., str], tmp_path: Path) -> None:
    install(FILES)
    runtime = minion(tmp_path)
    assert runtime.call("acme.list", ["x"]).value == ["x", "web1"]
    assert runtime.call("acme.fail").value == "ERROR: no such thing"
    assert runtime.call("acme.same").value is True
    assert runtime.call("sys.list_functions", ["acme"]).value == ["acme.fail", "acme.list", "acme.same"]
    assert runtime.call("sys.doc", ["acme.list"]).value == {"acme.list": "The things of that name."}
    assert "acme_thing.present" in runtime.call("sys.list_state_functions").value
    assert runtime.call("grains.get", ["acme"]).value == "web1"
    done = runtime.call("state.single", ["acme_thing.present", "one"]).value
    assert next(iter(done.values()))["changes"] == {"new": "red"}
    tested = runtime.call("state.single", ["acme_thing.present", "one"], {"test": True}).value
    assert next(iter(tested.values()))["result"] is None


def test_what_cannot_be_used_says_why(install: Callable[..., str], tmp_path: Path) -> None:
    install(FILES)
    value = minion(tmp_path).call("needy.f").value
    assert value == (
        "'needy.f' is not available. Reason: 'needy' __virtual__ returned False: the library acme is missing"
    )


def test_renderers_and_returners(install: Callable[..., str], tmp_path: Path) -> None:
    install(FILES)
    runtime = minion(tmp_path, acme_file=str(tmp_path / "returned"))
    (tmp_path / "tree/a.sls").write_text("#!jinja|shout|json\n{% set x = 1 %}{}\n")
    assert runtime.call("slsutil.renderer", ["salt://a.sls"]).value == {}
    served, function = runtime.loader.function("returners", "acme.returner", runtime.context)
    served.bound(function, runtime.context)({"fun": "test.ping"})
    assert (tmp_path / "returned").read_text() == "test.ping"


@pytest.mark.parametrize("kind", ["beacons", "pillar", "tops", "sdb", "utils"])
def test_other_kinds(install: Callable[..., str], tmp_path: Path, kind: str) -> None:
    install(FILES)
    names = [each.stem for each in minion(tmp_path).loader.sources(kind) if each.packaged]
    assert names == sorted(Path(path).stem for path in FILES if path.startswith(f"{kind}/") and "__init__" not in path)


def test_external_pillar_and_tops(install: Callable[..., str], tmp_path: Path) -> None:
    install(FILES)
    runtime = minion(tmp_path, ext_pillar=[{"acme_pillar": ["a", 1]}], master_tops={"acme": {}})
    assert runtime.context.pillar["acme"] == ["web1", "a", 1]
    assert runtime.call("state.show_top").value == {"base": ["from_acme"]}


def test_a_users_file_replaces_that_of_an_extension(install: Callable[..., str], tmp_path: Path) -> None:
    install(FILES)
    (tmp_path / "ext/modules").mkdir(parents=True)
    (tmp_path / "ext/modules/acmemod.py").write_text(
        "def __virtual__():\n    return 'acme'\ndef own():\n    return 'own'\n"
    )
    runtime = minion(tmp_path, extension_modules=str(tmp_path / "ext"))
    assert runtime.call("sys.list_functions", ["acme"]).value == ["acme.own"]


def test_an_extensions_file_replaces_the_built_in_one(install: Callable[..., str], tmp_path: Path) -> None:
    install({"modules/environ.py": "def own():\n    return 'own'\n"})
    assert minion(tmp_path).call("sys.list_functions", ["environ"]).value == ["environ.own"]
    assert minion(tmp_path, disable_modules=["environ"]).call("environ.own").retcode == 1


def test_an_installed_salt_is_not_seen(install: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "site/salt").mkdir()
    (tmp_path / "site/salt/__init__.py").write_text("raise SystemError('this Salt must not be imported')\n")
    install(FILES)
    assert minion(tmp_path).call("acme.same").value is True


def test_functions_that_name_directories(install: Callable[..., str], tmp_path: Path) -> None:
    text = "import pathlib\nHERE = str(pathlib.Path(__file__).parent / 'own')\n"
    new = install(
        {
            "__init__.py": f"{text}def dirs():\n    return {{'modules': [HERE]}}\n",
            "own/byname.py": "def f():\n    return 1\n",
        },
        value="PACKAGE:dirs",
        extra=" [feature]",
    )
    install(
        {"__init__.py": f"{text}def dirs():\n    return [HERE]\n", "own/old.py": "def f():\n    return 2\n"},
        name="module_dirs",
        value="PACKAGE : dirs",
    )
    runtime = minion(tmp_path)
    assert (runtime.call("byname.f").value, runtime.call("old.f").value) == (1, 2)
    assert [each.value for each in extensions.installed() if each.package == new] == [f"{new}:dirs"]
    assert [source.stem for source in runtime.loader.sources("states") if source.packaged] == []


@pytest.mark.parametrize(
    ("files", "value", "says"),
    [
        ({}, "acme_nowhere", "its entry point names the package acme_nowhere, which is not installed"),
        ({"__init__.py": "1/0"}, "PACKAGE:dirs", "ZeroDivisionError"),
        (
            {"__init__.py": "def dirs():\n    return {'modules': '/a'}"},
            "PACKAGE:dirs",
            "must return a list of directories",
        ),
    ],
)
def test_an_extension_that_cannot_be_used_is_logged(
    install: Callable[..., str], tmp_path: Path, caplog: pytest.LogCaptureFixture, files: Any, value: str, says: str
) -> None:
    package = install(files, value=value)
    assert minion(tmp_path).call("test.ping").value is True
    assert f"extension {package} 1.2" in caplog.text
    assert says in caplog.text


def test_a_newly_installed_extension_is_found_after_a_refresh(install: Callable[..., str], tmp_path: Path) -> None:
    runtime = minion(tmp_path)
    with pytest.raises(NotAvailable):
        runtime.loader.function("modules", "acme.list", runtime.context)
    install(FILES)
    runtime.loader.refresh()
    assert runtime.loader.function("modules", "acme.list", runtime.context)[0].name == "acme"


def test_only_files_that_may_have_the_name_are_imported(install: Callable[..., str], tmp_path: Path) -> None:
    package = install(
        {"modules/other.py": "raise SystemError('imported')\nNAME = 'x'\n", "modules/neither.py": "X = {'test': 1}\n"}
    )
    runtime = minion(tmp_path)
    assert runtime.call("test.ping").value is True
    assert not [name for name in sys.modules if name.startswith(package) or name == "saltern_loaded.modules.neither"]
