"""``saltern health``: the questions of a container's health check."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from saltern.kit.process import probe
from saltern.kit.process.health import Health
from saltern.kit.process.metrics import new_metrics
from tests.ports import free_port


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def health(port: int) -> Iterator[Health]:
    made = Health("mworker", new_metrics("mworker").registry)
    stop = made.serve("127.0.0.1", port)
    yield made
    stop()


@pytest.fixture
def config(tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.delenv("SALTERN_HEALTH_PORT", raising=False)
    (tmp_path / "master").write_text(f"health_port: {port}\n")
    return str(tmp_path)


def test_ready(health: Health, config: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert probe.main(["-c", config]) == 0
    assert capsys.readouterr() == ("", "")


def test_not_ready_but_alive(health: Health, config: str, capsys: pytest.CaptureFixture[str]) -> None:
    health.check("redis", lambda: "away")
    assert probe.main(["-c", config]) == 1
    assert capsys.readouterr().err == "redis: away\n"
    assert probe.main(["-c", config, "--live"]) == 0


def test_nobody_there(config: str, port: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert probe.main(["-c", config]) == 1
    assert f"127.0.0.1:{port}" in capsys.readouterr().err


def test_no_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("SALTERN_HEALTH_PORT", raising=False)
    assert probe.main(["-c", str(tmp_path)]) == 1
    assert "health_port is 0" in capsys.readouterr().err


def test_a_broken_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "master").write_text("helth_port: 1\n")
    assert probe.main(["-c", str(tmp_path)]) == 1
    assert "the option is called 'health_port'" in capsys.readouterr().err
