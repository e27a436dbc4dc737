"""saltext-dockermod with a real Docker engine (``.ci/docker-engine start``)."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

IMAGE = "saltern-extension-test:1"
NAME = "saltern-extension-test"

#: Programs of the image, with the libraries that ldd shows.
PROGRAMS = ("/bin/sh", "/bin/sleep", "/bin/cat", "/bin/echo", "/bin/mkdir", "/usr/bin/env")


@pytest.fixture(scope="module", autouse=True)
def engine() -> None:
    """A Docker engine that answers; the tests are skipped without one."""
    program = shutil.which("docker")
    if program is None or subprocess.run([program, "info"], capture_output=True, check=False).returncode:
        pytest.skip("no Docker engine answers (.ci/docker-engine start)")


def archive(path: Path) -> Path:
    """Write a file system with a few programs of this machine as a tar file."""
    files = set(PROGRAMS)
    for program in PROGRAMS:
        shown = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        files |= {word for line in shown.splitlines() for word in line.split() if word.startswith("/")}
    with tarfile.open(path, "w") as made:
        for file in sorted(files):
            data = Path(file).read_bytes()
            entry = tarfile.TarInfo(file.lstrip("/"))
            entry.size, entry.mode = len(data), 0o755
            made.addfile(entry, io.BytesIO(data))
    return path


@pytest.fixture
def docker(minion: Callable[..., Any], tmp_path: Path) -> Iterator[Any]:
    """A minion whose engine has the image; containers, networks and volumes of the test are removed afterwards."""
    made = minion()
    # docker.import of saltext-dockermod 0.1.3 does not understand this engine's answer.
    subprocess.run(["docker", "import", str(archive(tmp_path / "image.tar")), IMAGE], capture_output=True, check=True)
    yield made
    subprocess.run(["docker", "rm", "-f", NAME], capture_output=True, check=False)
    for kind, remove in (("network", "remove_network"), ("volume", "remove_volume")):
        shown = subprocess.run(
            ["docker", kind, "ls", "-q", "-f", f"name={NAME}"], capture_output=True, text=True, check=True
        )
        if shown.stdout.strip():
            made.call(f"docker.{remove}", NAME)
    made.call("docker.rmi", IMAGE)


def test_the_functions_are_listed(docker: Any) -> None:
    assert {"ps", "images", "create", "start", "stop", "rm", "inspect", "networks", "volumes"} <= docker.functions(
        "docker"
    )
    assert docker.functions("docker_container", "state_functions") >= {"running", "stopped", "absent", "run"}
    assert docker.functions("docker_network", "state_functions") >= {"present", "absent"}
    assert "Version" in docker.call("docker.version")


def test_images(docker: Any) -> None:
    assert IMAGE in docker.call("docker.list_tags")
    there = docker.state("docker_image.present", "saltern-extension-test", tag="1")
    assert (there["result"], there["changes"]) == (True, {})
    gone = docker.state("docker_image.absent", "saltern-nothing:1")
    assert (gone["result"], gone["changes"]) == (True, {})


def test_a_container(docker: Any, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/file").write_text("from the host")
    wanted = {
        "image": IMAGE,
        "command": "/bin/sleep 300",
        "environment": [{"COLOUR": "red"}],
        "binds": f"{tmp_path}/data:/data:ro",
        "stop_timeout": 1,
    }
    tested = docker.state("docker_container.running", NAME, **wanted, test=True)
    assert tested["result"] is None
    assert NAME not in docker.call("docker.list_containers", all=True)
    made = docker.state("docker_container.running", NAME, **wanted)
    assert made["result"] is True, made
    assert made["changes"]["state"] == {"old": None, "new": "running"}
    assert docker.call("docker.state", NAME) == "running"
    assert docker.call("docker.inspect_container", NAME)["Config"]["Env"][0] == "COLOUR=red"
    assert docker.call("docker.run_stdout", NAME, "/bin/cat /data/file") == "from the host"
    again = docker.state("docker_container.running", NAME, **wanted)
    assert (again["result"], again["changes"]) == (True, {})
    changed = docker.state("docker_container.running", NAME, **{**wanted, "environment": [{"COLOUR": "blue"}]})
    assert changed["result"] is True, changed
    assert changed["changes"]["container"]["Config"]["Env"] == {"old": ["COLOUR=red"], "new": ["COLOUR=blue"]}
    stopped = docker.state("docker_container.stopped", NAME, timeout=1)
    assert stopped["changes"][NAME]["state"] == {"old": "running", "new": "stopped"}
    removed = docker.state("docker_container.absent", NAME)
    assert (removed["result"], NAME in docker.call("docker.list_containers", all=True)) == (True, False)


def test_one_command_in_a_container(docker: Any) -> None:
    done = docker.state("docker_container.run", NAME, image=IMAGE, command="/bin/echo said", rm=True)
    assert done["result"] is True, done
    assert done["changes"]["Logs"] == "said\n"
    failed = docker.state("docker_container.run", NAME, image=IMAGE, command="/bin/cat /nothing", rm=True)
    assert failed["result"] is False


def test_networks_and_volumes(docker: Any) -> None:
    for kind, given in (("docker_network", {"subnet": "10.247.197.96/27"}), ("docker_volume", {})):
        made = docker.state(f"{kind}.present", NAME, **given)
        assert made["result"] is True, made
        assert made["changes"]
        again = docker.state(f"{kind}.present", NAME, **given)
        assert (again["result"], again["changes"]) == (True, {})
        assert docker.state(f"{kind}.absent", NAME)["changes"]


def test_states_of_a_tree(docker: Any, tmp_path: Path) -> None:
    (tmp_path / "tree/app.sls").write_text(
        f"""
{NAME}:
  docker_container.running:
    - image: {IMAGE}
    - command: /bin/sleep 300
    - networks:
      - {NAME}
    - require:
      - docker_network: {NAME}-net
{NAME}-net:
  docker_network.present:
    - name: {NAME}
"""
    )
    done = docker.call("state.apply", "app")
    assert [row["result"] for row in done.values()] == [True, True], done
    again = docker.call("state.apply", "app")
    assert [row["changes"] for row in again.values()] == [{}, {}]


def test_states_inside_a_container_say_what_is_missing(docker: Any) -> None:
    docker.state("docker_container.running", NAME, image=IMAGE, command="/bin/sleep 300")
    done = docker.runtime.call("docker.call", [NAME, "test.ping"])
    assert (done.retcode, done.value) == (
        1,
        "ERROR: salt.utils.thin.gen_thin does not exist: Saltern cannot copy itself into a container or to another machine. "
        "Run commands there, or install a minion",
    )
