"""The group states: each told in test mode, applied, and looked at again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

UP_TO_DATE = "is present and up to date"
CHANGED = "The following group attributes are set to be changed:\n"
FINAL = {"Final": "All changes applied successfully"}

#: fun, arguments, (result, changes, comment) in test mode, then applied, then applied again.
CASES = {
    "no list": (
        "present",
        {"name": "adm", "members": "web"},
        *[(False, {}, "members must be a list of users, not 'web'")] * 3,
    ),
    "local": (
        "absent",
        {"name": "adm", "local": True},
        *[
            (
                False,
                {},
                "not supported: local; it needs lgroupadd; groups are created with groupadd",
            )
        ]
        * 3,
    ),
    "new": (
        "present",
        {"name": "app", "gid": "77"},
        (None, {}, "Group app set to be added"),
        (True, {"name": "app", "passwd": "x", "gid": 77, "members": []}, "New group app created"),
        (True, {}, f"Group app {UP_TO_DATE}"),
    ),
    "new with members": (
        "present",
        {"name": "app", "addusers": ["root", "web"]},
        (None, {}, "Group app set to be added"),
        (True, {"name": "app", "passwd": "x", "gid": 1000, "members": ["root", "web"]}, "New group app created"),
        (True, {}, f"Group app {UP_TO_DATE}"),
    ),
    "taken": (
        "present",
        {"name": "app", "gid": 4},
        (None, {}, "Group app set to be added"),
        *[(False, {}, "Group app is not present but gid 4 is already taken by group adm")] * 2,
    ),
    "there": ("present", {"name": "adm", "gid": 4}, *[(True, {}, f"Group adm {UP_TO_DATE}")] * 3),
    "number": (
        "present",
        {"name": "adm", "gid": 5},
        (None, {}, f"{CHANGED}gid: 5\n"),
        (True, FINAL, f"{CHANGED}gid: 5\n"),
        (True, {}, f"Group adm {UP_TO_DATE}"),
    ),
    "members": (
        "present",
        {"name": "adm", "members": ["root"]},
        (None, {}, f"{CHANGED}members: ['root']\n"),
        (True, FINAL, f"{CHANGED}members: ['root']\n"),
        (True, {}, f"Group adm {UP_TO_DATE}"),
    ),
    "no members": (
        "present",
        {"name": "adm", "members": []},
        (None, {}, f"{CHANGED}delusers: ['web']\n"),
        (True, FINAL, f"{CHANGED}delusers: ['web']\n"),
        (True, {}, f"Group adm {UP_TO_DATE}"),
    ),
    "some in, some out": (
        "present",
        {"name": "adm", "addusers": ["root"], "delusers": ["web", "no"]},
        (None, {}, f"{CHANGED}addusers: ['root']\ndelusers: ['web']\n"),
        (True, FINAL, f"{CHANGED}addusers: ['root']\ndelusers: ['web']\n"),
        (True, {}, f"Group adm {UP_TO_DATE}"),
    ),
    "in and out": (
        "present",
        {"name": "adm", "addusers": ["a"], "delusers": ["a"]},
        *[(False, {}, "Error. Same user(s) can not be added and deleted simultaneously")] * 3,
    ),
    "all and some": (
        "present",
        {"name": "adm", "addusers": ["a"], "members": ["a"]},
        *[
            (
                False,
                {},
                'Error: Conflicting options "members" with "addusers" and/or "delusers" can not be used together. ',
            )
        ]
        * 3,
    ),
    "no number": ("present", {"name": "adm", "gid": "many"}, *[(False, {}, "Invalid gid")] * 3),
    "absent": (
        "absent",
        {"name": "adm"},
        (None, {}, "Group adm is set for removal"),
        (True, {"adm": ""}, "Removed group adm"),
        (True, {}, "Group not present"),
    ),
}


@pytest.mark.parametrize("told_as", CASES)
def test_states(plain, debian, told_as):
    fun, arguments, *expected = CASES[told_as]
    for test, told in zip((True, False, False), expected, strict=True):
        before = (debian.root / "etc/group").read_text()
        entry = plain.state(f"group.{fun}", test=test, **arguments)
        assert (entry["result"], entry["changes"], entry["comment"]) == told
        if test:
            assert (debian.root / "etc/group").read_text() == before


@pytest.mark.parametrize(
    ("program", "fun", "arguments", "comment"),
    [
        ("groupadd", "present", {"name": "app"}, "Failed to create new group app: no"),
        ("groupdel", "absent", {"name": "adm"}, "Failed to remove group adm: no"),
        (
            "gpasswd",
            "present",
            {"name": "app", "members": ["web"]},
            "Group app has been created but, some changes could not be applied: no",
        ),
        (
            "groupmod",
            "present",
            {"name": "adm", "gid": 9},
            f"{CHANGED}gid: 9\nSome changes could not be applied: no",
        ),
    ],
)
def test_what_the_programs_refuse(plain, debian, program, fun, arguments, comment):
    debian.broken[program] = "no"
    entry = plain.state(f"group.{fun}", **arguments)
    assert (entry["result"], entry["comment"]) == (False, comment)


#: Case -> why Salt tells it in another way.
DIFFERS = {
    "no list": "Salt takes whatever it is given",
    "local": "Salt takes an argument that means nothing here",
    "no members": "Salt tells a set",
    **dict.fromkeys(("in and out", "all and some"), "Salt's result is None"),
    "no number": "Salt takes what it complains of for changes",
}


@pytest.mark.oracle
def test_as_salt(oracle):
    asked = [["group", CASES[name][0], CASES[name][1]] for name in CASES]
    stdin = json.dumps(asked)
    told = json.loads(oracle.run("python", str(Path(__file__).parent / "salt_accounts.py"), stdin=stdin))
    for name, answers in zip(CASES, told, strict=True):
        if name not in DIFFERS:
            assert [tuple(answer) for answer in answers] == list(CASES[name][2:]), name
