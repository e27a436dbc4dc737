"""Whatever state functions are called with, what comes back is a value or a sentence, never an exception of ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from statecore.runtime.runtime import Runtime, local_runtime

_FUNCTIONS = (
    *(
        "apply",
        "apply_plan",
        "sls",
        "highstate",
        "sls_id",
        "single",
        "high",
        "low",
        "template",
        "template_str",
        "top",
        "test",
        "running",
    ),
    *("show_top", "show_highstate", "show_sls", "show_lowstate", "show_low_sls", "show_states", "show_state_usage"),
    *("sls_exists", "id_exists", "request", "check_request", "run_request", "clear_request", "disable", "enable"),
    *("list_disabled", "get_pauses", "pause", "resume", "soft_kill", "rm_pause", "clear_cache", "pkg", "event"),
)

_KEYWORDS = (
    *(
        "test",
        "pillar",
        "pillarenv",
        "saltenv",
        "exclude",
        "queue",
        "concurrent",
        "localconfig",
        "sync_mods",
        "whitelist",
    ),
    *("failhard", "force", "terse", "cache", "cache_name", "mock", "state_events", "name", "mods", "__pub_jid"),
)

#: Names that mean something here, and values that mean nothing.
_WORDS = st.sampled_from(
    ("web", "one", "test.nop", "absent", "base", "", "*", "../x", "a.b", "web,one", "1", "\x00", "é")
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.just(2**70) | st.just(1.5) | _WORDS,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(("id", "sls", "state", "fun", "name", "test", "one")), inner, max_size=3)
    ),
    max_leaves=4,
)


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Runtime:
    directory: Path = tmp_path_factory.mktemp("any")
    (directory / "tree").mkdir()
    (directory / "tree/top.sls").write_text("base:\n  '*':\n    - web\n")
    (directory / "tree/web.sls").write_text("one:\n  test.nop: []\n")
    roots = {"file_roots": {"base": [str(directory / "tree")]}, "pillar_roots": {"base": [str(directory / "pillar")]}}
    places = {"cachedir": str(directory / "cache"), "grains_file": str(directory / "grains")}
    return local_runtime({"id": "web1", **roots, **places}, grains={"id": "web1"})


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(_FUNCTIONS),
    st.lists(_VALUES, max_size=3),
    st.dictionaries(st.sampled_from(_KEYWORDS), _VALUES, max_size=2),
)
def test_any_arguments(runtime: Runtime, function: str, args: list[Any], keywords: dict[str, Any]) -> None:
    # Nothing stays switched off for the next.
    runtime.context.scratch.clear()
    returned = runtime.call(f"state.{function}", args, keywords)
    assert "caused an exception" not in str(returned.value), returned.value
    assert returned.retcode in (0, 1, 2, 5)
    json.dumps(returned.value)


def test_all_functions_are_tried(runtime: Runtime) -> None:
    looks = {"check", "plan", "graph", "graph_highstate", "explain", "orchestrate"}
    known = {name.removeprefix("state.") for name in runtime.catalog.names() if name.startswith("state.")}
    assert known - looks == set(_FUNCTIONS)
