"""Users of a mounted host, and their passwords: its files read, its programs called."""

from __future__ import annotations

import grp
import pwd

import pytest

from statecore.host.host import Host
from statecore.model.errors import CommandError, HostError, NotAvailable

WEB = {
    "name": "web",
    "passwd": "x",
    "uid": 33,
    "gid": 33,
    "groups": ["adm", "web"],
    "home": "/srv/web",
    "shell": "/usr/sbin/nologin",
    "fullname": "Web",
    "roomnumber": "1",
    "workphone": "2",
    "homephone": "",
    "other": "",
}


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "value", "called"),
    [
        ("info", ("web",), {}, WEB, []),
        ("info", ("no",), {}, {}, []),
        ("list_users", (), {}, ["root", "web"], []),
        ("list_groups", ("web",), {}, ["adm", "web"], []),
        ("list_groups", ("no",), {}, [], []),
        ("primary_group", ("web",), {}, "web", []),
        ("add", ("app",), {}, True, ["useradd -m app"]),
        (
            "add",
            ("app",),
            {
                "uid": 5,
                "gid": 33,
                "shell": "/bin/sh",
                "home": "/opt/app",
                "system": True,
                "unique": False,
                "createhome": False,
                "nologinit": True,
            },
            True,
            ["useradd -s /bin/sh -u 5 -g 33 -M -l -d /opt/app -o -r app"],
        ),
        ("add", ("staff",), {"groups": "staff"}, True, ["useradd -g 50 -m staff"]),
        ("add", ("app",), {"usergroup": True}, True, ["useradd -U -m app"]),
        ("add", ("app",), {"usergroup": False}, True, ["useradd -N -m app"]),
        (
            "add",
            ("app",),
            {"groups": ["adm"], "fullname": "The App", "other": "x"},
            True,
            ["useradd -m app", "usermod -G adm app", "usermod -c The App,,,,x app"],
        ),
        ("delete", ("web",), {}, True, ["userdel web"]),
        ("delete", ("web", True, True), {}, True, ["userdel -r -f web"]),
        ("chuid", ("web", "34"), {}, True, ["usermod -u 34 web"]),
        ("chuid", ("web", 33), {}, True, []),
        ("chgid", ("web", "staff"), {}, True, ["usermod -g 50 web"]),
        ("chshell", ("web", "/bin/sh"), {}, True, ["usermod -s /bin/sh web"]),
        ("chhome", ("web", "/srv/other", True), {}, True, ["usermod -m -d /srv/other web"]),
        ("chgroups", ("web", "web,staff"), {}, True, ["usermod -G web,staff web"]),
        ("chgroups", ("web", ["staff"], True), {}, True, ["usermod -a -G staff web"]),
        ("chgroups", ("web", ["adm"], True), {}, True, []),
        ("chfullname", ("web", "A"), {}, True, ["usermod -c A,1,2 web"]),
        ("chroomnumber", ("web", 9), {}, True, ["usermod -c Web,9,2 web"]),
        ("chworkphone", ("web", "2"), {}, True, []),
        ("chhomephone", ("web", "3"), {}, True, ["usermod -c Web,1,2,3 web"]),
        ("chother", ("web", "4"), {}, True, ["usermod -c Web,1,2,,4 web"]),
        ("rename", ("web", "www"), {}, True, ["usermod -l www web"]),
    ],
)
def test_users(plain, debian, name, args, kwargs, value, called):
    assert plain.call(f"user.{name}", *args, **kwargs) == value
    assert debian.calls == called


def test_all_users(plain, debian):
    with open(debian.root / "etc/passwd", "a") as file:
        file.write("+::::::\nbroken\n")
    assert plain.call("user.getent")[1] == WEB
    (debian.root / "etc/passwd").unlink()
    assert plain.call("user.getent") == []


