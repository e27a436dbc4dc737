"""The child process that renders and checks: ``lsp/rendering.py`` behind two pipes, one JSON text a line.

Rendering is kept out of the server's process: a template may loop until its time limit, and completion must answer meanwhile.
A request that takes too long ends the child; the next request starts a new one.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import resource
import selectors
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

from statecore.analysis.commands.exit_codes import CommandFault
from statecore.analysis.finding import merged
from statecore.lsp.index import InTree
from statecore.lsp.rendering import Session
from statecore.lsp.settings import Settings
from statecore.model.errors import StatecoreError

log = logging.getLogger(__name__)

#: Largest address space of the child in bytes: a template may not fill the machine's memory.
_ADDRESSES = 4 << 30

#: Longest value that the child answers, in characters.
_LONGEST = 10_000


# ------------------------------------------------------------------------------------------------------------- child process


def main() -> int:
    """Answer the requests on stdin until it ends. Answers go to the file descriptor that stdout was."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    # Whatever a module prints must not reach the answers.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    logging.basicConfig(level=logging.CRITICAL)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES, resource.getrlimit(resource.RLIMIT_AS)[1]))
    with tempfile.TemporaryDirectory(prefix="statecore-lsp-") as scratch:
        session: Session | None = None
        for line in sys.stdin:
            request = json.loads(line)
            if (settings := request.get("settings")) is not None:
                session = Session(Settings.from_data(settings), Path(scratch))
            assert session is not None, "the first request brings the settings"
            session.texts = {**session.texts, **request.get("texts", {})}
            for file in request.get("closed", ()):
                session.texts.pop(file, None)
            answer = _answered(session, request)
            answers.write(json.dumps({"id": request["id"], **answer}) + "\n")
            answers.flush()
    return 0


def _answered(session: Session, request: Mapping[str, object]) -> dict[str, object]:
    try:
        return {"result": _VERBS[str(request["verb"])](session, request)}
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


def _minion(session: Session, request: Mapping[str, object]) -> object:
    return json.loads(json.dumps(session.minion(), default=str))


def _values(session: Session, request: Mapping[str, object]) -> object:
    return [[keys, repr(value)[:_LONGEST]] for keys, value in session.values(_at(request), _number(request, "line"))]


def _expression(session: Session, request: Mapping[str, object]) -> object:
    start, end = _number(request, "start"), _number(request, "end")
    return [text[:_LONGEST] for text in session.expression(_at(request), str(request["text"]), start, end)]


_VERBS: Mapping[str, Callable[[Session, Mapping[str, object]], object]] = {
    "check": _check,
    "minion": _minion,
    "values": _values,
    "expression": _expression,
}


# ------------------------------------------------------------------------------------------------------------ server's side


class WorkerFailed(Exception):
    """The child process gave no answer: ``str()`` says why, for the user."""


class Worker:
    """The server's handle of the child process. May be used by several threads: one request at a time."""

    def __init__(self, settings: Settings) -> None:
        """Prepare a child process for these settings. It starts with the first request."""
        self._settings = settings
        self._lock = threading.Lock()
        self._child: subprocess.Popen[str] | None = None
        self._number = 0
        #: Path -> text of the open document, and the same as the child knows it.
        self._texts: dict[str, str] = {}
        self._sent: dict[str, str] = {}

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
            **({} if self._number > 1 else {"settings": self._settings.as_data()}),
        }
        try:
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.write(json.dumps(message) + "\n")
            child.stdin.flush()
            self._sent = texts
            answer = self._read(child.stdout, seconds)
        except (BrokenPipeError, ValueError) as error:
            self.stop()
            raise WorkerFailed(f"the process that renders ended ({error})") from error
        if "error" in answer:
            raise WorkerFailed(str(answer["error"]))
        return answer["result"]

    def _read(self, stdout: IO[str], seconds: float) -> dict[str, object]:
        deadline = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            if not selector.select(max(deadline - time.monotonic(), 0)):
                self.stop()
                raise WorkerFailed(f"rendering took longer than {seconds:g} seconds")
        line = stdout.readline()
        found = json.loads(line)
        assert isinstance(found, dict)
        return found

    def _started(self) -> subprocess.Popen[str]:
        if self._child is None or self._child.poll() is not None:
            self._number, self._sent = 0, {}
            self._child = subprocess.Popen(
                [sys.executable, "-P", "-m", "statecore.lsp.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                encoding="utf-8",
                # The tree's directory must not be imported from.
                cwd="/",
            )
        return self._child

    def stop(self) -> None:
        """End the child process."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.wait()
            for pipe in (child.stdin, child.stdout):
                if pipe is not None:
                    with contextlib.suppress(BrokenPipeError):
                        pipe.close()


if __name__ == "__main__":
    raise SystemExit(main())
