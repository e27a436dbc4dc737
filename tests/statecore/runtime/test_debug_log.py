"""What ``-l debug`` shows, beside a real Salt: each subject that Salt logs is logged here, too."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from statecore.model import log_text
from statecore.runtime.runtime import local_runtime

FILES: Mapping[str, str] = {
    "states/top.sls": "base: {'*': [web]}\n",
    "states/web.sls": "include: [other]\nsay:\n  cmd.run:\n    - name: 'echo hello; echo world >&2'\n"
    "fails:\n  cmd.run:\n    - name: 'echo why; exit 3'\nmod:\n  module.run:\n    - mine.boom: []\n"
    "{{ opts['cachedir'] }}/made:\n  file.managed:\n    - source: salt://made.txt\n",
    "states/other.sls": "changes: test.succeed_with_changes\n",
    "states/broken.sls": "x:\n  cmd.run:\n    - name: a\n   - b\n",
    "states/made.txt": "text\n",
    "states/_modules/mine.py": "def boom():\n    return {}['x']\n",
    "pillar/top.sls": "base: {'*': [db]}\n",
    "pillar/db.sls": "db: {user: bob}\n",
}


class Subject(NamedTuple):
    """One thing that an operator looks for: a regular expression of our line, and of Salt's, each with its level."""

    ours: str
    salts: str


