"""Completion: what fits a line, and that bash, zsh and fish offer it to somebody who types."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import resource
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from saltern.cli import complete, complete_master, completion
from saltern.entry import main
from saltern.kit.config.master import ClientOptions
from saltern.kit.links.control import ControlTimeout

BIN = Path(sys.executable).parent
NAMES = json.loads(complete.NAMES.read_text())

MASTER = {"minions": ["web1", "web2", "db1"], "nodegroups": ["front", "frozen"]}
KEYS = {
    "minions": ["web1", "web2", "db1"],
    "minions_pre": ["new1", "new2"],
    "minions_rejected": ["bad1"],
    "minions_denied": ["web1"],
}


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a master that has just answered."""
    for name in ("web/init.sls", "web/site.sls", "base.sls", "_modules/x.sls", ".git/y.sls"):
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("SALT_CONFIG_DIR", "/nonexistent/salt")
    complete_master.write(complete.kept("minions"), MASTER | {"file_roots": [str(tmp_path / "tree")]})
    complete_master.write(complete.kept("keys"), KEYS)
    return complete.kept("minions")


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("salt we", ["web1", "web2"]),
        ("salt 'we", ["web1", "web2"]),
        ("salt -L web1,", ["web1,db1", "web1,web2"]),
        ("salt -N fro", ["front", "frozen"]),
        ("salt --timeout 5 d", ["db1"]),
        ("salt web1 test.pi", ["test.ping"]),
        ("salt -G we", []),
        ("salt --pillar we", []),
        ("salt web1 sys.doc test.pi", ["test.ping"]),
        ("salt-run doc.runner jobs.look", ["jobs.lookup_jid"]),
        ("salt-run state.orch we", ["web", "web.site"]),
        ("salt --state-output=te", ["terse", "terse_id"]),
        ("saltern store re", ["repair"]),
        ("saltern completion ", ["bash", "fish", "zsh"]),
        ("saltern lab u", ["up"]),
        ("salt -G os:x test.pi", ["test.ping"]),
        ("salt web1 test.ping,test.pi", []),
        ("salt web1 test.ping,test.versions_i", ["test.ping,test.versions_information"]),
        ("salt web1 state.apply we", ["web", "web.site"]),
        ("salt web1 state.apply web,b", ["web,base"]),
        ("salt web1 cmd.run we", []),
        ("salt --stat", ["--state-output", "--state-output-diff", "--state-verbose", "--static"]),
        ("salt --out js", ["json"]),
        ("salt --out=js", ["json"]),
        ("salt --out = js", ["json"]),
        ("salt -l deb", ["debug"]),
        ("/usr/bin/salt we", ["web1", "web2"]),
        ("salt-call state.appl", ["state.apply", "state.apply_plan"]),
        ("salt-call --local state.apply b", ["base"]),
        ("salt-run jobs.lookup", ["jobs.lookup_jid"]),
        ("salt-run jobs.active ", []),
        ("salt-cp we", ["web1", "web2"]),
        ("salt-cp web1 /etc/ho", []),
        ("salt-key -l acc", ["accepted"]),
        ("salt-key -a ", ["bad1", "new1", "new2", "web1"]),
        ("salt-key -d we", ["web1", "web2"]),
        ("salt-key --gen-k", ["--gen-keys", "--gen-keys-dir"]),
        ("salt-key --preseed x", []),
        ("saltern comp", ["complete", "completion"]),
        ("eventlisten --c", ["--config-dir", "--count"]),
        ("unknown x", []),
    ],
)
@pytest.mark.usefixtures("known")
def test_what_fits(line: str, found: list[str]) -> None:
    assert complete.candidates(complete.parsed(line.split(" "), NAMES), NAMES, complete.known) == found


def test_nothing_is_asked_for_what_is_known_here() -> None:
    def never(about: str) -> Any:
        raise AssertionError("the master was asked")

    for line in ("salt --", "salt x test.", "salt-run jobs.", "saltern ", "salt-call test."):
        assert complete.candidates(complete.parsed(line.split(" "), NAMES), NAMES, never)


def test_the_master_is_asked_once_and_then_beside_us(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started: list[str] = []

    def start(words: list[str]) -> int:
        started.append(words[-1])
        return 0

    def end(process: int, seconds: float) -> bool:
        complete_master.write(Path(started[-1]), MASTER)
        return True

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "new"))
    monkeypatch.setattr(complete, "_started", start)
    monkeypatch.setattr(complete, "_ended", end)
    assert main(["complete", "salt", "we"]) == 0
    assert main(["complete", "salt", "we"]) == 0
    assert (capsys.readouterr().out, len(started)) == ("web1\nweb2\n" * 2, 1)
    assert complete.kept("minions").stat().st_mode & 0o777 == 0o600
    # Older: what is known is offered at once, and somebody asks anew.
    os.utime(complete.kept("minions"), (0, 0))
    monkeypatch.setattr(complete, "_ended", lambda process, seconds: pytest.fail("waited"))
    assert main(["complete", "salt", "we"]) == 0
    assert (capsys.readouterr().out, len(started)) == ("web1\nweb2\n", 2)


