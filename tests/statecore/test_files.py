"""The state tree in local roots: overlays, environments, links, and that nothing outside a root is served."""

from __future__ import annotations

import hashlib

import pytest

from statecore.files import LocalFiles
from statecore.ports import FileHash


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
    return LocalFiles(
        {"dev": [roots / "dev"], "base": [str(roots / "first"), roots / "second", roots / "none"]},
        ignore_glob=["*.swp"],
    )


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
    assert files.dirs() == ["empty", "empty/deep", "web"]
    assert files.dirs(prefix="e") == ["empty", "empty/deep"]
    assert files.empty_dirs() == ["empty/deep"]


def test_links_are_told_wherever_they_lead(files):
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