#: Subject -> the lines in which both logs have it. Salt's expression is empty where Salt logs nothing of the kind.
SUBJECTS: Mapping[str, Subject] = {
    "grains": Subject(r"DEBUG.*Gathered \d+ grains", ""),
    "the function": Subject(r"DEBUG.*Executing function state\.apply", r"LazyLoaded state\.apply"),
    "a module": Subject(r"DEBUG.*Loaded modules module cmd from ", r"LazyLoaded cmd\.run_all"),
    "a file": Subject(r"DEBUG.*Found salt://made\.txt \(saltenv base\)", r"Found file\(path: made\.txt"),
    "rendering": Subject(
        r"PROFILE.*Rendered \S+/web\.sls by 'jinja' in [\d.]+ ms", r"PROFILE.*render '\S+web\.sls' using 'jinja'"
    ),
    "rendered SLS": Subject(
        r"DEBUG.*Rendered data of SLS 'web'[^\n]*\n  include:\n  - other\n  say:\n    cmd\.run:", ""
    ),
    "pillar": Subject(r"DEBUG.*Pillar [^\n]*\n  db:\n    user: bob", ""),
    "the start of a state": Subject(
        r"INFO.*Executing state cmd\.run for \[echo", r"INFO.*Executing state cmd\.run for \[echo"
    ),
    "the end of a state": Subject(
        r"INFO.*Completed state \[echo.*duration_in_ms=", r"INFO.*Completed state \[echo.*duration_in_ms="
    ),
    "changes": Subject(r"INFO.*Made the following changes:\n  testing:", r"INFO.*Made the following changes:"),
    "a command": Subject(r"DEBUG.*Executing command echo hello; ", r"INFO.*Executing command 'echo'"),
    "its exit code": Subject(r"DEBUG.*ended after [\d.]+ ms: exit code 0", ""),
    "its output": Subject(
        r"DEBUG.*stdout: hello\n.*DEBUG.*stderr: world", r"DEBUG.*stdout: hello\n.*DEBUG.*stderr: world"
    ),
    "a failed command": Subject(
        r"ERROR.*Command 'echo' failed with return code: 3\n.*ERROR.*stdout: why",
        r"ERROR.*Command 'echo' failed with return code: 3\n.*ERROR.*stdout: why",
    ),
    "a failed state": Subject(r"ERROR.*State fails of SLS web \(cmd\.run\) failed: ", r"ERROR.*'retcode': 3"),
    "an exception": Subject(r"ERROR.*KeyError: 'x' \(\S+/mine\.py:2\)", r"ERROR.*(\n.*)*mine\.py\", line 2"),
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("debug")
    for name, text in FILES.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return top


def _opts(tree: Path, root: Path) -> dict[str, Any]:
    return {
        "root_dir": str(root),
        "id": "one",
        "file_client": "local",
        "cachedir": str(root / "cache"),
        "extension_modules": str(root / "cache/extmods"),
        "file_roots": {"base": [str(tree / "states")]},
        "pillar_roots": {"base": [str(tree / "pillar")]},
    }


def _salt_call(program: list[str], tree: Path, root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run ``salt-call --local`` with a configuration of its own and return its exit code and output."""
    root.mkdir(exist_ok=True)
    lines = [f"{name}: {value}" for name, value in _opts(tree, root).items()]
    (root / "minion").write_text("\n".join(lines) + "\n")
    return subprocess.run([*program, "-c", str(root), "--local", *words], capture_output=True, text=True, timeout=120)


OURS = [sys.executable, "-c", "from saltern.minion.call.call import main; raise SystemExit(main())"]


@pytest.fixture(scope="module")
def log(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("ours")
    _salt_call(OURS, tree, root, "saltutil.sync_all")
    ended = _salt_call(OURS, tree, root, "-l", "debug", "state.apply")
    assert ended.returncode == 1, ended.stderr
    return ended.stderr


@pytest.mark.parametrize("subject", SUBJECTS)
def test_the_log_has_the_subject(subject: str, log: str) -> None:
    assert re.search(SUBJECTS[subject].ours, log), log


@pytest.fixture(scope="module")
def salts_log(tree: Path, tmp_path_factory: pytest.TempPathFactory, oracle: Any) -> str:
    root = tmp_path_factory.mktemp("salts")
    program = [oracle.program("salt-call")]
    _salt_call(program, tree, root, "saltutil.sync_all")
    return _salt_call(program, tree, root, "-l", "debug", "state.apply").stderr


@pytest.mark.oracle
@pytest.mark.parametrize("subject", [name for name, row in SUBJECTS.items() if row.salts])
def test_salt_logs_the_same_subject(subject: str, salts_log: str) -> None:
    assert re.search(SUBJECTS[subject].salts, salts_log), salts_log


@pytest.mark.oracle
def test_the_log_tells_as_much_as_salts(log: str, salts_log: str) -> None:
    """But for Salt's repetitions: every line that it logs once for each of its 27 kinds of modules and each look for a file."""
    repeats = re.compile(
        r"(Syncing|Loading cache|Caching directory|Returning file list|Local cache dir|Creating module dir)"
    )
    told = {line for line in salts_log.splitlines() if not repeats.search(line) and "being loaded by dir()" not in line}
    ours = set(log.splitlines())
    assert len(ours) > len(told) / 2, (len(ours), len(told))


def _run(tree: Path, tmp_path: Path, fun: str, *args: str) -> Any:
    return local_runtime(_opts(tree, tmp_path), grains={"id": "one"}).call(fun, args).value


@pytest.mark.parametrize(
    ("fun", "args", "says"),
    [
        ("state.apply", ["broken"], "Rendering SLS 'base:broken' failed"),
        ("state.apply", ["none"], "No matching sls found for 'none'"),
        ("state.single", ["cmd.run", "exit 4"], "Command 'exit' failed with return code: 4"),
        (
            "state.single",
            ["test.fail_without_changes", "x"],
            "State x of SLS None (test.fail_without_changes) failed: Failure!",
        ),
        ("cmd.run", ["exit 5"], "Command 'exit' failed with return code: 5"),
    ],
)
def test_a_failure_is_an_error_in_the_log(
    fun: str, args: list[str], says: str, tree: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    _run(tree, tmp_path, fun, *args)
    errors = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert any(says in line for line in errors), errors


@pytest.mark.parametrize("options", [{"ignore_retcode": True}, {"output_loglevel": "quiet"}])
def test_a_command_that_may_fail_is_no_error(
    options: dict[str, Any], tree: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    local_runtime(_opts(tree, tmp_path), grains={"id": "one"}).call("cmd.run", ["exit 4"], options)
    assert not caplog.records


@pytest.mark.parametrize(("level", "shown"), [("info", True), ("trace", False)])
def test_a_command_is_logged_at_its_own_level(
    level: str, shown: bool, tree: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    local_runtime(_opts(tree, tmp_path), grains={"id": "one"}).call("cmd.run", ["echo hi"], {"output_loglevel": level})
    assert ("output: hi" in caplog.text) is shown


def test_nothing_is_formatted_unless_the_level_is_on(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)

    def formatted(*_: object, **__: object) -> str:
        raise AssertionError("formatted")

    for name in ("data_text", "pillar_text", "keys_text", "command_text", "clipped", "secrets_of"):
        monkeypatch.setattr(log_text, name, formatted)
    found = _run(tree, tmp_path, "state.apply")
    assert len(found) == 5, found


def test_an_exception_of_a_users_module_names_its_place(tree: Path, tmp_path: Path) -> None:
    runtime = local_runtime(_opts(tree, tmp_path), grains={"id": "one"})
    runtime.call("saltutil.sync_all")
    said = str(runtime.call("mine.boom").value)
    assert re.fullmatch(r"The minion function caused an exception: KeyError: 'x' \(/\S+/mine\.py:2\)", said), said
