"""``host_pid``: commands run in the namespaces of the host's first process, seen from a container that shares its PIDs.

The host is made here: process 1 of a new PID namespace, with mounts and a name of its own. The minion is a child of it that then
goes into mounts and a name of its own, as a container does, and looks at the host through /proc/1/root.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from statecore.host.host import Host
from statecore.model.errors import HostError
from tests.conftest import open_to_all

#: What process 1 does: the host's own mount and name, then the minion in other namespaces.
_HOST = """
set -e
mount -t tmpfs host "$PLACE/mounted"
echo of-the-host >"$PLACE/mounted/marker"
mkdir "$PLACE/mounted/home"
hostname the-host
unshare --mount --uts sh -ec '
    umount "$PLACE/mounted"
    hostname the-container
    exec "$PYTHON" -c "$MINION"
'
"""

_MINION = """
import json, os, sys
from statecore.model.errors import HostError
from statecore.host.host import Host
place = os.environ["PLACE"]
host = Host(os.environ.get("ROOT", "/"), host_pid=True)
told = {"root": str(host.root), "seen_here": os.path.exists(place + "/mounted/marker"), "own_name": os.uname().nodename}
try:
    told["name"] = host.run(["uname", "-n"]).stdout.strip()
    told["marker"] = host.run("cat " + place + "/mounted/marker").stdout.strip()
    told["read"] = host.path(place + "/mounted/marker").read_text().strip()
    told["cwd"] = host.run("pwd; id -u; umask", cwd=place + "/mounted/home", runas="nobody", umask=0o27).stdout.split()
    told["table"] = [line.split()[4] for line in host.mount_table().splitlines() if place in line]
    told["code"] = host.run("exit 3").retcode
    told["timed_out"] = host.run("sleep 60", timeout=0.2).timed_out
    host.path(place + "/mounted/made").write_text("by the minion")
    told["made"] = host.run(["cat", place + "/mounted/made"]).stdout
except HostError as error:
    told["error"] = str(error)
print(json.dumps(told))
"""


def _in_a_container(place: Path, **env: str) -> dict[str, Any]:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("only root makes namespaces, with unshare(1)")
    (place / "mounted").mkdir()
    open_to_all(place)
    environment = {**os.environ, "PLACE": str(place), "PYTHON": sys.executable, "MINION": _MINION, **env}
    command = ["unshare", "--pid", "--fork", "--mount-proc", "--mount", "--uts", "sh", "-c", _HOST]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    if "unshare failed" in done.stderr:
        pytest.skip(f"namespaces cannot be made here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_commands_run_in_the_namespaces_of_the_host(tmp_path: Path) -> None:
    told = _in_a_container(tmp_path)
    assert (told["root"], told["own_name"], told["seen_here"]) == ("/proc/1/root", "the-container", False)
    mounted = f"{tmp_path}/mounted"
    assert told == told | {
        "name": "the-host",
        "marker": "of-the-host",
        "read": "of-the-host",
        "cwd": [f"{mounted}/home", "65534", "0027"],
        "table": [mounted],
        "code": 3,
        "timed_out": True,
        "made": "by the minion",
    }


def test_a_root_that_is_not_the_one_of_process_1_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "other"
    (root / "bin").mkdir(parents=True)
    (root / "bin/uname").touch(0o755)
    told = _in_a_container(tmp_path, ROOT=str(root))
    assert f"the root of process 1 is not {root}: the minion does not share the PID namespace" in told["error"]


def test_only_root_enters_namespaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(HostError, match="needs entering its namespaces, which needs root"):
        Host("/", host_pid=True).run(["true"])
