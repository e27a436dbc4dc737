"""The file module on a mounted host in a temporary directory."""

from __future__ import annotations

import hashlib
import os

import pytest

from statecore.model.errors import CallFailed, CommandError, InvocationError

HAVE = {
    "d/a.txt": "alpha\nbeta\n",
    "d/b.log": "x\n",
    "d/sub/c.txt": "",
    "link": "-> /d/a.txt",
    "dirlink": "-> d",
    "dangling": "-> /nothing",
    "conf": "key = old\n# key = commented\n",
}


@pytest.fixture
def host(plain):
    """The minion, with things on its host."""
    for name, what in HAVE.items():
        path = plain.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if what.startswith("-> "):
            path.symlink_to(what[3:])
        else:
            path.write_text(what)
            path.chmod(0o644)
    (plain.root / "etc").mkdir()
    (plain.root / "etc/passwd").write_text(f"me:x:{os.geteuid()}:{os.getegid()}::/:/bin/sh\n")
    (plain.root / "etc/group").write_text(f"us:x:{os.getegid()}:\n")
    return plain


ANSWERS = [
    ("file_exists", ("/d/a.txt",), True),
    ("file_exists", ("/link",), True),
    ("file_exists", ("/d",), False),
    ("file_exists", ("/../../d/a.txt",), True),
    ("directory_exists", ("/dirlink",), True),
    ("directory_exists", ("d",), False),
    ("file_exists", ("d/a.txt",), False),
    ("directory_exists", ("/d/a.txt",), False),
    ("path_exists_glob", ("/d/*.txt",), True),
    ("path_exists_glob", ("/d/*.md",), False),
    ("path_exists_glob", ("/none/*",), False),
    ("path_exists_glob", ("/?/*/c.*",), True),
    ("path_exists_glob", ("/?/*/d.*",), False),
    ("path_exists_glob", ("d/*.txt",), False),
    ("access", ("/d/a.txt", "f"), True),
    ("access", ("/d/none", "f"), False),
    ("read", ("/link",), "alpha\nbeta\n"),
    ("read", ("/link", True), b"alpha\nbeta\n"),
    ("is_link", ("/link",), True),
    ("is_link", ("/d",), False),
    ("readlink", ("/link",), "/d/a.txt"),
    ("readlink", ("/dirlink", True), "/d"),
    ("readdir", ("/d",), [".", "..", "a.txt", "b.log", "sub"]),
    ("find", ("/d",), ["/d", "/d/a.txt", "/d/b.log", "/d/sub", "/d/sub/c.txt"]),
    ("find", ("/d", "*.txt"), ["/d/a.txt", "/d/sub/c.txt"]),
    ("find", ("/d/", None, "d"), ["/d", "/d/sub"]),
    ("find", ("/d", None, None, 1), ["/d", "/d/a.txt", "/d/b.log", "/d/sub"]),
    ("find", ("/none",), []),
    ("get_mode", ("/d/a.txt",), "0644"),
    ("get_user", ("/link",), "me"),
    ("get_group", ("/link",), "us"),
    ("get_uid", ("/d",), os.geteuid()),
    ("get_gid", ("/d",), os.getegid()),
    ("get_hash", ("/d/b.log", "md5"), hashlib.md5(b"x\n").hexdigest()),
    ("get_sum", ("/d/b.log",), hashlib.sha256(b"x\n").hexdigest()),
    ("get_sum", ("/none",), "File not found"),
    ("check_hash", ("/d/b.log", f"md5={hashlib.md5(b'x' + bytes([10])).hexdigest()}"), True),
    ("check_hash", ("/d/b.log", hashlib.sha1(b"y").hexdigest()), False),
    ("contains", ("/d/a.txt", " beta "), True),
    ("contains", ("/d/a.txt", "gamma"), False),
    ("contains", ("/none", "a"), False),
    ("contains_regex", ("/d/a.txt", "^b.ta$"), True),
    ("contains_regex", ("/d/a.txt", "^eta", "b"), True),
    ("contains_regex", ("/none", "a"), False),
    ("search", ("/d/a.txt", "^beta$"), True),
    ("search", ("/d/a.txt", "^ALPHA$", ["IGNORECASE", "MULTILINE"]), True),
    ("search", ("/d/a.txt", "gamma"), False),
    ("get_diff", ("/d/a.txt", "/d/a.txt"), ""),
    ("get_diff", ("/d/b.log", "/d/sub/c.txt"), "--- /d/b.log\n+++ /d/sub/c.txt\n@@ -1 +0,0 @@\n-x\n"),
    ("basename", ("/a/b/",), ""),
    ("dirname", ("/a/b",), "/a"),
    ("join", ("/", "a", "b"), "/a/b"),
    ("lstat", ("/none",), {}),
    ("chown", ("/none", "me", "us"), "File not found"),
    ("chown", ("/d/a.txt", "me", "us"), None),
    ("chown", ("/d/a.txt", "none", "none"), "User does not exist\nGroup does not exist\n"),
    ("chown", ("/none", "none", "us"), "User does not exist\nFile not found"),
    ("chgrp", ("/d/a.txt", "none"), "Group does not exist\n"),
    ("set_mode", ("/d/a.txt", "600"), "0600"),
]


