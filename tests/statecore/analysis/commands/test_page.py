"""docs/statecore.md says what really happens: its files are written, its commands typed, its outputs compared.

``python tests/statecore/analysis/commands/test_page.py`` writes the outputs anew.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from statecore.analysis.commands.exit_codes import Exit
from statecore.analysis.commands.main import VERBS, main
from statecore.analysis.rules import RULES

DOCS = Path(__file__).parents[4] / "docs"
PAGE = DOCS / "statecore.md"

_FILE = re.compile(r"`([\w./]+\.(?:sls|yaml))`[^\n]*:\n\n```yaml\n(.*?)```", re.DOTALL)
_CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)


def written(text: str, directory: Path) -> str:
    """The page with what its commands say in a directory of its files."""
    for name, content in _FILE.findall(text):
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(content)
    (directory / "host/etc").mkdir(parents=True)
    (directory / "host/etc/site.conf").write_text("port 80\n")
    (directory / "host/etc/site.conf").chmod(0o644)
    with contextlib.chdir(directory):
        return _CONSOLE.sub(lambda found: f"```console\n{''.join(_typed(found[1]))}```", text)


def _typed(block: str) -> Iterator[str]:
    for line in block.splitlines():
        if not line.startswith("$ "):
            continue
        yield f"{line}\n"
        words = shlex.split(line[2:])
        if words[0] == "echo":
            assert words[2] == ">"
            Path(words[3]).write_text(f"{words[1]}\n")
            continue
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            main([*words[1:], *(["--cachedir", "cache"] if words[1] == "apply" else [])])
        yield out.getvalue()


def picture(directory: Path) -> str:
    """docs/statecore.svg, drawn in the directory of the page's files."""
    out = io.StringIO()
    with contextlib.chdir(directory), contextlib.redirect_stdout(out):
        main(["graph", "--file-root", "srv", "--grains", "grains.yaml", "--pillar", "pillar.yaml", "--format", "svg"])
    return out.getvalue().replace(f"{directory}/", "")


def test_the_page_is_true(tmp_path: Path) -> None:
    text = PAGE.read_text("utf-8")
    assert len(_FILE.findall(text)) == 6
    assert written(text, tmp_path) == text
    assert picture(tmp_path) == (DOCS / "statecore.svg").read_text("utf-8")


def test_the_page_names_every_rule_verb_and_exit_code() -> None:
    text = PAGE.read_text("utf-8")
    assert [rule for rule in RULES if f"`{rule}`" not in text] == ["compile"]
    assert [verb for verb in VERBS if f"## {verb}\n" not in text] == []
    codes = (DOCS / "exit-codes.md").read_text("utf-8").partition("## statecore\n")[2].partition("\n## ")[0]
    assert [code for code in Exit if f"| {code.value} |" not in codes] == []


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        there = Path(os.path.realpath(made))
        PAGE.write_text(written(PAGE.read_text("utf-8"), there), "utf-8")
        (DOCS / "statecore.svg").write_text(picture(there), "utf-8")
    sys.stdout.write(f"{PAGE} written\n")
