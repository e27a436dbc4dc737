"""A difference that docs/differences.md does not name is a bug: options and exit codes of each command beside Salt's.

The tables below "Options and exit codes of commands" are read from the page.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.conftest import Oracle

pytestmark = pytest.mark.oracle

PAGE = Path(__file__).resolve().parents[2] / "docs" / "differences.md"

#: Command -> function of saltern.start.
COMMANDS = {
    name: name.replace("-", "_") for name in ("salt", "salt-run", "salt-key", "salt-cp", "salt-call", "salt-minion")
}
COMMANDS["salt-master"] = "salt_master"

#: Command lines whose exit codes are Salt's unless the page says otherwise. They need no master.
LINES = (
    "salt",
    "salt *",
    "salt --nosuch",
    "salt-run",
    "salt-run no.such",
    "salt-run --nosuch",
    "salt-key",
    "salt-key -a",
    "salt-cp",
    "salt-cp *",
    "salt-call",
    "salt-call --nosuch",
    "salt-call --local test.ping",
    "salt-call --local no.such",
    "salt-call --local test.fail_function",
    "salt-call --local cmd.run 'exit 3'",
    "salt-call --local --retcode-passthrough cmd.run 'exit 3'",
    "salt-call --local state.apply nosuch",
    "salt-call --local -l loud test.ping",
    "salt-master --versions-report",
)


def tables() -> Iterator[list[list[str]]]:
    """The rows of each table of the section, without heads."""
    section = PAGE.read_text().partition("### Options and exit codes of commands\n")[2].partition("\n### ")[0]
    for table in re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE):
        yield [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()[2:]]


MISSING, OWN, CODES = tables()


def named(rows: Sequence[Sequence[str]], command: str) -> set[str]:
    """The options that rows of a table name for a command."""
    found: set[str] = set()
    for commands, options, *_ in rows:
        if commands == "all" or f"`{command}`" in commands:
            found |= set(re.findall(r"`([^`]+)`", options))
    return found


def options_of(text: str) -> set[str]:
    """The options that a help text lists, by all of their names."""
    found: set[str] = set()
    for line in text.splitlines():
        if entry := re.match(r"\s{2,8}(-.*)", line):
            for part in re.split(r"\s{2,}", entry[1])[0].split(","):
                found.add(re.split(r"[= ]", part.strip())[0])
    return {option for option in found if option.startswith("-")}


def both(oracle: Oracle, command: str, *words: str) -> list[subprocess.CompletedProcess[str]]:
    """Salt's command and ours with these words. They run at the same time, because Salt's starts for seconds."""
    code = f"import sys; sys.argv[0] = {command!r}; from saltern.start import {COMMANDS[command]} as run; run()"
    started = [
        subprocess.Popen(
            [*start, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "COLUMNS": "200"},
        )
        for start in ([oracle.program(command)], [sys.executable, "-c", code])
    ]
    ended = [one.communicate(timeout=120) for one in started]
    return [subprocess.CompletedProcess(words, one.returncode, *said) for one, said in zip(started, ended, strict=True)]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_salts_or_is_named(command: str, oracle: Oracle) -> None:
    stock, here = (options_of(done.stdout) for done in both(oracle, command, "--help"))
    assert {"--version", "-c"} <= stock & here
    assert stock - here - named(MISSING, command) == set()
    assert here - stock - named(OWN, command) == set()


@pytest.mark.parametrize("line", LINES)
def test_every_exit_code_is_salts_or_is_named(line: str, oracle: Oracle, tmp_path: Path) -> None:
    (tmp_path / "master").write_text(f"root_dir: {tmp_path}/root\n")
    (tmp_path / "minion").write_text(f"root_dir: {tmp_path}/root\nid: web1\nfile_client: local\n")
    command, *words = shlex.split(line)
    stock, here = (done.returncode for done in both(oracle, command, "-c", str(tmp_path), *words))
    rows = {row[0].partition("`,")[0].strip("`"): (int(row[1]), int(row[2])) for row in CODES}
    assert (stock, here) == rows.get(line, (stock, stock))
