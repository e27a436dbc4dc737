"""docs/exit-codes.md names every exit code that the code has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from saltern.kit.command.command_line import Exit as SaltExit
from statecore.analysis.commands.exit_codes import Exit as StatecoreExit

ROOT = Path(__file__).resolve().parents[1]

_CONSTANT = re.compile(r"^_?EX_[A-Z]+ = (\d+)$", re.MULTILINE)


def listed(section: str) -> set[int]:
    """The codes in the table of a section of the page."""
    text = (ROOT / "docs/exit-codes.md").read_text("utf-8").partition(f"## {section}\n")[2].partition("\n## ")[0]
    return {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}


@pytest.mark.parametrize(
    ("section", "codes"),
    [("salt, salt-call, salt-run, salt-key, salt-cp", set(SaltExit)), ("statecore", set(StatecoreExit))],
)
def test_the_page_has_the_codes_of_commands(section: str, codes: set[int]) -> None:
    assert codes <= listed(section)


def test_the_page_has_the_codes_of_processes() -> None:
    constants = {
        int(code)
        for path in (ROOT / "services/saltern").rglob("*.py")
        for code in _CONSTANT.findall(path.read_text("utf-8"))
    }
    assert len(constants) >= 6
    everywhere = listed("Roles, the minion, salt-master") | listed("salt, salt-call, salt-run, salt-key, salt-cp")
    assert constants <= everywhere
