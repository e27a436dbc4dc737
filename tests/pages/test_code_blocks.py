"""Every code block of the pages is looked at: see code_blocks.py. Output of commands is compared where the tutorial is played."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pages.code_blocks import KINDS, ROOT, Block, commands, fault, read_blocks

PAGES = sorted(
    page.relative_to(ROOT)
    for place in (ROOT.glob("*.md"), (ROOT / "docs").rglob("*.md"))
    for page in place
    if "reference" not in page.parts  # generated
)


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_the_blocks_of_a_page(page: Path) -> None:
    found = [(block.line, wrong) for block in read_blocks(ROOT / page) if (wrong := fault(block))]
    assert [f"{page}:{line}: {wrong}" for line, wrong in found] == []


def test_pages_have_blocks() -> None:
    assert sum(1 for page in PAGES for _ in read_blocks(ROOT / page)) > 150


PAGE = """\
# Title

    make test

```yaml
a: 1
```

- item

      salt '*' test.ping \\
        --static

```
what?
```
"""


def test_blocks_of_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    assert [(block.line, block.kind, block.text) for block in read_blocks(page)] == [
        (3, "indented", "make test"),
        (6, "yaml", "a: 1"),
        (11, "indented", "salt '*' test.ping \\\n  --static"),
        (15, "", "what?"),
    ]


def test_commands_of_a_block() -> None:
    text = (
        'A=1 make lab LAB="x y" && salt-run jobs.list_jobs | head -3   # all\n'
        "for i in 1 2; do\n  saltern keygen --out 'a\nb'; done\n"
    )
    assert list(commands(text)) == [
        ["make", "lab", "LAB=x y"],
        ["salt-run", "jobs.list_jobs"],
        ["head", "-3"],
        ["for", "i", "in", "1", "2"],
        ["saltern", "keygen", "--out", "a\nb"],
        ["done"],
    ]


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        ("indented", "make nothing-of-the-kind", "no target nothing-of-the-kind"),
        ("indented", "salt '*' test.pong", "no function test.pong"),
        ("indented", "salt '*' --nowhere test.ping", "no option --nowhere"),
        ("indented", "salt-run jobs.nothing", "no function jobs.nothing"),
        ("indented", "saltern nothing", "no command nothing"),
        ("indented", "statecore nothing TREE", "no command nothing"),
        ("indented", "frobnicate a", "the program frobnicate is unknown"),
        ("indented", "salt '*' test.ping 'a", "neither commands"),
        ("console", "no prompt", "no line begins with"),
        ("console", "$ salt '*' test.pong\nweb1:", "no function test.pong"),
        ("yaml", "a: [1", "no YAML"),
        ("yaml", "a: {{ b", "Jinja cannot read it"),
        ("json", "{", "Expecting"),
        ("toml", "a = ", "Invalid"),
        ("python", "a = (", "never closed"),
        ("lua", "f({)", "no partner"),
        ("dockerfile", "FROM a\nFORM b", "no instruction"),
        ("", "a", "a block has a kind"),
        ("ruby", "a", "not ruby"),
    ],
)
def test_a_fault_is_found(kind: str, text: str, words: str) -> None:
    assert words in (fault(Block(Path("page.md"), 1, kind, text)) or "")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("indented", "salt '*' own.function\nsalt-key -yA\n. .lab/env"),
        ("indented", "publisher_acl:\n  ann:\n  - test.*"),
        ("indented", "kubectl get pod <name> -o yaml > file"),
        ("yaml", "{% if a %}\na: 1\n{% endif %}"),
        ("python", "await f()"),
        ("text", "anything ("),
    ],
)
def test_what_is_right_has_no_fault(kind: str, text: str) -> None:
    assert fault(Block(Path("page.md"), 1, kind, text)) is None


def test_every_kind_is_named_once() -> None:
    assert "" not in KINDS
