"""Directories of users' modules that options name."""

from __future__ import annotations

from pathlib import Path

from statecore.runtime.runtime import local_runtime


def _module(directory: Path, name: str, value: str) -> str:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{name}.py").write_text(f"def f():\n    return {value!r}\n")
    return str(directory)


def test_the_first_directory_wins_and_all_win_over_what_was_synced(tmp_path: Path) -> None:
    first = _module(tmp_path / "first", "one", "first")
    second = _module(tmp_path / "second", "one", "second")
    _module(tmp_path / "second", "two", "second")
    _module(tmp_path / "ext/modules", "two", "synced")
    _module(tmp_path / "ext/modules", "three", "synced")
    runtime = local_runtime(
        {
            "module_dirs": [first, second, str(tmp_path / "nothing")],
            "extension_modules": str(tmp_path / "ext"),
            "id": "web1",
        }
    )
    assert [runtime.call(f"{name}.f").value for name in ("one", "two", "three")] == ["first", "second", "synced"]


def test_a_file_in_place_of_a_directory_holds_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    runtime = local_runtime({"module_dirs": [str(tmp_path / "file")], "id": "web1"})
    assert runtime.call("test.ping").value is True
