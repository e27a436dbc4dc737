"""The wheels with their extras, as pip and pipx install them: what a host and a master get, and what the one lacks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hosts.conftest import TIMEOUT

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(1800)]


def installed(place: Path, extra: str, wheels: list[Path]) -> Path:
    """The directory of programs of an environment with one extra of our wheels."""
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    words = [place / "bin/pip", "install", "-q", "--disable-pip-version-check", "--find-links", wheels[0].parent]
    done = subprocess.run(
        [*words, f"saltern-services[{extra}]"], capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    assert done.returncode == 0, done.stderr
    return place / "bin"


def run(program: Path, *words: str, expect: int = 0) -> str:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [program, *words],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == expect, done.stdout
    return done.stdout


def test_a_minion_has_no_road_to_redis(tmp_path: Path, wheels: list[Path]) -> None:
    programs = installed(tmp_path / "minion", "minion", wheels)
    assert "redis" not in run(programs / "pip", "list").lower()
    assert run(programs / "salt-minion", "--version").endswith("(Saltern)\n")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/minion").write_text(f"root_dir: {tmp_path}\nfile_client: local\nid: web1\n")
    assert "True" in run(programs / "salt-call", "-c", str(tmp_path / "etc"), "--local", "test.ping")
    (tmp_path / "etc/master").write_text(f"root_dir: {tmp_path}\n")
    said = run(programs / "salt-master", "-c", str(tmp_path / "etc"), expect=1)
    assert "saltern-services[master]" in said
    assert not (tmp_path / "etc/keys").exists()


def test_a_master_has_all_that_its_roles_import(tmp_path: Path, wheels: list[Path]) -> None:
    programs = installed(tmp_path / "master", "master", wheels)
    roles = ["eventpublisher", "reqserver", "publisher", "maintenance", "reactor", "mworker", "master"]
    code = "import importlib, sys, re2; [importlib.import_module(f'saltern.{name}.main') for name in sys.argv[1:]]"
    run(programs / "python", "-c", code, *roles)
    assert run(programs / "salt-master", "--version").endswith("(Saltern)\n")
