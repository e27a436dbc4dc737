"""A minion of plain parts: a host and a tree in temporary directories, ports that remember what they were asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from statecore.context import Context
from statecore.engine.call import finish
from statecore.files import LocalFiles
from statecore.host import Host
from statecore.loader import Loader
from statecore.loader.tables import attached


class Ports:
    """Events, jobs, the minion, the state system and template engines; ``asked`` is what they were asked, in order."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.jobs: list[dict[str, Any]] = []
        self.compiled: dict[str, Any] = {}
        self.answer: Any = {}

    def fire(self, tag: str, data: Mapping[str, Any]) -> bool:
        self.asked.append((tag, dict(data)))
        return True

    def running(self) -> list[dict[str, Any]]:
        return self.jobs

    def signal(self, jid: str, number: int) -> str:
        self.asked.append(("signal", jid, number))
        return f"Signal {number} sent to job {jid} at pid 1"

    def refresh_pillar(self) -> bool:
        self.asked.append("refresh_pillar")
        return True

    def refresh_modules(self) -> bool:
        self.asked.append("refresh_modules")
        return True

    def refresh_grains(self) -> bool:
        self.asked.append("refresh_grains")
        return True

    def compile_pillar(self, saltenv: str, pillarenv: str | None, override: Mapping[str, Any] | None) -> dict[str, Any]:
        self.asked.append(("pillar", saltenv, pillarenv))
        return {**self.compiled, **(override or {})}

    def master_tops(self) -> dict[str, list[str]]:
        return {}

    def render(self, text: str, engine: str, context: Mapping[str, Any], *, saltenv: str, source: str = "") -> str:
        return text.replace("{{ name }}", str(context.get("name")))

    def __getattr__(self, verb: str) -> Any:
        """The verbs of the state system: remembered, answered with ``answer``."""
        if verb not in ("highstate", "sls", "high", "low", "show_top", "show_high", "show_low"):
            raise AttributeError(verb)

        def told(*args: Any) -> Any:
            self.asked.append((verb, *args))
            return self.answer

        return told


class Names:
    """The catalog over a loader."""

    def __init__(self, loader: Loader) -> None:
        self.loader = loader
        self.ctx: Any = None

    def names(self, kind: str = "modules") -> list[str]:
        return ["jinja", "yaml"] if kind == "renderers" else self.loader.names(kind, self.ctx)

    def doc(self, name: str, kind: str = "modules") -> str | None:
        return self.loader.doc(kind, name, self.ctx)

    def argspec(self, name: str, kind: str = "modules") -> dict[str, Any] | None:
        return self.loader.argspec(kind, name, self.ctx)


class PlainMinion:
    """What tests of modules and states stand on."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.tree = directory / "tree"
        self.root = directory / "host"
        self.extension_dir = directory / "extmods"
        for path in (self.tree, self.root):
            path.mkdir()
        self.ports = Ports()
        self.loader = Loader(self.extension_dir)
        self.opts: dict[str, Any] = {
            "id": "web1",
            "conf_file": str(directory / "minion"),
            "cachedir": str(directory / "cache"),
            "extension_modules": str(self.extension_dir),
        }
        self.grains: dict[str, Any] = {"os": "Debian", "os_family": "Debian", "id": "web1", "roles": ["web"]}
        self.pillar: dict[str, Any] = {"key": "value", "a": {"b": {"c": [1, {"d": 2}]}}, "none": None, "empty": ""}

    def write(self, name: str, text: str) -> Path:
        """A file of the state tree."""
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def context(self, **changes: Any) -> Context:
        """A context over everything above; each call is a new run."""
        ports: Any = self.ports
        names = Names(self.loader)
        ctx = Context(
            host=Host(self.root),
            grains=self.grains,
            pillar=self.pillar,
            opts=self.opts,
            files=LocalFiles({"base": [self.tree]}),
            templates=ports,
            events=ports,
            jobs=ports,
            minion=ports,
            catalog=names,
            state_system=ports,
            functions={},
            states={},
        )
        names.ctx = attached(replace(ctx, **changes), self.loader, finish)
        return names.ctx

    def call(self, function: str, /, *args: Any, **kwargs: Any) -> Any:
        """Calls an execution function in a run of its own."""
        return self.context().call(function, *args, **kwargs)

    def state(
        self, function: str, /, *, test: bool = False, ctx: Context | None = None, **arguments: Any
    ) -> dict[str, Any]:
        """Calls a state function; its plan applied, or told in test mode."""
        ctx = ctx or self.context(test=test)
        entry: dict[str, Any] = ctx.states[function](**arguments)
        json.dumps(entry)
        return entry


@pytest.fixture
def plain(tmp_path: Path) -> PlainMinion:
    """A minion of plain parts."""
    return PlainMinion(tmp_path)
