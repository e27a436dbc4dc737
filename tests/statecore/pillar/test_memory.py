"""The worker's pillar cache changes the time of a compilation, but not its result."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from statecore.pillar.memory import PillarMemory
from statecore.render.memory import RenderMemory
from statecore.runtime.master_data import MinionDataRequest, pillar_of, pillar_top_of
from statecore.runtime.runtime import Runtime, load_user_backend
from statecore.sources.fileserver import FileServer

_TOP = "base:\n  '*': [a, b]\n  'os:Debian':\n    - match: grain\n    - c\n"

#: Texts that files may come to have: alike, different, wrong, of names that others render.
_TEXTS = (
    "x: 1\n",
    "x: {{ grains.os }}\nnested: {k: [1, {v: 2}]}\n",
    "x: {{ grains.id }}\n",
    "{% import_yaml 'map.yaml' as m %}\nx: {{ m.v }}\nlist: {{ m.l }}\n",
    "{% from 'lib.jinja' import f %}\nx: {{ f(grains.os) }}\n",
    "x: {{ [1, 2] | length }}\nnow: {{ 'a' | upper }}\n",
    "x: {{ nothing }}\n",
    "x: [\n",
    "include: [c]\nx: &a {k: 1}\ny: *a\n",
    "",
)
_FILES = ("a.sls", "b.sls", "c.sls")
_HELPERS: Mapping[str, tuple[str, ...]] = {
    "map.yaml": ("v: 1\nl: [a]\n", "v: 2\nl: [b]\n"),
    "lib.jinja": ("{% macro f(x) %}{{ x }}1{% endmacro %}", "{% macro f(x) %}{{ x }}2{% endmacro %}"),
}

_CHANGES = st.one_of(
    st.tuples(st.sampled_from(_FILES), st.sampled_from(_TEXTS)),
    *(st.tuples(st.just(name), st.sampled_from(texts)) for name, texts in _HELPERS.items()),
)
_ASKS = st.tuples(st.sampled_from(("web1", "web2")), st.sampled_from(("Debian", "RedHat")))


def compiled(directory: Path, minion: str, system: str, memory: PillarMemory | None) -> tuple[Any, ...]:
    opts = {
        "pillar_roots": {"base": [str(directory)]},
        "file_roots": {},
        "id": minion,
        "cachedir": "",
        "ext_pillar": [],
    }
    live: dict[str, Any] = {}
    runtime = Runtime(
        opts, files=FileServer.of(opts, load_user_backend), grains={"id": minion, "os": system}, pillar=live
    )
    result = pillar_of(runtime.context, runtime.loader, MinionDataRequest(minion), live, memory=memory)
    return result.data, result.errors


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(_CHANGES, _ASKS), min_size=1, max_size=8), touched=st.booleans())
def test_remembering_changes_nothing(tmp_path: Path, steps: list[Any], touched: bool) -> None:
    (tmp_path / "top.sls").write_text(_TOP)
    for name, text in {
        **dict.fromkeys(_FILES, "x: 0\n"),
        **{each: texts[0] for each, texts in _HELPERS.items()},
    }.items():
        (tmp_path / name).write_text(text)
    memory = PillarMemory()
    for (name, text), (minion, system) in steps:
        path = tmp_path / name
        before = path.stat()
        path.write_text(text)
        if touched:
            # As a copy does that keeps times: nothing but the content tells.
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        data, errors = compiled(tmp_path, minion, system, memory)
        assert (data, errors) == compiled(tmp_path, minion, system, None)
        # Who gets it may change it.
        _spoil(data)
        assert compiled(tmp_path, minion, system, memory) == compiled(tmp_path, minion, system, None)


def _spoil(value: Any) -> None:
    if isinstance(value, dict):
        for each in value.values():
            _spoil(each)
        value["spoilt"] = True
    elif isinstance(value, list):
        for each in value:
            _spoil(each)
        value.append("spoilt")


def test_a_thousand_minions_compile_a_template_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "top.sls").write_text("base:\n  '*': [a, b]\n")
    (tmp_path / "a.sls").write_text("{% import_yaml 'map.yaml' as m %}\na: {{ grains.id }}{{ m.v }}\n")
    (tmp_path / "b.sls").write_text("b: {{ grains.os }}\n")
    (tmp_path / "map.yaml").write_text("v: 1\n")
    count: list[str] = []
    compile_ = jinja2.Environment.compile

    def counted(self: Any, source: Any, name: Any = None, *more: Any) -> Any:
        count.append(str(name))
        return compile_(self, source, name, *more)

    monkeypatch.setattr(jinja2.Environment, "compile", counted)
    memory = PillarMemory()
    for number in range(20):
        data, errors = compiled(tmp_path, f"web{number}", "Debian", memory)
        assert (data, errors) == ({"a": f"web{number}1", "b": "Debian"}, ())
    assert sorted(count) == ["a.sls", "b.sls", "map.yaml"]


def test_what_a_filter_gives_is_asked_each_time(tmp_path: Path) -> None:
    (tmp_path / "top.sls").write_text("base:\n  '*': [a]\n")
    (tmp_path / "a.sls").write_text(f"a: {{{{ '{tmp_path}/told' | file_hashsum }}}}\n")
    memory = PillarMemory()
    seen = set()
    for text in ("one", "two"):
        (tmp_path / "told").write_text(text)
        seen.add(str(compiled(tmp_path, "web1", "Debian", memory)))
    assert len(seen) == 2


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("statecore.render.memory._KEPT", 1000)
    memory = RenderMemory()
    made: list[str] = []
    for text in (*(f"{number:050}" for number in range(40)), "0" * 49 + "0", f"{39:050}", "x" * 500, "x" * 500):
        memory.document(text, lambda text: made.append(text) or text)
    # The oldest was made again, the newest was not; what is as large as a part of all is not kept.
    assert made.count("0" * 50) == 2
    assert made.count(f"{39:050}") == 1
    assert made.count("x" * 500) == 2


def test_the_top_of_all_environments(tmp_path: Path) -> None:
    """The result equals Salt's runner pillar.show_top, including the order."""
    for env, top in {
        "base": "base:\n  '*': [a, b, a]\n  'G@os:Debian': [{match: compound}, c]\n  'x*': [{order: 1}, d]\ndev:\n  'web*': [e]\n",
        "dev": "dev:\n  '*': [f]\n",
    }.items():
        (tmp_path / env).mkdir()
        (tmp_path / env / "top.sls").write_text(top)
    roots = {env: [str(tmp_path / env)] for env in ("base", "dev")}
    opts = {"pillar_roots": roots, "file_roots": {}, "id": "web1", "cachedir": "", "ext_pillar": []}
    runtime = Runtime(
        opts, files=FileServer.of(opts, load_user_backend), grains={"id": "web1", "os": "Debian"}, pillar={}
    )
    found = pillar_top_of(runtime.context, runtime.loader, MinionDataRequest("web1"))
    assert [(env, list(targets.items())) for env, targets in found.items()] == [
        ("base", [("*", ["a", "b"]), ("G@os:Debian", [{"match": "compound"}, "c"]), ("x*", ["d"])]),
        ("dev", [("web*", ["e"]), ("*", ["f"])]),
    ]
