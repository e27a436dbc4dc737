"""A renderer whose sandbox failed: the child process of ``lsp/worker.py``, in which a request runs any Python.

``main`` is the child's. ``attempts`` is a process of its own with chosen walls, for what ends a process or tries one wall alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from statecore.lsp import confinement, worker
from statecore.lsp.rendering import Session

ROOT = Path(__file__).resolve().parents[2]

#: System calls that Python has no function for -> their numbers on x86_64 and aarch64.
CALLS = {
    "io_uring_setup": (425, 425),
    "clone": (56, 220),
    "clone3": (435, 435),
    "name_to_handle_at": (303, 264),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "pidfd_open": (434, 434),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "unshare": (272, 97),
    "capget": (125, 90),
    "personality": (135, 92),
    "keyctl": (250, 219),
    "userfaultfd": (323, 282),
    "prctl": (157, 167),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "mlock": (149, 228),
}

#: Names that the code of each attempt finds.
IMPORTS = """
import ctypes, errno, fcntl, mmap, multiprocessing, os, platform, pty, resource, shutil, socket, stat, struct, subprocess
import sys, tempfile, threading, time

libc = ctypes.CDLL(None, use_errno=True)

def call(name, *arguments):
    number = ctypes.c_long(CALLS[name][platform.machine() == "aarch64"])
    found = libc.syscall(number, *[ctypes.c_long(each) if isinstance(each, int) else each for each in arguments])
    if found < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return found
"""


def run(code: str, names: Mapping[str, object]) -> str:
    """Run code in this process. Return "" if it ended, else the text of its exception."""
    space: dict[str, object] = {**names, "CALLS": CALLS}
    exec(IMPORTS, space)
    try:
        exec(textwrap.dedent(code), space)
    except BaseException as error:  # noqa: BLE001 - whatever ended it, it did not get in
        return f"{type(error).__name__}: {error}"
    return ""


def _python(session: Session, request: Mapping[str, object]) -> object:
    names = request["names"]
    assert isinstance(names, Mapping)
    return run(str(request["code"]), {**names, "scratch": str(session.scratch)})


def main() -> int:
    """The child's main: its renderer's verbs, and ``python``."""
    return worker.main({**worker.VERBS, "python": _python})


def attempts(
    codes: Mapping[str, str],
    names: Mapping[str, object],
    *,
    reads: Sequence[str],
    scratch: str,
    without: Sequence[str] = (),
    cpu: int = 60,
) -> tuple[dict[str, str], list[str], int]:
    """Confine a new process without some of the walls, and run each code in it. Return ({name: "" or exception}, walls that
    hold, exit status).
    """
    described = {"codes": dict(codes), "names": dict(names), "reads": list(reads), "scratch": scratch}
    done = subprocess.run(
        [sys.executable, "-m", "tests.security.broken_sandbox"],
        input=json.dumps({**described, "without": list(without), "cpu": cpu}),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        cwd=ROOT,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines, done.stderr
    return dict(lines[1:]), lines[0], done.returncode


def _refused(*_: object) -> str:
    raise OSError(0, "left out by the test")


def _attempts() -> None:
    given = json.loads(sys.stdin.read())
    methods = {
        confinement.LANDLOCK: "restrict_files",
        confinement.SECCOMP: "filter_calls",
        confinement.NETWORK: "leave_network",
    }
    for name in given["without"]:
        if name in methods:
            setattr(confinement._Kernel, methods[name], _refused)
    if "everything" in given["without"]:
        held: tuple[str, ...] = ()
    else:
        rights = confinement.Rights(
            [*confinement.interpreter_paths(), *given["reads"]], given["scratch"], memory=2 << 30, cpu=given["cpu"]
        )
        held = confinement.confine(rights).held
    print(json.dumps(held), flush=True)
    for name, code in given["codes"].items():
        print(json.dumps([name, run(code, {**given["names"], "scratch": given["scratch"]})]), flush=True)


if __name__ == "__main__":
    _attempts()
