"""Pages lead somewhere: what they name of the tree is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

PAGES = sorted(
    page.relative_to(ROOT)
    for place in (ROOT.glob("*.md"), (ROOT / "docs").rglob("*.md"))
    for page in place
    if "reference" not in page.parts  # generated, and in no checkout
)

#: Files that a page tells to make.
MADE_BY_READERS = ("/NAME.py", "k8s/overlays/mine/", "k8s/components/release/")

_LINK = re.compile(r"\]\(([^)#\s]+)(?:#([^)\s]+))?\)")
_FILE = re.compile(r"`((?:services|libs|tests|docs|bench|docker|k8s|examples|\.ci)/[\w./-]+\.\w+)`")


def heading_anchors(page: Path) -> set[str]:
    """What can stand behind ``#`` in a link to a page."""
    headings = re.findall(r"^#+ +(.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_link_leads_somewhere(page: Path) -> None:
    astray = []
    for target, anchor in _LINK.findall((ROOT / page).read_text("utf-8")):
        if "://" in target:
            continue
        file = (ROOT / page).parent / target
        if not file.exists() or (anchor and anchor not in heading_anchors(file)):
            astray.append(f"{target}#{anchor}")
    assert astray == []


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_file_that_is_named_is_there(page: Path) -> None:
    gone = [file for file in _FILE.findall((ROOT / page).read_text("utf-8")) if not (ROOT / file).exists()]
    assert [file for file in gone if not any(each in file for each in MADE_BY_READERS)] == []


def test_the_readme_leads_to_every_page() -> None:
    linked = {target for target, _ in _LINK.findall((ROOT / "README.md").read_text("utf-8"))}
    assert [page.name for page in PAGES if page.parent == Path("docs") and str(page) not in linked] == []


def test_pages_have_links_and_name_files() -> None:
    texts = [(ROOT / page).read_text("utf-8") for page in PAGES]
    assert sum(len(_LINK.findall(text)) for text in texts) > 60
    assert sum(len(_FILE.findall(text)) for text in texts) > 30
