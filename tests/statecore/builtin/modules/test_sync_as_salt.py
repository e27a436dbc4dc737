"""Fetching users' modules: what each function returns, and what lies on the minion then, beside real Salt."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from statecore.runtime.runtime import local_runtime

_TREE = {
    "base/top.sls": "base:\n  '*': [web]\ndev:\n  '*': [web]\n",
    "base/web.sls": "x: test.nop\n",
    "dev/web.sls": "y: test.nop\n",
    "base/_modules/mine.py": "def ping(): return True\n",
    "base/_modules/README.md": "no module\n",
    "base/_modules/deep/er.py": "def ping(): return True\n",
    "base/_modules/package/__init__.py": "def ping(): return True\n",
    "base/_states/mine.py": "def done(name): pass\n",
    "base/_grains/mine.py": "def mine(): return {'mine': 1}\n",
    "base/_renderers/shout.py": "def render(data, **kwargs): return data\n",
    "base/_output/loud.py": "def output(data, **kwargs): return ''\n",
    "base/_utils/tool.py": "X = 1\n",
    "dev/_modules/mine.py": "def ping(): return 'dev'\n",
    "dev/_modules/late.py": "def ping(): return 'dev'\n",
}

#: In this order: what is written (None: removed) before the call, function, positional arguments, keywords.
STEPS: dict[str, tuple[Mapping[str, str | None], str, list[Any], dict[str, Any]]] = {
    "one kind": (_TREE, "sync_modules", [], {"saltenv": "base"}),
    "it again": ({}, "sync_modules", [], {"saltenv": "base"}),
    "all": ({}, "sync_all", [], {"saltenv": "base"}),
    "all again": ({}, "sync_all", [], {"saltenv": "base"}),
    "what there is": ({}, "list_extmods", [], {}),
    "a change": ({"base/_modules/mine.py": "def ping(): return 2\n"}, "sync_modules", [], {"saltenv": "base"}),
    "a removal": ({"base/_modules/deep/er.py": None}, "sync_modules", [], {"saltenv": "base"}),
    "a removal, of all": ({"base/_states/mine.py": None}, "sync_all", [], {"saltenv": "base"}),
    "environments as text": ({}, "sync_modules", ["base,dev"], {}),
    "environments as a list": ({}, "sync_modules", [["dev", "base"]], {}),
    "environments of the top file": ({}, "sync_modules", [], {}),
    "without a refresh": ({}, "sync_grains", [], {"saltenv": "base", "refresh": False}),
    "an environment that is none": ({}, "sync_modules", [], {"saltenv": "gone"}),
    "only some": ({}, "sync_modules", [], {"saltenv": "dev", "extmod_whitelist": "late"}),
    "only some, by kind": ({}, "sync_all", [], {"saltenv": "dev", "extmod_whitelist": {"modules": ["mine"]}}),
    "all but some": ({}, "sync_modules", [], {"saltenv": "dev", "extmod_blacklist": "mine,late"}),
    "states": ({}, "sync_states", [], {"saltenv": "base"}),
    "renderers": ({}, "sync_renderers", [], {"saltenv": "base"}),
    "output": ({}, "sync_output", [], {"saltenv": "base"}),
    "outputters": ({}, "sync_outputters", [], {"saltenv": "base"}),
    "what there is at last": ({}, "list_extmods", [], {}),
}


def _opts(directory: Path) -> dict[str, Any]:
    roots = {env: [f"{directory}/{env}"] for env in ("base", "dev")}
    return {"file_roots": roots, "pillar_roots": {"base": []}, "extension_modules": f"{directory}/cache/extmods"}


def _own(directory: Path) -> list[Any]:
    told = []
    for files, fun, args, kwargs in STEPS.values():
        for name, text in files.items():
            path = directory / name
            if text is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        opts = {**_opts(directory), "id": "web1", "cachedir": f"{directory}/cache"}
        told.append(local_runtime(opts, grains={"id": "web1"}).call(f"saltutil.{fun}", args, kwargs).value)
    return told


def _plainly(told: Any) -> Any:
    """Lists of names in their order by name: Salt's is that of its file lists, which is the disk's."""
    if isinstance(told, Mapping):
        return {name: _plainly(each) for name, each in told.items()}
    return sorted(told) if isinstance(told, list) else told


@pytest.mark.oracle
def test_as_salt(oracle: Any, tmp_path: Path) -> None:
    theirs, ours = tmp_path / "salt", tmp_path / "own"
    for directory in (theirs, ours):
        for env in ("base", "dev"):
            (directory / env).mkdir(parents=True)
    steps = [
        {"files": files, "fun": fun, "args": args, "kwargs": kwargs} for files, fun, args, kwargs in STEPS.values()
    ]
    asked = {"directory": str(theirs), "opts": _opts(theirs), "steps": steps}
    script = Path(__file__).with_name("salt_sync.py")
    salts = json.loads(oracle.run("python", str(script), stdin=json.dumps(asked), timeout=240))
    told = dict(zip(STEPS, map(_plainly, _own(ours)), strict=True))
    assert told == dict(zip(STEPS, map(_plainly, salts), strict=True))
