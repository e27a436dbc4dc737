"""Options of a wrong type are named before anything is made of them, and those of a right type are taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from statecore.analysis.commands.main import main
from statecore.model.option_types import OPTIONS, type_errors

#: Words of a kind -> a value that is of no kind's but that one's, and one that is not.
_VALUES: dict[str, tuple[Any, Any]] = {
    "a text": ("x", ["x"]),
    "a number, 0 or more": (0.5, -1),
    "a list of texts": (["x"], "x"),
    "a map": ({"x": 1}, [1]),
    "a list of maps": ([{"x": 1}], {"x": 1}),
    "true, false or a list of texts": (["pkg"], {"pkg": True}),
    "a list or a map": ([1], 5),
    "warn or error": ("warn", "loud"),
    "a map of environments to lists of directories": ({"base": ["/srv"]}, {"base": "/srv"}),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_each_option(name: str) -> None:
    right, other = _VALUES[OPTIONS[name].words]
    assert type_errors({name: right}) == []
    assert type_errors({name: None}) == []
    (told,) = type_errors({name: other})
    assert told.startswith(f"'{name}' must be {OPTIONS[name].words}, not the ")
    assert repr(other) in told


def test_all_are_told() -> None:
    assert len(type_errors({"renderer": 5, "jinja_env": [], "module_dirs": "x", "unknown": object()})) == 3


@pytest.mark.parametrize("name", OPTIONS)
def test_no_file_of_options_is_a_traceback(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every option, with values of every other kind: the command takes it, or says which option is wrong."""
    (tmp_path / "a.sls").write_text("x: test.nop\n")
    (tmp_path / "grains").write_text("id: web1\n")
    config = tmp_path / "minion"
    for value in ("5", "-1", "text", "[a]", "[{a: b}]", "{a: b}", "true", "null", "[1]", "''", "{}", "[]"):
        config.write_text(f"{name}: {value}\n")
        words = ["plan", "a", "--file-root", str(tmp_path), "--grains", f"{tmp_path}/grains", "--config", str(config)]
        code = main([*words, "--root", str(tmp_path)])
        said = capsys.readouterr()
        assert code in (0, 1, 2, 64), value
        assert (code == 64) == (f"'{name}' must be" in said.err), (value, said)
