"""What containers may do, asked of the engine and of the containers themselves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from statecore.host import capabilities

if TYPE_CHECKING:
    from tests.container.compose_lab import Lab

pytestmark = [pytest.mark.container, pytest.mark.timeout(600)]

ROLES = ("publisher", "reqserver", "mworker", "eventpublisher", "reactor", "maintenance")
UNPRIVILEGED = (*ROLES, "redis", "master")
MINIONS = ("web1", "web2")
CAP_SYS_ADMIN = 1 << 21
#: What speaks for the master to minions: only these roles need it.
MASTER_SECRETS = {"publisher", "mworker"}


def process_status(lab: Lab, service: str, *, of: str = "1") -> dict[str, str]:
    """/proc/PID/status of a container."""
    text = lab.inside(service, "cat", f"/proc/{of}/status")
    return {name: value.strip() for name, _, value in (line.partition(":") for line in text.splitlines())}


@pytest.mark.parametrize("service", UNPRIVILEGED)
def test_the_first_process_is_not_root_and_can_gain_nothing(lab: Lab, service: str) -> None:
    status = process_status(lab, service)
    assert "0" not in status["Uid"].split()
    assert "0" not in status["Gid"].split()
    assert {int(status[name], 16) for name in ("CapPrm", "CapEff", "CapBnd", "CapInh", "CapAmb")} == {0}
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"


@pytest.mark.parametrize("service", UNPRIVILEGED)
def test_the_root_file_system_is_read_only(lab: Lab, service: str) -> None:
    for container in lab.containers(service):
        assert lab.inspect(container)["HostConfig"]["ReadonlyRootfs"] is True
        assert lab.inspect(container)["HostConfig"]["Privileged"] is False
    mounts = lab.inside(service, "cat", "/proc/1/mounts")
    (options,) = [line.split()[3] for line in mounts.splitlines() if line.split()[1] == "/"]
    assert "ro" in options.split(",")


@pytest.mark.parametrize("minion", MINIONS)
def test_the_minion_gave_up_the_right_to_mount(lab: Lab, minion: str) -> None:
    # Process 1 is the engine's init; the minion is its child.
    children = lab.inside(minion, "cat", "/proc/1/task/1/children").split()
    bounding = [
        int(process_status(lab, minion, of=child)["CapBnd"], 16)
        for child in children
        if "saltern" in lab.inside(minion, "cat", f"/proc/{child}/cmdline")
    ]
    assert len(bounding) == 1
    assert bounding[0] & CAP_SYS_ADMIN == 0


#: Numbers of the capabilities that a command of a host must not have, in any set.
LOST = sum(1 << number for number, _ in capabilities.LOST.values())


@pytest.mark.parametrize("field", ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"])
@pytest.mark.parametrize("minion", MINIONS)
def test_a_command_of_a_host_has_no_way_out(accepted: Lab, minion: str, field: str) -> None:
    said = accepted.salt(minion, "cmd.run", "cat /proc/self/status")[minion]
    (value,) = (int(line.split()[1], 16) for line in said.splitlines() if line.startswith(f"{field}:"))
    assert value & LOST == 0


@pytest.mark.parametrize(
    "attempt", ["chroot / true", "mknod /tmp/disk b 8 0", "mount -t tmpfs none /mnt", "unshare --mount true"]
)
def test_a_command_of_a_host_stays_there(accepted: Lab, attempt: str) -> None:
    # The command's exit code is the job's, so `salt` ends with 1.
    said = accepted.cli("salt", "--out", "json", "--static", "web1", "cmd.retcode", attempt, check=False)
    assert json.loads(said)["web1"] not in (0, 127)


@pytest.mark.parametrize("minion", MINIONS)
def test_a_host_sees_its_own_processes_and_no_disk_of_the_machine(lab: Lab, minion: str) -> None:
    """/proc in the host is the container's: with the engine's masks, not the machine's own."""
    first = lab.on_host(minion, "cat", "/proc/1/cmdline")
    assert "init" in first
    assert "minion-entrypoint" in first
    mounts = lab.on_host(minion, "cat", "/proc/self/mounts")
    assert any(line.split()[1] == "/proc/sys" and "ro" in line.split()[3].split(",") for line in mounts.splitlines())


def test_a_role_holds_its_own_keys_and_no_others(lab: Lab) -> None:
    for role in ROLES:
        files = lab.inside(role, "find", "/keys", "-type", "f").split()
        assert f"/keys/{role}/curve.secret" in files
        assert all(path.startswith(f"/keys/{role}/") for path in files), role
        assert (f"/keys/{role}/master.pem" in files) == (role in MASTER_SECRETS), role


