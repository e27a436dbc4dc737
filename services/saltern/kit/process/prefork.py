"""A parent process that forks and supervises children, so that they share the memory of everything imported before.

The parent has one thread, no ZeroMQ context and no connection to Redis, so that a fork of it is safe at any time. It sleeps
until a signal, a probe or a timer needs it. A child that ends is replaced (``supervision`` says when). SIGTERM and SIGINT
end the children and then the parent; SIGHUP replaces them one after the other. If the parent dies, the kernel sends
SIGTERM to every child. Source: docs/decisions/0017-workers-from-one-parent.md
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import logging
import math
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import NoReturn, Protocol

from saltern.kit.process.supervision import Rollout, Watched
from statecore.host.content import private_files

#: Options of prctl(2): the signal that a process gets when its parent dies, and the name of a process (15 bytes).
_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15

_LIBC = ctypes.CDLL(None, use_errno=True)

#: Options of mallopt(3) -> value. A heap for each thread keeps pages that no other thread may use. Blocks of 4 MiB or more are
#: returned to the kernel when they are freed, and a heap whose end is free for 8 MiB shrinks; glibc would raise both limits to 32
#: and 64 MiB after the first large block. A piece of a file has 1 MiB and is copied on its way: if the kernel gave the pages of
#: each copy, they would cost three times what its encryption costs.
_MALLOC = {-8: 1, -3: 4 << 20, -1: 8 << 20}

#: Signals that the parent handles itself; children get the default actions back.
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)


@dataclass(frozen=True)
class Child:
    """A child process: its name, and the function that it runs. The function returns the exit code."""

    name: str
    run: Callable[[], int]
    #: Children of a higher stage are started later and ended earlier.
    stage: int = 0
    #: Seconds between SIGTERM and SIGKILL.
    grace: float = 15.0
    #: File that takes stdout and stderr; None: the parent's.
    log: Path | None = None
    #: Sockets of the parent that the child keeps open; all other files of ``Attached`` are closed.
    keeps: tuple[socket.socket, ...] = ()
    #: Whether SIGHUP to the parent replaces the child.
    reloads: bool = True


class Attached(Protocol):
    """Interface of an object that the parent's loop serves beside its children, such as a server that answers probes."""

    def attach(self, selector: selectors.BaseSelector) -> None:
        """Register sockets with the parent's selector.

        The data of each socket is a function, which is called with the socket when it is readable.
        """

    def next_time(self) -> float:
        """Return the monotonic time at which ``tick`` must be called; infinity: never."""

    def tick(self, now: float) -> None:
        """Do the work that is due at the time ``now`` (monotonic seconds), such as closing slow connections."""

    def files(self) -> Iterable[socket.socket]:
        """Yield the parent's sockets that a child process must close after the fork."""


