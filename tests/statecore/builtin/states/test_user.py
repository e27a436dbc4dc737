"""The user states: each told in test mode, applied, and looked at again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

UP_TO_DATE = "User web is present and up to date"
SET = "The following user attributes are set to be changed:\n"
HIDDEN = "XXX-REDACTED-XXX"
APP = {
    "name": "app",
    "passwd": "x",
    "uid": 1000,
    "gid": 1000,
    "groups": ["app"],
    "home": "/home/app",
    "shell": "/bin/sh",
    "fullname": "",
    "roomnumber": "",
    "workphone": "",
    "homephone": "",
    "other": "",
}


def refused(key, old, new):
    return (
        "Encountered error checking for needed changes. Additional info follows:\n\n"
        f"- Changing {key} ({old} -> {new}) not permitted, set allow_{key}_change to True to force this change. "
        "Note that this will not change file ownership."
    )


#: fun, arguments, (result, changes, comment) in test mode, then applied, then applied again.
CASES = {
    "new": (
        "present",
        {"name": "app"},
        (None, {}, "User app set to be added"),
        (True, APP, "New user app created"),
        (True, {}, "User app is present and up to date"),
    ),
    "new, all told": (
        "present",
        {
            "name": "app",
            "uid": 77,
            "gid": "staff",
            "groups": ["adm"],
            "optional_groups": ["web", "no"],
            "home": "/opt/app",
            "shell": "/bin/bash",
            "fullname": "The App",
            "password": "$6$hash",
            "maxdays": 30,
            "createhome": False,
        },
        (None, {}, "User app set to be added"),
        (
            True,
            {
                **APP,
                "uid": 77,
                "gid": 50,
                "groups": ["adm", "staff", "web"],
                "home": "",
                "shell": "/bin/bash",
                "fullname": "The App",
                "password": HIDDEN,
                "maxdays": 30,
            },
            "New user app created",
        ),
        (True, {}, "User app is present and up to date"),
    ),
    "new, without a password": (
        "present",
        {"name": "app", "empty_password": True},
        (None, {}, "User app set to be added"),
        (True, {**APP, "password": ""}, "New user app created"),
        (True, {}, "User app is present and up to date"),
    ),
    "groups that are not there": (
        "present",
        {"name": "app", "groups": ["no", "adm"]},
        (None, {}, "User app set to be added (pending groups: no)"),
        *[(False, {}, "The following group(s) are not present: no")] * 2,
    ),
    "groups that are not there for one that is": (
        "present",
        {"name": "web", "groups": ["no", "adm"]},
        (None, {}, f"{SET}groups (pending creation): no\n"),
        *[(False, {}, "The following group(s) are not present: no")] * 2,
    ),
    "there": (
        "present",
        {"name": "web", "uid": 33, "gid": 33, "groups": ["adm"], "home": "/srv/web", "fullname": "Web"},
        *[(True, {}, UP_TO_DATE)] * 3,
    ),
    "attributes": (
        "present",
        {"name": "web", "shell": "/bin/sh", "fullname": "A", "roomnumber": 7},
        (None, {}, f"{SET}shell: /bin/sh\nfullname: A\nroomnumber: 7\n"),
        (True, {"shell": "/bin/sh", "fullname": "A", "roomnumber": "7"}, "Updated user web"),
        (True, {}, UP_TO_DATE),
    ),
    "groups": (
        "present",
        {"name": "web", "groups": ["staff"]},
        (None, {}, f"{SET}groups: ['staff']\n"),
        (True, {"groups": ["staff", "web"]}, "Updated user web"),
        (True, {}, UP_TO_DATE),
    ),
    "groups beside others": (
        "present",
        {"name": "web", "groups": ["staff"], "remove_groups": False},
        (None, {}, f"{SET}groups: ['adm', 'staff']\n"),
        (True, {"groups": ["adm", "staff", "web"]}, "Updated user web"),
        (True, {}, UP_TO_DATE),
    ),
    "numbers": (
        "present",
        {"name": "web", "uid": 34},
        *[(False, {}, refused("uid", 33, 34))] * 3,
    ),
    "primary group": ("present", {"name": "web", "gid": 50}, *[(False, {}, refused("gid", 33, 50))] * 3),
    "numbers that may change": (
        "present",
        {"name": "web", "uid": 34, "gid": "staff", "allow_uid_change": True, "allow_gid_change": True},
        (None, {}, f"{SET}uid: 34\ngid: staff\ngroups: ['adm', 'web']\n"),
        (True, {"uid": 34, "gid": 50, "groups": ["adm", "staff", "web"]}, "Updated user web"),
        (True, {}, UP_TO_DATE),
    ),
    "home": (
        "present",
        {"name": "web", "home": "/srv/new"},
        (None, {}, f"{SET}home: /srv/new\nhomeDoesNotExist: /srv/new\n"),
        (True, {"home": "/srv/new"}, "Updated user web"),
        (True, {}, UP_TO_DATE),
    ),
    "password": (
        "present",
        {"name": "web", "password": "$6$new", "warndays": 3},
        (None, {}, f"{SET}passwd: {HIDDEN}\nwarndays: 3\n"),
        (True, {"passwd": HIDDEN, "warn": 3}, "Updated user web"),
        (True, {}, UP_TO_DATE),
    ),
    "password of one that has another": (
        "present",
        {"name": "root", "password": "$6$new", "enforce_password": False},
        *[(True, {}, "User root is present and up to date")] * 3,
    ),
    "unlocked": (
        "present",
        {"name": "web", "password_lock": False},
        (None, {}, f"{SET}password_lock: False\n"),
        (True, {"passwd": HIDDEN}, "Updated user web"),
        (True, {}, UP_TO_DATE),
    ),
    "comma": ("present", {"name": "web", "fullname": "A, B"}, *[(False, {}, "Unsupported char ',' in A, B")] * 3),
    "clear text": (
        "present",
        {"name": "web", "password": "x", "hash_password": True},
        (None, {}, f"{SET}passwd: {HIDDEN}\n"),
        (True, {"passwd": HIDDEN}, "Updated user web"),
        (True, {}, UP_TO_DATE),
    ),
    "days": (
        "present",
        {"name": "web", "expire": "2030-01-02", "mindays": "3"},
        (None, {}, f"{SET}mindays: 3\nexpire: 21916\n"),
        (True, {"min": 3, "expire": 21916}, "Updated user web"),
        (True, {}, UP_TO_DATE),
    ),
    "number": ("present", {"name": "web", "uid": "many"}, *[(False, {}, "uid must be a whole number, not 'many'")] * 3),
    "half": ("present", {"name": "web", "maxdays": 1.5}, *[(False, {}, "maxdays must be a whole number, not 1.5")] * 3),
    "no day": (
        "present",
        {"name": "web", "expire": "2030-02-31"},
        *[(False, {}, "expire: '2030-02-31' is not a date: day is out of range for month")] * 3,
    ),
    "no list": (
        "present",
        {"name": "web", "groups": "adm"},
        *[(False, {}, "groups must be a list of groups, not 'adm'")] * 3,
    ),
    "windows": (
        "present",
        {"name": "web", "win_homedrive": "U:"},
        *[(False, {}, "not supported: win_homedrive; it is for Windows hosts")] * 3,
    ),
    "local": (
        "present",
        {"name": "web", "local": True},
        *[(False, {}, "not supported: local; it needs luseradd; users are created with useradd")] * 3,
    ),
    "absent": (
        "absent",
        {"name": "web"},
        (None, {}, "User web set for removal"),
        (True, {"web": "removed", "web group": "removed"}, "Removed user web"),
        (True, {}, "User web is not present"),
    ),
}


@pytest.mark.parametrize("told_as", CASES)
def test_states(plain, debian, told_as, monkeypatch):
    # Owners can be given away by root alone.
    monkeypatch.setattr("os.chown", lambda *args, **kwargs: None)
    fun, arguments, *expected = CASES[told_as]
    for test, told in zip((True, False, False), expected, strict=True):
        before = {path: path.read_text() for path in (debian.root / "etc").iterdir() if path.is_file()}
        entry = plain.state(f"user.{fun}", test=test, **arguments)
        assert (entry["result"], entry["changes"], entry["comment"]) == told
        assert "$6$" not in str(entry)
        if test:
            assert {path: path.read_text() for path in before} == before


def test_a_password_is_hashed_once(plain, debian):
    """And found again, whatever its salt."""
    plain.state("user.present", name="web", password="secret", hash_password=True)
    made = plain.call("shadow.info", "web")["passwd"]
    assert made.startswith("$6$")
    assert plain.state("user.present", name="web", password="secret", hash_password=True)["changes"] == {}
    plain.call("shadow.set_password", "web", plain.call("shadow.gen_password", "secret", algorithm="sha256"))
    assert plain.state("user.present", name="web", password="secret", hash_password=True)["changes"] == {}
    assert plain.state("user.present", name="web", password="other", hash_password=True)["changes"] == {
        "passwd": HIDDEN
    }


def test_the_home_is_made(plain, debian, monkeypatch):
    monkeypatch.setattr("os.chown", lambda *args, **kwargs: None)
    plain.state("user.present", name="web", home="/srv/new")
    assert (debian.root / "srv/new").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(
    ("program", "fun", "arguments", "comment"),
    [
        ("useradd", "present", {"name": "app"}, "Failed to create new user app: no"),
        ("userdel", "absent", {"name": "web"}, "Failed to remove user web: no"),
        (
            "usermod",
            "present",
            {"name": "web", "shell": "/bin/sh"},
            "These values could not be changed: {'shell': '/bin/sh'}: no",
        ),
        (
            "chpasswd",
            "present",
            {"name": "web", "password": "$6$new"},
            f"These values could not be changed: {{'passwd': '{HIDDEN}'}}: no",
        ),
        (
            "chpasswd",
            "present",
            {"name": "app", "password": "$6$new"},
            f"User app created but failed to set password to {HIDDEN}: no",
        ),
    ],
)
def test_what_the_programs_refuse(plain, debian, program, fun, arguments, comment):
    debian.broken[program] = "no"
    entry = plain.state(f"user.{fun}", **arguments)
    assert (entry["result"], entry["comment"]) == (False, comment)


#: Case -> why Salt tells it in another way.
DIFFERS = {
    "groups that are not there for one that is": "Salt's test mode says that all is well",
    "clear text": "Salt's hash is played",
    **dict.fromkeys(("days", "number", "half", "no day", "no list"), "Salt takes whatever it is given"),
    **dict.fromkeys(("windows", "local"), "Salt takes arguments that mean nothing here"),
}


@pytest.mark.oracle
def test_as_salt(oracle):
    asked = [["user", CASES[name][0], CASES[name][1]] for name in CASES]
    stdin = json.dumps(asked)
    told = json.loads(oracle.run("python", str(Path(__file__).parent / "salt_accounts.py"), stdin=stdin))
    for name, answers in zip(CASES, told, strict=True):
        if name not in DIFFERS:
            assert [tuple(answer) for answer in answers] == list(CASES[name][2:]), name
