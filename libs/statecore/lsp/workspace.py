"""The workspace of one editor: index, catalogue, minion and renderer, kept current by threads. Speaks no protocol."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from statecore.lsp.catalogue import USERS, Catalogue
from statecore.lsp.completion import MinionData
from statecore.lsp.confinement import Confinement
from statecore.lsp.findings import Diagnostic, diagnostics
from statecore.lsp.index import InTree, TreeIndex
from statecore.lsp.settings import Settings
from statecore.lsp.worker import Worker, WorkerFailed

log = logging.getLogger(__name__)

#: Seconds after the last change of a document until it is checked.
_QUIET = 0.3

#: Seconds that a check, and the value of a hover, may take.
_CHECK_SECONDS = 60.0
_VALUE_SECONDS = 5.0

#: Seconds between the imports of two modules, so that requests and other programs get the processor meanwhile.
_PAUSE = 0.05

#: Called with a file and its findings, in the checker's thread.
Publish = Callable[[str, Sequence[Diagnostic]], None]

#: Called with the confinement of the process that renders, when it is known for the first time.
Confined = Callable[[Confinement], None]


class Workspace:
    """All that the server knows of one workspace. ``lock`` guards the index and the catalogue."""

    def __init__(self, settings: Settings, publish: Publish, confined: Confined) -> None:
        """Prepare an empty workspace. ``start`` reads the trees. ``confined`` is called once the renderer runs."""
        self.settings = settings
        self._confined = confined
        self.lock = threading.RLock()
        self.index = TreeIndex(settings.roots())
        self.catalogue = Catalogue()
        self.minion = MinionData()
        self.worker = Worker(settings)
        self._checker = Checker(self._check, publish)
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []
        #: Set once the trees were read for the first time.
        self.ready = threading.Event()

    def start(self) -> None:
        """Read the trees, import modules and ask for the minion's data, all in threads."""
        for work in (self._read_trees, self._warm, self._start_renderer, self._checker.run):
            thread = threading.Thread(target=work, name=work.__name__.strip("_"), daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """End the threads and the child process."""
        self._stopped.set()
        self._checker.stop()
        self.worker.stop()

    # ------------------------------------------------------------------------------------------------------------- documents

    def opened(self, file: str, text: str) -> None:
        """Take the text of a document that was opened or changed, and check it soon."""
        with self.lock:
            self.index.open(file, text)
            self._take_module(file, text)
        self.worker.set_text(file, text)
        self._checker.add(file)

    def closed(self, file: str) -> None:
        """Take the file's own text again."""
        with self.lock:
            self.index.close(file)
        self.worker.set_text(file, None)
        self._checker.forget(file)

    def changed_on_disk(self, files: Sequence[str]) -> None:
        """Read files again that changed on disk, and check the open documents again."""
        for file in files:
            self._reread(file)
        self._checker.again()
        self._ask_minion()

    def _reread(self, file: str) -> None:
        with self.lock:
            if not self.index.is_open(file):
                self.index.reread(file)
                self._take_module(file, self.index.files[file].text if file in self.index.files else "")

    def _take_module(self, file: str, text: str) -> None:
        at = self.index.place_of(file)
        for kind, directory in USERS.items():
            if at.tree == "states" and at.path.startswith(f"{directory}/") and at.path.endswith(".py"):
                self.catalogue.set_users(kind, file, text)

    # --------------------------------------------------------------------------------------------------------------- threads

    def _read_trees(self) -> None:
        started = time.monotonic()
        files = self.index.listed()
        for file, at in files.items():
            if self._stopped.is_set():
                return
            with self.lock:
                self.index.known.setdefault(file, at)
        for file in files:
            if self._stopped.is_set():
                return
            try:
                self._reread(file)
            except Exception:
                # One file of a stranger's tree must not keep the others from being read.
                log.exception("%s cannot be read", file)
        self.ready.set()
        log.info("%d files read in %.2f s", len(files), time.monotonic() - started)
        # What is declared elsewhere is known only now.
        self._checker.again()

    def _warm(self) -> None:
        """Import the modules one by one, so that the first completion in each does not wait for its import."""
        for kind in USERS:
            for name in self.catalogue.names(kind):
                if self._stopped.wait(_PAUSE):
                    return
                self.catalogue.module(kind, name)

    def _start_renderer(self) -> None:
        self._ask_minion()
        if self.worker.confinement is not None:
            self._confined(self.worker.confinement)

    def _ask_minion(self) -> None:
        try:
            answer = self.worker.ask("minion", _CHECK_SECONDS)
        except WorkerFailed as error:
            log.warning("grains and pillar of the minion are not known: %s", error)
            return
        if isinstance(answer, Mapping):
            self.minion = MinionData(answer["grains"], answer["pillar"])

    def _check(self, file: str) -> list[Diagnostic]:
        with self.lock:
            at = self.index.place_of(file)
        if not at.tree:
            return []
        try:
            found = self.worker.ask("check", _CHECK_SECONDS, file=file, at=list(at))
        except WorkerFailed as error:
            found = [{"level": "note", "rule": "check", "message": f"the file was not checked: {error}", "file": file}]
        assert isinstance(found, list)
        with self.lock:
            return diagnostics(found, self.index, self.catalogue, file)

    # ---------------------------------------------------------------------------------------------------------------- values

    def line_values(self, at: InTree, line: int) -> list[tuple[str, str]]:
        """Return (path of keys, value as text) of what a line renders to for the minion. Raise WorkerFailed."""
        found = self.worker.try_ask("values", _VALUE_SECONDS, at=list(at), line=line)
        assert isinstance(found, list)
        return [(str(keys), str(value)) for keys, value in found]

    def expression_values(self, at: InTree, text: str, start: int, end: int) -> list[str]:
        """Return the values of the expression in a Jinja tag for the minion. Raise WorkerFailed."""
        found = self.worker.try_ask("expression", _VALUE_SECONDS, at=list(at), text=text, start=start, end=end)
        assert isinstance(found, list)
        return [str(value) for value in found]


class Checker:
    """Checks documents a moment after their last change, one after the other, the most recently changed first."""

    def __init__(self, check: Callable[[str], list[Diagnostic]], publish: Publish) -> None:
        """Prepare the queue. ``run`` works it off until ``stop``."""
        self._check = check
        self._publish = publish
        self._changed = threading.Condition()
        #: Document -> time (monotonic) at which it is checked.
        self._due: dict[str, float] = {}
        self._open: set[str] = set()
        self._stopped = False

    def add(self, file: str) -> None:
        """Check a document soon."""
        with self._changed:
            self._open.add(file)
            self._due[file] = time.monotonic() + _QUIET
            self._changed.notify()

    def again(self) -> None:
        """Check all open documents again."""
        with self._changed:
            self._due |= dict.fromkeys(self._open, time.monotonic())
            self._changed.notify()

    def forget(self, file: str) -> None:
        """Do not check a document any more."""
        with self._changed:
            self._open.discard(file)
            self._due.pop(file, None)
        self._publish(file, [])

    def stop(self) -> None:
        """End ``run`` after the current check."""
        with self._changed:
            self._stopped = True
            self._changed.notify()

    def run(self) -> None:
        """Check documents as they become due, until ``stop``."""
        while (file := self._next()) is not None:
            try:
                found = self._check(file)
            except Exception:
                # The checker outlives a fault of one document.
                log.exception("%s cannot be checked", Path(file).name)
                continue
            with self._changed:
                # A document that changed meanwhile is checked again: these findings have old places.
                fresh = file in self._open and file not in self._due
            if fresh:
                self._publish(file, found)

    def _next(self) -> str | None:
        with self._changed:
            while not self._stopped:
                now = time.monotonic()
                ready = [file for file, due in self._due.items() if due <= now]
                if ready:
                    file = max(ready, key=lambda each: self._due[each])
                    del self._due[file]
                    return file
                self._changed.wait(min(self._due.values()) - now if self._due else None)
            return None
