"""The child process that renders and checks: ``lsp/rendering.py`` behind two pipes, one JSON text a line.

Rendering is kept out of the server's process: a template may loop until its time limit, and completion must answer meanwhile.
A request that takes too long ends the child; the next request starts a new one.

Unless the tree is trusted, the child is confined (``lsp/confinement.py``) before it reads the tree, has an empty environment, and
is not believed: its answers are bounded in size and time.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import resource
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from statecore.analysis.commands.exit_codes import CommandFault
from statecore.analysis.finding import merged
from statecore.lsp.confinement import Confinement, Rights, confine, interpreter_paths
from statecore.lsp.index import InTree
from statecore.lsp.rendering import Session
from statecore.lsp.settings import Settings
from statecore.model.errors import StatecoreError

log = logging.getLogger(__name__)

#: Largest address space of the child in bytes: a template may not fill the machine's memory.
_ADDRESSES = 2 << 30

#: Processor time of one child in seconds. A child that has used half of it is replaced between two requests.
CPU_SECONDS = 300

#: Longest value that the child answers, in characters.
_LONGEST = 10_000

#: Longest answer of the child, in bytes.
_LONGEST_ANSWER = 16 << 20

#: Seconds until a new child must have gathered the grains of this host and must be confined.
_START_SECONDS = 60.0

#: Answers one request of the server: the session and the request's fields in, a value for JSON out.
Answer = Callable[[Session, Mapping[str, object]], object]

# ------------------------------------------------------------------------------------------------------------- child process


def main(verbs: Mapping[str, Answer] | None = None) -> int:
    """Answer the requests on stdin until it ends. Answers go to the file descriptor that stdout was.

    The first line names the settings and a scratch directory; its answer says how the process is confined.
    """
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    # Whatever a module prints must not reach the answers.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    logging.basicConfig(level=logging.CRITICAL)
    first = json.loads(sys.stdin.readline())
    session = Session(Settings.from_data(first["settings"]), Path(first["scratch"]))
    _answer(answers, 0, {"result": _confined(session)._asdict()})
    for line in sys.stdin:
        request = json.loads(line)
        session.texts = {**session.texts, **request.get("texts", {})}
        for file in request.get("closed", ()):
            session.texts.pop(file, None)
        _answer(answers, request["id"], _answered(session, request, VERBS if verbs is None else verbs))
    return 0


def _confined(session: Session) -> Confinement:
    """Confine this process for an untrusted tree, and return what holds. Nothing of the tree was read before."""
    settings = session.settings
    if settings.trust:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES, resource.getrlimit(resource.RLIMIT_AS)[1]))
        return Confinement(missing=("the tree is trusted (--trust)",))
    if not settings.grains:
        # They come from files all over this host, which are out of reach afterwards.
        session.grains()
    reads = [*interpreter_paths(), *settings.paths()]
    return confine(Rights(reads, str(session.scratch), memory=_ADDRESSES, cpu=CPU_SECONDS))


def _answer(answers: IO[str], number: int, answer: Mapping[str, object]) -> None:
    answers.write(json.dumps({"id": number, "cpu": time.process_time(), **answer}) + "\n")
    answers.flush()


def _answered(session: Session, request: Mapping[str, object], verbs: Mapping[str, Answer]) -> dict[str, object]:
    try:
        return {"result": verbs[str(request["verb"])](session, request)}
    except (StatecoreError, CommandFault) as error:
        return {"error": str(error)}
    except Exception as error:
        # Any tree may be opened: what it breaks is told to the user, and the next request is answered.
        log.exception("%s failed", request["verb"])
        return {"error": f"{error} ({type(error).__name__})"}


def _at(request: Mapping[str, object]) -> InTree:
    at = request["at"]
    assert isinstance(at, list)
    return InTree(*(str(each) for each in at))


def _number(request: Mapping[str, object], name: str) -> int:
    value = request[name]
    assert isinstance(value, int)
    return value


def _check(session: Session, request: Mapping[str, object]) -> object:
    findings = merged({"": session.check(str(request["file"]), _at(request))})
    return [{key: value for key, value in one.as_data().items() if key != "excerpt"} for one in findings]


def _tree(session: Session, request: Mapping[str, object]) -> object:
    wanted = request["sls"]
    assert isinstance(wanted, list)
    return [one.as_data() for one in session.check_tree([str(each) for each in wanted])]


def _minion(session: Session, request: Mapping[str, object]) -> object:
    return json.loads(json.dumps(session.minion(), default=str))


def _values(session: Session, request: Mapping[str, object]) -> object:
    return [[keys, repr(value)[:_LONGEST]] for keys, value in session.values(_at(request), _number(request, "line"))]


def _expression(session: Session, request: Mapping[str, object]) -> object:
    start, end = _number(request, "start"), _number(request, "end")
    return [text[:_LONGEST] for text in session.expression(_at(request), str(request["text"]), start, end)]


#: Name of a request -> what answers it.
VERBS: Mapping[str, Answer] = {
    "check": _check,
    "tree": _tree,
    "minion": _minion,
    "values": _values,
    "expression": _expression,
}


# ------------------------------------------------------------------------------------------------------------ server's side


class WorkerFailed(Exception):
    """The child process gave no answer: ``str()`` says why, for the user."""


#: Runs ``main`` of a module. The child gets the search path of this process, and no environment that could name another one.
_START = (
    "import importlib, json, sys; sys.path[:] = json.loads(sys.argv[2]); "
    "sys.exit(importlib.import_module(sys.argv[1]).main())"
)


class Worker:
    """The server's handle of the child process. May be used by several threads: one request at a time."""

    def __init__(self, settings: Settings, module: str = __name__) -> None:
        """Prepare a child process for these settings. It starts with the first request. ``module`` has its ``main``."""
        self._settings = settings
        self._module = module
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._scratch = ""
        self._number = 0
        #: The paths of the settings with their inodes, as they were when the child started.
        self._opened: Sequence[tuple[str, int, int]] = ()
        #: Path -> text of the open document, and the same as the child knows it.
        self._texts: dict[str, str] = {}
        self._sent: dict[str, str] = {}
        #: How the child is confined, from its own first answer, before it read the tree. None before the first request.
        self.confinement: Confinement | None = None

    @property
    def pid(self) -> int:
        """The child's process number; 0 while there is none."""
        return self._child.pid if self._child is not None else 0

    def set_text(self, file: str, text: str | None) -> None:
        """Set the text of an open document; None when it is closed. The child gets it with the next request."""
        if text is None:
            self._texts.pop(file, None)
        else:
            self._texts[file] = text

    def ask(self, verb: str, seconds: float, **request: object) -> object:
        """Return the child's answer. Raise WorkerFailed with the reason if there is none within so many seconds."""
        with self._lock:
            return self._asked(verb, seconds, request)

    def try_ask(self, verb: str, seconds: float, **request: object) -> object:
        """Return the child's answer as ``ask`` does, but raise WorkerFailed at once while another request goes on."""
        if not self._lock.acquire(timeout=seconds):
            raise WorkerFailed("another request goes on")
        try:
            return self._asked(verb, seconds, request)
        finally:
            self._lock.release()

    def stop(self) -> None:
        """End the child process, also during a request, which then raises WorkerFailed."""
        if (child := self._child) is not None:
            child.kill()
        with self._lock:
            self._end()

    def _asked(self, verb: str, seconds: float, request: Mapping[str, object]) -> object:
        child = self._started()
        texts = dict(self._texts)
        self._number += 1
        message = {
            "id": self._number,
            "verb": verb,
            **request,
            "texts": {file: text for file, text in texts.items() if self._sent.get(file) != text},
            "closed": [file for file in self._sent if file not in texts],
        }
        answer = self._exchange(child, message, seconds)
        self._sent = texts
        used = answer.get("cpu")
        if not self._settings.trust and (not isinstance(used, int | float) or used > CPU_SECONDS / 2):
            # The kernel kills a confined child at the limit, perhaps in the middle of a later request.
            self._end()
        if "error" in answer:
            raise WorkerFailed(str(answer["error"]))
        return answer.get("result")

    def _started(self) -> subprocess.Popen[bytes]:
        """Return a running child, a new one if the last one ended or a path of the settings is another file by now."""
        named = _identities(self._settings)
        if self._child is not None and self._child.poll() is None and named == self._opened:
            return self._child
        self._end()
        if outside := self._settings.outside():
            raise WorkerFailed(f"{outside[0]} leads out of the folder {self._settings.folder} now, and is not read")
        self._number, self._sent, self._opened = 0, {}, named
        self._scratch = tempfile.mkdtemp(prefix="statecore-lsp-")
        path = json.dumps([each for each in sys.path if each.startswith("/")])
        child = self._child = subprocess.Popen(
            [sys.executable, "-I", "-X", "utf8", "-c", _START, self._module, path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env=None if self._settings.trust else {},
            # The tree's directory must not be imported from.
            cwd="/",
        )
        for pipe in (child.stdin, child.stdout):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
        message = {"id": 0, "settings": self._settings.as_data(), "scratch": self._scratch}
        first = self._exchange(child, message, _START_SECONDS)
        result = first.get("result")
        assert isinstance(result, Mapping)
        self.confinement = Confinement(tuple(result["held"]), tuple(result["missing"]))
        log.info("%s", self.confinement.text())
        return child

    def _exchange(
        self, child: subprocess.Popen[bytes], message: Mapping[str, object], seconds: float
    ) -> dict[str, object]:
        """Send a message and return the child's answer to it. Raise WorkerFailed, and end the child, if there is none within
        so many seconds, or if it is too long or no answer to this message.
        """
        try:
            line = _exchanged(child, (json.dumps(message) + "\n").encode(), time.monotonic() + seconds)
            answer = json.loads(line)
            if (
                not isinstance(answer, dict)
                or answer.get("id") != message["id"]
                or not {"result", "error"} & set(answer)
            ):
                raise WorkerFailed("the process that renders gave an answer to another question")
        except TimeoutError as error:
            self._end()
            raise WorkerFailed(f"rendering took longer than {seconds:g} seconds") from error
        except (OSError, ValueError, RecursionError) as error:
            raise WorkerFailed(f"the process that renders {self._end() or error}") from error
        except WorkerFailed:
            self._end()
            raise
        return answer

    def _end(self) -> str:
        """End the child and remove its scratch directory. Return how it ended before: "" if it was running."""
        child, self._child = self._child, None
        if child is None:
            return ""
        # A child whose pipes are closed is at its end.
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(0.2)
        code = child.poll()
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        shutil.rmtree(self._scratch, ignore_errors=True)
        if code is None:
            return ""
        if code == -signal.SIGKILL:
            return f"was killed: it used {CPU_SECONDS} seconds of processor time, or the machine's memory ran out"
        return f"ended (exit status {code})"


def _identities(settings: Settings) -> list[tuple[str, int, int]]:
    """Return the paths of the settings with device and inode; (path, 0, 0) for one that does not exist."""
    found = []
    for path in settings.paths():
        try:
            info = Path(path).stat()
            found.append((path, info.st_dev, info.st_ino))
        except OSError:
            found.append((path, 0, 0))
    return found


def _exchanged(child: subprocess.Popen[bytes], data: bytes, deadline: float) -> bytes:
    """Write all data to a child and return the line that it writes. Neither pipe is waited for longer than until the
    deadline (time.monotonic). Raise TimeoutError, OSError if the child closed a pipe, ValueError if it writes anything but a
    line of at most ``_LONGEST_ANSWER`` bytes after it read everything.
    """
    assert child.stdin is not None
    assert child.stdout is not None
    waiting, received = memoryview(data), bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdin, selectors.EVENT_WRITE)
        selector.register(child.stdout, selectors.EVENT_READ)
        while not received.endswith(b"\n"):
            ready = selector.select(max(deadline - time.monotonic(), 0))
            if not ready:
                raise TimeoutError
            for key, _ in ready:
                if key.fileobj is child.stdin:
                    waiting = waiting[os.write(key.fd, waiting[:65536]) :]
                    if not waiting:
                        selector.unregister(child.stdin)
                elif part := os.read(key.fd, 1 << 20):
                    received += part
                else:
                    raise BrokenPipeError("closed its pipe")
            if len(received) > _LONGEST_ANSWER:
                raise ValueError(f"gave an answer of more than {_LONGEST_ANSWER >> 20} MiB")
    if waiting or received.find(b"\n") != len(received) - 1:
        raise ValueError("gave an answer before the question was read")
    return bytes(received)
