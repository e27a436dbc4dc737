"""Attacks from inside the containers of compose.yaml: what somebody can do who has taken a role over. ``make security-containers``
counts them: each case is one attack.

Attacks of one container run in one ``docker exec``, with the user, the capabilities and the file system that the role has; those
in a minion's container with the capabilities that the minion kept (docker/minion-entrypoint).
"""

from __future__ import annotations

import json
import platform
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.container.compose_lab import Lab

pytestmark = [pytest.mark.container, pytest.mark.timeout(600)]

ROLES = ("publisher", "reqserver", "mworker", "eventpublisher", "reactor", "maintenance")
UNPRIVILEGED = (*ROLES, "redis", "master")
MINIONS = ("web1", "web2")

#: Directories of the image; a file there would be run, or read, by the next process.
_PLACES = (
    "",
    "/bin",
    "/etc",
    "/usr/bin",
    "/usr/lib",
    "/usr/local/bin",
    "/opt",
    "/var",
    "/root",
    "/home",
    "/keys",
    "/run/secrets",
)

#: What reaches the machine, or its other containers -> a shell command that succeeds if the attack does.
MACHINE: dict[str, str] = {
    "mount a file system": "mount -t tmpfs none /tmp",
    "mount the root writable": "mount -o remount,rw /",
    "mount the machine's cgroups": "mount -t cgroup -o memory cgroup /tmp",
    "unmask what the engine masks": "umount /proc/kcore || umount /proc/sys",
    "make a device of the machine's disk": "mknod /tmp/disk b 8 0 && head -c1 /tmp/disk",
    "read a disk of the machine": "head -c1 /dev/sda || head -c1 /dev/vda || head -c1 /dev/nvme0n1 || head -c1 /dev/xvda",
    "read the machine's memory": "head -c1 /dev/mem || head -c1 /proc/kcore",
    "read the kernel's log": "dmesg || head -c1 /dev/kmsg",
    "have the kernel run a program at a crash": "echo '|/tmp/x' > /proc/sys/kernel/core_pattern",
    "have the kernel run a program for a module": "echo /tmp/x > /proc/sys/kernel/modprobe",
    "crash the machine": "echo b > /proc/sysrq-trigger",
    "forward packets": "echo 1 > /proc/sys/net/ipv4/ip_forward",
    "raise the limit of processes": "echo 9999999 > /proc/sys/kernel/pid_max",
    "make a cgroup": "mkdir /sys/fs/cgroup/attack || mkdir /sys/fs/cgroup/memory/attack",
    "have a cgroup's end run a program": "echo /tmp/x > /sys/fs/cgroup/memory/release_agent",
    "lift the limit of memory": (
        "echo max > /sys/fs/cgroup/memory.max || echo -1 > /sys/fs/cgroup/memory/memory.limit_in_bytes"
    ),
    "be spared when memory ends": "echo -1000 > /proc/self/oom_score_adj",
    "load a module": "insmod /tmp/x.ko || modprobe dummy",
    "set the clock": "date -s 2020-01-01",
    "rename the machine": "hostname attack || echo attack > /proc/sys/kernel/hostname",
    "ask the engine": "test -S /var/run/docker.sock || test -S /run/containerd/containerd.sock || test -e /run/podman",
    "read a token of a cluster": "cat /var/run/secrets/kubernetes.io/serviceaccount/token",
    "see the machine's processes": "tr '\\0' '\\n' < /proc/1/cmdline | grep -Eq '^(/sbin/init|/lib/systemd/systemd)'",
    "enter the namespaces of another process": "nsenter -t 1 -m -n true",
} | {f"write to {place or '/'}": f"echo x > {place}/attack" for place in _PLACES}  # fmt: skip

#: What only a role's container must refuse: a minion is root, and manages a host.
ROLE: dict[str, str] = {
    "write to a key": 'for key in /keys/*/*; do echo x >> "$key" && exit 0; done; false',
    "replace a key": 'for key in /keys/*/*; do mv "$key" "$key.old" && exit 0; done; false',
    "replace a program": 'echo x > "$(readlink -f "$(command -v sh)")"',
    "replace a library": "for one in /opt/saltern/lib/python3*/site-packages; do echo x > $one/attack.py && exit 0; done; false",
    "read the shadow file": "cat /etc/shadow",
    "become root by su": "su -c true",
    "become root by a setuid program": (
        "cp /bin/sh /tmp/sh && chmod 6755 /tmp/sh && test \"$(/tmp/sh -pc 'id -u')\" = 0"
        " || find / -xdev -perm -4000 -user root -type f -exec {} -c 'id -u' ';' | grep -qx 0"
    ),
    "have a capability": "grep -E '^Cap(Eff|Prm|Bnd|Amb)' /proc/self/status | grep -vq '0000000000000000'",
    "gain privileges by a program": "grep -q '^NoNewPrivs:.0' /proc/self/status",
    "make a user namespace": "unshare --user --map-root-user true",
    "make a mount namespace": "unshare --mount true",
    "make a network namespace": "unshare --net true",
    "change the root": "chroot / true",
    "own a file of somebody else": "chown 0:0 /tmp || chown root /tmp/attack.own",
    "find a password in the environment": "tr '\\0' '\\n' < /proc/1/environ | grep -Eq '://[^/]*:[^/]+@|PASSWORD|SECRET='",
    "find a compiler": "command -v cc || command -v gcc || command -v make",
    "find a package manager of Python": "command -v pip || command -v pip3",
}

