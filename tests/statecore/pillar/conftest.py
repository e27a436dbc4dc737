"""Pillars as data, compiled by both: real Salt in one process for all of them, ours in this one.

A case (``cases/*.yaml``) has these keys; in all texts and options ``DIR`` is the directory of the case:

``pillar``, ``states``
    environment -> path -> text, of the pillar trees and of the state trees. A base pillar with no ``top.sls`` gives
    every minion ``a``.
``files``
    path -> text of what lies beside them; a text that begins with ``#!/`` is a program
``opts``, ``saltenv``, ``pillarenv``, ``override``
    options of the minion, and what the compilation is asked with
``tops``
    true: not the pillar is compared but what a highstate would apply
``calls``
    not the pillar is compared but what functions give: [name, arguments, keywords]
``differs``
    why ours is another on purpose; what ours is then stands in ``ours``, and that it is another is tested too
``ours``
    what ours gives; errors are under ``_errors``
"""

from __future__ import annotations

import itertools
import json
import select
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from statecore.model.errors import StatecoreError
from statecore.runtime.runtime import local_runtime
from tests import case_files

GRAINS: Mapping[str, Any] = {
    "id": "web1",
    "os": "Debian",
    "os_family": "Debian",
    "osmajorrelease": 12,
    "roles": ["web", "db"],
    "ipv4": ["127.0.0.1", "192.0.2.7"],
    "nested": {"key": "value"},
}

_HERE = Path(__file__).parent

_TOP = "base:\n  '*':\n    - a\n"


@dataclass(frozen=True, slots=True)
class Case:
    """One case of a cases file."""

    id: str
    pillar: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    states: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    opts: Mapping[str, Any] = field(default_factory=dict)
    saltenv: str | None = None
    pillarenv: str | None = None
    override: Mapping[str, Any] | None = None
    tops: bool = False
    calls: Sequence[tuple[str, list[Any], dict[str, Any]]] = ()
    differs: str = ""
    ours: Any = None

    def write(self, directory: Path) -> dict[str, Any]:
        """Write the case's files and return the options that name their directories."""
        pillar = {"base": {"top.sls": _TOP}, **self.pillar} if "a.sls" in self.pillar.get("base", {}) else self.pillar
        base = pillar.get("base", {})
        if "a.sls" in base and "top.sls" not in base:
            pillar = {**pillar, "base": {**base, "top.sls": _TOP}}
        for kind, trees in (("pillar", pillar), ("states", self.states), ("", {"": self.files})):
            for env, files in trees.items():
                (directory / kind / env).mkdir(parents=True, exist_ok=True)
                for path, text in files.items():
                    _write(directory / kind / env / path, text.replace("DIR", str(directory)))
        own = {
            "pillar_roots": {env: [f"{directory}/pillar/{env}"] for env in pillar} or {"base": []},
            "file_roots": {env: [f"{directory}/states/{env}"] for env in self.states} or {"base": []},
        }
        return {**own, **placed(self.opts, directory)}


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if text.startswith("-> "):
        path.symlink_to(text.removeprefix("-> ").strip())
        return
    path.write_text(text)
    if text.startswith("#!/"):
        path.chmod(0o755)


def placed(value: Any, directory: Path) -> Any:
    """Return the value with the case's directory in place of DIR."""
    if isinstance(value, str):
        return value.replace("DIR", str(directory))
    if isinstance(value, list):
        return [placed(each, directory) for each in value]
    if isinstance(value, dict):
        return {placed(key, directory): placed(each, directory) for key, each in value.items()}
    return value


def cases() -> list[Case]:
    """List of all cases, with ids "file/case"."""
    return [
        Case(id=f"{path.stem}/{name}", **case)
        for path in sorted(_HERE.glob("cases/*.yaml"))
        for name, case in case_files.read(path).items()
        if not name.startswith(".")
    ]


def ours(case: Case, directory: Path) -> Any:
    """Return Saltern's pillar, or its highstate's SLS references, for a case."""
    opts = {
        **case.write(directory),
        "id": "web1",
        "cachedir": str(directory / "cache"),
        "extension_modules": str(directory / "extmods"),
        "grains": dict(GRAINS),
    }
    if case.tops:
        return local_runtime(opts).call("state.show_top").value
    if case.calls:
        runtime = local_runtime(opts)
        return [_answer(runtime.functions, *call) for call in case.calls]
    asked = {"saltenv": case.saltenv, "pillarenv": case.pillarenv, "pillar": case.override}
    runtime = local_runtime({key: value for key, value in opts.items() if key != "saltenv"})
    told = runtime.call("pillar.items", (), {key: value for key, value in asked.items() if value} | {"unmask": True})
    return json.loads(json.dumps(told.value, default=_text))


def _answer(functions: Mapping[str, Any], name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    try:
        return json.loads(json.dumps(functions[name](*args, **kwargs), default=_text))
    except StatecoreError as error:
        return {"raised": str(error)}


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


class Salt:
    """A process of real Salt that answers many requests."""

    #: Seconds for an answer.
    DEADLINE = 100.0

    def __init__(self, process: subprocess.Popen[str], directory: Path) -> None:
        self._process = process
        self._directory = directory
        self._number = itertools.count()

    def ask(self, asked: Sequence[Case]) -> list[Any]:
        """Return Salt's results for cases. DIR is the directory of each case."""
        places = [self._directory / str(next(self._number)) for _ in asked]
        loads = [
            {
                "directory": str(place),
                "grains": GRAINS,
                "opts": case.write(place),
                "saltenv": case.saltenv,
                "pillarenv": case.pillarenv,
                "override": case.override,
                "tops": case.tops,
                "calls": case.calls,
            }
            for case, place in zip(asked, places, strict=True)
        ]
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(loads) + "\n")
        self._process.stdin.flush()
        ready, _, _ = select.select([self._process.stdout], [], [], self.DEADLINE)
        assert ready, f"Salt has not answered within {self.DEADLINE} seconds"
        told = json.loads(self._process.stdout.readline())
        return [_without(each, str(place)) for each, place in zip(told, places, strict=True)]


@pytest.fixture(scope="session")
def salt(oracle: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Salt]:
    """The one process of real Salt."""
    process = subprocess.Popen(
        [oracle.program("python"), str(_HERE / "salt_pillars.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        yield Salt(process, tmp_path_factory.mktemp("pillars"))
        process.kill()


@pytest.fixture(scope="session")
def salt_says(salt: Salt) -> dict[str, Any]:
    """Map of case id to real Salt's result."""
    return {case.id: told for case, told in zip(cases(), salt.ask(cases()), strict=True)}


def _without(value: Any, directory: str) -> Any:
    """Return the value with DIR in place of the directory."""
    return json.loads(json.dumps(value).replace(directory, "DIR"))
