"""The tutorial's page about a watched service, typed on the lab in containers."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.container.compose_lab import RUN, Lab
from tests.tutorial.pages import Command, WrittenFile, matches, read_steps

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/learn/service.md"

#: How the page's commands begin that run in the container with the commands.
_IN_CONTAINER = "docker compose run --rm cli "


def answer(command: str, lab: Lab) -> list[str]:
    """What a command of the page prints, typed on this run's lab."""
    if command.startswith(_IN_CONTAINER):
        return lab.cli(*shlex.split(command.removeprefix(_IN_CONTAINER)), seconds=420, check=False).splitlines()
    # The tree of the lab is a copy of examples/srv.
    subprocess.run(["sh", "-ec", command.replace("examples/srv", str(lab.tree))], check=True, timeout=60)
    return []


def test_what_the_page_quotes_is_in_the_tree() -> None:
    text = PAGE.read_text("utf-8")
    quoted = text.partition("```yaml\n")[2].partition("```")[0]
    assert quoted in (ROOT / "examples/srv/salt/web/init.sls").read_text("utf-8")


@pytest.fixture
def as_shipped(accepted: Lab, first_apply: dict[str, RUN]) -> Iterator[Lab]:
    """The lab with the tree and pillar of examples/srv applied, whatever other tests changed; so it is left, too."""

    def restore() -> None:
        for path in (path for path in (ROOT / "examples/srv").rglob("*") if path.is_file()):
            shutil.copyfile(path, accepted.tree / path.relative_to(ROOT / "examples/srv"))

    restore()
    states = accepted.apply("web1")["web1"]
    assert all(state["result"] for state in states.values()), states
    yield accepted
    restore()


@pytest.mark.container
@pytest.mark.timeout(900)
def test_the_service_restarts_because_its_file_changed(as_shipped: Lab) -> None:
    steps = read_steps(PAGE.read_text("utf-8").partition("## Change the configuration")[2])
    assert not [step for step in steps if isinstance(step, WrittenFile)]
    commands = [step for step in steps if isinstance(step, Command)]
    assert len(commands) == 3
    for command in commands:
        shown = answer(command.text, as_shipped)
        assert matches(command.shown, shown), "\n".join(shown)
