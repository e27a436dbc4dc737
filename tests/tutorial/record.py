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
from tests.tutorial.pages import Command, WrittenFile, read_steps
from tests.tutorial.play import PAGES, ROOT, Shell, reader

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
    "first-state": Recording(
        "A file is made, and is there",
        "docs/learn/first-state.md",
        ("salt web1 state.apply motd", "cat .lab/hosts/web1/etc/motd"),
    ),
    "test-mode": Recording(
        "Test mode tells what would change",
        "docs/learn/test-mode.md",
        ("salt web1 state.apply motd test=True", "cat .lab/hosts/web1/etc/motd"),
    ),
    "pillar": Recording(
        "Each host has its own pillar, and its own page",
        "docs/learn/pillar.md",
        ("salt '*' pillar.get site:title", "cat .lab/hosts/web2/var/www/index.html"),
    ),
    "requisites": Recording(
        "The second state runs because the first one changed",
        "docs/learn/requisites.md",
        ("rm .lab/hosts/web1/srv", "salt web1 state.apply app --state-output=terse"),
    ),
    "service": Recording(
        "The service restarts because its file changed",
        "docs/learn/service.md",
        ("docker compose run --rm cli salt web1 state.apply web",),
    ),
    "reactor": Recording(
        "An event runs a reaction on its minion",
        "docs/learn/reactor.md",
        (
            "salt web1 event.send site/visit '{page: index}'",
            "until cat .lab/hosts/web1/var/visits 2>/dev/null; do sleep 0.2; done",
        ),
    ),
    "orchestration": Recording(
        "An orchestration: the second host only after the first",
        "docs/learn/orchestration.md",
        ("salt-run state.orchestrate orch.deploy --state-output=terse",),
    ),
}

#: Pages of the tutorial that need containers: their recordings show the page's own lines, which `make container-test` compares.
_IN_CONTAINERS = ("docs/learn/service.md",)

#: Lines of an answer that a picture has room for.
_LINES = 24


def commands_of(page: str) -> list[str]:
    """Return the lines of all blocks of commands of a page, without comments."""
    found = []
    for block in read_blocks(ROOT / page):
        if block.kind in ("indented", "sh"):
            found += [line.partition("  #")[0].strip() for line in block.text.splitlines()]
        if block.kind == "console":
            found += [line.removeprefix("$ ") for line in block.text.splitlines() if line.startswith("$ ")]
    return found


def typed(shell: Shell, command: str) -> list[str]:
    """Return what a terminal shows for a command: with the colours of a terminal."""
    program, _, words = command.partition(" ")
    return cut(shell.type(f"{program} --force-color {words}" if program in ("salt", "salt-run") else command))


def cut(answer: list[str]) -> list[str]:
    """Return as many lines of an answer as a picture has room for."""
    left_out = len(answer) - _LINES
    return answer if left_out <= 0 else [*answer[:_LINES], f"... {left_out} more lines"]


def of_the_lab(shell: Shell) -> dict[str, list[str]]:
    """Play the recordings of pages about the lab of `make lab`. Return {name: lines of the terminal}."""
    # The tree that `make lab` uses in a checkout.
    said = shell.type(f"make lab LAB='--tree {ROOT / 'examples/srv'}'")
    if not (shell.directory / ".lab/env").exists():
        raise RuntimeError("the lab did not start: " + " ".join(said))
    shell.type(". .lab/env")
    found = {}
    for name, recording in TABLE.items():
        if not recording.page.startswith("docs/learn/"):
            found[name] = [line for each in recording.commands for line in (f"$ {each}", *typed(shell, each))]
    return found


def of_the_tutorial(shell: Shell) -> dict[str, list[str]]:
    """Play the tutorial, and return {name: lines of the terminal} for the recordings of its pages."""
    by_page = {ROOT / recording.page: name for name, recording in TABLE.items()}
    found: dict[str, list[str]] = {}
    for page in PAGES:
        name = by_page.get(page, "")
        waiting = list(TABLE[name].commands) if name else []
        for step in read_steps(page.read_text("utf-8")):
            match step:
                case WrittenFile(path, content):
                    file = shell.directory / path
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_text(content, "utf-8")
                case Command(text, _, _) if waiting and text == waiting[0]:
                    found.setdefault(name, []).extend([f"$ {waiting.pop(0)}", *typed(shell, text)])
                case Command(text, _, _):
                    shell.type(text)
    return found


def of_pages_in_containers() -> dict[str, list[str]]:
    """Return {name: lines of the terminal} of the pages that need containers, as the pages show them."""
    found = {}
    for name, recording in TABLE.items():
        if recording.page in _IN_CONTAINERS:
            # Above that heading the page quotes a file that is there already.
            text = (ROOT / recording.page).read_text("utf-8").partition("## Change the configuration")[2]
            steps = read_steps(text)
            shown = {step.text: list(step.shown) for step in steps if isinstance(step, Command)}
            found[name] = [line for each in recording.commands for line in (f"$ {each}", *cut(shown[each]))]
    return found


def main() -> int:
    """Play all recordings, and write the transcript: {name: {"title": text, "lines": [line with ANSI colours]}}."""
    lines = of_pages_in_containers()
    for play in (of_the_lab, of_the_tutorial):
        with reader(free_shift()) as shell:
            lines |= play(shell)
    transcript = {name: {"title": recording.title, "lines": lines[name]} for name, recording in TABLE.items()}
    Path(sys.argv[1]).parent.mkdir(parents=True, exist_ok=True)
    Path(sys.argv[1]).write_text(json.dumps(transcript, indent=1), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
