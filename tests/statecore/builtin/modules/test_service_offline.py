"""Services of mounted hosts of every kind: which module serves them, what it can do where no init runs."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from statecore.host.host import Host
from statecore.loader.providers import OURS
from statecore.model.errors import CommandError, NotAvailable
from statecore.model.ports import CommandResult

UNITS = {
    "usr/lib/systemd/systemd": "",
    "usr/lib/systemd/system/nginx.service": "[Install]\n# who wants it\nWantedBy=multi-user.target\nAlias=web.service\n",
    "usr/lib/systemd/system/static.service": "[Service]\nExecStart=/x\n",
    "usr/lib/systemd/system/also.service": "[Install]\nAlso=also.socket\nWantedBy=one.target \\\n two.target\n",
    "usr/lib/systemd/system/also.socket": "[Install]\nRequiredBy=sockets.target\n",
    "usr/lib/systemd/system/getty@.service": "[Install]\nWantedBy=getty-%i.target\nDefaultInstance=tty1\n",
    "usr/lib/systemd/system/reset.service": "[Install]\nWantedBy=a.target\nWantedBy=\nWantedBy=b.target\n",
    "etc/systemd/system/own.service": "[Install]\nUpheldBy=multi-user.target\n",
}

LEVELS = {
    "etc/runlevels/default/crond": "-> /etc/init.d/crond",
    "etc/runlevels/boot/sysfs": "-> /etc/init.d/sysfs",
    "etc/runlevels/nonetwork/x": "/",
    "etc/init.d/nginx": "#!/sbin/openrc-run\n",
    "etc/init.d/crond": "#!/sbin/openrc-run\n",
    "etc/init.d/sysfs": "#!/sbin/runscript\n",
    "etc/init.d/functions.sh": "#!/bin/sh\n",
    "etc/init.d/dangling": "-> /none",
}

SCRIPTS = {
    "etc/init.d/cron": "#!/bin/sh\n### BEGIN INIT INFO\n# Default-Start: 2 3\n# Default-Stop: 0\n### END INIT INFO\n",
    "etc/init.d/plain": "#!/bin/sh\n",
    "etc/rc2.d/K05plain": "-> ../init.d/plain",
}

#: A host that is mounted: what it has -> the module that serves its services.
HOSTS = {
    "systemd": (UNITS, "service_systemd_offline"),
    "systemd, and scripts": ({**UNITS, **SCRIPTS}, "service_systemd_offline"),
    "systemd that runs": ({**UNITS, "run/systemd/system/x": "/", "usr/bin/systemctl": "x"}, "service_systemd"),
    "OpenRC": (LEVELS, "service_openrc"),
    "scripts": (SCRIPTS, "service_sysv"),
}


def lay_out(root, have):
    for name, text in have.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text == "/":
            path.mkdir()
        elif text.startswith("-> "):
            path.symlink_to(text[3:])
        else:
            path.write_text(text)
            path.chmod(0o755)


def links(root):
    return {
        path.relative_to(root).as_posix(): str(path.readlink())
        for path in sorted(root.rglob("*"))
        if path.is_symlink()
        and (
            "wants" in str(path) or "requires" in str(path) or path.parent.name in ("system",) or "upholds" in str(path)
        )
    }


@pytest.mark.parametrize("kind", HOSTS)
def test_who_serves(plain, kind):
    have, module = HOSTS[kind]
    lay_out(plain.root, have)
    served = plain.loader.module("modules", "service", plain.context())
    assert served.source.stem == module


ENABLED = [
    (
        "nginx",
        {
            "multi-user.target.wants/nginx.service": "/usr/lib/systemd/system/nginx.service",
            "web.service": "/usr/lib/systemd/system/nginx.service",
        },
    ),
    (
        "also.service",
        {
            "one.target.wants/also.service": "/usr/lib/systemd/system/also.service",
            "two.target.wants/also.service": "/usr/lib/systemd/system/also.service",
            "sockets.target.requires/also.socket": "/usr/lib/systemd/system/also.socket",
        },
    ),
    ("getty@tty7", {"getty-tty7.target.wants/getty@tty7.service": "/usr/lib/systemd/system/getty@.service"}),
    ("reset", {"b.target.wants/reset.service": "/usr/lib/systemd/system/reset.service"}),
    ("own", {"multi-user.target.upholds/own.service": "/etc/systemd/system/own.service"}),
]


@pytest.mark.parametrize(("name", "wanted"), ENABLED)
def test_units_are_enabled_by_links(plain, name, wanted):
    lay_out(plain.root, UNITS)
    ctx = plain.context()
    assert ctx.call("service.enabled", name) is False
    assert ctx.call("service.enable", name) is True
    assert links(plain.root) == {f"etc/systemd/system/{path}": target for path, target in wanted.items()}
    assert ctx.call("service.enabled", name) is True
    assert ctx.call("service.disable", name) is True
    assert links(plain.root) == {}
    assert ctx.call("service.disabled", name) is True


@pytest.mark.skipif(shutil.which("systemctl") is None, reason="this machine has no systemctl to compare with")
@pytest.mark.parametrize("name", [name for name, _ in ENABLED if name != "own"])
def test_as_systemctl_does(plain, tmp_path, name):
    """But for UpheldBy, which younger ones know."""
    lay_out(plain.root, UNITS)
    plain.call("service.enable", name)
    other = tmp_path / "other"
    lay_out(other, UNITS)
    full = name if "." in name else f"{name}.service"
    subprocess.run(["systemctl", f"--root={other}", "enable", full], check=True, capture_output=True)
    assert {path: _file(plain.root, target) for path, target in links(plain.root).items()} == {
        path: _file(other, target) for path, target in links(other).items()
    }


def _file(root, target):
    return target.removeprefix(str(root)).rpartition("/")[2]


def test_reading_units(plain):
    lay_out(plain.root, UNITS)
    ctx = plain.context()
    assert ctx.call("service.get_all") == ["also", "also.socket", "getty@", "nginx", "own", "reset", "static"]
    ctx.call("service.enable", "nginx")
    assert ctx.call("service.get_enabled") == ["nginx"]
    assert ctx.call("service.get_disabled") == ["also", "also.socket", "getty@", "own", "reset"]
    assert ctx.call("service.get_static") == ["static"]
    assert ctx.call("service.enabled", "static") is True
    assert ctx.call("service.available", "none") is False
    assert ctx.call("service.missing", "none") is True
    assert ctx.call("service.status", "nginx") is False
    assert ctx.call("service.status", "n*") == {"nginx": False}
    assert ctx.call("service.offline") is True


def test_masks_are_links(plain):
    lay_out(plain.root, UNITS)
    ctx = plain.context()
    assert ctx.call("service.masked", "nginx") is False
    assert ctx.call("service.mask", "nginx") is True
    assert links(plain.root) == {"etc/systemd/system/nginx.service": "/dev/null"}
    assert ctx.call("service.available", "nginx") is True
    assert ctx.call("service.enabled", "nginx") is False
    assert ctx.call("service.unmask", "nginx") is True
    assert links(plain.root) == {}
    ctx.call("service.mask", "nginx")
    assert ctx.call("service.enable", "nginx", unmask=True) is True
    with pytest.raises(CommandError, match=r"/etc/systemd/system/own\.service is a file"):
        ctx.call("service.mask", "own")
    with pytest.raises(CommandError, match="systemd does not run"):
        ctx.call("service.mask", "nginx", True)


@pytest.mark.parametrize("verb", ["start", "stop", "restart", "reload"])
@pytest.mark.parametrize(("have", "init"), [(UNITS, "systemd"), (LEVELS, "OpenRC")])
def test_nothing_is_started_without_an_init(plain, verb, have, init):
    lay_out(plain.root, have)
    with pytest.raises(CommandError, match=f"{init} does not run on the host at .*: nginx can be enabled"):
        plain.call(f"service.{verb}", "nginx")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("none", r"none\.service cannot be enabled: the host has no file for it in /etc/systemd/system"),
        ("static", r"static\.service has no \[Install\] section"),
    ],
)
def test_what_cannot_be_enabled(plain, name, why):
    lay_out(plain.root, UNITS)
    with pytest.raises(CommandError, match=why):
        plain.call("service.enable", name)


# ---------------------------------------------------------------------------------------------------------------------- OpenRC


class Alpine(Host):
    """A mounted host on which OpenRC runs; rc-service is played."""

    def __init__(self, root):
        super().__init__(root)
        self.started = {"crond"}
        self.calls = []
        lay_out(root, {**LEVELS, "run/openrc/softlevel": "default", "sbin/rc-service": "x", "tmp": "/"})

    def run(self, cmd, **options):
        program, name, action = list(cmd)[-3:]
        assert program == "/sbin/rc-service"
        self.calls.append((name, action))
        if action in ("start", "restart"):
            self.started.add(name)
        if action == "stop":
            self.started.discard(name)
        return CommandResult(3 if action == "status" and name not in self.started else int(action == "zap"), "", "", 1)


@pytest.fixture
def alpine(plain, monkeypatch):
    host = Alpine(plain.root)
    made = plain.context
    monkeypatch.setattr(plain, "context", lambda **changes: made(**{"host": host, **changes}))
    return host


def test_openrc(plain, alpine):
    ctx = plain.context()
    assert ctx.call("service.get_all") == ["crond", "nginx", "sysfs"]
    assert ctx.call("service.get_enabled") == {"crond": ["default"], "sysfs": ["boot"]}
    assert ctx.call("service.get_disabled") == ["nginx"]
    assert ctx.call("service.status", "*n*") == {"crond": True, "nginx": False}
    assert ctx.call("service.status", "none") is False
    assert [ctx.call(f"service.{verb}", "nginx") for verb in ("start", "restart", "reload", "stop", "zap")] == [
        True
    ] * 4 + [False]
    assert [action for name, action in alpine.calls if name == "nginx" and action != "status"] == [
        "start",
        "restart",
        "reload",
        "stop",
        "zap",
    ]
    with pytest.raises(CommandError, match="The named service none is not available"):
        ctx.call("service.start", "none")


def test_run_levels(plain, alpine):
    ctx = plain.context()
    assert ctx.call("service.enable", "nginx") is True
    link = plain.root / "etc/runlevels/default/nginx"
    assert str(link.readlink()) == "/etc/init.d/nginx"
    assert ctx.call("service.enabled", "nginx") is True
    assert ctx.call("service.enable", "nginx", runlevels=["boot"]) is True
    assert ctx.call("service.get_enabled")["nginx"] == ["boot"]
    assert ctx.call("service.enabled", "nginx", runlevels="default") is False
    assert ctx.call("service.enabled", "nginx", runlevels="boot") is True
    assert ctx.call("service.disable", "nginx", runlevels="default") is True
    assert ctx.call("service.disabled", "nginx") is False
    assert ctx.call("service.disable", "nginx") is True
    assert ctx.call("service.disabled", "nginx") is True
    with pytest.raises(CommandError, match="'never' is no run level of the host"):
        ctx.call("service.enable", "nginx", runlevels="never")
    with pytest.raises(CommandError, match="The named service none is not available"):
        ctx.call("service.enable", "none")


# ------------------------------------------------------------------------------------------------------------------ init scripts


def test_scripts_are_enabled_by_links(plain):
    lay_out(plain.root, SCRIPTS)
    ctx = plain.context()
    assert ctx.call("service.enable", "cron") is True
    assert _rc(plain.root) == {"rc0.d/K20cron", "rc2.d/S20cron", "rc3.d/S20cron", "rc2.d/K05plain"}
    assert ctx.call("service.enabled", "cron") is True
    assert ctx.call("service.disable", "cron") is True
    assert _rc(plain.root) == {"rc0.d/K20cron", "rc2.d/K20cron", "rc3.d/K20cron", "rc2.d/K05plain"}
    assert ctx.call("service.enable", "plain") is True
    assert {name for name in _rc(plain.root) if "plain" in name} == {
        *("rc2.d/S05plain", "rc3.d/S20plain", "rc4.d/S20plain", "rc5.d/S20plain"),
        *("rc0.d/K20plain", "rc1.d/K20plain", "rc6.d/K20plain"),
    }
    with pytest.raises(CommandError, match="The named service none is not available"):
        ctx.call("service.enable", "none")


def _rc(root):
    return {path.relative_to(root / "etc").as_posix() for path in root.glob("etc/rc*.d/*")}


# ---------------------------------------------------------------------------------------------------------------------- choosing


@pytest.mark.parametrize(
    ("chosen", "module"),
    [("service_sysv", "service_sysv"), ("debian_service", "service_sysv"), ("gentoo_service", "service_openrc")],
)
def test_a_provider_is_chosen(plain, chosen, module):
    lay_out(plain.root, {**SCRIPTS, **({} if module == "service_sysv" else LEVELS)})
    plain.opts["providers"] = {"service": chosen}
    assert plain.loader.module("modules", "service", plain.context()).source.stem == module


@pytest.mark.parametrize("name", sorted(OURS))
def test_salts_names_mean_files_that_there_are(plain, name):
    assert OURS[name] in {source.stem for source in plain.loader.sources("modules")}


def test_a_provider_that_cannot_serve(plain):
    lay_out(plain.root, SCRIPTS)
    plain.opts["providers"] = {"service": "systemd_service"}
    with pytest.raises(NotAvailable, match="systemd does not run on the host"):
        plain.call("service.get_all")
    plain.opts["providers"] = {"service": "upstart_service"}
    with pytest.raises(NotAvailable, match="'upstart_service' was chosen as its provider, and no such file serves it"):
        plain.call("service.get_all")