@pytest.mark.parametrize(("name", "args", "answer"), ANSWERS)
def test_answers(host, name, args, answer):
    assert host.call(f"file.{name}", *args) == answer


@pytest.mark.parametrize(
    ("name", "args", "error", "words"),
    [
        ("read", ("/none",), CommandError, "File not found: /none"),
        ("access", ("/d", "q"), InvocationError, "one of f, r, w, x"),
        ("remove", ("d",), InvocationError, "must be absolute: d"),
        ("copy", ("/none", "/x"), CommandError, "No such file or directory '/none'"),
        ("copy", ("/d", "/x"), InvocationError, "unless recurse=True"),
        ("rename", ("/none", "/x"), CommandError, "Could not rename '/none' to '/x': No such file"),
        ("symlink", ("/x", "/d/a.txt"), CommandError, "Found existing /d/a.txt; use force=True"),
        ("symlink", ("/x", "/none/link"), CommandError, "Could not create '/none/link': No such file"),
        ("readlink", ("/d",), InvocationError, "valid link was not specified: /d"),
        ("rmdir", ("/d/a.txt",), InvocationError, "/d/a.txt is not a directory"),
        ("readdir", ("/d/a.txt",), InvocationError, "valid directory was not specified"),
        ("find", ("/d", None, "x"), CallFailed, "type must be of b, c, d, f, l, p, s, not 'x'"),
        ("stats", ("/none",), CommandError, "Path not found: /none"),
        ("get_mode", ("/none",), CommandError, "Path not found: /none"),
        ("get_hash", ("/d/a.txt", "nosuch"), InvocationError, "no digest 'nosuch'"),
        ("check_hash", ("/d/a.txt", "abc"), InvocationError, "'abc' is no digest"),
        ("search", ("/none", "a"), CommandError, "File not found: /none"),
        ("search", ("/d/a.txt", "("), InvocationError, "not a valid regular expression"),
        ("replace", ("/none", "a", "b"), CommandError, "File not found: /none"),
        ("replace", ("/d/a.txt", "a", r"\1"), InvocationError, "not a valid replacement for 'a'"),
        ("set_mode", ("/d/a.txt", "rwx"), InvocationError, "'rwx' is no mode"),
        ("touch", ("/none/f",), CommandError, "/none/f"),
        ("copy", ("/d/a.txt", "/none/f"), CommandError, "/none/f"),
        ("write", ("/none/f", "a"), CommandError, "cannot be written"),
    ],
)
def test_refusals(host, name, args, error, words):
    with pytest.raises(error, match=words):
        host.call(f"file.{name}", *args)


#: (function, arguments, answer, what is at which path then: text, "/" for a directory, None for nothing)
DEEDS = [
    ("write", ("/n", "a", "b"), 'Wrote 2 lines to "/n"', {"n": "a\nb\n"}),
    ("write", ("/link", ["a"]), 'Wrote 1 lines to "/link"', {"d/a.txt": "a\n", "link": "-> /d/a.txt"}),
    ("append", ("/d/a.txt", "c"), 'Wrote 1 lines to "/d/a.txt"', {"d/a.txt": "alpha\nbeta\nc\n"}),
    ("touch", ("/n",), True, {"n": ""}),
    ("remove", ("/none",), False, {}),
    ("remove", ("/link",), True, {"link": None, "d/a.txt": "alpha\nbeta\n"}),
    ("remove", ("/dangling",), True, {"dangling": None}),
    ("remove", ("/dirlink",), True, {"dirlink": None, "d/a.txt": "alpha\nbeta\n"}),
    ("remove", ("/d",), True, {"d": None}),
    ("copy", ("/d/a.txt", "/n"), True, {"n": "alpha\nbeta\n"}),
    ("copy", ("/d/a.txt", "/d/sub"), True, {"d/sub/a.txt": "alpha\nbeta\n"}),
    ("copy", ("/d", "/n", True), True, {"n/a.txt": "alpha\nbeta\n", "n/sub/c.txt": ""}),
    ("copy", ("/d/sub", "/d/b.log", True, True), True, {"d/b.log": "/", "d/b.log/c.txt": ""}),
    ("rename", ("/link", "/n"), True, {"n": "-> /d/a.txt", "d/a.txt": "alpha\nbeta\n"}),
    ("symlink", ("/d", "/n"), True, {"n": "-> /d"}),
    ("symlink", ("/d/a.txt", "/link"), True, {"link": "-> /d/a.txt"}),
    ("symlink", ("/d", "/link", True), True, {"link": "-> /d", "d/a.txt": "alpha\nbeta\n"}),
    ("mkdir", ("/n/m",), True, {"n/m": "/"}),
    ("makedirs", ("/n/m/f",), True, {"n/m": "/", "n/m/f": None}),
    ("makedirs", ("/n/m/",), True, {"n/m": "/"}),
    # What holds something stays: recurse means directories that hold nothing.
    ("rmdir", ("/d/sub", True), False, {}),
    (
        "replace",
        ("/conf", "^key = .*$", "key = new"),
        "--- \n+++ \n@@ -1,2 +1,2 @@\n-key = old\n+key = new\n # key = commented\n",
        {"conf": "key = new\n# key = commented\n", "conf.bak": "key = old\n# key = commented\n"},
    ),
    ("replace", ("/conf", "nothing", "x"), "", {"conf": HAVE["conf"], "conf.bak": None}),
]