#: Name -> (number on x86_64, arguments) of a system call that would change nothing if it were allowed.
SYSCALLS: dict[str, tuple[int, tuple[int, ...]]] = {
    "acct": (163, (0,)),
    "add_key": (248, (0, 0, 0, 0, 0)),
    "bpf": (321, (0, 0, 0)),
    "chroot": (161, (0,)),
    "clock_settime": (227, (0, 0)),
    "clone3 with a user namespace": (435, (0, 0)),
    "delete_module": (176, (0, 0)),
    "fanotify_init": (300, (0, 0)),
    "finit_module": (313, (-1, 0, 0)),
    "init_module": (175, (0, 0, 0)),
    "ioperm": (173, (0, 1, 1)),
    "iopl": (172, (3,)),
    "kexec_load": (246, (0, 0, 0, 0)),
    "keyctl": (250, (0, 0, 0, 0, 0)),
    "lookup_dcookie": (212, (0, 0, 0)),
    "mount": (165, (0, 0, 0, 0, 0)),
    "move_mount": (429, (-1, 0, -1, 0, 0)),
    "open_by_handle_at": (304, (-1, 0, 0)),
    "open_tree": (428, (-1, 0, 0)),
    "perf_event_open": (298, (0, 0, -1, -1, 0)),
    "pivot_root": (155, (0, 0)),
    "quotactl": (179, (0, 0, 0, 0)),
    "reboot": (169, (0xFEE1DEAD, 672274793, 0, 0)),
    "request_key": (249, (0, 0, 0, 0)),
    "setdomainname": (171, (0, 0)),
    "setgid": (106, (0,)),
    "sethostname": (170, (0, 0)),
    "setns": (308, (-1, 0)),
    "settimeofday": (164, (0, 0)),
    "setuid": (105, (0,)),
    "swapoff": (168, (0,)),
    "swapon": (167, (0, 0)),
    "syslog": (103, (3, 0, 0)),
    "umount2": (166, (0, 0)),
    "unshare of everything": (272, (0x7E020000,)),
    "userfaultfd": (323, (0,)),
    "vhangup": (153, ()),
    "a raw socket": (41, (2, 3, 1)),
    "a packet socket": (41, (17, 3, 768)),
}  # fmt: skip

#: Source -> (service, its network, port) that it must not reach, even if it knows the address.
_INSIDE = (
    ("redis", "store", 6379),
    ("publisher", "internal", 4505),
    ("reqserver", "internal", 4506),
    ("reqserver", "internal", 4507),
    ("reqserver", "internal", 4516),
    ("eventpublisher", "internal", 4512),
    ("eventpublisher", "internal", 4513),
    ("mworker", "store", 4505),
)
REACHES = (
    *((minion, *there) for minion in MINIONS for there in _INSIDE),
    *((minion, "master", "minions", port) for minion in MINIONS for port in (4507, 4512, 4513, 4516, 6379, 8080)),
    *((service, "redis", "store", 6379) for service in ("reqserver", "eventpublisher", "master")),
    *(("redis", *there) for there in _INSIDE[1:7]),
)
#: Roles that reach nothing outside of the project: no way for a stolen key to leave.
LEAVES = (*ROLES, "redis")

#: Results by (service, kind of attacks).
Results = dict[tuple[str, str], dict[str, str]]


def run_shell(lab: Lab, service: str, attacks: dict[str, str], *before: str) -> dict[str, str]:
    """Run these attacks in a container; return {attack: "succeeded", or "refused"}."""
    lines = ["exec 2>/dev/null </dev/null", "cd /tmp"]
    for number, command in enumerate(attacks.values()):
        lines.append(f"if ( {command} ) >/dev/null; then echo succeeded {number}; else echo refused {number}; fi")
    said = lab.inside(service, *before, "timeout", "120", "sh", "-c", "\n".join(lines))
    names = list(attacks)
    return {names[int(number)]: result for result, number in (line.split() for line in said.splitlines())}


