"""Records terminals: types the commands of pages in a lab, and writes what a reader sees as SVG into docs/recordings/.

    python -m tests.tutorial.record transcript.json         # in .venv: plays, and writes what the terminals show
    .docs/bin/python docs/site/recordings.py transcript.json    # draws them

``make recordings`` runs both. tests/tutorial/test_recordings.py holds the commands to those of the pages.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.pages.code_blocks import read_blocks
from tests.ports import free_shift
from tests.tutorial.play import ROOT, Shell, reader

#: Directory of the pictures.
RECORDINGS = ROOT / "docs/recordings"


@dataclass(frozen=True)
class Recording:
    """A picture of a terminal: the page whose commands it shows, and which of them, in the page's order."""

    title: str
    page: str
    commands: tuple[str, ...]


#: Name of the picture -> what it shows.
TABLE: Mapping[str, Recording] = {
    "lab": Recording(
        "The lab: two minions answer, and a highstate in test mode",
        "docs/start/lab.md",
        ("salt '*' test.ping", "salt web1 state.apply test=True"),
    ),
    "jobs": Recording("Every job is kept", "README.md", ("salt '*' test.ping", "salt-run jobs.list_jobs")),
}

#: Lines of an answer that a picture has room for.
_LINES = 24


def commands_of(page: str) -> list[str]:
    """Return the lines of all blocks of commands of a page, without comments."""
    found = []
    for block in read_blocks(ROOT / page):
        if block.kind in ("indented", "sh"):
            found += [line.partition("  #")[0].strip() for line in block.text.splitlines()]
    return found


def typed(shell: Shell, command: str) -> list[str]:
    """Return what a terminal shows for a command: with the colours of a terminal."""
    program, _, words = command.partition(" ")
    answer = shell.type(f"{program} --force-color {words}")
    left_out = len(answer) - _LINES
    return answer if left_out <= 0 else [*answer[:_LINES], f"... {left_out} more lines"]


def main() -> int:
    """Play all recordings in one lab, and write the transcript: {name: {"title": text, "lines": [line with ANSI colours]}}."""
    transcript = {}
    with reader(free_shift()) as shell:
        # The tree that `make lab` uses in a checkout.
        said = shell.type(f"make lab LAB='--tree {ROOT / 'examples/srv'}'")
        if not (shell.directory / ".lab/env").exists():
            raise RuntimeError("the lab did not start: " + " ".join(said))
        shell.type(". .lab/env")
        for name, recording in TABLE.items():
            lines: list[str] = []
            for command in recording.commands:
                lines += [f"$ {command}", *typed(shell, command)]
            transcript[name] = {"title": recording.title, "lines": lines}
    Path(sys.argv[1]).parent.mkdir(parents=True, exist_ok=True)
    Path(sys.argv[1]).write_text(json.dumps(transcript, indent=1), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
