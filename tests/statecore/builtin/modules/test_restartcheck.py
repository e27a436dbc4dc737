"""Processes that use deleted files: of a mounted host with a /proc, packages and services that are laid out."""

from __future__ import annotations

import os

import pytest

from statecore.builtin.modules import restartcheck

_LIBRARY = "/usr/lib/libssl.so.3"

_MAPS = (
    "55d0-55d1 r-xp 00000000 08:01 11 /usr/sbin/nginx\n"
    f"7f00-7f01 r-xp 00000000 08:01 12 {_LIBRARY} (deleted)\n"
    f"7f01-7f02 r--p 00001000 08:01 12 {_LIBRARY} (deleted)\n"
    "7f02-7f03 rw-p 00000000 00:00 0 \n"
    "7f03-7f04 rw-s 00000000 00:05 99 /dev/zero (deleted)\n"
    "7f04-7f05 rw-s 00000000 00:05 98 /memfd:x (deleted)\n"
    "7f05-7f06 rw-p 00000000 08:01 13 /var/log/old (deleted)\n"
)

#: What the host's packages and services answer.
_MODULES = {
    "pkg": """
def owner(*paths):
    return {"/usr/sbin/nginx": "nginx", "/usr/bin/cron": "cron", "/usr/bin/screen": "screen"}.get(paths[0], "")
def file_list(*packages):
    files = {"nginx": ["/lib/systemd/system/nginx.service", "/lib/systemd/system/once.service", "/usr/sbin/nginx"]}
    return {"files": files.get(packages[0], []), "errors": []}
""",
    "service": """
def get_running():
    return ["nginx", "other"]
def show(name):
    return {"ExecMainPID": "7"} if name == "nginx" else {}
def available(name):
    return name == "cron"
""",
}


@pytest.fixture
def host(plain):
    (plain.extension_dir / "modules").mkdir(parents=True)
    for name, text in _MODULES.items():
        (plain.extension_dir / f"modules/{name}.py").write_text(text)
    proc = plain.root / "proc"
    proc.mkdir()
    (proc / "stat").write_text("btime 1000\n")
    for name, text in {"etc/init.d/cron": "", "lib/systemd/system/nginx.service": "[Service]\n"}.items():
        (plain.root / name).parent.mkdir(parents=True, exist_ok=True)
        (plain.root / name).write_text(text)
    (plain.root / "lib/systemd/system/once.service").write_text("[Service]\nType=oneshot\n")
    return plain


def _process(host, pid, name, program, maps):
    place = host.root / "proc" / str(pid)
    (place / "fd").mkdir(parents=True)
    fields = " ".join(["S", "1", *["0"] * 48])
    (place / "stat").write_text(f"{pid} ({name}) {fields}\n")
    (place / "status").write_text(f"Name:\t{name}\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nVmRSS:\t1 kB\nVmSize:\t1 kB\n")
    (place / "statm").write_text("10 5 2 1 0 3 0")
    (place / "cmdline").write_text(f"{program}\0")
    (place / "maps").write_text(maps)
    (place / "exe").symlink_to(program)
    (place / "fd/0").symlink_to("/dev/null")
    (place / "fd/1").symlink_to("/tmp/x (deleted)")
    (place / "fd/2").symlink_to("socket:[1]")
    return place


def test_deleted_maps():
    assert restartcheck.deleted_maps(_MAPS) == [_LIBRARY]
    assert restartcheck.deleted_maps("") == []


def test_nothing_to_restart(host):
    _process(host, 5, "clean", "/usr/bin/clean", "55d0-55d1 r-xp 00000000 08:01 11 /usr/bin/clean\n")
    assert host.call("restartcheck.restartcheck") == "No packages seem to need to be restarted."


def test_units_scripts_and_others(host):
    _process(host, 7, "nginx", "/usr/sbin/nginx", _MAPS)
    _process(host, 8, "cron", "/usr/bin/cron", _MAPS)
    _process(host, 9, "lone", "/usr/bin/lone", _MAPS)
    _process(host, 10, "screen", "/usr/bin/screen", _MAPS)
    told = host.call("restartcheck.restartcheck")
    assert told.startswith(
        "Found 3 processes using old versions of upgraded files.\nThese are the packages:\nOf these, 2"
    )
    assert f"nginx:\n\t7 /usr/sbin/nginx (file: {_LIBRARY})\n" in told
    assert "These are the systemd services:\nsystemctl restart nginx.service" in told
    assert "These are the initd scripts:\nservice cron restart" in told
    last = "These processes 1 do not seem to have an associated init script to restart them"
    assert told.endswith(f"{last}:\nlone:\n\t9 /usr/bin/lone (file: {_LIBRARY})\n")
    assert host.call("restartcheck.restartcheck", verbose=False) == ["nginx", "cron", "lone"]
    assert host.call("restartcheck.restartcheck", "cron", excludepid=[7], verbose=False) == ["lone", "screen"]
    assert host.call("restartcheck.restartcheck", blacklist=[_LIBRARY]) == "No packages seem to need to be restarted."


def test_open_files(host):
    place = _process(host, 8, "cron", "/usr/bin/cron", "")
    (place / "fd/3").symlink_to("/usr/share/cron/x (deleted)")
    assert "(file: /usr/share/cron/x)" in host.call("restartcheck.restartcheck")


@pytest.mark.parametrize(("newest", "reboot"), [("{}", False), ("99.9.9-1", True)])
def test_kernel(host, newest, reboot):
    (host.root / "boot").mkdir()
    for release in (os.uname().release, "1.0-1", newest.format(os.uname().release)):
        (host.root / "boot" / f"vmlinuz-{release}").touch()
    expected = "System restart required.\n\n" if reboot else "No packages seem to need to be restarted."
    assert host.call("restartcheck.restartcheck") == expected


def test_other_families(host):
    host.grains["os_family"] = "Suse"
    assert host.call("restartcheck.restartcheck")["result"] is False
