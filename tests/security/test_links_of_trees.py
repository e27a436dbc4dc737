"""Attack: links in a state tree, or in a directory of pushed files, that lead a request out of the directory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from saltern.mworker.commands import roots
from saltern.mworker.commands.received_files import FileRefused, store
from statecore.host import beneath
from statecore.host.beneath import LeadsOutside, Links
from statecore.sources.local_tree import LocalFiles
from statecore.sources.tree_roots import TreeRoot


def _long_chain(top: Path) -> str:
    """Make directories with long names and a short link to each. Return the short path of a link to the outside."""
    at = os.open(top, os.O_PATH)
    for letter in "abcdefghijklmnop":
        os.mkdir(letter * 247, dir_fd=at)
        os.symlink(letter * 247, letter, dir_fd=at)
        deeper = os.open(letter * 247, os.O_PATH, dir_fd=at)
        os.close(at)
        at = deeper
    os.symlink("/".join([".."] * 17) + "/outside", "l" * 254, dir_fd=at)
    os.close(at)
    return "/".join("abcdefghijklmnop") + "/" + "l" * 254


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    made = tmp_path / "tree"
    made.mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("secret")
    (made / "beside").symlink_to("../outside")
    (made / "absolute").symlink_to(tmp_path / "outside")
    (made / "far").symlink_to("far2")
    (made / "far2").symlink_to("beside")
    (made / "chain").symlink_to(_long_chain(made))
    (made / "dangling").symlink_to("../outside/new")
    (made / "loop").symlink_to("loop")
    return made


LINKS = ["beside", "absolute", "far", "far2", "chain", "dangling", "loop"]


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("rest", ["", "/secret", "/new", "/new/deeper"])
def test_the_link_leads_outside(tree: Path, link: str, rest: str) -> None:
    with beneath.directory(tree) as top, pytest.raises((LeadsOutside, OSError)) as raised:
        beneath.open_beneath(top, f"{link}{rest}", os.O_WRONLY | os.O_CREAT, links=Links.BENEATH)
    assert isinstance(raised.value, LeadsOutside) or link in ("loop", "chain")
    assert not (tree.parent / "outside/new").exists()


@pytest.mark.parametrize("path", ["", "new", "new/deeper", "a", "inside", "inside/new"])
@pytest.mark.ordinary
def test_a_path_inside_is_inside(tree: Path, path: str) -> None:
    (tree / "inside").symlink_to("a")
    with beneath.directory(tree) as top:
        beneath.make_directories(top, path or "inside", links=Links.BENEATH)
        os.close(beneath.open_beneath(top, path, os.O_PATH, links=Links.BENEATH))


@pytest.mark.parametrize("link", LINKS)
def test_a_tree_without_followed_links_serves_nothing_outside(tree: Path, link: str) -> None:
    files = LocalFiles({"base": [tree]}, follow_links=False)
    assert files.fetch(f"{link}/secret") is None
    assert not any(name.endswith("secret") for name in files.paths())


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("name", ["secret", "new"])
def test_a_file_of_the_roots_is_written_inside(tree: Path, link: str, name: str) -> None:
    assert roots.write({"base": [str(tree)]}, "forged", f"{link}/{name}") == f"Invalid path: {link}/{name}"
    assert (tree.parent / "outside/secret").read_text() == "secret"


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("name", ["secret", "new"])
def test_a_pushed_file_is_stored_inside(tree: Path, link: str, name: str) -> None:
    tree.rename(tree.with_name("files"))
    with pytest.raises((FileRefused, OSError)):
        store(TreeRoot(str(tree.parent), "files"), [link, name], b"forged", 0)
    assert (tree.parent / "outside/secret").read_text() == "secret"
    assert not (tree.parent / "outside/new").exists()
