"""What the case tables do not see: forms that Salt 3008 does not bring, which file a name is, links that lead out of a root."""

from __future__ import annotations

import hashlib
import os
import plistlib
import tomllib
from pathlib import Path

import pytest

from statecore.builtin.states.file import managed
from tests.statecore.builtin.states.conftest import Case
from tests.statecore.conftest import PlainMinion
from tests.statecore.loopback_server import serve

DATA = {"b": [1, "two"], "a": {"c": True}}


def applied(ours, state, args, have=None):
    return ours.apply(Case(f"forms/{state}", state, args, {}, {}, have=have or {}))


@pytest.mark.parametrize(
    ("serializer", "reads"),
    [("plist", lambda text: plistlib.loads(text.encode())), ("python", lambda text: eval(text, {}))],
)
def test_serializer(serializer, reads, ours_mounted):
    told = applied(ours_mounted, "file.serialize", {"dataset": DATA, "serializer": serializer})
    assert [told[phase]["result"] for phase in ("would", "does", "again")] == [None, True, True]
    assert told["again"]["changes"] == {}
    assert reads((ours_mounted.place / "f").read_text()) == DATA


def test_plist_is_merged_into(ours_mounted):
    have = {"f": plistlib.dumps({"b": 0, "z": 1}).decode()}
    args = {"dataset": DATA, "serializer": "plist", "merge_if_exists": True}
    told = applied(ours_mounted, "file.serialize", args, have)
    assert told["does"]["changes"]["diff"] == {
        "b": {"old": 0, "new": [1, "two"]},
        "a": {"old": "<_null_>", "new": {"c": True}},
    }
    assert plistlib.loads((ours_mounted.place / "f").read_bytes()) == {**DATA, "z": 1}


def test_python_is_not_merged_into(ours_mounted):
    args = {"dataset": DATA, "serializer": "python", "merge_if_exists": True}
    told = applied(ours_mounted, "file.serialize", args, {"f": "{}\n"})
    assert told["does"]["comment"] == "merge_if_exists is not supported for the python serializer"


def test_a_hard_link_is_the_same_file(ours_mounted):
    applied(ours_mounted, "file.hardlink", {"name": "ROOT/g", "target": "ROOT/f"}, {"f": "x"})
    assert (ours_mounted.place / "g").samefile(ours_mounted.place / "f")


@pytest.mark.parametrize(
    ("state", "args"),
    [
        ("file.comment", {"regex": "^x", "backup": False}),
        ("file.line", {"mode": "replace", "match": "x", "content": "y"}),
        ("file.keyvalue", {"key": "x", "value": "2"}),
        ("file.blockreplace", {"content": "y", "append_if_not_found": True, "backup": False}),
        ("file.serialize", {"dataset": 1}),
        ("file.decode", {"encoded_data": "eQ=="}),
    ],
)
def test_a_link_never_leads_out_of_the_host(state, args, ours_mounted, tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("x=1\n")
    told = applied(ours_mounted, state, args, {"f": f"-> {outside}"})
    assert outside.read_text() == "x=1\n"
    assert told["would"]["result"] is not True


def test_tidied_follows_links_inside_the_host_alone(ours_mounted, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_text("x")
    have = {"d/l": f"-> {outside}", "d/k": "-> ROOT/e", "e/b": "x"}
    args = {"name": "ROOT/d", "followlinks": True, "matches": ["[ab]$"]}
    told = applied(ours_mounted, "file.tidied", args, have)
    assert told["does"]["changes"] == {"removed": ["ROOT/d/k/b"]}
    assert (outside / "a").exists()


#: Data, and the text that the library toml 0.10 makes of it, which Salt's serializer is.
TOML = {
    "values": (
        {"title": "x", "n": 1.5, "on": True, "none": None, "ports": [8001, "b"], "empty": [], "nested": [[1], ["a"]]},
        'title = "x"\nn = 1.5\non = true\nports = [ 8001, "b",]\nempty = []\nnested = [ [ 1,], [ "a",],]\n',
    ),
    "tables": (
        {"v": 1, "db": {"s": "s", "in": {"k": "v", "deep": {"z": 1}}}, "e": {}, "o": {"p": {"q": 2}}},
        'v = 1\n\n[db]\ns = "s"\n\n[e]\n\n[db.in]\nk = "v"\n\n[o.p]\nq = 2\n\n[db.in.deep]\nz = 1\n',
    ),
    "arrays of tables": (
        {"s": [{"n": 1, "x": {"y": 2}}, {"n": 2}], "t": {"a": [{"b": 1}], "u": {"v": 1}}},
        "[[s]]\nn = 1\n\n[s.x]\ny = 2\n[[s]]\nn = 2\n\n[t]\n[[t.a]]\nb = 1\n\n[t.u]\nv = 1\n",
    ),
    "names and texts": ({"a.b": {"c d": 'q"\n'}, "ü": "ä"}, '"ü" = "ä"\n\n["a.b"]\n"c d" = "q\\"\\n"\n'),
}


@pytest.mark.parametrize("name", TOML)
def test_toml(name, ours_mounted):
    data, text = TOML[name]
    told = applied(ours_mounted, "file.serialize", {"dataset": data, "serializer": "toml"})
    assert [told[phase]["result"] for phase in ("would", "does", "again")] == [None, True, True]
    assert told["again"]["changes"] == {}
    # Salt puts the end of a line behind every text.
    assert (ours_mounted.place / "f").read_text() == f"{text}\n"
    assert tomllib.loads(text) == {key: value for key, value in data.items() if value is not None}


def test_toml_is_merged_into(ours_mounted):
    args = {"dataset": {"a": {"b": 2}, "n": 1}, "serializer": "toml", "merge_if_exists": True}
    told = applied(ours_mounted, "file.serialize", args, {"f": "[a]\nb = 1\nc = 3\n"})
    assert told["does"]["changes"]["diff"] == {"a": {"b": {"old": 1, "new": 2}}, "n": {"old": "<_null_>", "new": 1}}
    assert tomllib.loads((ours_mounted.place / "f").read_text()) == {"a": {"b": 2, "c": 3}, "n": 1}


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"dataset": [1]}, "the data cannot be written as toml: TOML holds a map, not list"),
        ({"dataset": {"a": {1, 2}}}, "TOML knows no set"),
        ({"dataset": {"a": 1}, "serializer_opts": [{"indent": 2}]}, "toml takes no options, but indent"),
        ({"dataset": {"a": 1}, "merge_if_exists": True}, "Failed to deserialize existing data: "),
    ],
)
def test_what_is_no_toml(args, says, ours_mounted):
    told = applied(ours_mounted, "file.serialize", {"serializer": "toml", **args}, {"f": "no = = toml\n"})
    assert told["does"]["result"] is False
    assert says in told["does"]["comment"]
    assert (ours_mounted.place / "f").read_text() == "no = = toml\n"


