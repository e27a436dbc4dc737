"""Files of the state tree on a mounted host."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from statecore.model.errors import CommandError
from tests.statecore.loopback_server import serve


@pytest.fixture
def tree(plain):
    plain.write("top.sls", "")
    plain.write("web/init.sls", "")
    plain.write("web/site.sls", "")
    plain.write("web/conf/a.txt", "a {{ name }}")
    plain.write("web/conf/deep/b.txt", "b")
    plain.write("odd?name", "odd")
    (plain.root / "etc").mkdir()
    (plain.root / "etc/own").write_text("own")
    return plain


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "value", "left"),
    [
        ("get_file", ("salt://web/conf/a.txt", "/etc/a"), {}, "/etc/a", {"etc/a": "a {{ name }}"}),
        ("get_file", ("salt://web/conf/a.txt", "/etc/"), {}, "/etc/a.txt", {"etc/a.txt": "a {{ name }}"}),
        ("get_file", ("salt://web/conf/a.txt", "/no/a"), {}, "", {}),
        ("get_file", ("salt://web/conf/a.txt", "/no/a"), {"makedirs": True}, "/no/a", {"no/a": "a {{ name }}"}),
        ("get_file", ("salt://nothing", "/etc/a"), {}, "", {}),
        ("get_template", ("salt://web/conf/a.txt", "/etc/a"), {"name": "x"}, "/etc/a", {"etc/a": "a x"}),
        (
            "get_dir",
            ("salt://web/conf", "/etc"),
            {},
            ["/etc/conf/a.txt", "/etc/conf/deep/b.txt"],
            {"etc/conf/a.txt": "a {{ name }}", "etc/conf/deep/b.txt": "b"},
        ),
        (
            "get_dir",
            ("salt://web/conf/", "/etc"),
            {},
            ["/etc/a.txt", "/etc/deep/b.txt"],
            {"etc/a.txt": "a {{ name }}", "etc/deep/b.txt": "b"},
        ),
        ("get_url", ("salt://web/conf/deep/b.txt", "/etc/b"), {}, "/etc/b", {"etc/b": "b"}),
        ("get_url", ("/etc/own", None), {}, "own", {}),
        ("get_url", ("salt://nothing", None), {}, False, {}),
        ("get_file_str", ("salt://web/conf/deep/b.txt",), {}, "b", {}),
        ("get_file_str", ("salt://nothing",), {}, False, {}),
        ("cache_file", ("salt://nothing",), {}, False, {}),
        ("is_cached", ("salt://nothing",), {}, "", {}),
        ("hash_file", ("/etc/own",), {}, {"hsum": hashlib.sha256(b"own").hexdigest(), "hash_type": "sha256"}, {}),
        ("hash_file", ("salt://nothing",), {}, {}, {}),
        ("stat_file", ("salt://nothing",), {}, None, {}),
        ("list_states", (), {}, ["top", "web", "web.site"], {}),
        ("list_master", (), {"prefix": "web/conf"}, ["web/conf/a.txt", "web/conf/deep/b.txt"], {}),
        ("list_master_dirs", (), {}, ["web", "web/conf", "web/conf/deep"], {}),
        ("list_master_symlinks", (), {}, {}, {}),
        ("envs", (), {}, ["base"], {}),
        ("get_file_str", ("salt://|odd?name",), {}, "odd", {}),
        ("get_file_str", ("salt://|odd?name?saltenv=base",), {}, "odd", {}),
        ("get_file_str", ("salt://odd?name",), {}, False, {}),
        ("get_file_str", ("salt:///web/conf/deep/b.txt?saltenv=base",), {}, "b", {}),
    ],
)
def test_calls(tree, name, args, kwargs, value, left):
    assert tree.call(f"cp.{name}", *args, **kwargs) == value
    files = {
        path.relative_to(tree.root).as_posix(): path.read_text() for path in tree.root.rglob("*") if path.is_file()
    }
    assert files == {"etc/own": "own", **left}


def test_where_things_are(tree):
    place = str(tree.tree / "web/conf/a.txt")
    assert tree.call("cp.cache_file", "salt://web/conf/a.txt?saltenv=base") == place
    assert tree.call("cp.is_cached", "salt://web/conf/a.txt") == place
    assert tree.call("cp.cache_files", "salt://web/conf/a.txt,salt://nothing") == [place, False]
    assert tree.call("cp.cache_dir", "salt://web/conf", exclude_pat="*b.txt") == [place]
    assert tree.call("cp.cache_dir", "salt://web/conf", include_pat="E@a.t") == [place]
    assert len(tree.call("cp.cache_master")) == 6
    assert tree.call("cp.hash_file", "salt://web/conf/a.txt")["hash_type"] == "sha256"
    assert tree.call("cp.stat_file", "salt://web/conf/a.txt") == "0644"


@pytest.mark.parametrize(("name", "args"), [("get_file_str", ("s3://x/y",)), ("get_url", ("ftp://x/y", None))])
def test_what_is_not_there_says_so(tree, name, args):
    with pytest.raises(CommandError, match="not supported"):
        tree.call(f"cp.{name}", *args)


def test_files_of_a_server(plain):
    with serve() as web:
        url = f"{web.url}/plain"
        assert plain.call("cp.is_cached", url) == ""
        assert plain.call("cp.get_file_str", url) == "all is well\n"
        assert plain.call("cp.get_url", url, None) == "all is well\n"
        assert plain.call("cp.get_url", url, "/f") == "/f"
        assert (plain.root / "f").read_text() == "all is well\n"
        kept = plain.call("cp.cache_file", url)
        assert Path(kept).read_text() == "all is well\n"
        assert plain.call("cp.is_cached", url) == kept
        asked = len(web.asked)
        digest = hashlib.sha256(b"all is well\n").hexdigest()
        assert plain.call("cp.cache_file", url, source_hash=digest) == kept
        assert len(web.asked) == asked
        for words, kwargs in (("HTTP 404", {}), ("does not match actual checksum", {"source_hash": "1" * 64})):
            with pytest.raises(CommandError, match=words):
                plain.call("cp.cache_file", url if kwargs else f"{web.url}/none", **kwargs)
