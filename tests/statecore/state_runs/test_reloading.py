"""What a state brought is there for the states after it: modules, libraries, grains; and why something is not there."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from statecore.runtime import Runtime, local_runtime

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
