"""docs/site/versions builds the site of each tag beside the others, from that tag's own checkout."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

#: Instead of Sphinx: the page says which text the tag has.
MAKEFILE = ".PHONY: docs\ndocs:\n\tmkdir -p $(SITE) && cp docs/page.txt $(SITE)/index.html\n"


def git(repository: Path, *words: str) -> str:
    own = (
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@example.com",
        "-c",
        "commit.gpgsign=false",
        "-c",
        "tag.gpgsign=false",
    )
    done = subprocess.run(["git", *own, *words], cwd=repository, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with the tags v0.1.0 (without a site), v0.2.0 and v0.3.0."""
    place = tmp_path / "repository"
    (place / "docs/site").mkdir(parents=True)
    git(place, "init", "-q")
    for tag in ("v0.1.0", "v0.2.0", "v0.3.0"):
        (place / "Makefile").write_text(MAKEFILE)
        (place / "docs/page.txt").write_text(f"page of {tag}\n")
        if tag != "v0.1.0":
            (place / "docs/site/conf.py").touch()
        git(place, "add", "-A")
        git(place, "commit", "-qm", tag)
        git(place, "tag", tag)
    (place / "docs/page.txt").write_text("not committed\n")
    return place


def versions(repository: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ROOT / "docs/site/versions", *words], cwd=repository, capture_output=True, text=True, check=False
    )


def test_each_tag_has_its_own_pages_and_the_choice_lists_them(repository: Path) -> None:
    done = versions(repository, "sites", "v0.3.0", "v0.2.0", "v0.1.0")
    assert done.returncode == 0, done.stderr
    sites = repository / "sites"
    assert {path.parent.name: path.read_text() for path in sites.glob("*/index.html")} == {
        "v0.3.0": "page of v0.3.0\n",
        "v0.2.0": "page of v0.2.0\n",
    }
    assert "v0.1.0 has no site" in done.stdout
    # The scripts of the pages read this file, one directory above theirs.
    assert json.loads((sites / "versions.json").read_text()) == ["v0.3.0", "v0.2.0"]
    assert "versions.json" in (ROOT / "docs/site/static/versions.js").read_text("utf-8")
    assert "url=v0.3.0/index.html" in (sites / "index.html").read_text()


def test_the_checkout_stays_as_it_was(repository: Path) -> None:
    versions(repository, "../sites", "v0.2.0")
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    assert (repository / "docs/page.txt").read_text() == "not committed\n"
    assert (repository.parent / "sites/v0.2.0/index.html").exists()


def test_no_tag_with_a_site_is_an_error(repository: Path) -> None:
    done = versions(repository, "sites", "v0.1.0")
    assert done.returncode != 0
    assert not (repository / "sites/index.html").exists()


@pytest.mark.parametrize(("words", "code"), [((), 64), (("sites",), 64), (("sites", "v9"), 128)])
def test_wrong_calls_end_with_an_error(repository: Path, words: tuple[str, ...], code: int) -> None:
    assert versions(repository, *words).returncode == code
    assert len(git(repository, "worktree", "list").splitlines()) == 1
