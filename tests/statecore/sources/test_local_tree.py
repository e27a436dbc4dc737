"""The state tree in local roots: overlays, environments, links, and that nothing outside a root is served."""

from __future__ import annotations

import hashlib
import time

import pytest

import statecore.sources.local_tree
from statecore.model.ports import FileHash
from statecore.sources.local_tree import LocalFiles


@pytest.fixture
def roots(tmp_path):
    """base is "first" over "second"; dev has one root; "secret" lies beside them."""
    tree = {
        "first/top.sls": "first",
        "first/web/init.sls": "web",
        "first/web/run.sh": "run",
        "second/top.sls": "second",
        "second/db.sls": "db",
        "second/empty/deep/": "",
        "second/.hidden": "hidden",
        "dev/dev.sls": "dev",
        "secret/key": "secret",
        "first/link": "-> web/init.sls",
        "first/linkdir": "-> web",
        "first/out": "-> ../secret/key",
        "first/outdir": "-> ../secret",
        "first/absolute": "-> /etc/passwd",
        "first/dangling": "-> nothing",
        "first/loop": "-> loop",
        "first/web.swp": "ignored",
    }
    for name, text in tree.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir()
        elif text.startswith("-> "):
            path.symlink_to(text[3:])
        else:
            path.write_text(text)
    (tmp_path / "first/web/run.sh").chmod(0o750)
    return tmp_path


@pytest.fixture
def files(roots):
    return serving(roots, follow_links=False)


def serving(roots, **options):
    base = [str(roots / "first"), roots / "second", roots / "none"]
    return LocalFiles({"dev": [roots / "dev"], "base": base}, ignore_glob=["*.swp"], **options)


def test_listing(files):
    assert files.envs() == ["base", "dev"]
    assert files.paths() == [".hidden", "db.sls", "link", "top.sls", "web/init.sls", "web/run.sh"]
    assert files.paths(prefix="web/") == ["web/init.sls", "web/run.sh"]
    assert files.paths(prefix="web/r") == ["web/run.sh"]
    assert files.paths(prefix="we") == ["web/init.sls", "web/run.sh"]
    for nowhere in ("linkdir/", "outdir/", "../secret/", "/", "web//", "web/../", "none/", "top.sls/"):
        assert files.paths(prefix=nowhere) == files.dirs(prefix=nowhere) == []
        assert files.symlinks(prefix=nowhere) == {}
    assert files.paths("dev") == ["dev.sls"]
    assert files.paths("none") == []
    assert files.dirs() == ["empty", "empty/deep", "linkdir", "web"]
    assert files.dirs(prefix="e") == ["empty", "empty/deep"]
    assert files.empty_dirs() == ["empty/deep"]


def test_links_are_told_wherever_they_lead_if_they_are_not_followed(files):
    told = files.symlinks()
    assert (told["link"], told["linkdir"], told["absolute"]) == ("web/init.sls", "web", "/etc/passwd")
    assert list(told) == ["absolute", "dangling", "link", "linkdir", "loop", "out", "outdir"]
    assert files.symlinks(prefix="link") == {"link": "web/init.sls", "linkdir": "web"}


@pytest.mark.parametrize(
    ("path", "saltenv", "text"),
    [
        ("top.sls", "base", "first"),
        ("db.sls", "base", "db"),
        ("link", "base", "web"),
        ("linkdir/init.sls", "base", "web"),
        ("dev.sls", "dev", "dev"),
        ("dev.sls", "base", None),
        ("top.sls", "none", None),
        ("web", "base", None),
        ("", "base", None),
        (".", "base", None),
        ("/top.sls", "base", None),
        ("../secret/key", "base", None),
        ("web/../../secret/key", "base", None),
        ("web/../top.sls", "base", None),
        ("top.sls\0", "base", None),
        ("out", "base", None),
        ("outdir/key", "base", None),
        ("absolute", "base", None),
        ("dangling", "base", None),
        ("loop", "base", None),
        ("web.swp", "base", None),
        ("x" * 5000, "base", None),
    ],
)
def test_fetching(files, path, saltenv, text):
    found = files.fetch(path, saltenv)
    assert (found.read_text() if found else None) == text
    digest = files.hash(path, saltenv)
    assert digest == (FileHash("sha256", hashlib.sha256(text.encode()).hexdigest()) if text is not None else None)
    assert (files.mode(path, saltenv) is None) == (text is None)