@dataclass
class Parent:
    """The loop of the parent process: starts, watches, replaces and ends its children."""

    children: Sequence[Child]
    log: logging.Logger
    attached: list[Attached] = field(default_factory=list)
    #: Returns the children with which the present ones are replaced at SIGHUP, or None to keep them.
    reload: Callable[[], Sequence[Child] | None] | None = None

    def __post_init__(self) -> None:
        self._by_name = {child.name: child for child in self.children}
        self.watched = {child.name: Watched(child.name, child.stage, child.grace) for child in self.children}
        self._ending = self._reload_wanted = False
        self._rollout: Rollout | None = None
        self._selector: selectors.BaseSelector = selectors.DefaultSelector()
        self._woken, self._wakes = socket.socketpair()
        for one in (self._woken, self._wakes):
            one.setblocking(False)

    def run(self) -> int:
        """Keep the children running until SIGTERM or SIGINT. Return the exit code 0 after all children have ended."""
        self._catch_signals()
        for option, value in _MALLOC.items():
            _LIBC.mallopt(option, value)
        self._selector.register(self._woken, selectors.EVENT_READ, self._drain_wakeups)
        for one in self.attached:
            one.attach(self._selector)
        share()
        while True:
            now = time.monotonic()
            self._reap(now)
            if self._ending:
                self._end_stage(now)
                if not any(one.pid for one in self.watched.values()):
                    return 0
            else:
                self._roll(now)
                self._start_due(now)
            self._kill_overdue(now)
            for one in self.attached:
                one.tick(now)
            self._wait()

    def start(self, name: str) -> None:
        """Mark a stopped child to be started; the parent's loop starts it. Raises KeyError for an unknown name."""
        self.watched[name].want(time.monotonic())

    def stop(self, name: str) -> None:
        """Send SIGTERM to a child, without waiting, and do not start it again. Raises KeyError for an unknown name."""
        self.watched[name].wanted = False
        self._terminate(self.watched[name], time.monotonic())

    def restart(self, name: str) -> None:
        """Send SIGTERM to a child; its next process is started when it has ended. Raises KeyError for an unknown name."""
        self.watched[name].want(time.monotonic())
        self._terminate(self.watched[name], time.monotonic())

    def end(self) -> None:
        """Make the parent's loop end all children and then itself. Returns at once."""
        self._ending = True

    def _catch_signals(self) -> None:
        def handle(number: int, frame: FrameType | None) -> None:
            if number in (signal.SIGTERM, signal.SIGINT):
                self._ending = True
            elif number == signal.SIGHUP:
                self._reload_wanted = True

        for number in _SIGNALS:
            signal.signal(number, handle)
        # A signal that arrives just before the wait ends the wait.
        signal.set_wakeup_fd(self._wakes.fileno(), warn_on_full_buffer=False)

    def _drain_wakeups(self, woken: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError):
            while woken.recv(4096):
                pass

    def _wait(self) -> None:
        times = [one.next_time() for one in self.watched.values()] if not self._ending else []
        times += [one.kill_at for one in self.watched.values()]
        times += [one.next_time() for one in self.attached]
        if self._rollout:
            times.append(self._rollout.next_time(self.watched))
        until = min(times, default=math.inf)
        timeout = None if until == math.inf else max(0.0, until - time.monotonic())
        for key, _ in self._selector.select(timeout):
            key.data(key.fileobj)

    def _reap(self, now: float) -> None:
        """Record the child processes that have ended, and log how they ended. As process 1 of a container the parent
        also reaps orphans.
        """
        by_pid = {one.pid: one for one in self.watched.values() if one.pid}
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            if (child := by_pid.get(pid)) is not None:
                asked = child.state == "ending"
                pause = child.ended(os.waitstatus_to_exitcode(status), now)
                self._report(child, pid, pause, asked=asked)

    def _report(self, child: Watched, pid: int, pause: float, *, asked: bool) -> None:
        if asked or self._ending:
            self.log.info("%s (%d) ended: %s", child.name, pid, child.last_end)
        elif pause == math.inf:
            self.log.error("%s (%d) ended: %s; it is not started again", child.name, pid, child.last_end)
        elif pause:
            self.log.error("%s (%d) ended: %s; it starts again in %g s", child.name, pid, child.last_end, pause)
        else:
            self.log.info("%s (%d) is replaced by a new process", child.name, pid)

    def _start_due(self, now: float) -> None:
        for child in self.watched.values():
            if child.is_due(now):
                child.began(self._fork(self._by_name[child.name]), now)

    def _fork(self, child: Child) -> int:
        parent = os.getpid()
        # What the parent has written so far must not be written by the child once more.
        sys.stdout.flush()
        sys.stderr.flush()
        # A signal between the fork and the child's own handlers would be handled as the parent's.
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        pid = os.fork()
        if pid:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        else:
            self._become(child, parent)
        return pid

    def _become(self, child: Child, parent: int) -> NoReturn:
        code = 1
        try:
            end_with_parent(parent)
            # All children have the command line of the parent; `ps -o comm` and top tell them apart.
            _LIBC.prctl(_PR_SET_NAME, child.name.encode()[:15], 0, 0, 0)
            os.setpgid(0, 0)
            signal.set_wakeup_fd(-1)
            for number in _SIGNALS:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            self._close_files(child)
            if child.log is not None:
                redirect(child.log)
            code = child.run()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except BaseException:
            self.log.exception("%s failed", child.name)
        finally:
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    def _close_files(self, child: Child) -> None:
        self._selector.close()
        for one in (self._woken, self._wakes):
            one.close()
        for attached in self.attached:
            for file in attached.files():
                if file not in child.keeps:
                    file.close()

    def _terminate(self, child: Watched, now: float) -> None:
        if child.pid and child.state == "running":
            child.asked_to_end(now)
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGTERM)

    def _end_stage(self, now: float) -> None:
        """Send SIGTERM to the running children of the highest shutdown stage. The next stage follows when these
        children have ended.
        """
        running = [one for one in self.watched.values() if one.pid]
        highest = max((one.stage for one in running), default=0)
        for child in running:
            if child.stage == highest:
                self._terminate(child, now)

    def _kill_overdue(self, now: float) -> None:
        for child in self.watched.values():
            if child.pid and child.kill_at <= now:
                self.log.error("%s (%d) is killed: it did not end within %g s", child.name, child.pid, child.grace)
                child.killed()
                # With its own children, which are in its process group.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)

    def _roll(self, now: float) -> None:
        if self._reload_wanted and self._rollout is None:
            self._reload_wanted = False
            children = self.reload() if self.reload else self.children
            if children is not None:
                names = [child.name for child in children if child.reloads]
                self.log.info("replacing %d processes one after the other (SIGHUP)", len(names))
                self._by_name = {child.name: child for child in children}
                share()
                self._rollout = Rollout(names)
        if self._rollout is None:
            return
        if name := self._rollout.next(self.watched, now):
            self.restart(name)
        elif self._rollout.done:
            self.log.info("all processes are replaced")
            self._rollout = None


def share() -> None:
    """Prepare this process for forks: children then copy fewer of its memory pages.

    All present objects are excluded from garbage collection, which would write to each of them. CPython's cache of looked up
    attributes is emptied: each replaced entry would write to the name that it held, on a page of names that no child uses.
    """
    gc.collect()
    gc.freeze()
    if sys.version_info < (3, 12):
        # Later versions do not count references to such names.
        sys._clear_type_cache()


def end_with_parent(parent: int) -> None:
    """Let the kernel send SIGTERM to this process when its parent dies. Raises SystemExit if ``parent`` is dead already."""
    if _LIBC.prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:
        raise SystemExit(1)


def redirect(log: Path) -> None:
    """Append stdout and stderr of this process to a file. Raises OSError."""
    with private_files.opened(log) as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)


def program(words: Sequence[str], variables: Mapping[str, str] = {}) -> Callable[[], int]:
    """Return a function that replaces a child's process by a program, found in PATH, with additional environment variables."""

    def run() -> int:
        os.execvpe(words[0], list(words), {**os.environ, **variables})

    return run
