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
def test_no_merge_is_half_done(page: Path) -> None:
    """A conflict that nobody resolved leaves its marks."""
    assert not re.findall(r"^(?:<{7}|>{7}) ", (ROOT / page).read_text("utf-8"), re.MULTILINE)


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


#: What an entry of a menu looks like: the path of a page below docs/, without its suffix.
_ENTRY = re.compile(r"^[\w/-]+$", re.MULTILINE)


def test_the_site_s_menu_leads_to_every_page() -> None:
    menus = re.findall(r"```{toctree}\n(.*?)```", (ROOT / "docs/index.md").read_text("utf-8"), re.DOTALL)
    listed = {f"docs/{entry}.md" for menu in menus for entry in _ENTRY.findall(menu)}
    # The pages of these directories are listed by their README.md.
    by_readme = ("docs/decisions/", "docs/operations/")
    pages = {str(page) for page in PAGES if page.parts[0] == "docs" and str(page) != "docs/index.md"}
    assert {page for page in pages - listed if not (page.startswith(by_readme) and not page.endswith("README.md"))} <= {
        "docs/operations/runbooks/README.md"
    }


def test_pages_have_links_and_name_files() -> None:
    texts = [(ROOT / page).read_text("utf-8") for page in PAGES]
    assert sum(len(_LINK.findall(text)) for text in texts) > 60
    assert sum(len(_FILE.findall(text)) for text in texts) > 30


#: What code says of the page and section that it implements.
_SOURCE = re.compile(r"docs/([\w/-]+\.md)#([\w-]+)")

#: Ways to cite what is not in the repository.
_NOWHERE = re.compile(r"\bseeds? 00\d|\b(?:[Pp]rotocol|[Dd]esign),? sections? \d|\bSource: (?!docs/)")

CODE = sorted(path for place in ("libs", "services", "tests", "bench") for path in (ROOT / place).rglob("*.py"))


def test_every_source_names_a_section_that_is_there() -> None:
    astray = [
        f"{path.relative_to(ROOT)}: docs/{page}#{anchor}"
        for path in CODE
        for page, anchor in _SOURCE.findall(path.read_text("utf-8"))
        if not (ROOT / "docs" / page).is_file() or anchor not in heading_anchors(ROOT / "docs" / page)
    ]
    assert astray == []


def test_nothing_is_cited_that_is_not_in_the_repository() -> None:
    cited = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for path in CODE
        for found in _NOWHERE.finditer(path.read_text("utf-8"))
        if path != Path(__file__)
    ]
    assert cited == []
