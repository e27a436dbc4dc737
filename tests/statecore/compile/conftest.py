"""Fixtures that compile a tree of files.

Faults are written as ``file:line message``, so that test tables can list them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from statecore.compile import Compiled, compile_sls
from statecore.model.errors import SlsFault
from statecore.render import SlsTree
from statecore.sources.local_tree import LocalFiles

#: compiled(files, **options): the SLS ``a`` of a tree of these files; ``sls`` and ``dev`` (files of dev) may be given.
Compile = Callable[..., Compiled]


@pytest.fixture
def compiled(tmp_path: Path) -> Compile:
    """Return a function that compiles a tree below tmp_path."""

    def compile_tree(
        files: Mapping[str, str],
        *,
        dev: Mapping[str, str] | None = None,
        matches: Mapping[str, list[str]] | None = None,
        **opts: Any,
    ) -> Compiled:
        roots = {"base": files} | ({"dev": dev} if dev is not None else {})
        for env, own in roots.items():
            (tmp_path / env).mkdir()
            for name, text in own.items():
                path = tmp_path / env / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        tree = SlsTree(
            LocalFiles({env: [tmp_path / env] for env in roots}), opts=opts, grains={}, pillar={}, functions={}
        )
        return compile_sls(tree, matches or {"base": ["a"]}, opts)

    return compile_tree


def told(faults: tuple[SlsFault, ...]) -> list[str]:
    """List of ``b.sls:3 first line of the message`` for each fault; only the message for a fault without a place."""
    return [f"{_place(fault)} {fault.message.splitlines()[0].rstrip()}".strip() for fault in faults]


def order(compiled: Compiled) -> list[str]:
    """IDs in order of evaluation."""
    return [low["__id__"] for low in compiled.chunks]


def low(compiled: Compiled, id_: str) -> dict[str, Any]:
    """Return the only chunk of an ID, without the keys that every chunk has."""
    (found,) = [chunk for chunk in compiled.chunks if chunk["__id__"] == id_]
    return {key: value for key, value in found.items() if key not in ("__sls__", "__env__", "__id__", "state", "fun")}


def _place(fault: SlsFault) -> str:
    if fault.mark is None:
        return ""
    path = Path(fault.mark.file)
    return f"{path.name}:{fault.mark.line}" if fault.mark.line else path.name