def test_modes(files):
    assert files.mode("web/run.sh") == 0o750


def test_a_digest_is_of_the_file_as_it_is_now(files, roots):
    before = files.hash("top.sls")
    assert files.hash("top.sls") == before
    (roots / "first/top.sls").write_text("FIRST!")
    assert files.hash("top.sls") != before
    (roots / "first/top.sls").unlink()
    assert files.hash("top.sls") == FileHash("sha256", hashlib.sha256(b"second").hexdigest())


def test_other_digests(roots):
    files = LocalFiles({"base": [roots / "dev"]}, "md5")
    assert files.hash("dev.sls") == FileHash("md5", hashlib.md5(b"dev").hexdigest())


def test_any_environment_by_its_name(roots):
    files = LocalFiles({"base": [roots / "first"], "__env__": [roots / "__env__"]})
    assert files.envs() == ["base"]
    assert files.paths("dev") == ["dev.sls"]
    assert files.fetch("dev.sls", "dev")
    assert files.paths("..") == []
    assert files.fetch("secret/key", "..") is None
    assert files.fetch("key", "../" + roots.name + "/secret") is None


def test_links_are_followed(roots):
    files = serving(roots)
    assert {"out", "absolute", "outdir/key", "linkdir/init.sls"} <= set(files.paths())
    assert files.fetch("outdir/key").read_text() == "secret"
    # What is followed is no link; those that stay inside are both.
    assert files.symlinks() == {"dangling": "nothing", "link": "web/init.sls", "linkdir": "web", "loop": "loop"}


def test_links_may_be_left_out(roots):
    files = serving(roots, ignore_links=True)
    assert files.paths() == [".hidden", "db.sls", "top.sls", "web/init.sls", "web/run.sh"]
    assert files.symlinks() == {}


def test_a_link_to_where_it_lies_is_walked_into_once(roots):
    (roots / "dev" / "again").symlink_to(".")
    (roots / "dev" / "deep").mkdir()
    (roots / "dev" / "deep" / "up").symlink_to("..")
    assert serving(roots).paths("dev") == ["dev.sls"]


def test_expressions_may_be_left_out(roots):
    files = LocalFiles({"base": [roots / "first"]}, ignore_regex=[r"\.sls$", f"^{roots}/first/web/"])
    assert files.paths() == ["absolute", "link", "linkdir/run.sh", "out", "outdir/key", "web.swp"]
    assert files.fetch("top.sls") is files.fetch("web/run.sh") is None


def test_lists_are_kept_until_something_changes(roots, monkeypatch):
    walked = []
    walk = statecore.sources.local_tree._Walk.listing
    monkeypatch.setattr(statecore.sources.local_tree._Walk, "listing", lambda self: walked.append(self) or walk(self))
    # Change times cannot be set back, so the clock is set forward.
    ahead = 10_000_000_000
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + ahead)
    files = LocalFiles({"base": [roots / "first"]})
    listed = files.paths()
    assert files.paths() == listed
    assert len(walked) == 1
    changes = (
        lambda: (roots / "first" / "new").write_text(""),
        lambda: (roots / "first" / "new").unlink(),
        lambda: (roots / "first" / "web" / "deep").mkdir(),
        lambda: (roots / "secret" / "other").write_text(""),
        lambda: (roots / "first" / "nothing").write_text("what a link led to is there now"),
        lambda: (roots / "first" / "web" / "run.sh").rename(roots / "first" / "run.sh"),
        lambda: ((roots / "first" / "link").unlink(), (roots / "first" / "link").symlink_to("web/none")),
    )
    for change in changes:
        change()
        fresh = LocalFiles({"base": [roots / "first"]})
        assert (files.paths(), files.dirs(), files.symlinks()) == (fresh.paths(), fresh.dirs(), fresh.symlinks())


def test_what_changes_right_after_a_look_is_seen(roots):
    files = LocalFiles({"base": [roots / "dev"]})
    for number in range(50):
        (roots / "dev" / f"f{number}").write_text("")
        assert f"f{number}" in files.paths()
        (roots / "dev" / "dev.sls").write_text(f"{number:02}")
        assert files.hash("dev.sls").hsum == hashlib.sha256(f"{number:02}".encode()).hexdigest()
