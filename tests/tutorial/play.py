"""Plays the tutorial: writes the files of its pages and types their commands in a shell, in a lab of its own.

``python -m tests.tutorial.play`` shows where a page and the truth differ; with ``--write`` the pages get the truth.
"""

from __future__ import annotations

import argparse
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.ports import free_shift
from tests.tutorial.pages import SHOWN_DIRECTORY, Command, Transcript, WrittenFile, matches, read_steps

ROOT = Path(__file__).resolve().parents[2]

#: The pages that are played in one lab, in this order.
PAGES = tuple(
    ROOT / "docs" / f"{name}.md"
    for name in (
        "learn/first-state",
        "learn/test-mode",
        "learn/pillar",
        "learn/requisites",
        "learn/reactor",
        "use/targets",
        "use/keys",
        "learn/orchestration",
    )
)

#: Seconds that one command may take.
_PATIENCE = 120


class Shell:
    """A shell that a reader types into: it keeps its variables and its directory from command to command."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self.directory = directory
        self._shell = subprocess.Popen(
            ["bash", "--norc"],
            cwd=directory,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def type(self, command: str) -> list[str]:
        """Run a command and return the lines that it printed, on stdout and stderr."""
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        mark = f"end-{secrets.token_hex(8)}"
        # A command that reads its input would take the next command.
        self._shell.stdin.write(f"{{ {command}\n}} </dev/null\nprintf '%s\\n' {mark}\n")
        self._shell.stdin.flush()
        lines = []
        for line in self._shell.stdout:
            if line.rstrip("\n").endswith(mark):
                rest = line.rstrip("\n").removesuffix(mark)
                return [*lines, *([rest] if rest else [])]
            lines.append(line.rstrip("\n").replace(str(self.directory), SHOWN_DIRECTORY))
        raise EOFError(f"the shell ended at: {command}")

    def close(self) -> None:
        """End the shell."""
        assert self._shell.stdin is not None
        self._shell.stdin.close()
        self._shell.wait(_PATIENCE)


@contextmanager
def reader(shift: int) -> Iterator[Shell]:
    """Yield a shell in an empty directory, whose lab has its ports moved by ``shift``; at the end the lab is stopped."""
    programs = Path(sys.executable).parent
    with tempfile.TemporaryDirectory(prefix="tutorial-") as name:
        directory = Path(name)
        environment = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "HOME": name,
            "LANG": "C.UTF-8",
            "USER": "you",
            "SHELL": "/bin/bash",
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            "COLUMNS": "120",
        }
        shell = Shell(directory, environment)
        try:
            shell.type(f'make() {{ tutorial_make {shift} "$@"; }}; {_MAKE}')
            yield shell
        finally:
            shell.type("saltern lab down")
            shell.close()


#: The reader's ``make``: the targets of the Makefile that the pages name, for a checkout that is installed already.
_MAKE = """
tutorial_make() {
    shift_of_ports=$1 target=$2 options=${3#LAB=}
    case $target in
        lab) saltern lab up --shift $shift_of_ports $options ;;
        lab-down) saltern lab down ;;
        *) echo "make: no target $target here"; return 2 ;;
    esac
}
"""


def play(pages: Sequence[Path], shell: Shell) -> dict[Path, Transcript]:
    """Do what the pages tell a reader to do, and return what the commands answered."""
    transcripts = {}
    for page in pages:
        transcript = transcripts[page] = Transcript()
        for step in read_steps(page.read_text("utf-8")):
            match step:
                case WrittenFile(path, content):
                    file = shell.directory / path
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_text(content, "utf-8")
                case Command(text, _, line):
                    transcript.answers[line] = shell.type(text)
    return transcripts


def differences(page: Path, transcript: Transcript) -> list[str]:
    """Return a text for each command of the page that answered otherwise than the page shows."""
    commands = [step for step in read_steps(page.read_text("utf-8")) if isinstance(step, Command)]
    found = []
    for command in commands:
        answer = transcript.answers[command.line]
        if not matches(command.shown, answer):
            shown = "\n".join(command.shown)
            found.append(
                f"{page.name}:{command.line}: $ {command.text}\n--- the page\n{shown}\n--- now\n" + "\n".join(answer)
            )
    return found


def main() -> int:
    """Play the tutorial, print the differences, and return 1 if there are some that were not written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put what the commands answered into the pages")
    flags = parser.parse_args()
    with reader(free_shift()) as shell:
        transcripts = play(PAGES, shell)
    found = [text for page, transcript in transcripts.items() for text in differences(page, transcript)]
    if flags.write:
        for page, transcript in transcripts.items():
            page.write_text(transcript.rewritten(page.read_text("utf-8")), "utf-8")
    sys.stdout.write("\n\n".join(found) + "\n" if found else "")
    return 1 if found and not flags.write else 0


if __name__ == "__main__":
    raise SystemExit(main())
