"""What a state brought is there for the states after it: modules, libraries, grains; and why something is not there."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from statecore.runtime.runtime import Runtime, local_runtime

#: A module that can only be used once a library is there, as many of a fleet's are.
NEEDING = """
try:
    import reloading_library
    HAS_LIBRARY = True
except ImportError:
    HAS_LIBRARY = False


def __virtual__():
    return (True if HAS_LIBRARY else (False, "reloading_library is not installed"))


def version():
    return reloading_library.VERSION
"""

STATE = """
import sys


def installed(name, library=None):
    with open(library, "w") as file:
        file.write("VERSION = 'it came'")
    return {"name": name, "result": True, "changes": {name: "installed"}, "comment": ""}
"""

USING = """
def version(name):
    return {"name": name, "result": True, "changes": {}, "comment": __salt__["needing.version"]()}
"""


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runtime:
    """A minion with a state ``pip`` of its own, which brings the library."""
    library = tmp_path / "library"
    library.mkdir()
    monkeypatch.syspath_prepend(str(library))
    monkeypatch.delitem(sys.modules, "reloading_library", raising=False)
    tree = tmp_path / "tree"
    for name, text in (
        ("_modules/needing", NEEDING),
        ("_states/pip", STATE),
        ("_states/bringing", STATE),
        ("_states/using", USING),
    ):
        (tree / f"{name}.py").parent.mkdir(parents=True, exist_ok=True)
        (tree / f"{name}.py").write_text(text)
    made = local_runtime(
        {"id": "web1", "file_roots": {"base": [str(tree)]}, "cachedir": str(tmp_path / "cache"), "pillar_roots": {}}
    )
    made.call("saltutil.sync_all")
    return made


def _run(runtime: Runtime, state: str, library: Path, **more: Any) -> list[tuple[Any, str]]:
    high = {
        "bring": {
            state: ["installed", {"library": str(library / "reloading_library.py")}, *({k: v} for k, v in more.items())]
        },
        "use": {"using": ["version", {"require": [{state: "bring"}]}]},
    }
    entries = runtime.functions["state.high"](high)
    return [(entry["result"], entry["comment"]) for entry in entries.values()]


def test_a_library_that_pip_brought(runtime: Runtime, tmp_path: Path) -> None:
    assert runtime.call("needing.version").value == (
        "'needing.version' is not available. Reason: 'needing' __virtual__ returned False: reloading_library is not installed"
    )
    assert _run(runtime, "pip", tmp_path / "library") == [(True, ""), (True, "it came")]


def test_a_library_that_another_state_brought(runtime: Runtime, tmp_path: Path) -> None:
    """It is looked for where the state says so; else the module stays as it was, and the reason is told."""
    assert runtime.call("needing.version").success is False
    (_, (result, comment)) = _run(runtime, "bringing", tmp_path / "library")
    assert (result, "reloading_library is not installed" in comment) == (False, True)
    assert _run(runtime, "bringing", tmp_path / "library", reload_modules=True)[1] == (True, "it came")


@pytest.mark.parametrize(
    ("fun", "args"),
    [
        ("needing.version", []),
        ("module.run", [{"name": "needing.version"}]),
        ("state.template_str", ["{{ salt['needing.version']() }}"]),
        ("state.single", ["using.version", "x"]),
        ("slsutil.renderer", []),
    ],
)
def test_the_reason_is_told_wherever_it_is_asked_for(runtime: Runtime, fun: str, args: list[Any]) -> None:
    if fun == "module.run":
        told = str(runtime.functions["state.single"]("module.run", "needing.version"))
    elif fun == "slsutil.renderer":
        told = str(runtime.call(fun, [], {"string": "{{ salt['needing.version']() }}"}).value)
    else:
        told = str(runtime.call(fun, args).value)
    assert "needing.version' is not available" in told
    assert "reloading_library is not installed" in told


def _told(name: str) -> str:
    """A state that tells what a function gives when its turn comes."""
    arguments = f"[{{changes: false}}, {{result: true}}, {{comment: '__slot__:salt:{name}'}}]"
    return f"tell {name}:\n  test.configurable_test_state: {arguments}\n"


@pytest.fixture
def telling(tmp_path: Path) -> Runtime:
    """A minion whose states write what they reload: pillar, grains; the same run renders a file with them."""
    tree, pillar = tmp_path / "tree", tmp_path / "pillar"
    for directory in (tree, pillar):
        directory.mkdir()
    (pillar / "top.sls").write_text("base:\n  '*': [p]\n")
    (pillar / "p.sls").write_text("k: old\n")
    (tree / "f.j2").write_text("{{ pillar.k }} {{ pillar.given }} {{ salt['pillar.get']('k') }}")
    (tree / "g.j2").write_text("{{ grains.get('mine') }} {{ salt['grains.get']('mine') }}")
    (tree / "pillar.sls").write_text(
        f"{pillar}/p.sls:\n  file.managed:\n"
        "    - contents: '{k: new, given: of the tree}'\n    - reload_pillar: {{ reload }}\n"
        f"{_told('pillar.get(k)')}{_told('pillar.get(given)')}"
        f"{tmp_path}/f:\n  file.managed: [{{source: salt://f.j2}}, {{template: jinja}}]\n"
    )
    (tree / "grains.sls").write_text(
        "mine:\n  grains.present: [{value: here}, {reload_grains: {{ reload }}}]\n"
        f"{_told('grains.get(mine)')}"
        f"{tmp_path}/g:\n  file.managed: [{{source: salt://g.j2}}, {{template: jinja}}]\n"
    )
    opts = {"file_roots": {"base": [str(tree)]}, "pillar_roots": {"base": [str(pillar)]}}
    return local_runtime(
        {"id": "web1", "cachedir": str(tmp_path / "cache"), "conf_file": str(tmp_path / "minion"), **opts}
    )


@pytest.mark.parametrize(("reload", "wanted"), [(True, ["new", "here"]), (False, ["old", "here"])])
def test_pillar_is_read_anew(telling: Runtime, tmp_path: Path, reload: bool, wanted: list[str]) -> None:
    """With what the command line gave: it is above the tree's as before."""
    sls = tmp_path / "tree/pillar.sls"
    sls.write_text(sls.read_text().replace("{{ reload }}", str(reload)))
    ran = telling.call("state.apply", ["pillar"], {"pillar": {"given": "here"}}).value
    assert [entry["comment"] for entry in ran.values() if entry["__id__"].startswith("tell")] == wanted
    assert (tmp_path / "f").read_text() == f"{wanted[0]} here {wanted[0]}"


@pytest.mark.parametrize("reload", [True, False])
def test_grains_that_a_state_set(telling: Runtime, tmp_path: Path, reload: bool) -> None:
    """Functions, and files that are rendered, see them at once, as under Salt; reload_grains reads all of them anew."""
    sls = tmp_path / "tree/grains.sls"
    sls.write_text(sls.read_text().replace("{{ reload }}", str(reload)))
    ran = telling.call("state.apply", ["grains"]).value
    assert all(entry["result"] for entry in ran.values()), ran
    (told,) = [entry["comment"] for entry in ran.values() if entry["__id__"].startswith("tell")]
    assert (told, (tmp_path / "g").read_text()) == ("here", "here here")
