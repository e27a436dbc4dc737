"""``file.pruned`` and ``file.rmdir``: directories that hold nothing go, nothing else does."""

from __future__ import annotations

import os

import pytest

from tests.statecore.conftest import PlainMinion


@pytest.fixture
def tree(plain: PlainMinion) -> PlainMinion:
    for name in ("a/b/c", "a/d", "full/empty"):
        (plain.root / name).mkdir(parents=True)
    (plain.root / "full/kept").write_text("kept")
    (plain.root / "full/link").symlink_to("/a")
    return plain


CASES = {
    "one": ({"name": "/a/d"}, True, "Removed directory /a/d", {"deleted": "/a/d"}),
    "gone": ({"name": "/none"}, True, "Directory /none is not present", {}),
    "holds directories": ({"name": "/a"}, False, "Failed to remove directory /a: it is not empty, or too young", {}),
    "all below": (
        {"name": "/a", "recurse": True},
        True,
        "Recursively removed empty directories under /a",
        {"deleted": ["/a", "/a/b", "/a/b/c", "/a/d"]},
    ),
    "holds a file": (
        {"name": "/full", "recurse": True},
        False,
        "Failed to remove directory /full: it is not empty, or too young",
        {},
    ),
    "what may go": (
        {"name": "/full", "ignore_errors": True},
        True,
        "Recursively removed empty directories under /full",
        {"deleted": ["/full/empty"]},
    ),
    "too young": (
        {"name": "/a/d", "older_than": 1},
        False,
        "Failed to remove directory /a/d: it is not empty, or too young",
        {},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_case(tree: PlainMinion, name: str) -> None:
    arguments, result, comment, changes = CASES[name]
    would = tree.state("file.pruned", test=True, **arguments)
    assert (would["result"], would["changes"]) == (None if changes else result, changes)
    assert (tree.root / "a/b/c").is_dir()
    told = tree.state("file.pruned", **arguments)
    assert (told["result"], told["comment"], told["changes"]) == (result, comment, changes)
    assert (tree.root / "full/kept").read_text() == "kept"
    again = tree.state("file.pruned", **arguments)
    assert (again["result"], again["changes"]) == (result, {})


def test_what_is_old_goes(tree: PlainMinion) -> None:
    os.utime(tree.root / "a/d", (0, 0))
    told = tree.state("file.pruned", name="/a", ignore_errors=True, older_than=2)
    assert told["changes"] == {"deleted": ["/a/d"]}
    assert (tree.root / "a/b/c").is_dir()


def test_rmdir_removes_nothing_that_holds_something(tree: PlainMinion) -> None:
    assert tree.call("file.rmdir", "/full", recurse=True) is False
    assert (tree.root / "full/kept").read_text() == "kept"
    assert tree.call("file.rmdir", "/a") is False
    assert tree.call("file.rmdir", "/a", recurse=True) is True
    assert not (tree.root / "a").exists()


def test_shortcuts_are_refused_by_name(tree: PlainMinion) -> None:
    told = tree.state("file.shortcut", name="/a.lnk", target="/a", working_dir="/")
    assert (told["result"], told["comment"]) == (False, "Shortcuts are only supported on Windows")
