"""``saltern check-config``."""

from __future__ import annotations

from pathlib import Path

import pytest

from saltern.kit.config import check


def test_both_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "master").write_text("pidfile: /run/x\nsock_dir: /run\ntimeout: '6'\n")
    (tmp_path / "minion").write_text("id: web1\nssl: true\nmaster_port: x\n")
    assert check.main(["-c", str(tmp_path)]) == 78
    told = capsys.readouterr()
    assert told.out.splitlines() == [
        "options of Salt that have no effect here: pidfile (salt-minion -d and salt-master -d write it, other starts need none); "
        "sock_dir (processes speak over ports, and ZeroMQ keeps its connections)",
        f"{tmp_path}/master, line 3: option 'timeout' is read as 6, not '6'",
        f"{tmp_path}/master: can be used",
    ]
    assert [line.partition(": ")[0] for line in told.err.splitlines()] == [
        f"{tmp_path}/minion, line 2",
        f"{tmp_path}/minion, line 3",
    ]


def test_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "minion").write_text("id: web1\n")
    assert check.main(["-c", str(tmp_path), "minion"]) == 0
    assert capsys.readouterr() == (f"{tmp_path}/minion: can be used\n", "")


def test_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check.main(["-c", str(tmp_path)]) == 78
    assert "has neither master nor minion" in capsys.readouterr().err