@pytest.mark.parametrize("program", ["useradd", "userdel", "usermod"])
def test_what_the_programs_refuse(plain, debian, program):
    debian.broken[program] = f"{program}: cannot lock /etc/passwd"
    calls = {"useradd": ("add", "app"), "userdel": ("delete", "web"), "usermod": ("chshell", "web", "/bin/sh")}
    name, *args = calls[program]
    with pytest.raises(CommandError, match=f"^{program}: cannot lock /etc/passwd$"):
        plain.call(f"user.{name}", *args)


def test_mail_that_never_was_is_no_failure(plain, debian):
    debian._userdel = lambda words, stdin: (12, "", "userdel: web mail spool (/var/mail/web) not found")
    assert plain.call("user.delete", "web", remove=True) is True


@pytest.mark.parametrize(
    ("name", "args", "reason"),
    [
        ("chuid", ("no", 5), "User 'no' does not exist"),
        ("primary_group", ("no",), "User 'no' does not exist"),
        ("rename", ("web", "root"), "User 'root' already exists"),
        ("chgid", ("web", "no"), "Group no is not available"),
    ],
)
def test_what_cannot_be(plain, debian, name, args, reason):
    with pytest.raises((CommandError, HostError), match=reason):
        plain.call(f"user.{name}", *args)
    assert debian.calls == []


def test_hosts_that_cannot(plain):
    with pytest.raises(NotAvailable, match="the host has no useradd, usermod, userdel"):
        plain.call("user.info", "web")


def test_this_machine_is_asked_as_it_answers(plain, debian, monkeypatch):
    monkeypatch.setattr(grp, "getgrall", lambda: [grp.struct_group(("far", "x", 900, ["a"]))])
    monkeypatch.setattr(pwd, "getpwall", lambda: [pwd.struct_passwd(("a", "x", 7, 8, "A", "/a", "/bin/sh"))])
    host = Host("/")
    monkeypatch.setattr(host, "which", lambda program: program)
    found = plain.context(host=host).call("user.info", "a")
    assert (found["uid"], found["gid"], found["groups"], found["fullname"]) == (7, 8, ["far"], "A")


# ------------------------------------------------------------------------------------------------------------------- passwords

SHADOW = {"name": "web", "passwd": "!", "lstchg": 19000, "min": 0, "max": 99999, "warn": 7, "inact": -1, "expire": -1}


@pytest.mark.parametrize(
    ("name", "args", "value", "called"),
    [
        ("info", ("web",), SHADOW, []),
        ("info", ("no",), dict.fromkeys(SHADOW, ""), []),
        ("default_hash", (), "!", []),
        ("set_password", ("web", "$6$salt$hash"), True, ["chpasswd -e"]),
        ("del_password", ("web",), True, ["passwd -d web"]),
        ("lock_password", ("root",), True, ["passwd -l root"]),
        ("unlock_password", ("web",), True, ["passwd -u web"]),
        ("set_date", ("web", 5), True, ["chage -d 5 web"]),
        ("set_date", ("web", "2030-01-01"), True, ["chage -d 2030-01-01 web"]),
        ("set_mindays", ("web", 1), True, ["chage -m 1 web"]),
        ("set_maxdays", ("web", 99999), True, []),
        ("set_warndays", ("web", 3), True, ["chage -W 3 web"]),
        ("set_inactdays", ("web", 4), True, ["chage -I 4 web"]),
        ("set_expire", ("web", 20000), True, ["chage -E 20000 web"]),
    ],
)
def test_passwords(plain, debian, name, args, value, called):
    assert plain.call(f"shadow.{name}", *args) == value
    assert debian.calls == called


def test_passwords_that_cannot_be(plain, debian):
    assert plain.call("shadow.list_users") == ["root", "web"]
    with pytest.raises(CommandError, match="no colon and no line end"):
        plain.call("shadow.set_password", "web", "a:b")
    (debian.root / "etc/shadow").unlink()
    assert plain.call("shadow.info", "web")["passwd"] == ""
    assert plain.call("shadow.list_users") == []
