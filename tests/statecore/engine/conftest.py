"""A context with nothing behind it but the loader, and a short way to write low chunks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from statecore.compile import compile_chunks
from statecore.engine import EngineOptions, run
from statecore.engine.call import finish
from statecore.loader import Loader
from statecore.loader.tables import attached
from statecore.model.context import Context
from statecore.model.types import Low, Running

COMMANDS = """
calls = []


def retcode(command, **kwargs):
    calls.append((command, kwargs))
    if command == "unstartable":
        from salt.exceptions import CommandExecutionError
        raise CommandExecutionError("no such shell")
    return {"true": 0, "false": 1}[command]


def asked():
    return calls
"""


class Port:
    """Answers nothing; remembers events."""

    mounted = True

    def __init__(self, root: Path) -> None:
        self.root = root
        self.fired: list[tuple[str, Mapping[str, Any]]] = []

    def path(self, path: str, *, follow: bool = True) -> Path:
        return self.root / path.lstrip("/")

    def which(self, program: str) -> None:
        """A bare host: no program at all."""

    def fire(self, tag: str, data: Mapping[str, Any]) -> bool:
        self.fired.append((tag, data))
        return True


class Bench:
    """An engine with users' modules in a directory, run on literal chunks."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = Port(directory / "host")
        self.loader = Loader(directory / "ext")
        self.write("modules/cmd.py", COMMANDS)
        self.opts: dict[str, Any] = {"id": "m1"}

    def write(self, name: str, text: str) -> None:
        path = self.directory / "ext" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def context(self, test: bool = False) -> Context:
        port: Any = self.port
        bare = Context(
            host=port,
            grains={"os": "Debian"},
            pillar={"there": 1},
            opts=self.opts,
            files=port,
            templates=port,
            events=port,
            jobs=port,
            minion=port,
            catalog=port,
            state_system=port,
            functions={},
            states={},
            test=test,
        )
        return attached(bare, self.loader, finish)

    def run(self, *chunks: Low, test: bool = False, **options: Any) -> Running:
        ctx = self.context(test)
        compiled = compile_chunks(chunks, reacts=lambda state: self.loader.has("states", f"{state}.mod_watch", ctx))
        assert not compiled.faults, compiled.faults
        return run(compiled.graph, ctx, self.loader, EngineOptions(**options))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A fresh engine."""
    return Bench(tmp_path)


@pytest.fixture
def low() -> Callable[..., Low]:
    """``low("a", "succeed_with_changes", require=[...])`` -> a chunk of the test state module."""

    def make(id_: str, fun: str = "nop", **arguments: Any) -> Low:
        chunk = {"state": "test", "fun": fun, "name": id_, "__id__": id_, "__sls__": "web", "__env__": "base"}
        return {**chunk, **arguments}

    return make
