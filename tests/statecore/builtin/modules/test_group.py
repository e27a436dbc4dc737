"""Groups of a mounted host: its files read, its programs called."""

from __future__ import annotations

import grp

import pytest

from statecore.host.host import Host
from statecore.model.errors import CommandError, NotAvailable

WEB = {"name": "web", "passwd": "x", "gid": 33, "members": []}
ADM = {"name": "adm", "passwd": "x", "gid": 4, "members": ["web"]}


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "value", "called"),
    [
        ("info", ("adm",), {}, ADM, []),
        ("info", ("no",), {}, {}, []),
        ("add", ("app",), {}, True, ["groupadd app"]),
        ("add", ("app", 5), {"system": True, "non_unique": True}, True, ["groupadd -g 5 -o -r app"]),
        ("delete", ("adm",), {}, True, ["groupdel adm"]),
        ("chgid", ("adm", 7), {}, True, ["groupmod -g 7 adm"]),
        ("chgid", ("adm", "4"), {}, True, []),
        ("chgid", ("no", 7), {}, False, []),
        ("adduser", ("staff", "web"), {}, True, ["gpasswd --add web staff"]),
        ("deluser", ("adm", "web"), {}, True, ["gpasswd --delete web adm"]),
        ("deluser", ("staff", "web"), {}, True, []),
        ("members", ("staff", "web,root"), {}, True, ["gpasswd --members web,root staff"]),
        ("members", ("staff", ["web", "root"]), {}, True, ["gpasswd --members web,root staff"]),
    ],
)
def test_groups(plain, debian, name, args, kwargs, value, called):
    assert plain.call(f"group.{name}", *args, **kwargs) == value
    assert debian.calls == called


def test_all_groups(plain, debian):
    with open(debian.root / "etc/group", "a") as file:
        file.write("+:::\nbroken\n")
    assert [group["name"] for group in plain.call("group.getent")] == ["root", "web", "adm", "staff"]
    (debian.root / "etc/group").unlink()
    assert plain.call("group.getent") == []


def test_what_the_programs_refuse(plain, debian):
    debian.broken["groupadd"] = "groupadd: group 'app' already exists"
    with pytest.raises(CommandError, match="already exists"):
        plain.call("group.add", "app")


def test_hosts_that_cannot(plain):
    with pytest.raises(NotAvailable, match="the host has no groupadd, groupmod, groupdel"):
        plain.call("group.info", "web")


def test_this_machine_is_asked_as_it_answers(plain, debian, monkeypatch):
    monkeypatch.setattr(grp, "getgrall", lambda: [grp.struct_group(("far", None, 900, ["a"]))])
    host = Host("/")
    monkeypatch.setattr(host, "which", lambda program: program)
    ctx = plain.context(host=host)
    assert ctx.call("group.info", "far") == {"name": "far", "passwd": "", "gid": 900, "members": ["a"]}