@pytest.mark.parametrize(("name", "args", "answer", "then"), DEEDS)
def test_deeds(host, name, args, answer, then):
    assert host.call(f"file.{name}", *args) == answer
    for path, what in then.items():
        assert shown(host.root / path) == what


def shown(path):
    if path.is_symlink():
        return f"-> {path.readlink()}"
    if not path.exists():
        return None
    return "/" if path.is_dir() else path.read_text()


@pytest.mark.parametrize(
    ("options", "answer", "then"),
    [
        ({"dry_run": True}, "--- \n+++ \n@@ -1,2 +1,2 @@\n-key = old\n+K = old\n # key = commented\n", HAVE["conf"]),
        ({"search_only": True}, True, HAVE["conf"]),
        ({"show_changes": False}, True, "K = old\n# key = commented\n"),
        ({"pattern": "none", "show_changes": False}, False, HAVE["conf"]),
        ({"pattern": "none", "prepend_if_not_found": True, "show_changes": False}, True, "K\n" + HAVE["conf"]),
        (
            {"pattern": "none", "append_if_not_found": True, "not_found_content": "L", "show_changes": False},
            True,
            HAVE["conf"] + "L\n",
        ),
    ],
)
def test_ways_to_replace(host, options, answer, then):
    assert host.call("file.replace", "/conf", **{"pattern": "^key", "repl": "K", "backup": False, **options}) == answer
    assert (host.root / "conf").read_text() == then


def test_replacing_nothing_in_nothing(host):
    assert host.call("file.replace", "/none", "a", "b", ignore_if_missing=True) == ""
    assert host.call("file.replace", "/none", "a", "b", ignore_if_missing=True, search_only=True) is False
    assert host.call("file.search", "/none", "a", ignore_if_missing=True) is False


def test_numbers_of_a_file(host):
    stats = host.call("file.stats", "/link", hash_type="md5")
    assert (stats["type"], stats["mode"], stats["user"], stats["size"]) == ("file", "0644", "me", 11)
    assert stats["target"] == "/d/a.txt"
    assert stats["sum"] == hashlib.md5(b"alpha\nbeta\n").hexdigest()
    assert host.call("file.stats", "/link", follow_symlinks=False)["type"] == "link"
    assert host.call("file.stats", "/d")["type"] == "dir"
    assert set(host.call("file.lstat", "/link")) > {"st_mode", "st_size"}


def test_times(host):
    host.call("file.touch", "/d/a.txt", atime=10, mtime=20)
    found = (host.root / "d/a.txt").stat()
    assert (found.st_atime, found.st_mtime) == (10, 20)
    host.call("file.touch", "/d/a.txt", mtime=0)
    assert (host.root / "d/a.txt").stat().st_mtime == 0


def test_copies_do_not_leave_the_root(host, tmp_path):
    """The target has links that lead out, as a host that is not to be trusted may have."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.txt").write_text("mine")
    (host.root / "target").mkdir()
    (host.root / "target/a.txt").symlink_to(outside / "a.txt")
    (host.root / "target/sub").symlink_to(outside)
    host.call("file.copy", "/d", "/target", recurse=True)
    assert (outside / "a.txt").read_text() == "mine"
    assert [path.name for path in outside.iterdir()] == ["a.txt"]
