"""Ten formulas applied by ours and by real Salt, on two equal Debian 12 machines that have systemd as process 1.

SALTERN_FORMULA_BASE: a directory where the userland and its packages are kept from run to run (500 MB).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.hosts.machine import Machine, unified_cgroups

from .snapshots import Files, facts, files

ROOT = Path(__file__).parents[2]

FORMULAS = ROOT / "examples" / "formulas"

#: Packages of every machine. python3 also brings the libraries that the interpreter of both environments needs.
_BASE = ("systemd", "systemd-sysv", "dbus", "python3", "ca-certificates", "iproute2", "procps", "kmod", "apt-utils")

#: Packages that formulas install, and what these need: a repository on the machine itself, so that no machine needs a network.
_REPOSITORY = (
    *("nginx", "nginx-light", "ssl-cert", "postgresql", "openssh-server", "iptables", "iptables-persistent", "cron"),
    *("logrotate", "openssl", "git", "docker.io", "busybox-static", "python3-venv"),
)

#: What the application's repository holds.
_APPLICATION: Mapping[str, str] = {
    "migrate.py": """\
import os, pathlib
state = pathlib.Path(os.environ["STATE"])
known = state.read_text() if state.exists() else ""
state.write_text("2")
print()
print("changed=%s comment='schema 2, was %s'" % ("no" if known == "2" else "yes", known or "none"))
""",
    "serve.py": """\
import functools, http.server, json, sys
settings = json.load(open(sys.argv[2]))
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = settings["greeting"].encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Page).serve_forever()
""",
}

_MINION = """\
id: web1
file_client: local
file_roots: {base: [%s]}
pillar_roots: {base: [/srv/pillar]}
log_level_logfile: quiet
fileserver_backend: [roots]
"""

#: Tag -> what the state returned.
Returns: TypeAlias = Mapping[str, Mapping[str, Any]]

#: Seconds for each step that makes the userland. It takes two minutes on a machine that does nothing else.
_SECONDS = 3600

_CALL = "import sys; from saltern.minion.call.call import main; sys.exit(main())"


@dataclass
class Applied:
    """One formula on one machine: what three runs returned, and what the machine held around them."""

    tested: Returns
    first: Returns
    second: Returns
    before: Files
    after_test: Files
    after: Files
    after_second: Files
    facts_before: Mapping[str, list[str]]
    facts_after_test: Mapping[str, list[str]]
    facts: Mapping[str, list[str]]
    seconds: Mapping[str, float]


@dataclass
class Figures:
    """A row for each formula, for the table at the end."""

    rows: list[str] = field(default_factory=list)


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The root of the userland that all machines are made of."""
    if os.geteuid() != 0:
        pytest.skip("only root boots machines")
    if shutil.which("debootstrap") is None:
        pytest.skip("debootstrap is not installed")
    if unified_cgroups() is None:
        pytest.skip("systemd needs cgroups of version 2, and this machine has none")
    kept = os.environ.get("SALTERN_FORMULA_BASE")
    root = (Path(kept) if kept else tmp_path_factory.mktemp("formulas")) / "base"
    complete = root / "srv/repository/complete"
    if not complete.exists() or complete.read_text() != " ".join(_REPOSITORY):
        shutil.rmtree(root, ignore_errors=True)
        _debootstrap(root)
        _furnish(root)
        complete.write_text(" ".join(_REPOSITORY))
    yield root
    if not kept:
        shutil.rmtree(root)


def _debootstrap(root: Path) -> None:
    root.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["debootstrap", "--variant=minbase", f"--include={','.join(_BASE)}", "bookworm", root],
        capture_output=True,
        text=True,
        timeout=_SECONDS,
    )
    assert done.returncode == 0, f"debootstrap fails: {done.stdout[-1000:]}{done.stderr[-1000:]}"
    # Empty: each machine gets an id of its own at its first boot.
    (root / "etc/machine-id").write_text("")


def _furnish(root: Path) -> None:
    def run(*argv: str) -> None:
        done = subprocess.run(["chroot", root, *argv], capture_output=True, text=True, timeout=_SECONDS)
        assert done.returncode == 0, f"{argv}: {done.stderr}{done.stdout}"

    (root / "etc/dpkg/dpkg.cfg.d/unsafe-io").write_text("force-unsafe-io\n")
    run("apt-get", "update")
    run("apt-get", "install", "-y", "--download-only", *_REPOSITORY)
    repository = root / "srv/repository"
    repository.mkdir()
    for package in (root / "var/cache/apt/archives").glob("*.deb"):
        package.rename(repository / package.name)
    run("sh", "-c", "cd /srv/repository && apt-ftparchive packages . >Packages")
    (root / "etc/apt/sources.list").write_text("deb [trusted=yes] file:/srv/repository ./\n")
    run("apt-get", "update")
    _application(root / "srv/git/shop.git")


def _application(repository: Path) -> None:
    """Make a bare repository with one commit, whose id is the same each time."""
    work = repository.with_name("work")
    work.mkdir(parents=True)
    for name, text in _APPLICATION.items():
        (work / name).write_text(text)
    who = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in _AUTHOR.items()}
    for argv in (
        ("init", "-q", "-b", "main", "."),
        ("add", "."),
        ("commit", "-q", "-m", "Serve a greeting"),
        ("clone", "-q", "--bare", ".", str(repository)),
    ):
        subprocess.run(["git", *argv], cwd=work, check=True, env={**os.environ, **who})
    shutil.rmtree(work)