def test_the_minion_image_has_no_road_to_redis(lab: Lab) -> None:
    program = "import importlib.util as u; print([n for n in ('redis', 'masterstore') if u.find_spec(n)])"
    assert lab.inside("web1", "python3", "-c", program).strip() == "[]"
    assert lab.inside("mworker", "python3", "-c", program).strip() == "['redis', 'masterstore']"


@pytest.mark.parametrize("service", [*ROLES, "web1"])
def test_no_image_of_ours_holds_build_tools(lab: Lab, service: str) -> None:
    found = lab.inside(service, "sh", "-c", "command -v gcc cc make pip pip3 curl wget git || true").strip()
    assert found == ""


def probe(lab: Lab, service: str, host: str, port: int) -> str:
    """How a TCP connection from a container ends: "open", or the name of the error."""
    program = (
        "import socket\n"
        "try:\n"
        f"    socket.create_connection(({host!r}, {port}), timeout=3).close()\n"
        "    print('open')\n"
        "except OSError as error:\n"
        "    print(type(error).__name__)\n"
    )
    return lab.inside(service, "python3", "-c", program).strip()


def address(lab: Lab, service: str, network: str) -> str:
    """A service's address on a network of the project."""
    (container, *_) = lab.containers(service)
    networks = lab.inspect(container)["NetworkSettings"]["Networks"]
    found: str = networks[f"{lab.project}_{network}"]["IPAddress"]
    return found


def test_a_minion_reaches_the_two_ports_of_the_master(lab: Lab) -> None:
    assert probe(lab, "web1", "master", 4505) == "open"
    assert probe(lab, "web1", "master", 4506) == "open"


@pytest.mark.parametrize(("name", "port"), [("redis", 6379), ("reqserver", 4507), ("eventpublisher", 4513)])
def test_a_minion_cannot_even_name_what_is_inside(lab: Lab, name: str, port: int) -> None:
    assert probe(lab, "web1", name, port) == "gaierror"


@pytest.mark.parametrize(
    ("name", "network", "port"),
    [("redis", "store", 6379), ("reqserver", "internal", 4507), ("eventpublisher", "internal", 4513)],
)
def test_a_minion_that_knows_the_address_gets_no_further(lab: Lab, name: str, network: str, port: int) -> None:
    assert probe(lab, "web1", address(lab, name, network), port) in ("TimeoutError", "OSError")


def test_the_control_port_is_not_on_the_masters_address(lab: Lab) -> None:
    assert probe(lab, "web1", "master", 4507) == "ConnectionRefusedError"


@pytest.mark.parametrize("role", ["reqserver", "eventpublisher"])
def test_a_role_that_remembers_nothing_cannot_reach_redis(lab: Lab, role: str) -> None:
    assert probe(lab, role, "redis", 6379) == "gaierror"


@pytest.mark.parametrize(
    ("login", "command", "answer"),
    [
        ("", "dbsize", "NOAUTH"),
        ("--user default --pass guessed", "dbsize", "NOAUTH"),
        ("--user probe --pass probe", "dbsize", "NOPERM"),
        ("--user probe --pass probe", "config get requirepass", "NOPERM"),
        ("--user probe --pass probe", "ping", "PONG"),
    ],
)
def test_redis_serves_nobody_without_the_password(lab: Lab, login: str, command: str, answer: str) -> None:
    said = lab.inside("redis", "sh", "-c", f"redis-cli --no-auth-warning {login} {command} 2>&1 || true")
    assert answer in said


def test_redis_cannot_read_the_password(lab: Lab) -> None:
    assert lab.inside("redis", "sh", "-c", "cat /run/secrets/redis/url || true").strip() == ""
    password = urlsplit(lab.redis_url()).password
    assert password
    assert password not in lab.inside("redis", "cat", "/run/secrets/redis/users.acl")
    environment = lab.inspect(lab.containers("publisher")[0])["Config"]["Env"]
    assert not any(password in variable for variable in environment)


@pytest.mark.parametrize("role", ["reqserver", "eventpublisher"])
def test_a_role_without_redis_has_no_password_of_redis(lab: Lab, role: str) -> None:
    assert lab.inside(role, "sh", "-c", "ls -A /run/secrets/redis /keys/redis 2>/dev/null || true").strip() in (
        "",
        "/keys/redis:",
    )


def test_a_role_sees_no_cache_of_another(lab: Lab) -> None:
    """A file that the maintenance writes into its cachedir is not there for workers and the reactor."""
    lab.inside("maintenance", "touch", "/var/cache/salt/master/of-maintenance")
    for role in ("mworker", "reactor"):
        assert "of-maintenance" not in lab.inside(role, "ls", "/var/cache/salt/master")
