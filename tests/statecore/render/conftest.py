"""Fixtures that render a tree of files, and ask real Salt about the same files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from statecore.model.errors import NotAvailable, SlsError
from statecore.render import SlsTree
from statecore.runtime.runtime import Runtime
from statecore.sources.local_tree import LocalFiles

#: planted(files, **more): a tree of these files; ``dev``, ``opts``, ``grains``, ``pillar`` may be given.
Plant = Callable[..., SlsTree]


class Functions(dict[str, Callable[..., Any]]):
    """Execution functions, in the form of a loader."""

    def __missing__(self, name: str) -> Callable[..., Any]:
        raise NotAvailable(name, "no such module" if name.startswith("no.") else "")


@pytest.fixture
def planted(tmp_path: Path) -> Plant:
    """Return a function that makes a tree below tmp_path."""

    def plant(
        files: Mapping[str, str],
        *,
        dev: Mapping[str, str] | None = None,
        opts: Mapping[str, Any] | None = None,
        grains: Mapping[str, Any] | None = None,
        pillar: Mapping[str, Any] | None = None,
        functions: Mapping[str, Callable[..., Any]] | None = None,
    ) -> SlsTree:
        roots = {"base": files} | ({"dev": dev} if dev is not None else {})
        for env, own in roots.items():
            for name, text in own.items():
                path = tmp_path / env / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(text.encode("latin-1") if "\xff" in text else text.encode())
        return SlsTree(
            LocalFiles({env: [tmp_path / env] for env in roots}),
            opts={"id": "web1", **(opts or {})},
            grains=grains or {"os": "Debian", "roles": ["web"]},
            pillar=pillar or {},
            functions=Functions({"test.echo": str, "test.fail": _fail, **(functions or {})}),
        )

    return plant


def fault_of(call: Callable[[], Any]) -> tuple[str, str, str]:
    """Return (``file:line``, first line of the message, excerpt's line with the arrow) of the only fault."""
    with pytest.raises(SlsError) as caught:
        call()
    (fault,) = caught.value.faults
    place = f"{Path(fault.mark.file).name}:{fault.mark.line}" if fault.mark is not None else ""
    pointed = next((line for line in fault.excerpt.splitlines() if "<====" in line), "")
    return place, fault.message.splitlines()[0], pointed.partition("    <====")[0]


def _fail(*args: Any) -> Any:
    raise ValueError("a reason")


GRAINS: Mapping[str, Any] = {"os": "Debian", "os_family": "Debian", "roles": ["web"], "id": "web1", "n": {"k": "v"}}
PILLAR: Mapping[str, Any] = {"name": "value", "users": {"ann": {"uid": 1}}}


@pytest.fixture(scope="session")
def ask_salt(oracle: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., list[tuple[str, Any]]]:
    """ask_salt(files, asks, **opts): real Salt's answers, in order (see salt_render.py)."""

    def ask(files: Mapping[str, str | bytes], asks: Sequence[Sequence[Any]], **opts: Any) -> list[tuple[str, Any]]:
        directory = tmp_path_factory.mktemp("salt")
        write_tree(directory / "base", files)
        grains = opts.pop("grains", GRAINS)
        asked = {"directory": str(directory), "opts": opts, "grains": grains, "pillar": PILLAR, "asks": asks}
        told = oracle.run("python", str(Path(__file__).parent / "salt_render.py"), stdin=json.dumps(asked))
        return [(kind, value) for kind, value in json.loads(told)]

    return ask


def write_tree(directory: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files below a directory."""
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


@pytest.fixture(scope="session")
def own_runtime(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Runtime]:
    """own_runtime(files, **opts): a masterless minion over these files, with the same grains and pillar as the
    oracle.
    """

    def make(files: Mapping[str, str | bytes], **opts: Any) -> Runtime:
        directory = tmp_path_factory.mktemp("own")
        write_tree(directory / "base", files)
        return Runtime(
            {
                "id": "web1",
                "cachedir": str(directory / "cache"),
                "extension_modules": str(directory / "extmods"),
                **opts,
            },
            files=LocalFiles({"base": [directory / "base"]}),
            grains=GRAINS,
            pillar=PILLAR,
        )

    return make