_AUTHOR = {"NAME": "A", "EMAIL": "a@example.org", "DATE": "2026-01-01T00:00:00+0000"}


def _environment_of(executable: Path) -> list[Path]:
    """Directories that an interpreter of a virtual environment needs: the environment, and what it was made from."""
    prefix = executable.parent.parent
    home = re.search(r"^home = (.*)$", (prefix / "pyvenv.cfg").read_text(), re.MULTILINE)
    assert home is not None
    return [prefix, Path(home[1]).parent]


class Caller:
    """salt-call of one of the two on a machine."""

    def __init__(self, argv: list[str], shown: list[Path], env: Mapping[str, str]) -> None:
        self._argv = argv
        self._env = env
        # One that is within another is shown already.
        self.shown = [path for path in shown if not any(other in path.parents for other in shown)]

    def apply(self, machine: Machine, sls: str, **options: Any) -> Returns:
        """Apply an SLS; the states' returns by tag."""
        argv = [*self._argv, "--local", "--config-dir=/etc/salt", "--out=json", "--log-level=quiet", "state.apply", sls]
        argv += [f"{name}={value}" for name, value in options.items()]
        # Standard output alone: programs write warnings.
        said = machine.run("sh", "-c", 'exec "$@" 2>/tmp/errors', "sh", *argv, expect=None, env=self._env, seconds=900)
        try:
            told = json.loads(said)["local"]
        except (ValueError, KeyError):
            errors = machine.run("cat", "/tmp/errors")
            raise AssertionError(f"{sls}: no JSON: {said[-3000:]}{errors[-3000:]}") from None
        assert isinstance(told, dict), f"{sls}: {told}"
        return told


@pytest.fixture(scope="session")
def callers() -> Mapping[str, Caller]:
    """``ours`` and ``salt``."""
    oracle = os.environ.get("SALTERN_ORACLE")
    if not oracle:
        pytest.skip("SALTERN_ORACLE names no environment of real Salt")
    quiet = {"PYTHONDONTWRITEBYTECODE": "1"}
    ours, salts = Path(sys.executable), Path(oracle) / "bin/python"
    shown = [ROOT, *_environment_of(ours), *_environment_of(salts)]
    return {
        "ours": Caller([str(ours), "-c", _CALL], shown, {**quiet, "PYTHONPATH": f"{ROOT}/libs:{ROOT}/services"}),
        "salt": Caller([str(salts), str(salts.with_name("salt-call"))], shown, quiet),
    }


@pytest.fixture(scope="session")
def figures() -> Iterator[Figures]:
    """Rows that are printed at the end of the run (pytest -s shows them)."""
    collected = Figures()
    yield collected
    heading = (
        "formula",
        "states",
        "changed",
        "not announced here / in Salt",
        "files compared",
        "test, first, second run here (s)",
        "in Salt (s)",
    )
    rows = [f"| {' | '.join(heading)} |", "|---" * len(heading) + "|", *collected.rows]
    sys.stdout.write("\n" + "\n".join(rows) + "\n")


def applied(
    base: Path, directory: Path, callers: Mapping[str, Caller], formula: str, sls: str, probes: Mapping[str, str]
) -> dict[str, Applied]:
    """Apply a formula with both, each on a machine of its own, at the same time."""

    def run(who: str) -> Applied:
        caller = callers[who]
        # Both are called web1: templates may ask.
        machine = Machine(base, directory / who, "web1", in_memory=True, shown=caller.shown)
        try:
            return _runs(machine, caller, formula, sls, probes)
        finally:
            machine.stop()

    with ThreadPoolExecutor(max_workers=len(callers)) as pool:
        return dict(zip(callers, pool.map(run, callers), strict=True))


def _runs(machine: Machine, caller: Caller, formula: str, sls: str, probes: Mapping[str, str]) -> Applied:
    root = Path(f"/proc/{machine.pid}/root")
    etc, pillar = root / "etc/salt", root / "srv/pillar"
    etc.mkdir()
    pillar.mkdir()
    (etc / "minion").write_text(_MINION % (FORMULAS / formula))
    (pillar / "top.sls").write_text("base: {'*': [given]}\n")
    (pillar / "given.sls").write_text((FORMULAS / formula / "pillar.example").read_text())
    seconds = {}

    def apply(name: str, **options: Any) -> Returns:
        started = time.monotonic()
        told = caller.apply(machine, sls, **options)
        seconds[name] = time.monotonic() - started
        return told

    before, facts_before = files(root), facts(machine, probes)
    tested = apply("test", test=True)
    after_test, facts_after_test = files(root), facts(machine, probes)
    first = apply("first")
    after = files(root)
    known = facts(machine, probes)
    second = apply("second")
    return Applied(
        tested=tested,
        first=first,
        second=second,
        before=before,
        after_test=after_test,
        after=after,
        after_second=files(root),
        facts_before=facts_before,
        facts_after_test=facts_after_test,
        facts=known,
        seconds=seconds,
    )
