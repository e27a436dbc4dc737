"""The cache of parsed YAML: a cached text loads to the same value, and only large state texts are cached."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from statecore.model import yaml
from statecore.model.yaml import YamlFault
from statecore.render import yaml_cache
from statecore.render.yaml_cache import YamlCache
from statecore.runtime.runtime import local_runtime

LONG = "# " + "x" * 8_192 + "\n"


def exact(value: Any) -> Any:
    """Return the value with its types and the order of its maps, for comparison: 1 differs from True and 1.0."""
    if isinstance(value, dict):
        return [(exact(key), exact(item)) for key, item in value.items()]
    if isinstance(value, list):
        return [exact(item) for item in value]
    return type(value).__name__, repr(value)


@pytest.fixture
def once(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """List of the texts that were parsed as YAML."""
    texts: list[str] = []
    real = yaml.load

    def load(text: str, dialect: yaml.Dialect) -> Any:
        texts.append(text)
        return real(text, dialect)

    monkeypatch.setattr(yaml_cache.yaml, "load", load)
    return texts


def files(cachedir: Path) -> list[Path]:
    return sorted((cachedir / "yaml").glob("*"))


KEPT = {
    "map": "a: {b: [1, 2.5, true, null, '1', 0644, 2026-01-02]}\n7: x\ntrue: y\n2.5: z\n",
    "list": "- a\n- [b]\n",
    "nothing": "\n",
    "binary": "a: !!binary aGVsbG8=\n",
    "infinite": "a: [.inf, -.inf, .nan]\n",
    "letters": "ä: 'ß €'\n",
    "merged in place": "a: {<<: {b: 1}, c: 2}\n",
}


@pytest.mark.parametrize("name", KEPT)
def test_the_same_is_read_again_without_reading_yaml(tmp_path: Path, once: list[str], name: str) -> None:
    text = LONG + KEPT[name]
    first = YamlCache(str(tmp_path)).load(text)
    again = YamlCache(str(tmp_path)).load(text)
    assert exact(first) == exact(again) == exact(yaml.load(text, yaml.SLS))
    assert once[:1] == once[:-1] == [text]
    (place,) = files(tmp_path)
    assert place.stat().st_mode & 0o777 == 0o600
    assert place.parent.stat().st_mode & 0o777 == 0o700


NOT_KEPT = {
    "short": "a: 1\n",
    "anchors": LONG + "a: &x [1]\nb: *x\n",
    "a set": LONG + "a: !!set {b}\n",
    "a large number": LONG + f"a: {2**70}\n",
    "surrogates": LONG + 'a: "\\ud800"\n',
}


@pytest.mark.parametrize("name", NOT_KEPT)
def test_what_is_not_kept(tmp_path: Path, name: str) -> None:
    try:
        expected = exact(yaml.load(NOT_KEPT[name], yaml.SLS))
    except YamlFault:
        with pytest.raises(YamlFault):
            YamlCache(str(tmp_path)).load(NOT_KEPT[name])
    else:
        assert exact(YamlCache(str(tmp_path)).load(NOT_KEPT[name])) == expected
    assert files(tmp_path) == []


def test_shared_anchors_stay_shared(tmp_path: Path) -> None:
    data = YamlCache(str(tmp_path)).load(NOT_KEPT["anchors"])
    assert data["a"] is data["b"]


def test_a_fault_is_no_data(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(YamlFault, match="conflicting ID 'a'"):
            YamlCache(str(tmp_path)).load(LONG + "a: 1\na: 2\n")
    assert files(tmp_path) == []


@pytest.mark.parametrize("damage", [b"", b"\xc1", b"\xdc", b"\x81\xa1a"])
def test_a_damaged_file_is_read_anew(tmp_path: Path, damage: bytes) -> None:
    text = LONG + "a: 1\n"
    YamlCache(str(tmp_path)).load(text)
    (place,) = files(tmp_path)
    place.write_bytes(damage)
    assert YamlCache(str(tmp_path)).load(text) == {"a": 1}
    assert place.read_bytes() == b"\x81\xa1a\x01"


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "yaml").write_text("no directory")
    assert YamlCache(str(tmp_path)).load(LONG + "a: 1\n") == {"a": 1}


def test_without_a_cachedir_nothing_is_kept(once: list[str]) -> None:
    for _ in range(2):
        YamlCache("").load(LONG)
    assert len(once) == 2


def test_the_oldest_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_cache, "_MAX_FILES", 3)
    kept = YamlCache(str(tmp_path))
    for number in range(3):
        kept.load(f"{LONG}a: {number}\n")
    for age, place in enumerate(files(tmp_path)):
        os.utime(place, (place.stat().st_mtime - 100 * age - 100,) * 2)
    before = files(tmp_path)
    kept.load(LONG + "a: 3\n")
    assert set(before) - set(files(tmp_path)) == {before[-1]}
    monkeypatch.setattr(yaml_cache, "_MAX_BYTES", 4)
    kept.load(LONG + "a: 4\n")
    assert len(files(tmp_path)) == 1


def test_use_makes_it_young_again(tmp_path: Path) -> None:
    YamlCache(str(tmp_path)).load(LONG)
    (place,) = files(tmp_path)
    os.utime(place, (1, 1))
    YamlCache(str(tmp_path)).load(LONG)
    assert place.stat().st_mtime > 1


def test_another_reader_reads_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    YamlCache(str(tmp_path)).load(LONG)
    monkeypatch.setattr(yaml_cache.yaml, "PARSER", "another")
    YamlCache(str(tmp_path)).load(LONG)
    assert len(files(tmp_path)) == 2


_SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
_DATA = st.recursive(
    _SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner), max_leaves=12
)


@given(data=_DATA)
@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_written_reads_alike_both_times(tmp_path: Path, data: Any) -> None:
    text = LONG + yaml.dump(data, allow_unicode=True)
    try:
        expected = exact(yaml.load(text, yaml.SLS))
    except YamlFault:
        return
    for _ in range(2):
        assert exact(YamlCache(str(tmp_path)).load(text)) == expected


def test_states_are_kept_and_pillars_are_not(tmp_path: Path) -> None:
    trees = {kind: tmp_path / kind for kind in ("states", "pillar")}
    for path in trees.values():
        path.mkdir()
    (trees["states"] / "long.sls").write_text(LONG + "s:\n  test.nop\n")
    (trees["pillar"] / "top.sls").write_text("base: {'*': [secret]}\n")
    (trees["pillar"] / "secret.sls").write_text(LONG + "phrase: a-secret\n")
    places = {"file_roots": {"base": [str(trees["states"])]}, "pillar_roots": {"base": [str(trees["pillar"])]}}
    opts = {"id": "web1", "cachedir": str(tmp_path / "cache"), **places}
    runtime = local_runtime(opts, grains={"id": "web1"})
    assert runtime.call("pillar.ls", [], {}).value == ["phrase"]
    assert runtime.call("state.apply", ["long"], {}).retcode == 0
    kept = b"".join(path.read_bytes() for path in files(tmp_path / "cache"))
    assert b"nop" in kept
    assert b"a-secret" not in kept
