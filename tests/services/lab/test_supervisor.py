"""What supervisord is given, as supervisord reads it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from saltern.lab.plan import PORTS, LabError, Paths, Settings, programs
from saltern.lab.supervisor import MARK, clean_environment, prepare_socket_directory, render, socket_path

ROWS = programs(Settings(Path("/tree"), ("web.1",), 1, {name: row.default for name, row in PORTS.items()}))


def test_supervisord_reads_every_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = pytest.importorskip("supervisor.options")
    for directory in ("run", "log"):
        (tmp_path / directory).mkdir()
    awkward = tmp_path / "a b%(here)s'c"
    (tmp_path / "run" / "supervisord.conf").write_text(render(ROWS, str(awkward), "127.0.0.1"))
    monkeypatch.chdir(tmp_path)
    read = options.ServerOptions()
    read.realize(["-c", "run/supervisord.conf"])
    assert [group.name for group in sorted(read.process_group_configs)] == ["store", "master", "minions"]
    found = {one.name: one for group in read.process_group_configs for one in group.process_configs}
    assert set(found) == {row.name for row in ROWS}
    for row in ROWS:
        config = found[row.name]
        assert config.command.split() == list(row.words)
        assert config.stdout_logfile == f"log/{row.name}.log"
        assert config.environment.get("SALTERN_HEALTH_PORT", "0") == str(row.health_port)
        # What is in the environment stands above etc/master.d.
        assert ("SALTERN_LOG_LEVEL" in config.environment) == bool(row.minion)
        assert 0 not in config.exitcodes
        assert {77, 78} <= set(config.exitcodes)
    (server,) = read.server_configs
    assert server["file"] == str(awkward)
    assert server["chmod"] == 0o700


def test_the_lab_starts_with_nothing_of_another_master() -> None:
    env = {"SALT_CONFIG_DIR": "/x", "SALTERN_RET_PORT": "1", "SALTERN_LAB": "/y", "PATH": "/bin", "HOME": "/root"}
    clean = clean_environment(env, Path("/lab"), Path("/venv/bin"))
    assert clean["PATH"] == f"/venv/bin{os.pathsep}/bin"
    assert clean[MARK] == "/lab"
    assert clean["HOME"] == "/root"
    assert not {"SALT_CONFIG_DIR", "SALTERN_RET_PORT"} & set(clean)


@pytest.mark.parametrize("directory", ["/" + "long/" * 30, "/home/me/a;b", "/home/me/a #b"])
def test_a_socket_that_cannot_be_in_the_lab_is_in_a_short_place_of_its_own(directory: str) -> None:
    path = socket_path(Paths(Path(directory) / ".lab"))
    assert not str(path).startswith(directory)
    assert len(str(path)) < 98
    assert path == socket_path(Paths(Path(directory) / ".lab"))
    assert path != socket_path(Paths(Path(directory) / ".lab2"))


def test_a_socket_is_in_the_lab_where_it_can() -> None:
    assert socket_path(Paths(Path("/home/me/a b%c/.lab"))) == Path("/home/me/a b%c/.lab/run/supervisor.sock")


def test_a_socket_directory_that_others_may_enter_is_not_used(tmp_path: Path) -> None:
    prepare_socket_directory(tmp_path / "own" / "sock")
    (tmp_path / "open").mkdir(mode=0o755)
    (tmp_path / "open").chmod(0o755)
    with pytest.raises(LabError, match="open"):
        prepare_socket_directory(tmp_path / "open" / "sock")
    (tmp_path / "link").symlink_to(tmp_path / "own")
    with pytest.raises(LabError, match="link"):
        prepare_socket_directory(tmp_path / "link" / "sock")
