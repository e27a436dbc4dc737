"""The pillarenv that a call and a state run use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from statecore.runtime.runtime import local_runtime

#: Options, what the call says -> the keys of the pillar.
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], set[str]]] = {
    "nothing": ({}, {}, {"base", "dev"}),
    "the call": ({}, {"pillarenv": "dev"}, {"dev"}),
    "the option": ({"pillarenv": "dev"}, {}, {"dev"}),
    "the call over the option": ({"pillarenv": "dev"}, {"pillarenv": "base"}, {"base"}),
    "the saltenv of the call, where it counts": ({"pillarenv_from_saltenv": True}, {"saltenv": "dev"}, {"dev"}),
    "the saltenv of the call, where it does not": ({}, {"saltenv": "dev"}, {"base", "dev"}),
    "the saltenv of the options": ({"pillarenv_from_saltenv": True, "saltenv": "dev"}, {}, {"dev"}),
    "no saltenv anywhere": ({"pillarenv_from_saltenv": True}, {}, {"base", "dev"}),
    "none of this name": ({}, {"pillarenv": "nowhere"}, set()),
}


@pytest.fixture
def roots(tmp_path: Path) -> dict[str, Any]:
    for env in ("base", "dev"):
        (tmp_path / env).mkdir()
        (tmp_path / env / "top.sls").write_text(f"{env}:\n  '*': [a]\n")
        (tmp_path / env / "a.sls").write_text(f"{env}: 1\n")
        (tmp_path / f"states-{env}").mkdir()
        (tmp_path / f"states-{env}" / "s.sls").write_text(
            "of-{{ pillar.keys() | list | sort | join(',') }}:\n  test.nop: []\n"
        )
    return {
        "pillar_roots": {env: [str(tmp_path / env)] for env in ("base", "dev")},
        "file_roots": {env: [str(tmp_path / f"states-{env}")] for env in ("base", "dev")},
        "cachedir": str(tmp_path / "cache"),
        "id": "web1",
        "grains": {},
    }


@pytest.mark.parametrize(("opts", "said", "keys"), CASES.values(), ids=CASES)
def test_of_a_call(roots: dict[str, Any], opts: dict[str, Any], said: dict[str, Any], keys: set[str]) -> None:
    assert set(local_runtime({**roots, **opts}).call("pillar.items", [], {**said, "unmask": True}).value) == keys


@pytest.mark.parametrize(("opts", "said", "keys"), CASES.values(), ids=CASES)
def test_of_a_run(roots: dict[str, Any], opts: dict[str, Any], said: dict[str, Any], keys: set[str]) -> None:
    running = local_runtime({**roots, **opts}).call("state.apply", ["s"], said).value
    (tag,) = running
    assert tag.split("_|-")[1] == f"of-{','.join(sorted(keys))}"