#: What is there, arguments of file.symlink, what is there then.
LINKS = {
    "atomic over a file": ({"f": "x"}, {"target": "t", "atomic": True}, {"f": "-> t"}),
    "made directories have the mode": (
        {},
        {"name": "ROOT/d/f", "target": "t", "makedirs": True, "mode": "0711"},
        {"d": "0711 /", "d/f": "-> t"},
    ),
    "what is there may come from elsewhere": (
        {"f": "x"},
        {"target": "t", "backupname": "/srv/kept", "disallow_copy_and_unlink": True},
        {"f": "-> t"},
    ),
}


@pytest.mark.parametrize("name", LINKS)
def test_links(name, ours_mounted):
    have, args, left = LINKS[name]
    told = applied(ours_mounted, "file.symlink", args, have)
    assert [told[phase]["result"] for phase in ("would", "does", "again")] == [None, True, True], told
    assert told["again"]["changes"] == {}
    assert told["left"] == left


def test_no_directory_makes_room_for_a_link_without_force(ours_mounted):
    told = applied(ours_mounted, "file.symlink", {"target": "t", "atomic": True}, {"f/x": "x"})
    assert told["does"]["result"] is False
    assert told["left"] == {"f": "0755 /", "f/x": "0644 x"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize(("inherit", "owner"), [(True, 65534), (False, 0)])
def test_a_link_that_is_replaced_may_keep_its_owner(inherit, owner, plain):
    link = plain.root / "l"
    link.symlink_to("old")
    os.chown(link, 65534, 65534, follow_symlinks=False)
    told = plain.state("file.symlink", name="/l", target="new", inherit_user_and_group=inherit)
    assert told["result"] is True
    assert str(link.readlink()) == "new"
    assert (link.lstat().st_uid, link.lstat().st_gid) == (owner, owner)


def test_several_directories_are_brought_together(plain):
    for path in ("one/a", "one/d/x", "one/c", "two/a", "two/b", "two/d/y", "two/c/z", "two/d/x"):
        plain.write(path, path)
    args = {"name": "/t", "source": ["salt://none", "salt://one", "salt://two"]}
    assert plain.state("file.recurse", **args)["result"] is True
    assert sorted(path.name for path in (plain.root / "t").iterdir()) == ["a", "c", "d"]
    told = plain.state("file.recurse", **args, merge=True)
    assert told["changes"].keys() == {"/t/b", "/t/d/y"}
    top = plain.root / "t"
    found = {str(path.relative_to(top)): path.read_text() for path in top.rglob("*") if path.is_file()}
    # Of two of a name the first counts; where the first has a file, the second has no directory.
    assert found == {"a": "one/a", "b": "two/b", "c": "one/c", "d/x": "one/d/x", "d/y": "two/d/y"}
    assert plain.state("file.recurse", **args, merge=True, clean=True)["changes"] == {}


@pytest.mark.parametrize("state", ["file.directory", "file.recurse", "file.symlink"])
def test_what_windows_has_is_refused_by_name(state, plain):
    more = {"file.recurse": {"source": "salt://x"}, "file.symlink": {"target": "/t"}}.get(state, {})
    told = plain.state(state, name="/d", win_owner="me", **more)
    assert told["comment"] == "not supported: win_owner (Windows)"
    assert not (plain.root / "d").exists()


@pytest.mark.parametrize(
    ("encoding", "pattern", "repl", "holds"),
    [("utf-16", "b.r", "ü", "a ü\n"), ("latin-1", "ä", "o", None), ("utf-16", "none", "x", None)],
)
def test_a_file_of_another_encoding_is_edited(encoding, pattern, repl, holds, plain):
    (plain.root / "f").write_bytes("a bär\n".encode(encoding))
    args = {"name": "/f", "pattern": pattern, "repl": repl, "encoding": encoding, "backup": False}
    would = plain.state("file.replace", test=True, **args)
    told = plain.state("file.replace", **args)
    expected = holds or "a bär\n".replace(pattern, repl)
    assert (plain.root / "f").read_bytes().decode(encoding) == expected
    assert would["changes"] == told["changes"]
    wrong = plain.state("file.replace", **args | {"encoding": "nothing"})
    assert wrong["result"] is False
    assert "unknown encoding: nothing" in wrong["comment"]


def test_a_copy_need_not_be_kept(plain):
    with serve() as web:
        for content, size in ((b"small", 5), (b"x" * 5_000_000, 5_000_000)):
            web.answers["/f"] = (200, {}, content)
            args = {"name": "/f", "source": f"{web.url}/f", "skip_verify": True, "keep_source": False}
            assert plain.state("file.managed", **args)["result"] is True
            assert (plain.root / "f").stat().st_size == size
            assert not [path for path in (plain.directory / "cache").rglob("*") if path.is_file()]


def test_a_binary_file_is_no_template(plain: PlainMinion) -> None:
    picture = b"\x89PNG\0\xff{{ 1 }}"
    (plain.tree / "site").mkdir()
    (plain.tree / "site/picture").write_bytes(picture)
    (plain.tree / "broken").write_bytes(b"caf\xe9 {{ 1 }}\n")
    assert plain.state("file.managed", name="/p", source="salt://site/picture", template="jinja")["result"] is True
    assert (plain.root / "p").read_bytes() == picture
    told = plain.state("file.recurse", name="/srv", source="salt://site", template="jinja")
    assert (told["result"], (plain.root / "srv/picture").read_bytes()) == (True, picture)
    assert (
        "is not UTF-8 text"
        in plain.state("file.managed", name="/b", source="salt://broken", template="jinja")["comment"]
    )


def test_a_difference_of_text_in_another_character_set(plain: PlainMinion) -> None:
    (plain.tree / "latin").write_bytes(b"caf\xe9\nx\n")
    (plain.root / "l").write_bytes(b"th\xe9\nx\n")
    told = plain.state("file.managed", name="/l", source="salt://latin")
    assert told["changes"] == {"diff": "--- \n+++ \n@@ -1,2 +1,2 @@\n-thé\n+café\n x\n"}


def test_links_of_lower_sources_below_directories_of_higher_ones(plain: PlainMinion) -> None:
    for path, text in {"one/over/f": "1", "two/real/g": "2"}.items():
        plain.write(path, text)
    (plain.tree / "two/over").symlink_to("real")
    (plain.tree / "two/link").symlink_to("real")
    told = plain.state("file.recurse", name="/d", source=["salt://one", "salt://two"], merge=True, keep_symlinks=True)
    assert told["result"] is True, told["comment"]
    found = {str(path.relative_to(plain.root)) for path in (plain.root / "d").rglob("*")}
    assert found == {"d/over", "d/over/f", "d/real", "d/real/g", "d/link"}
    assert (plain.root / "d/link").readlink() == Path("real")


def test_a_file_with_the_required_digest_needs_no_server(plain: PlainMinion) -> None:
    (plain.root / "f").write_text("data\n")
    digest = "sha256=" + hashlib.sha256(b"data\n").hexdigest()
    gone = "http://127.0.0.1:1/x"
    told = plain.state("file.managed", name="/f", source=gone, source_hash=digest, mode="0600")
    assert (told["result"], told["changes"]) == (True, {"mode": "0600"})
    told = plain.state("file.managed", name="/f", source=gone, source_hash=digest)
    assert (told["result"], told["changes"]) == (True, {})
    other = "sha256=" + hashlib.sha256(b"other").hexdigest()
    assert plain.state("file.managed", name="/f", source=gone, source_hash=other)["result"] is False


def test_idle_options_of_serialize(plain: PlainMinion) -> None:
    told = plain.state(
        "file.serialize", name="/s", dataset={"a": 1}, serializer="json", deserializer_opts=[{"strict": False}]
    )
    assert told["warnings"] == ["The 'deserializer_opts' option is ignored unless merge_if_exists is set to True."]


def test_accumulators_for_a_plain_id(plain: PlainMinion) -> None:
    for readers, result in ((["my-file"], True), (["target"], False), ([{"file": "target"}], True)):
        low = {"state": "file", "fun": "accumulated", "__id__": "a", "__sls__": "s", "name": "a", "watch_in": readers}
        ctx = plain.context().for_chunk({**low, "__env__": "base"}, test=False, running={})
        assert managed.accumulated(ctx, "a", "/f", "x").result is result
