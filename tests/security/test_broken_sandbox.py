"""Finding 38.3: the second wall around templates of strangers. Each attack is Python that runs in the renderer's process.

The process is the language server's own (``Worker``). Where the kernel lacks a wall, the session must say so, and that is
what is asserted.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import struct
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from statecore.lsp.confinement import _CALLS, LANDLOCK, LIMITS, NETWORK, SECCOMP, call_filter
from statecore.lsp.settings import Settings
from statecore.lsp.worker import CPU_SECONDS, Worker, WorkerFailed
from tests.security.broken_sandbox import attempts


class Field(NamedTuple):
    """What an attack finds around it: names for its code, the renderer, and the directories that it may read and write."""

    names: Mapping[str, object]
    worker: Worker
    tree: Path


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    home = tmp_path_factory.mktemp("home")
    outside, tree = home / "secrets", home / "workspace/srv"
    for directory in (outside, tree):
        directory.mkdir(parents=True)
    (outside / "secret").write_text("token")
    (tree / "web.sls").write_text("x:\n  test.nop: []\n")
    (tree / "file-link").symlink_to(outside / "secret")
    (tree / "directory-link").symlink_to(outside)
    (home / "grains.yaml").write_text("id: web1\n")
    held = ctypes.create_string_buffer(b"token", 8)
    os.environ["SALTERN_TEST_SECRET"] = "token"
    with socket.socket() as tcp, socket.socket(socket.AF_UNIX) as unix, socket.socket(socket.AF_UNIX) as abstract:
        tcp.bind(("127.0.0.1", 0))
        unix.bind(str(home / "socket"))
        abstract.bind(f"\0saltern-{os.getpid()}")
        for each in (tcp, unix, abstract):
            each.listen(128)
        names = {
            "outside": str(outside),
            "tree": str(tree),
            "parent": os.getpid(),
            "port": tcp.getsockname()[1],
            "address": ctypes.addressof(held),
            "unix": str(home / "socket"),
            "abstract": f"\0saltern-{os.getpid()}",
        }
        worker = Worker(
            Settings({"base": [str(tree)]}, grains=str(home / "grains.yaml")), "tests.security.broken_sandbox"
        )
        yield Field(names, worker, tree)
        worker.stop()
    del os.environ["SALTERN_TEST_SECRET"]


#: What each kind of attack needs to be refused: one of these walls.
BOTH = frozenset({LANDLOCK, SECCOMP})
CALLS = frozenset({SECCOMP})
FILES = frozenset({LANDLOCK})
#: Limits and the empty environment need nothing of the kernel that is not everywhere.
ALWAYS = frozenset({LIMITS})

#: Name -> (walls of which each one alone refuses the attack, code). The code gets in if it ends without an exception.
NETWORK_ATTACKS: Mapping[str, tuple[frozenset[str], str]] = {
    "tcp": (frozenset({NETWORK, SECCOMP, LANDLOCK}), "socket.create_connection(('127.0.0.1', port), 5)"),
    "udp": (frozenset({NETWORK, SECCOMP}), "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', port))"),
    "udp to a broadcast address": (
        CALLS,
        "s = socket.socket(type=socket.SOCK_DGRAM); s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)",
    ),
    "tcp over IPv6": (CALLS, "socket.socket(socket.AF_INET6)"),
    "listen on a port": (CALLS | FILES, "s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()"),
    "unix socket": (CALLS, "socket.socket(socket.AF_UNIX).connect(unix)"),
    "unix socket without a file": (BOTH, "socket.socket(socket.AF_UNIX).connect(abstract)"),
    "unix datagram": (CALLS, "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)"),
    "pair of sockets": (CALLS, "socket.socketpair()"),
    "netlink": (CALLS, "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)"),
    "raw packets": (CALLS, "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)"),
    "io_uring": (CALLS, "call('io_uring_setup', 8, ctypes.create_string_buffer(256))"),
}

PROGRAM_ATTACKS: Mapping[str, tuple[frozenset[str], str]] = {
    "exec": (
        BOTH,
        """
        if (p := os.fork()) == 0:
            try:
                os.execv('/bin/true', ['true'])
            finally:
                os._exit(1)
        if os.waitpid(p, 0)[1]:
            raise OSError
        """,
    ),
    "exec in this process": (
        BOTH,
        "os.execv('/nowhere' if not os.access('/bin/true', os.R_OK) else '/bin/true', ['true'])",
    ),
    "fork": (CALLS, "p = os.fork() or os._exit(0); os.waitpid(p, 0)"),
    "clone": (CALLS, "if call('clone', 17, 0, 0, 0, 0) == 0: os._exit(0)"),
    "clone3": (
        CALLS,
        "a = struct.pack('11Q', 0, 0, 0, 0, 17, *[0] * 6)\n"
        "if call('clone3', ctypes.create_string_buffer(a, 88), 88) == 0: os._exit(0)",
    ),
    "a shell": (BOTH, "if os.system('true'): raise OSError"),
    "a program": (BOTH, "subprocess.run(['true'], check=True)"),
    "posix_spawn": (BOTH, "os.posix_spawn('/bin/true', ['true'], {}) and os.wait()[1] and 1 / 0"),
    "multiprocessing": (CALLS, "p = multiprocessing.get_context('fork').Process(target=int); p.start(); p.join()"),
    "terminal": (CALLS, "if pty.fork()[0] == 0: os._exit(0)"),
    "a program in memory": (CALLS, "os.memfd_create('x')"),
    "a program in the scratch directory": (
        BOTH,
        "shutil.copy('/bin/true', scratch + '/p'); os.chmod(scratch + '/p', 0o755); subprocess.run([scratch + '/p'], check=True)",
    ),
}

READ_ATTACKS: Mapping[str, tuple[frozenset[str], str]] = {
    "users": (FILES, "open('/etc/passwd').read()"),
    "passwords": (FILES, "open('/etc/shadow').read()"),
    "host keys": (FILES, "os.listdir('/etc/ssl' if os.path.isdir('/etc/ssl') else '/etc')"),
    "home": (FILES, "os.listdir(os.path.dirname(outside))"),
    "home of root": (FILES, "os.listdir('/root')"),
    "root directory": (FILES, "os.listdir('/')"),
    "a secret": (FILES, "open(outside + '/secret').read()"),
    "a secret by a link of the tree": (FILES, "open(tree + '/file-link').read()"),
    "a secret by a linked directory": (FILES, "open(tree + '/directory-link/secret').read()"),
    "a listing by a linked directory": (FILES, "os.listdir(tree + '/directory-link')"),
    "a secret by ..": (FILES, "open(tree + '/../../secrets/secret').read()"),
    "a secret from a descriptor": (
        FILES,
        "os.read(os.open('../../secrets/secret', os.O_RDONLY, dir_fd=os.open(tree, os.O_RDONLY)), 9)",
    ),
    "a secret by O_PATH": (
        FILES,
        "open(f'/proc/self/fd/{os.open(outside + \"/secret\", os.O_PATH)}').read()",
    ),
    "a secret by a new link": (BOTH, "os.symlink(outside + '/secret', scratch + '/l'); open(scratch + '/l').read()"),
    "a secret by a hard link": (BOTH, "os.link(outside + '/secret', scratch + '/h')"),
    "a secret by renaming": (
        FILES,
        "os.rename(outside + '/secret', scratch + '/r'); os.rename(scratch + '/r', outside + '/secret')",
    ),
    "a secret by a handle": (
        CALLS,
        "call('name_to_handle_at', -100, (outside + '/secret').encode(), "
        "struct.pack('Ii', 128, 0) + b'x' * 128, ctypes.create_string_buffer(8), 0)",
    ),
    "a secret by sendfile": (
        FILES,
        "os.sendfile(os.open(scratch + '/s', os.O_CREAT | os.O_WRONLY), os.open(outside + '/secret', 0), 0, 9)",
    ),
    "environment of the server": (FILES, "open(f'/proc/{parent}/environ').read()"),
    "command line of the server": (FILES, "open(f'/proc/{parent}/cmdline').read()"),
    "memory of the server": (FILES, "open(f'/proc/{parent}/mem', 'rb')"),
    "descriptors of the server": (FILES, "os.listdir(f'/proc/{parent}/fd')"),
    "root of the server": (FILES, "os.listdir(f'/proc/{parent}/root/')"),
    "first process": (FILES, "open('/proc/1/cmdline').read()"),
    "mounts": (FILES, "open('/proc/self/mountinfo').read()"),
    "own memory as a file": (FILES, "open('/proc/self/mem', 'wb')"),
    "kernel's log": (BOTH, "open('/dev/kmsg', 'rb')"),
    "environment": (ALWAYS, "os.environ['SALTERN_TEST_SECRET']"),
    "home in the environment": (ALWAYS, "os.environ['HOME']"),
}

WRITE_ATTACKS: Mapping[str, tuple[frozenset[str], str]] = {
    "beside the scratch directory": (FILES, "open(scratch + '-2', 'w').close(); os.unlink(scratch + '-2')"),
    "temporary file": (FILES, "tempfile.NamedTemporaryFile(dir='/tmp').close()"),
    "shared memory": (FILES, "tempfile.NamedTemporaryFile(dir='/dev/shm').close()"),
    "a new file of the tree": (FILES, "open(tree + '/new.sls', 'w').close(); os.unlink(tree + '/new.sls')"),
    "a file of the tree": (FILES, "open(tree + '/web.sls', 'a').close()"),
    "a file of the user": (FILES, "open(outside + '/secret', 'r+').close()"),
    "emptying a file": (BOTH, "os.truncate(outside + '/secret', 5)"),
    "removing a file": (FILES, "os.unlink(outside + '/secret'); open(outside + '/secret', 'w').write('token')"),
    "a directory": (FILES, "os.mkdir(outside + '/d'); os.rmdir(outside + '/d')"),
    "removing a directory": (FILES, "shutil.rmtree(outside); os.mkdir(outside); open(outside + '/secret', 'w').write('token')"),
    "moving a file out": (FILES, "open(scratch + '/m', 'w').close(); os.rename(scratch + '/m', outside + '/m')"),
    "moving a file over another": (FILES, "open(scratch + '/m', 'w').close(); os.replace(scratch + '/m', tree + '/m')"),
    "a link": (BOTH, "os.symlink('/etc', scratch + '/l2')"),
    "a named pipe": (BOTH, "os.mkfifo(scratch + '/f')"),
    "a device": (BOTH, "os.mknod(scratch + '/n', 0o600 | stat.S_IFCHR, os.makedev(1, 3))"),
    "mode of a secret": (CALLS, "os.chmod(outside + '/secret', 0o644)"),
    "mode by a descriptor": (CALLS, "os.fchmod(os.open(tree + '/web.sls', os.O_RDONLY), 0o666)"),
    "owner": (CALLS, "os.chown(outside + '/secret', os.getuid(), os.getgid())"),
    "times": (CALLS, "os.utime(outside + '/secret', (0, 0))"),
    "attributes": (CALLS, "os.setxattr(tree + '/web.sls', 'user.x', b'y')"),
    "a set-user-id file": (CALLS, "open(scratch + '/u', 'w').close(); os.chmod(scratch + '/u', 0o4755)"),
    "crontab": (FILES, "open('/etc/crontab' if os.path.exists('/etc/crontab') else '/etc/passwd', 'a').close()"),
    "another process's score": (FILES, "open(f'/proc/{parent}/oom_score_adj', 'a').close()"),
}  # fmt: skip

PROCESS_ATTACKS: Mapping[str, tuple[frozenset[str], str]] = {
    "signal to the server": (BOTH, "os.kill(parent, 0)"),
    "signal to its group": (CALLS, "os.killpg(os.getpgid(parent), 0)"),
    "signal to a thread of the server": (BOTH, "call('tgkill', parent, parent, 0)"),
    "signal with a value": (BOTH, "call('rt_sigqueueinfo', parent, 0, struct.pack('3i', 0, 0, -1) + bytes(116))"),
    "descriptor of the server": (CALLS, "call('pidfd_open', parent, 0)"),
    "signal by a descriptor's owner": (CALLS, "r, w = os.pipe(); fcntl.fcntl(r, fcntl.F_SETOWN, parent)"),
    "ptrace": (BOTH, "call('ptrace', 0x4206, parent, 0, 0)"),
    "memory of the server": (BOTH, "b = ctypes.create_string_buffer(8); v = struct.pack('QQ', ctypes.addressof(b), 8)\n"
        "call('process_vm_readv', parent, v, 1, struct.pack('QQ', address, 8), 1, 0)"),
    "limits of the server": (CALLS, "resource.prlimit(parent, resource.RLIMIT_CORE)"),
    "processors of the server": (CALLS, "os.sched_setaffinity(parent, os.sched_getaffinity(parent))"),
    "priority of the server": (CALLS, "os.setpriority(os.PRIO_PROCESS, parent, os.getpriority(os.PRIO_PROCESS, parent))"),
    "scheduler of the server": (CALLS, "os.sched_setscheduler(parent, os.SCHED_BATCH, os.sched_param(0))\n"
        "os.sched_setscheduler(parent, os.SCHED_OTHER, os.sched_param(0))"),
    "group of processes": (CALLS, "os.setpgid(0, 0)"),
    "session": (CALLS, "os.getsid(parent)"),
    "shared memory of System V": (CALLS, "call('shmget', 0, 4096, 0o1600)"),
    "queue of messages": (CALLS, "call('msgget', 0, 0o1600)"),
}  # fmt: skip

KERNEL_ATTACKS: Mapping[str, tuple[frozenset[str], str]] = {
    "user namespace": (CALLS, "call('unshare', 0x10000000)"),
    "mount namespace": (CALLS, "call('unshare', 0x00020000)"),
    "changing the root": (CALLS, "os.chroot(scratch)"),
    "changing the directory": (CALLS, "os.chdir('/')"),
    "another user": (CALLS, "os.setuid(os.getuid())"),
    "another group": (CALLS, "os.setgid(os.getgid())"),
    "capabilities": (CALLS, "call('capget', struct.pack('=II', 0x20080522, 0), ctypes.create_string_buffer(24))"),
    "name of the host": (CALLS, "socket.sethostname(socket.gethostname())"),
    "personality": (CALLS, "call('personality', 0xFFFFFFFF)"),
    "key ring": (CALLS, "call('keyctl', 0, -3, 1)"),
    "user faults": (CALLS, "os.close(call('userfaultfd', 1))"),
    "process settings": (CALLS, "call('prctl', 4, 1, 0, 0, 0)"),
    "a program of the kernel": (CALLS, "call('bpf', 0, struct.pack('4I', 2, 4, 4, 1) + bytes(56), 72)"),
    "measuring": (CALLS, "call('perf_event_open', struct.pack('IIQ', 1, 112, 0) + bytes(96), 0, -1, -1, 0)"),
    "locked memory": (CALLS, "call('mlock', id(libc) // 4096 * 4096, 4096)"),
}  # fmt: skip

LIMIT_ATTACKS: Mapping[str, tuple[frozenset[str], str]] = {
    "memory at once": (ALWAYS, "bytearray(3 << 30)"),
    "memory in steps": (ALWAYS, "a = [bytes(64 << 20) for _ in range(48)]"),
    "memory by mapping": (ALWAYS, "mmap.mmap(-1, 3 << 30)"),
    "more processor time": (ALWAYS, "resource.setrlimit(resource.RLIMIT_CPU, (9999, 9999))"),
    "more memory": (ALWAYS, "resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))"),
    "a large file": (ALWAYS, "open(scratch + '/large', 'wb').truncate(1 << 30)"),
    "open files": (ALWAYS, "a = [open(tree + '/web.sls') for _ in range(2000)]"),
}

ATTACKS = {
    f"{kind}: {name}": attack
    for kind, attacks in (
        ("network", NETWORK_ATTACKS),
        ("program", PROGRAM_ATTACKS),
        ("read", READ_ATTACKS),
        ("write", WRITE_ATTACKS),
        ("process", PROCESS_ATTACKS),
        ("kernel", KERNEL_ATTACKS),
        ("limit", LIMIT_ATTACKS),
    )
    for name, attack in attacks.items()
}


def _holds(held: Sequence[str], wall: str) -> bool:
    return any(each.startswith(wall) for each in held)


@pytest.mark.parametrize("name", ATTACKS)
def test_python_in_the_renderer_reaches_nothing(field: Field, name: str) -> None:
    walls, code = ATTACKS[name]
    answer = field.worker.ask("python", 60, code=code, names=dict(field.names))
    confinement = field.worker.confinement
    assert confinement is not None
    if any(_holds(confinement.held, wall) for wall in walls):
        assert answer, f"{name} got in"
    else:
        assert any(_holds(confinement.missing, wall) for wall in walls), confinement


#: (the only wall, attack): each wall is tried without the others, which would hide its holes.
ALONE = [(wall, name) for wall in (LANDLOCK, SECCOMP, NETWORK) for name, (walls, _) in ATTACKS.items() if wall in walls]


@pytest.fixture(scope="module")
def alone(field: Field) -> Mapping[str, tuple[dict[str, str], list[str]]]:
    """What the attacks came to with one wall: wall -> ({name: "" or exception}, walls that hold)."""
    found = {}
    for wall in (LANDLOCK, SECCOMP, NETWORK):
        scratch = field.tree.parents[1] / f"scratch-{wall}"
        scratch.mkdir()
        codes = {name: ATTACKS[name][1] for one, name in ALONE if one == wall}
        others = [each for each in (LANDLOCK, SECCOMP, NETWORK) if each != wall]
        answers, held, status = attempts(
            codes, field.names, reads=[str(field.tree)], scratch=str(scratch), without=others
        )
        assert status == 0
        found[wall] = (answers, held)
    return found


@pytest.mark.parametrize(("wall", "name"), ALONE)
def test_each_wall_holds_without_the_others(
    alone: Mapping[str, tuple[dict[str, str], list[str]]], wall: str, name: str
) -> None:
    answers, held = alone[wall]
    assert answers[name] or not _holds(held, wall), f"{name} got in"


@pytest.mark.ordinary
def test_this_kernel_has_walls(field: Field) -> None:
    field.worker.ask("python", 60, code="", names={})
    confinement = field.worker.confinement
    assert confinement is not None
    walls = {each.partition(" (")[0] for each in (*confinement.held, *confinement.missing)}
    assert walls == {LIMITS, NETWORK, LANDLOCK, SECCOMP}
    assert LIMITS in confinement.held
    assert confinement.text().startswith("the renderer is confined by: limits")


#: What the renderer must still be able to do.
NEEDED = {
    "read the tree": "open(tree + '/web.sls').read()",
    "list the tree": "os.listdir(tree)",
    "write into scratch": "open(scratch + '/own', 'w').write('x'); os.unlink(scratch + '/own')",
    "directories in scratch": "os.makedirs(scratch + '/a/b'); shutil.rmtree(scratch + '/a')",
    "import": "import decimal, zoneinfo, xml.dom.minidom; zoneinfo.available_timezones",
    "threads": "t = threading.Thread(target=int); t.start(); t.join()",
    "time": "time.sleep(0.01); time.localtime()",
    "memory": "bytearray(256 << 20)",
    "chance": "os.urandom(8)",
    "own memory": "assert int(open('/proc/self/statm').read().split()[1]) > 0",
    "facts": "os.uname(); os.getuid(); os.getpid(); resource.getrlimit(resource.RLIMIT_AS)",
}


@pytest.mark.ordinary
@pytest.mark.parametrize("name", NEEDED)
def test_the_renderer_can(field: Field, name: str) -> None:
    assert field.worker.ask("python", 60, code=NEEDED[name], names=dict(field.names)) == ""


def test_no_capability_is_kept(tmp_path: Path) -> None:
    held = """
        found = ctypes.create_string_buffer(24)
        call('capget', struct.pack('=II', 0x20080522, 0), found)
        effective, permitted, inheritable, *more = struct.unpack('=6I', found.raw)
        # Root keeps the right to read files of others: Landlock says which.
        if not any([effective & ~4, permitted & ~4, inheritable, *more]):
            raise PermissionError('no capability')
        """
    # The filter of system calls would refuse the question.
    walls = [SECCOMP, LANDLOCK]
    answers, _, _ = attempts({"held": held}, {}, reads=[], scratch=str(tmp_path), without=walls)
    assert answers == {"held": "PermissionError: no capability"}


def test_processor_time_ends(field: Field, tmp_path: Path) -> None:
    answers, _, status = attempts({"spin": "while True: pass"}, {}, reads=[], scratch=str(tmp_path), cpu=1)
    assert (answers, status) == ({}, -signal.SIGKILL)


#: What the process writes to the server: the code finds the pipe of the answers as ``pipe``.
LIES = {
    "no end of line": ("os.write(pipe, b'x'); time.sleep(60)", "took longer than"),
    "no JSON": ("os.write(pipe, b'x\\n'); time.sleep(60)", "the process that renders"),
    "deep JSON": ("os.write(pipe, b'[' * 60000 + b'\\n'); time.sleep(60)", "the process that renders"),
    "a number with a million digits": (
        "os.set_blocking(pipe, True); os.write(pipe, b'1' * 1000000 + b'\\n')",
        "the process that renders",
    ),
    "another number": ('os.write(pipe, b\'{"id": 999, "result": 1}\\n\'); time.sleep(60)', "to another question"),
    "no number": ("os.write(pipe, b'{}\\n'); time.sleep(60)", "to another question"),
    "a list": ("os.write(pipe, b'[]\\n'); time.sleep(60)", "to another question"),
    "two answers": ('os.write(pipe, b\'{"id": 1, "result": 1}\\n\' * 2); time.sleep(60)', "the process that renders"),
    "not UTF-8": ("os.write(pipe, b'\\xff\\n'); time.sleep(60)", "the process that renders"),
    "nothing more": ("os.close(pipe); time.sleep(60)", "the process that renders"),
    "its end": ("os._exit(3)", "exit status 3"),
    "no answer": ("time.sleep(60)", "took longer than"),
    "no answer while it computes": ("while True: pass", "took longer than"),
    "an answer without end": (
        "os.set_blocking(pipe, True)\nwhile True: os.write(pipe, b' ' * 65536)",
        "more than 16 MiB",
    ),
}


@pytest.mark.parametrize("name", LIES)
def test_the_server_does_not_wait_for_a_lying_renderer(field: Field, name: str) -> None:
    code, said = LIES[name]
    find = "pipe = next(fd for fd in range(3, 64) if is_pipe(fd))"
    is_pipe = (
        "def is_pipe(fd):\n    try: return stat.S_ISFIFO(os.fstat(fd).st_mode)\n    except OSError: return False\n"
    )
    worker = Worker(Settings({"base": [str(field.tree)]}, grains="/dev/null"), "tests.security.broken_sandbox")
    try:
        with pytest.raises(WorkerFailed, match=said):
            worker.ask("python", 3, code=f"{is_pipe}{find}\n{code}", names={})
        assert worker.pid == 0
        # The next request gets a new process.
        assert worker.ask("python", 60, code="", names={}) == ""
    finally:
        worker.stop()


def test_the_server_does_not_wait_for_a_renderer_that_reads_nothing(field: Field) -> None:
    worker = Worker(Settings({"base": [str(field.tree)]}, grains="/dev/null"), "tests.security.broken_sandbox")
    try:
        worker.ask("python", 60, code="", names={})
        os.kill(worker.pid, signal.SIGSTOP)
        with pytest.raises(WorkerFailed, match="took longer than"):
            worker.ask("python", 2, code="#" * (4 << 20), names={})
        assert worker.pid == 0
    finally:
        worker.stop()


def test_a_stopped_server_ends_the_renderer_during_a_request(field: Field) -> None:
    worker = Worker(Settings({"base": [str(field.tree)]}, grains="/dev/null"), "tests.security.broken_sandbox")
    worker.ask("python", 60, code="", names={})
    scratch = Path(str(worker._scratch))
    failed: list[WorkerFailed] = []

    def ask() -> None:
        try:
            worker.ask("python", 60, code="time.sleep(60)", names={})
        except WorkerFailed as error:
            failed.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    worker.stop()
    asking.join(30)
    worker.stop()
    assert not asking.is_alive()
    assert not scratch.exists()


def test_a_renderer_that_used_half_of_its_time_is_replaced(field: Field) -> None:
    worker = Worker(Settings({"base": [str(field.tree)]}, grains="/dev/null"), "tests.security.broken_sandbox")
    try:
        worker.ask("python", 60, code="", names={})
        before = worker.pid
        worker.ask("python", 60, code=f"time.process_time = lambda: {CPU_SECONDS}", names={})
        worker.ask("python", 60, code="", names={})
        assert worker.pid not in (0, before)
    finally:
        worker.stop()


# ------------------------------------------------------------------------------------------------------------------- filter

_ERRNO, _KILLED, _ALLOWED = 0x00050000, 0x80000000, 0x7FFF0000


def _verdict(filter_: bytes, machine: int, number: int, arguments: Sequence[int] = ()) -> int:
    """Run a filter as the kernel does: four instructions are enough for ours."""
    data = struct.pack("=IIQ6Q", number, machine, 0, *[*arguments, *[0] * 6][:6])
    steps = list(struct.iter_unpack("=HBBI", filter_))
    place = loaded = 0
    while True:
        code, when, otherwise, value = steps[place]
        place += 1
        if code == 0x20:
            (loaded,) = struct.unpack_from("=I", data, value)
        elif code == 0x06:
            return int(value)
        else:
            test = {0x15: loaded == value, 0x35: loaded >= value, 0x45: bool(loaded & value)}[code]
            place += when if test else otherwise


#: Machine -> (its number, calls that never may be allowed there: execve, execveat, socket, connect, ptrace, kill, mount, bpf,
#: chmod by name, io_uring_setup, unshare, setns, process_vm_writev, open_by_handle_at).
FILTERS = {
    "x86_64": (0xC000003E, (59, 322, 41, 42, 101, 62, 165, 321, 90, 425, 272, 308, 311, 304)),
    "aarch64": (0xC00000B7, (221, 281, 198, 203, 117, 129, 40, 280, 53, 425, 97, 268, 271, 265)),
}


@pytest.mark.parametrize(
    ("machine", "number"), [(name, each) for name, (_, listed) in FILTERS.items() for each in listed]
)
def test_a_filter_refuses(machine: str, number: int) -> None:
    assert _verdict(call_filter(machine, 7), FILTERS[machine][0], number) == _ERRNO | 1


@pytest.mark.parametrize("machine", FILTERS)
def test_a_filter_allows_no_other_machine_and_no_unknown_call(machine: str) -> None:
    ours, own = call_filter(machine, 7), FILTERS[machine][0]
    for number in range(300):
        for other in (0x40000003, 0x40000028, *(each for each, _ in FILTERS.values() if each != own)):
            assert _verdict(ours, other, number) == _KILLED
    allowed = {number for number in range(2000) if _verdict(ours, own, number) == _ALLOWED}
    known = {numbers[list(FILTERS).index(machine)] for numbers in _CALLS.values()} - {None}
    # fcntl and prlimit64 are allowed with arguments of 0.
    assert known <= allowed
    assert len(allowed - known) <= 3
    if machine == "x86_64":
        assert all(_verdict(ours, own, 0x40000000 + number) != _ALLOWED for number in range(600))


@pytest.mark.parametrize("machine", FILTERS)
def test_a_filter_reads_arguments(machine: str) -> None:
    ours, own, column = call_filter(machine, 7), FILTERS[machine][0], list(FILTERS).index(machine)
    clone, tgkill, fcntl_ = ((56, 220)[column], (234, 131)[column], (72, 25)[column])
    assert _verdict(ours, own, clone, [0x10000]) == _ALLOWED
    assert _verdict(ours, own, clone, [17]) == _ERRNO | 1
    assert _verdict(ours, own, tgkill, [7, 7, 6]) == _ALLOWED
    assert _verdict(ours, own, tgkill, [8, 8, 9]) == _ERRNO | 1
    assert _verdict(ours, own, fcntl_, [0, 8, 9]) == _ERRNO | 1
    assert _verdict(ours, own, 435, [0, 88]) == _ERRNO | 38


def test_an_unknown_machine_has_no_filter() -> None:
    with pytest.raises(OSError, match="riscv64"):
        call_filter("riscv64", 7)
