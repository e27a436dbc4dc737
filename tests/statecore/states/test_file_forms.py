"""What the case tables do not see: forms that Salt 3008 does not bring, which file a name is, links that lead out of a root."""

from __future__ import annotations

import plistlib

import pytest

from tests.statecore.states.conftest import Case

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
