"""Users' grains files with the names of Salt's own: they stand for Salt's."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from statecore.runtime.runtime import local_runtime
from tests.conftest import Oracle

#: (file below _grains, its text, grains that are there, grains that are not)
CASES: list[tuple[str, str, dict[str, Any], list[str]]] = [
    (
        "core.py",
        "def os_data():\n    return {'os': 'Own', 'kernel': 'Linux'}\n",
        {"os": "Own", "kernel": "Linux", "id": "web1", "host_root": "/"},
        ["os_family", "num_cpus", "ipv4", "saltversion"],
    ),
    ("core.py", "def data():\n    return {'os': 'Own'}\n", {"os": "Own", "pid": ..., "shell": ...}, ["osarch"]),
    ("disks.py", "def disks():\n    return {'disks': ['own']}\n", {"disks": ["own"], "os": ...}, ["ssds"]),
    (
        "extra.py",
        "def shell():\n    return {'shell': '/bin/own'}\n",
        {"shell": "/bin/own", "os": ...},
        ["transactional"],
    ),
    ("core.py", "import nosuch\n", {"os": ..., "kernel": ..., "ipv4": ...}, []),
    ("core.py", "def __virtual__():\n    return False\ndef f():\n    return {'os': 'x'}\n", {"os_family": ...}, []),
    ("other.py", "def f():\n    return {'os': 'Own'}\n", {"os": "Own", "os_family": ...}, []),
]


@pytest.mark.parametrize(("file", "text", "there", "away"), CASES)
def test_a_file_of_salts_name(tmp_path: Path, file: str, text: str, there: dict[str, Any], away: list[str]) -> None:
    (tmp_path / "grains").mkdir()
    (tmp_path / "grains" / file).write_text(text)
    grains = local_runtime({"extension_modules": str(tmp_path), "id": "web1"}).call("grains.items").value
    assert {name: ... if value is ... else grains[name] for name, value in there.items()} == there
    assert there.keys() <= grains.keys()
    assert not set(away) & grains.keys()


def test_other_files_run_after_the_core_file(tmp_path: Path) -> None:
    (tmp_path / "grains").mkdir()
    (tmp_path / "grains/core.py").write_text("def f():\n    return {'os': 'Own'}\n")
    (tmp_path / "grains/a.py").write_text("def f(grains):\n    return {'seen': grains.get('os')}\n")
    grains = local_runtime({"extension_modules": str(tmp_path), "id": "web1"}).call("grains.items").value
    assert grains["seen"] == "Own"


@pytest.mark.oracle
def test_salts_own_core_file(tmp_path: Path, oracle: Oracle, caplog: pytest.LogCaptureFixture) -> None:
    built_in = local_runtime({"id": "web1"}).call("grains.items").value
    (tmp_path / "grains").mkdir()
    place = oracle.run("python", "-c", "import salt.grains.core as core; print(core.__file__)").strip()
    shutil.copy(place, tmp_path / "grains/core.py")
    grains = local_runtime({"extension_modules": str(tmp_path), "id": "web1"}).call("grains.items").value
    assert "are left out" not in caplog.text
    # Only Salt's file has these two.
    assert {"fibre_channel_host", "zmqversion"} <= grains.keys() - built_in.keys()
    same = (
        "os",
        "os_family",
        "osfinger",
        "osarch",
        "kernel",
        "num_cpus",
        "ip4_interfaces",
        "host",
        "saltversion",
        "init",
    )
    assert {name: grains[name] for name in same} == {name: built_in[name] for name in same}