def test_a_master_that_does_not_answer(tmp_path: Path, master: Callable[..., Any]) -> None:
    """Node groups are in the configuration; who may not see keys completes the rest."""
    silence = ControlTimeout("tcp://m:4507", 3)
    fake = master({"targets": silence, "wheel": silence})
    context = fake.context()
    object.__setattr__(context, "load", lambda config: ClientOptions(nodegroups={"front": "web*"}))
    alone = {"nodegroups": ["front"], "file_roots": ["/srv/salt"]}
    assert complete_master.names_about("minions", context) == alone
    assert complete_master.names_about("keys", context) == {}
    fake.answers = {"targets": {"minions": ["web1"], "missing": []}, "wheel": KEYS}
    assert complete_master.names_about("minions", context) == alone | {"minions": ["web1"]}
    assert complete_master.names_about("keys", context) == KEYS


def test_without_configuration_nothing_is_offered_and_nothing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "etc"
    config.mkdir()
    (config / "master").write_text("no_such_option: 1\n")
    env = os.environ | {"XDG_CACHE_HOME": str(tmp_path), "SALT_CONFIG_DIR": str(config)}
    done = subprocess.run(
        [BIN / "saltern", "complete", "salt", "we"], env=env, capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.usefixtures("known")
def test_it_takes_less_than_an_eighth_of_a_second() -> None:
    """Of the processor: a busy machine is no fault of ours."""
    words = [BIN / "saltern", "complete", "salt", "we"]
    spent = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(words, stdout=subprocess.DEVNULL, timeout=30, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(spent) < 0.125


# ------------------------------------------------------------------------------------------------------------- real shells


class Terminal:
    """A shell at a terminal."""

    def __init__(self, words: list[str], env: dict[str, str]) -> None:
        self._master, slave = pty.openpty()
        self._process = subprocess.Popen(
            words, stdin=slave, stdout=slave, stderr=slave, env=env, start_new_session=True
        )
        os.close(slave)
        # Not select(), which takes no descriptor above 1,023: one process runs many tests.
        self._readable = select.poll()
        self._readable.register(self._master, select.POLLIN)
        self._said = ""

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def hear(self, wanted: str, seconds: float = 30.0) -> None:
        """Waits until the shell shows it; the test fails at the deadline."""
        deadline = time.monotonic() + seconds
        while wanted not in self._said:
            left = deadline - time.monotonic()
            if left <= 0 or not self._readable.poll(left * 1000):
                pytest.fail(f"{wanted!r} was not shown within {seconds:g} s: {self._said!r}")
            self._said += os.read(self._master, 4096).decode(errors="replace")
        self._said = self._said.partition(wanted)[2]

    def close(self) -> None:
        self._process.kill()
        self._process.wait(10)
        os.close(self._master)


#: Shell -> how it is started bare, and what it reads first.
SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "source <(saltern completion bash)"),
    "zsh": (["zsh", "-f", "-i"], "autoload -Uz compinit && compinit -u -D; source <(saltern completion zsh)"),
}

#: What is typed before the tabulator, and what the shell makes of it: what it adds is what is waited for.
TYPED = (
    ("salt db", "1 "),
    ("salt web1 test.versions_i", "nformation "),
    ("salt web1 state.apply web,b", "ase"),
    ("salt --out=js", "on "),
    ("salt-key -a ba", "d1 "),
    ("salt-run jobs.look", "up_jid "),
    ("salt 'db", "1' "),
)


@pytest.fixture
def environment(known: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SALTERN")}
    return kept | {"PATH": f"{BIN}:{os.environ['PATH']}", "TERM": "dumb", "PS1": "ready> ", "HOME": str(known.parent)}


@pytest.fixture(params=SHELLS)
def terminal(request: pytest.FixtureRequest, environment: dict[str, str]) -> Iterator[Terminal]:
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not on this machine (see .ci/test-programs)")
    words, setup = SHELLS[request.param]
    with contextlib.closing(Terminal(words, environment)) as made:
        made.type(f"{setup}; echo is-re''ady\n")
        made.hear("is-ready")
        yield made


def test_a_shell_completes_what_is_typed(terminal: Terminal, known: Path) -> None:
    for line, added in TYPED:
        os.utime(known)
        os.utime(complete.kept("keys"))
        terminal.type(f"{line}\t")
        terminal.hear(line)
        terminal.hear(added)
        # Ctrl-U takes the line away.
        terminal.type("\x15")


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("salt we", ["web1", "web2"]),
        ("salt web1 test.versions_i", ["test.versions_information"]),
        ("salt --out=js", ["--out=json"]),
        ("salt-key -a ba", ["bad1"]),
    ],
)
def test_fish_completes(line: str, found: list[str], environment: dict[str, str]) -> None:
    if shutil.which("fish") is None:
        pytest.skip("fish is not on this machine (see .ci/test-programs)")
    code = f"{completion.script('fish')}\ncomplete -C '{line}'"
    done = subprocess.run(
        ["fish", "--no-config", "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == found
