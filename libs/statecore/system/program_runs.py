"""Result of a program of the managed host as Salt's ``cmd.run_all`` returns it, for functions that pass it on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from statecore.model.ports import ManagedHost
from statecore.model.text_lines import lines_of


class RunResult(TypedDict):
    """Map with the process id, exit code and output of a program. Line ends at the end of the output are removed."""

    pid: int
    retcode: int
    stdout: str
    stderr: str


def run_all(host: ManagedHost, words: Sequence[str], *, runas: str | None = None) -> RunResult:
    """Run a program of the host, as the user ``runas`` if given, and return a map with pid, retcode, stdout and stderr.
    A failure of the program is not raised.
    """
    done = host.run(list(words), runas=runas)
    return {
        "pid": done.pid,
        "retcode": done.retcode,
        "stdout": done.stdout.rstrip("\n"),
        "stderr": done.stderr.rstrip("\n"),
    }


def output_lines(host: ManagedHost, words: Sequence[str]) -> list[str]:
    """Run a program of the host and return the lines of its standard output and standard error, in the order in which
    it wrote them. A failure of the program is not raised.
    """
    return lines_of(host.run(list(words), merge_stderr=True).stdout)
