"""Real database servers for tests: in a temporary directory, on a socket there, for as long as the tests of a module run."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

#: Seconds that a server has to come up, and a preparation to end.
_PATIENCE = 90

#: A directory into which the packages of MariaDB were unpacked, where it is not installed.
MARIADB = os.environ.get("SALTERN_MARIADB", "")


@contextlib.contextmanager
def mariadb(directory: Path) -> Iterator[Path]:
    """A MariaDB server; its socket. Whoever asks as root needs no password."""
    prefix = Path(MARIADB or "/", "usr")
    server = prefix / "sbin/mariadbd"
    if not server.is_file():
        pytest.skip("there is no MariaDB server here (mariadb-server; SALTERN_MARIADB names a directory that has one)")
    libraries = f"{prefix}/lib/x86_64-linux-gnu:{MARIADB}/lib/x86_64-linux-gnu" if MARIADB else ""
    env = {**os.environ, **({"LD_LIBRARY_PATH": libraries} if libraries else {})}
    data, socket = directory / "data", directory / "s"
    plain = ["--no-defaults", f"--basedir={prefix}", f"--datadir={data}"]
    install = [f"{prefix}/bin/mariadb-install-db", *plain, "--auth-root-authentication-method=normal", "--skip-test-db"]
    _prepared([*install, "--user=root"] if os.geteuid() == 0 else install, env)
    started = [
        server,
        *plain,
        f"--socket={socket}",
        "--skip-networking",
        f"--pid-file={directory}/pid",
        "--skip-log-bin",
    ]
    started += [f"--lc-messages-dir={prefix}/share/mysql", f"--plugin-dir={prefix}/lib/mysql/plugin"]
    with _running([*started, "--user=root"] if os.geteuid() == 0 else started, env, socket.exists):
        yield socket


def _prepared(command: Sequence[object], env: dict[str, str], **options: object) -> None:
    done = subprocess.run(
        [str(each) for each in command], env=env, capture_output=True, text=True, timeout=_PATIENCE, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@contextlib.contextmanager
def _running(command: Sequence[object], env: dict[str, str], up: Callable[[], bool]) -> Iterator[None]:
    with subprocess.Popen(
        [str(each) for each in command], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as server:
        try:
            deadline = time.monotonic() + _PATIENCE
            while not up():
                assert server.poll() is None, server.stdout.read() if server.stdout else ""
                assert time.monotonic() < deadline, "the server does not come up"
                time.sleep(0.05)
            yield
        finally:
            server.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.communicate(timeout=20)
            server.kill()
