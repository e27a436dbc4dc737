"""Real database servers for tests: in a temporary directory, on a socket there, for as long as the tests of a module run."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

#: Seconds that a server has to come up, and a preparation to end.
_PATIENCE = 90

#: A directory into which the packages of MariaDB were unpacked, where it is not installed.
MARIADB = os.environ.get("SALTERN_MARIADB", "")

#: A directory into which the packages of slapd were unpacked, where it is not installed.
SLAPD = os.environ.get("SALTERN_SLAPD", "")


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


@contextlib.contextmanager
def slapd(directory: Path, entries: str) -> Iterator[int]:
    """An OpenLDAP server on loopback that holds entries (LDIF) below dc=example; its port. Its administrator is
    cn=admin,dc=example with the password sesame. Anonymous users may not read the attribute description.
    """
    prefix = Path(SLAPD or "/")
    server = prefix / "usr/sbin/slapd"
    if not server.is_file():
        pytest.skip(
            "there is no slapd here (slapd; SALTERN_SLAPD names a directory into which its packages were unpacked)"
        )
    libraries = f"{SLAPD}/usr/lib/x86_64-linux-gnu:{SLAPD}/lib/x86_64-linux-gnu" if SLAPD else ""
    env = {**os.environ, **({"LD_LIBRARY_PATH": libraries} if libraries else {})}
    (directory / "data").mkdir()
    config, loaded = directory / "slapd.conf", directory / "entries.ldif"
    schemas = [f"include {prefix}/etc/ldap/schema/{name}.schema" for name in ("core", "cosine", "inetorgperson")]
    lines = [f"modulepath {prefix}/usr/lib/ldap", "moduleload back_mdb", *schemas]
    lines += [f"pidfile {directory}/pid", "database mdb", 'suffix "dc=example"', f"directory {directory}/data"]
    lines += [
        'rootdn "cn=admin,dc=example"',
        "rootpw sesame",
        "access to attrs=description by * none",
        "access to * by * read",
    ]
    config.write_text("\n".join([*lines, ""]))
    loaded.write_text(entries)
    _prepared([server, "-T", "add", "-f", config, "-l", loaded], env)
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]

    def up() -> bool:
        with contextlib.closing(socket.socket()) as asked:
            return asked.connect_ex(("127.0.0.1", port)) == 0

    with _running([server, "-d", "0", "-f", config, "-h", f"ldap://127.0.0.1:{port}"], env, up):
        yield port


@contextlib.contextmanager
def postgres() -> Iterator[Path]:
    """A PostgreSQL server; the directory of its socket. The system user postgres needs no password, others do."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if not found or os.geteuid() != 0:
        pytest.skip("there is no PostgreSQL server here (postgresql), or nobody who may become its user")
    program = found[-1].parent
    # Not below pytest's directories: those are for this user alone.
    directory = Path(tempfile.mkdtemp(prefix="saltern-postgres-"))
    try:
        shutil.chown(directory, "postgres")
        directory.chmod(0o755)
        (directory / "hba").write_text("local all postgres trust\nlocal all all scram-sha-256\n")
        env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
        init = [
            program / "initdb",
            "-D",
            directory / "data",
            "-A",
            "trust",
            "-U",
            "postgres",
            "--no-sync",
            "-E",
            "UTF8",
        ]
        _prepared(init, env, user="postgres")
        started = [program / "postgres", "-D", directory / "data", "-k", directory, "-c", "listen_addresses=", "-F"]
        started += ["-c", f"hba_file={directory}/hba", "-p", "5432"]
        ready = [str(program / "pg_isready"), "-q", "-h", str(directory)]
        with _running(started, env, lambda: subprocess.run(ready, check=False).returncode == 0, user="postgres"):
            yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _prepared(command: Sequence[object], env: dict[str, str], user: str | None = None) -> None:
    words = [str(each) for each in command]
    done = subprocess.run(
        words, env=env, capture_output=True, text=True, timeout=_PATIENCE, check=False, user=user, cwd="/"
    )
    assert done.returncode == 0, done.stdout + done.stderr


@contextlib.contextmanager
def _running(
    command: Sequence[object], env: dict[str, str], up: Callable[[], bool], user: str | None = None
) -> Iterator[None]:
    words = [str(each) for each in command]
    with subprocess.Popen(
        words, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, user=user, cwd="/"
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
