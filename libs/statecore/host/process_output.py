"""What a started program says until it ends, or until its time is over: then it goes with all that it started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess

#: Seconds that a command which ran out of time has to end by itself before it is killed.
_GRACE = 2.0


def said(process: subprocess.Popen[bytes], data: bytes | None, timeout: float | None) -> tuple[bytes, bytes, bool]:
    """(stdout, stderr, whether it ran out of time) of a leader of its own group, which ends after so many seconds."""
    try:
        out, err = process.communicate(data, timeout)
    except subprocess.TimeoutExpired:
        _signal_group(process, signal.SIGTERM)
        last = _ended(process)
        # Also where the command itself has ended: what it left behind may ignore the first signal, and hold no pipe.
        _signal_group(process, signal.SIGKILL)
        out, err = last or _ended(process) or _what_there_is(process)
        return out, err, True
    return out or b"", err or b"", False


def _ended(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes] | None:
    """All output, once nobody has the pipes any more; None when somebody still has them after a while."""
    try:
        out, err = process.communicate(timeout=_GRACE)
    except subprocess.TimeoutExpired:
        return None
    return out or b"", err or b""


def _what_there_is(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """The output so far: a process that left the group has the pipes, and lives on."""
    try:
        out, err = process.communicate(timeout=0)
    except subprocess.TimeoutExpired as late:
        out, err = late.output or b"", late.stderr or b""
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
    process.wait()
    return out or b"", err or b""


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