def run_syscalls(lab: Lab, service: str) -> dict[str, str]:
    """Try these system calls in a container, each in a process of its own; return {name: "succeeded", or "refused"}."""
    program = f"""
import ctypes, errno, json, os
libc = ctypes.CDLL(None, use_errno=True)
said = {{}}
for name, (number, arguments) in json.loads({json.dumps(json.dumps(SYSCALLS))}).items():
    child = os.fork()
    if not child:
        done = libc.syscall(number, *(ctypes.c_long(one) for one in arguments))
        os._exit(0 if done >= 0 else ctypes.get_errno())
    said[name] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
refusals = (errno.EPERM, errno.EACCES, errno.ENOSYS)
named = {{name: "refused" if code in refusals else f"not refused: {{code}}" for name, code in said.items()}}
print(json.dumps(named))
"""
    found: dict[str, str] = json.loads(lab.inside(service, "python3", "-c", program))
    return found


@pytest.fixture(scope="module")
def results() -> Results:
    """What the attacks came to; each container is asked once."""
    return {}


def address(lab: Lab, service: str, network: str) -> str:
    """A service's address on a network of the project."""
    networks = lab.inspect(lab.containers(service)[0])["NetworkSettings"]["Networks"]
    found: str = networks[f"{lab.project}_{network}"]["IPAddress"]
    return found


def reaches(lab: Lab, service: str, host: str, port: int) -> bool:
    """Whether a TCP connection from a container is made."""
    command = f"timeout 3 bash -c 'exec 3<>/dev/tcp/{host}/{port}' 2>/dev/null && echo open || echo closed"
    return lab.inside(service, "sh", "-c", command).strip() == "open"


@pytest.mark.parametrize("attack", MACHINE | ROLE)
@pytest.mark.parametrize("service", UNPRIVILEGED)
def test_a_role_that_was_taken_over_stays_in_its_container(
    lab: Lab, results: Results, service: str, attack: str
) -> None:
    if (service, "shell") not in results:
        results[service, "shell"] = run_shell(lab, service, MACHINE | ROLE)
    assert results[service, "shell"][attack] == "refused"


@pytest.mark.parametrize("attack", MACHINE)
@pytest.mark.parametrize("minion", MINIONS)
def test_a_minion_that_was_taken_over_does_not_reach_the_machine(
    lab: Lab, results: Results, minion: str, attack: str
) -> None:
    if (minion, "shell") not in results:
        kept = ("setpriv", "--bounding-set=-sys_admin,-setpcap", "--inh-caps=-sys_admin,-setpcap", "--")
        results[minion, "shell"] = run_shell(lab, minion, MACHINE, *kept)
    assert results[minion, "shell"][attack] == "refused"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of system calls of x86_64")
@pytest.mark.parametrize("call", SYSCALLS)
@pytest.mark.parametrize("role", ROLES)
def test_a_role_has_no_system_call_of_an_administrator(lab: Lab, results: Results, role: str, call: str) -> None:
    if (role, "calls") not in results:
        results[role, "calls"] = run_syscalls(lab, role)
    assert results[role, "calls"][call] == "refused"


@pytest.mark.parametrize(
    ("service", "owner"),
    [
        (service, owner)
        for service in (*UNPRIVILEGED, *MINIONS)
        for owner in (*ROLES, "cli", "api", "redis")
        if service != owner
    ],
)
def test_no_container_reads_keys_of_another_role(lab: Lab, service: str, owner: str) -> None:
    assert lab.inside(service, "sh", "-c", f"cat /keys/{owner}/* 2>/dev/null || true") == ""


@pytest.mark.parametrize("service", ["reqserver", "eventpublisher", "redis", "master", *MINIONS])
def test_who_needs_no_redis_has_no_password(lab: Lab, service: str) -> None:
    command = "cat /run/secrets/redis/url /keys/redis/url /keys/*/redis.url 2>/dev/null || true"
    assert lab.inside(service, "sh", "-c", command) == ""


@pytest.mark.parametrize(("source", "service", "network", "port"), REACHES)
def test_a_port_is_reached_only_from_where_it_is_needed(
    lab: Lab, source: str, service: str, network: str, port: int
) -> None:
    assert not reaches(lab, source, address(lab, service, network), port)


@pytest.mark.parametrize("host", ["1.1.1.1", "169.254.169.254"])
@pytest.mark.parametrize("service", LEAVES)
def test_no_role_reaches_the_world(lab: Lab, service: str, host: str) -> None:
    assert not reaches(lab, service, host, 80)
