"""The version is written once. Whoever shows it, or builds with it, reads it there."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from release.build import PACKAGES
from statecore.model.salt_version import SALTERN_VERSION

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_reads_the_version(package: str) -> None:
    project = tomllib.loads((ROOT / package / "pyproject.toml").read_text("utf-8"))
    hatch = project["tool"]["hatch"]["version"]
    assert (project["project"].get("version"), project["project"]["dynamic"]) == (None, ["version"])
    source = (ROOT / package / hatch["path"]).resolve()
    assert source == ROOT / "libs/statecore/model/salt_version.py"
    (found,) = re.finditer(hatch["pattern"], source.read_text("utf-8"))
    assert found["version"] == SALTERN_VERSION


def test_the_editor_s_extension_has_the_version() -> None:
    extension = json.loads((ROOT / "examples/editors/vscode/package.json").read_text("utf-8"))
    assert extension["version"] == SALTERN_VERSION
    assert f"statecore-{SALTERN_VERSION}.vsix" in (ROOT / "examples/editors/vscode/README.md").read_text("utf-8")


@pytest.mark.parametrize("command", ["salt", "salt_key", "salt_call", "salt_master", "saltern"])
def test_a_command_shows_the_version(command: str) -> None:
    code = f"import sys; from saltern.start import {command}; sys.argv = ['{command}', '--version']; {command}()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert SALTERN_VERSION in done.stdout.split()


def test_the_site_has_the_version() -> None:
    settings = (ROOT / "docs/site/conf.py").read_text("utf-8")
    assert 'libs/statecore/model/salt_version.py"))["SALTERN_VERSION"]' in settings


def test_nobody_else_writes_it() -> None:
    """Settings of builds that repeat the version would differ from it after the next release."""
    builders = [*ROOT.glob("*.toml"), *ROOT.glob("Makefile"), *ROOT.glob("hosts/*.py"), *ROOT.glob("docker/*")]
    builders += [ROOT / package / "pyproject.toml" for package in PACKAGES]
    written = re.compile(rf'(?i)version["\']? *[:=]+ *["\']?{re.escape(SALTERN_VERSION)}')
    assert [
        str(path.relative_to(ROOT)) for path in builders if path.is_file() and written.search(path.read_text("utf-8"))
    ] == []
