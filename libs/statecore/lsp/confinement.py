"""Takes from this process what the rendering of a stranger's tree does not need.

The first wall around a stranger's template is Jinja's sandbox. This is the second wall: it holds when the first one failed
and the template runs any Python. Each part is taken where the kernel has it, and ``Confinement`` says which parts hold:

- ``landlock``: reads only beneath named paths, writes only beneath one directory, no program, no TCP (kernel 5.13 and newer;
  TCP since 6.7, signals and abstract sockets since 6.12).
- ``seccomp``: a list of allowed system calls. No socket, no process, no program, no signal to another process, no
  ``ptrace``, no ``mount``, no change of modes, owners or times of files. x86_64 and aarch64.
- ``no network namespace``: the process has a network namespace of its own, without an interface that is up.
- ``limits``: memory, processor time, size of a file, open files, no core dump (setrlimit).

What stays possible: the names, sizes and times of files can be asked for (stat), because no Landlock right covers that.
docs/security.md has the threat, docs/decisions/0026 the reasons.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import resource
import struct
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Rights:
    """What a confined process keeps. All paths are absolute; links in them are followed once, when the process is confined."""

    #: Files, and directories with all that is beneath them, that may be read. A path that does not exist is left out.
    reads: Sequence[str]
    #: Directory beneath which files and directories may be made, written and removed.
    scratch: str
    #: Largest address space in bytes.
    memory: int
    #: Processor time of the whole process in seconds; the kernel then kills it.
    cpu: int
    #: Largest file that the process may write, in bytes.
    file: int = 64 << 20
    #: Largest number of open descriptors.
    descriptors: int = 256


class Confinement(NamedTuple):
    """Which parts of the confinement hold in a process, and which do not, each with the reason."""

    held: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    def text(self) -> str:
        """Return a sentence for the log and the editor, without a full stop."""
        held = f"the renderer is confined by: {', '.join(self.held)}" if self.held else "the renderer is not confined"
        return f"{held}; not by: {'; '.join(self.missing)}" if self.missing else held


#: Parts without which a process reaches files, the network or other processes.
LANDLOCK, SECCOMP, NETWORK, LIMITS = "landlock", "seccomp", "no network namespace", "limits"


def confine(rights: Rights) -> Confinement:
    """Confine this process to ``rights``, for the rest of its life, and return what holds.

    Call it with a single thread: Linux confines threads, not processes. Raise RuntimeError if there are more.
    """
    if (threads := _threads()) != 1:
        raise RuntimeError(f"a process with {threads} threads cannot be confined")
    held: list[str] = []
    missing: list[str] = []
    _set_limits(rights)
    held.append(LIMITS)
    if not sys.platform.startswith("linux"):
        return Confinement(tuple(held), (f"{sys.platform} has neither Landlock nor seccomp",))
    kernel = _Kernel()
    kernel.take_privileges()
    for name, part in ((NETWORK, kernel.leave_network), (LANDLOCK, lambda: kernel.restrict_files(rights))):
        try:
            held.append(part() or name)
        except OSError as error:
            missing.append(f"{name} ({error.strerror})")
    kernel.drop_capabilities()
    try:
        kernel.filter_calls()
        held.append(SECCOMP)
    except OSError as error:
        missing.append(f"{SECCOMP} ({error.strerror})")
    return Confinement(tuple(held), tuple(missing))


def interpreter_paths() -> list[str]:
    """Return the paths that Python and its C libraries read while they import a module or convert a time."""
    places = [
        *sys.path,
        *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
        *(f"{prefix}/lib" for prefix in (sys.prefix, sys.base_prefix)),
        *("/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64", "/etc/ld.so.cache"),
        *("/usr/share/zoneinfo", "/etc/localtime", "/dev/null", "/dev/urandom"),
        # The limit of a template's memory reads it.
        "/proc/self/statm",
    ]
    return list(dict.fromkeys(place for place in places if place.startswith("/")))


def _threads() -> int:
    try:
        return len(os.listdir("/proc/self/task"))  # noqa: PTH208 - no Path for each thread
    except OSError:
        return 1


def _set_limits(rights: Rights) -> None:
    for limit, most in (
        (resource.RLIMIT_AS, rights.memory),
        (resource.RLIMIT_CPU, rights.cpu),
        (resource.RLIMIT_FSIZE, rights.file),
        (resource.RLIMIT_NOFILE, rights.descriptors),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(limit)[1]
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        # macOS refuses a limit of the address space.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(limit, (least, least))


# ------------------------------------------------------------------------------------------------------------------ numbers

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2
_CLONE_NEWUSER, _CLONE_NEWNET, _CLONE_NEWIPC, _CLONE_NEWUTS = 0x10000000, 0x40000000, 0x08000000, 0x04000000
_CLONE_THREAD = 0x00010000

#: Root may still read files of others, as it could before: Landlock says which.
_CAP_DAC_READ_SEARCH = 2
_CAPABILITY_VERSION = 0x20080522

#: Landlock's system calls, which have the same numbers on all architectures.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_RULE_PATH_BENEATH = 1

#: Rights of files by their bits (linux/landlock.h), and the version of the interface that brought the later ones.
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _REMOVE_DIR, _REMOVE_FILE = (1 << bit for bit in range(6))
_MAKE_DIR, _MAKE_REG = 1 << 7, 1 << 8
_TRUNCATE = 1 << 14
_FIRST_RIGHTS = (1 << 13) - 1
_LATER_RIGHTS: Mapping[int, int] = {2: 1 << 13, 3: _TRUNCATE, 5: 1 << 15}
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | 1 << 15
_READS = _READ_FILE | _READ_DIR
_WRITES = _READS | _WRITE_FILE | _TRUNCATE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG
_NO_TCP, _NO_ABSTRACT_SOCKETS_AND_SIGNALS = 0b11, 0b11

#: Name of a machine -> its number in a seccomp filter (linux/audit.h), and its column in ``_CALLS``.
_MACHINES: Mapping[str, tuple[int, int]] = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}

#: First number of the x32 interface, which x86_64 kernels take in the same filter.
_X32 = 0x40000000

#: The system calls that Python needs to read files, to write files, to compute and to tell the time, as (number on x86_64,
#: number on aarch64). None: that machine has no such call. Every other call fails with EPERM.
_CALLS: Mapping[str, tuple[int | None, int | None]] = {
    # Open files.
    "read": (0, 63), "write": (1, 64), "readv": (19, 65), "writev": (20, 66), "pread64": (17, 67), "pwrite64": (18, 68),
    "lseek": (8, 62), "close": (3, 57), "close_range": (436, 436), "ftruncate": (77, 46), "fsync": (74, 82),
    "dup": (32, 23), "dup2": (33, None), "dup3": (292, 24), "poll": (7, None), "ppoll": (271, 73),
    "select": (23, None), "pselect6": (270, 72), "sendfile": (40, 71), "copy_file_range": (326, 285),
    # Files by name: Landlock says which.
    "open": (2, None), "openat": (257, 56), "openat2": (437, 437),
    "access": (21, None), "faccessat": (269, 48), "faccessat2": (439, 439),
    "stat": (4, None), "lstat": (6, None), "fstat": (5, 80), "newfstatat": (262, 79), "statx": (332, 291),
    "statfs": (137, 43), "fstatfs": (138, 44), "readlink": (89, None), "readlinkat": (267, 78),
    "getdents64": (217, 61), "getcwd": (79, 17), "umask": (95, 166), "mkdir": (83, None), "mkdirat": (258, 34),
    "unlink": (87, None), "unlinkat": (263, 35), "rmdir": (84, None),
    "rename": (82, None), "renameat": (264, 38), "renameat2": (316, 276),
    # Memory, threads, signals of this process, time.
    "mmap": (9, 222), "munmap": (11, 215), "mremap": (25, 216), "mprotect": (10, 226), "madvise": (28, 233),
    "brk": (12, 214), "futex": (202, 98), "set_robust_list": (273, 99), "rseq": (334, 293), "sched_yield": (24, 124),
    "set_tid_address": (218, 96), "sched_getaffinity": (204, 123), "arch_prctl": (158, None), "membarrier": (324, 283),
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "sigaltstack": (131, 132),
    "restart_syscall": (219, 128), "setitimer": (38, 103), "getitimer": (36, 102),
    "clock_gettime": (228, 113), "clock_getres": (229, 114), "clock_nanosleep": (230, 115), "nanosleep": (35, 101),
    "gettimeofday": (96, 169), "time": (201, None), "times": (100, 153), "getrusage": (98, 165),
    # Facts about this process and the machine.
    "getpid": (39, 172), "gettid": (186, 178), "getppid": (110, 173), "getrandom": (318, 278), "uname": (63, 160),
    "getuid": (102, 174), "geteuid": (107, 175), "getgid": (104, 176), "getegid": (108, 177), "getgroups": (115, 158),
    "sysinfo": (99, 179), "exit": (60, 93), "exit_group": (231, 94),
}  # fmt: skip

#: Calls that are allowed with some arguments alone: name -> (numbers as above, argument's index, allowed values).
#: ``fcntl`` without F_SETOWN and F_SETSIG, which send a signal to any process; ``ioctl`` without writing to a terminal.
_WITH_VALUES: Mapping[str, tuple[tuple[int, int], int, tuple[int, ...]]] = {
    "fcntl": ((72, 25), 1, (0, 1, 2, 3, 4, 1030)),
    "ioctl": ((16, 29), 1, (0x5401, 0x5451, 0x5450, 0x5421)),
    "prlimit64": ((302, 261), 0, (0,)),
    "getrlimit": ((97, 163), 0, tuple(range(16))),
}
_TGKILL, _CLONE, _CLONE3 = (234, 131), (56, 220), (435, 435)

# Classic BPF (linux/filter.h), and the fields of struct seccomp_data.
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _MACHINE = 0, 4
_ALLOW, _KILL = 0x7FFF0000, 0x80000000


def _low_half(argument: int) -> int:
    return 16 + 8 * argument


def _failing(number: int) -> int:
    return 0x00050000 | number


# ------------------------------------------------------------------------------------------------------------------- filter


def call_filter(machine: str, pid: int) -> bytes:
    """Return the seccomp filter of a process, as an array of ``struct sock_filter``. Raise OSError for an unknown machine."""
    if machine not in _MACHINES:
        raise OSError(errno.ENOSYS, f"its system calls are not known for {machine}")
    number, column = _MACHINES[machine]
    steps: list[tuple[int, int, int, int]] = [
        (_LOAD, 0, 0, _MACHINE),
        (_EQUAL, 1, 0, number),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":
        steps += _if(_AT_LEAST, _X32, [(_RETURN, 0, 0, _failing(errno.ENOSYS))])
    # glibc then uses clone, whose flags a filter can read.
    steps += _if(_EQUAL, _CLONE3[column], [(_RETURN, 0, 0, _failing(errno.ENOSYS))])
    steps += _if(_EQUAL, _CLONE[column], [(_LOAD, 0, 0, _low_half(0)), *_if(_ANY_BIT, _CLONE_THREAD, _PASS), _REFUSE])
    steps += _if(_EQUAL, _TGKILL[column], _if_one_of(0, (pid,)))
    for numbers, argument, values in _WITH_VALUES.values():
        steps += _if(_EQUAL, numbers[column], _if_one_of(argument, values))
    for numbers_or_none in _CALLS.values():
        if (call := numbers_or_none[column]) is not None:
            steps += _if(_EQUAL, call, _PASS)
    steps.append(_REFUSE)
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


_PASS = [(_RETURN, 0, 0, _ALLOW)]
_REFUSE = (_RETURN, 0, 0, _failing(errno.EPERM))


def _if(test: int, value: int, then: list[tuple[int, int, int, int]]) -> list[tuple[int, int, int, int]]:
    """Return the steps ``then`` behind a test of the loaded value, which skips them if it fails."""
    return [(test, 0, len(then), value), *then]


def _if_one_of(argument: int, values: Iterable[int]) -> list[tuple[int, int, int, int]]:
    """Return the steps that allow a call whose argument has one of the values in its low half, and refuse it otherwise."""
    allowed = [step for value in values for step in _if(_EQUAL, value, _PASS)]
    return [(_LOAD, 0, 0, _low_half(argument)), *allowed, _REFUSE]


# ------------------------------------------------------------------------------------------------------------------- kernel


class _Program(ctypes.Structure):
    """``struct sock_fprog``."""

    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))


class _Kernel:
    """The system calls of a confinement. Each method raises OSError where the kernel refuses."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._machine = platform.machine()
        #: Descriptors that keep the rules of files in /proc alive, whose entries the kernel may drop otherwise.
        self._kept: list[int] = []

    def _checked(self, result: int, what: str) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, f"{what}: {os.strerror(number)}")
        return result

    def _call(self, number: int, what: str, *arguments: object) -> int:
        return self._checked(self._libc.syscall(ctypes.c_long(number), *arguments), what)

    def take_privileges(self) -> None:
        """Let no program that this process starts have more rights than the process: seccomp and Landlock demand it."""
        zero = ctypes.c_ulong(0)
        self._checked(
            self._libc.prctl(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), zero, zero, zero), "PR_SET_NO_NEW_PRIVS"
        )

    def leave_network(self) -> str:
        """Give the process empty namespaces for network, IPC and host name; return "". An ordinary user needs a user
        namespace for it.
        """
        kinds = _CLONE_NEWNET | _CLONE_NEWIPC | _CLONE_NEWUTS
        if self._libc.unshare(kinds) == 0:
            return ""
        user, group = os.geteuid(), os.getegid()
        self._checked(self._libc.unshare(kinds | _CLONE_NEWUSER), "unshare")
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            # Without the maps the process is the same user to the files, but has no name for itself.
            with contextlib.suppress(OSError):
                Path("/proc/self", name).write_text(text)
        return ""

    def drop_capabilities(self) -> None:
        """Drop the capabilities of root, and those that a user namespace gave."""
        kept = 1 << _CAP_DAC_READ_SEARCH if self._permitted() & 1 << _CAP_DAC_READ_SEARCH else 0
        header = struct.pack("=II", _CAPABILITY_VERSION, 0)
        self._checked(self._libc.capset(header, struct.pack("=6I", kept, kept, 0, 0, 0, 0)), "capset")

    def _permitted(self) -> int:
        found = ctypes.create_string_buffer(24)
        self._checked(self._libc.capget(struct.pack("=II", _CAPABILITY_VERSION, 0), found), "capget")
        return int(struct.unpack("=6I", found.raw)[1])

    def restrict_files(self, rights: Rights) -> str:
        """Allow reads and writes beneath the paths of ``rights`` alone; return the part's name with Landlock's version."""
        version = self._call(_CREATE_RULESET, "landlock", None, ctypes.c_size_t(0), ctypes.c_uint(1))
        handled = _FIRST_RIGHTS | sum(right for since, right in _LATER_RIGHTS.items() if since <= version)
        fields = [handled, _NO_TCP if version >= 4 else 0, _NO_ABSTRACT_SOCKETS_AND_SIGNALS if version >= 6 else 0]
        described = struct.pack("=QQQ", *fields)[: 8 if version < 4 else 16 if version < 6 else 24]
        rules = self._call(_CREATE_RULESET, "landlock", described, ctypes.c_size_t(len(described)), ctypes.c_uint(0))
        try:
            for path, wanted in (*((each, _READS) for each in rights.reads), (rights.scratch, _WRITES)):
                self._allow(rules, path, wanted & handled)
            self._call(_RESTRICT_SELF, "landlock", ctypes.c_int(rules), ctypes.c_uint(0))
        finally:
            os.close(rules)
        return f"{LANDLOCK} (version {version})"

    def _allow(self, rules: int, path: str, wanted: int) -> None:
        with _opened(path, keep=self._kept if path.startswith("/proc/") else None) as descriptor:
            if descriptor is None:
                return
            if not os.path.isdir(f"/proc/self/fd/{descriptor}"):  # noqa: PTH112 - a descriptor
                wanted &= _OF_FILES
            rule = struct.pack("=Qi", wanted, descriptor)
            self._call(_ADD_RULE, path, ctypes.c_int(rules), ctypes.c_int(_RULE_PATH_BENEATH), rule, ctypes.c_uint(0))

    def filter_calls(self) -> None:
        """Allow the system calls of ``_CALLS`` alone."""
        steps = call_filter(self._machine, os.getpid())
        held = ctypes.create_string_buffer(steps, len(steps))
        program = _Program(len(steps) // 8, ctypes.cast(held, ctypes.c_void_p))
        zero = ctypes.c_ulong(0)
        self._checked(
            self._libc.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), ctypes.byref(program), zero, zero),
            "PR_SET_SECCOMP",
        )


@contextlib.contextmanager
def _opened(path: str, *, keep: list[int] | None) -> Iterator[int | None]:
    """Yield a descriptor that names a path; None if there is no such path. With ``keep`` it is added there and stays open."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    try:
        yield descriptor
    finally:
        if keep is None:
            os.close(descriptor)
        else:
            keep.append(descriptor)
