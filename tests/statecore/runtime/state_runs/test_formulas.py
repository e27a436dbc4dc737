"""The formulas of ``examples/formulas`` applied for real: to a host whose packages, accounts and daemons are played, and
whose files and init scripts are its own. Twice, since the second run has nothing to do; and taken away again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from statecore.model.ports import CommandResult
from statecore.runtime.runtime import Runtime
from statecore.sources.local_tree import LocalFiles
from tests.statecore.conftest import Debian

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="files get owners, which needs root")

_FORMULAS = Path(__file__).parents[4] / "examples" / "formulas"

_GRAINS: Mapping[str, Any] = {
    "id": "web1",
    "os": "Debian",
    "os_family": "Debian",
    "osfinger": "Debian-12",
    "osmajorrelease": 12,
    "oscodename": "bookworm",
    "osarch": "amd64",
    "kernel": "Linux",
    "shell": "/bin/sh",
    "roles": [],
}

#: An init script that a daemon's package brings.
_INIT = """case "$1" in
start) touch {run} ;;
stop) rm -f {run} ;;
status) [ -e {run} ] || exit 3 ;;
reload | restart) [ -e {run} ] && echo "$1" >> {run} ;;
esac"""


class Served(Debian):
    """A Debian whose packages bring users, and whose configuration is checked by its own programs."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.checked: dict[str, str] = {}
        self.repository |= {"nginx-light": ["1.22.1-9"], "ssl-cert": ["1.1.2"]}
        for directory in ("etc/rc2.d", "home", "tmp"):
            (root / directory).mkdir(parents=True, exist_ok=True)

    def _apt_get(self, words: list[str], stdin: str) -> Any:
        done = super()._apt_get(words, stdin)
        if "install" in words and "nginx-light" in self.installed:
            for file, line in (("passwd", "www-data:x:34:34::/var/www:/usr/sbin/nologin"), ("group", "www-data:x:34:")):
                self._keep(file, self._rows(file) | {"www-data": line.split(":")})
            self.script("nginx", _INIT.format(run=self.root / "running"))
        return done

    def run(self, cmd: str | Sequence[str], **options: Any) -> CommandResult:
        text = cmd if isinstance(cmd, str) else " ".join(cmd)
        for check in ("nginx -t -c", "visudo -cf"):
            if text.startswith(check):
                file = text.removeprefix(check).strip()
                self.checked[check] = self.path(file).read_text()
                return CommandResult(0, "", "", 1)
        return super().run(cmd, **options)


class Minion:
    """The runs of one formula on one host."""

    def __init__(self, directory: Path, formula: str, **pillar: Any) -> None:
        self.root = directory / "host"
        self.root.mkdir()
        self.host = Served(self.root)
        self.formula = formula
        example = yaml.safe_load((_FORMULAS / formula / "pillar.example").read_text())
        self.pillar = {formula: example[formula] | pillar}
        self.opts = {"id": "web1", "cachedir": str(directory / "cache"), "conf_file": str(directory / "minion")}

    def apply(self, sls: str, **options: Any) -> dict[str, Any]:
        """The running dictionary, ID -> entry: each run is a call of its own."""
        files = LocalFiles({"base": [_FORMULAS / self.formula]})
        runtime = Runtime(self.opts, files=files, host=self.host, grains=_GRAINS, pillar=self.pillar)
        ran = runtime.call("state.apply", [sls], options).value
        assert isinstance(ran, dict), ran
        json.dumps(ran)
        failed = {tag: entry["comment"] for tag, entry in ran.items() if entry["result"] is False}
        assert failed == {}
        return {f"{entry['__id__']} {entry['name']}": entry for entry in ran.values()}

    def text(self, path: str) -> str:
        return self.host.path(path).read_text()


def _changed(ran: Mapping[str, Any]) -> list[str]:
    return [name for name, entry in ran.items() if entry["changes"]]


def test_accounts(tmp_path: Path) -> None:
    minion = Minion(tmp_path, "accounts")
    foretold = minion.apply("accounts", test=True)
    assert (minion.root / "etc/sudoers.d").exists() is False
    ran = minion.apply("accounts")
    assert len(ran) >= 18
    # Whoever would change in a test does in the run.
    assert {name for name, entry in foretold.items() if entry["result"] is None} <= set(_changed(ran))
    passwd = {line.split(":")[0]: line for line in minion.text("/etc/passwd").splitlines()}
    assert {"ada", "ben", "cleo"} <= set(passwd)
    assert passwd["ada"].startswith("ada:x:1001:")
    assert passwd["ben"].endswith(":/home/ben:/bin/sh")
    assert passwd["cleo"].endswith(":/home/cleo:/bin/zsh")
    groups = {line.split(":")[0]: line for line in minion.text("/etc/group").splitlines()}
    assert groups["deploy"] == "deploy:x:2000:ada,ben"
    assert groups["sudo"].endswith(":ada")
    assert minion.text("/home/ada/.vimrc") == 'set number\nset "quoted"\n'
    assert minion.text("/home/ada/.config/git/config") == "[user]\n  name = Ada\n"
    assert (
        minion.text("/home/ada/.ssh/authorized_keys").splitlines() == minion.pillar["accounts"]["users"]["ada"]["keys"]
    )
    assert [path.stat().st_uid for path in (minion.root / "home/ada/.ssh", minion.root / "home/ada/.vimrc")] == [
        1001
    ] * 2
    assert oct((minion.root / "home/ada/.ssh/authorized_keys").stat().st_mode & 0o777) == "0o600"
    assert minion.text("/etc/sudoers.d/01-ada") == "ada ALL=(ALL) NOPASSWD: ALL\n"
    assert minion.host.checked["visudo -cf"].startswith("%deploy ")
    assert _changed(minion.apply("accounts")) == []


def test_webserver(tmp_path: Path) -> None:
    minion = Minion(tmp_path, "webserver")
    ran = minion.apply("webserver")
    assert len(ran) >= 15
    assert {"nginx-light", "ssl-cert"} <= set(minion.host.installed)
    assert (minion.root / "running").exists()
    assert [path.name for path in minion.root.glob("etc/rc2.d/S*nginx")] == ["S01nginx"]
    main = minion.text("/etc/nginx/nginx.conf")
    assert "worker_processes 4;" in main
    assert "server 10.0.0.2;" in main
    assert minion.host.checked["nginx -t -c"] == main
    assert "add_header X-Content-Type-Options nosniff;" in minion.text("/etc/nginx/snippets/headers.conf")
    sites = minion.root / "etc/nginx/sites-enabled"
    assert sorted(path.name for path in sites.iterdir()) == ["docs.example.org.conf", "example.org.conf"]
    assert (sites / "example.org.conf").readlink() == Path("/etc/nginx/sites-available/example.org.conf")
    assert "www.example.org" in minion.text("/etc/nginx/sites-available/example.org.conf")
    assert minion.host.path("/srv/docs").is_dir()
    assert _changed(minion.apply("webserver")) == []

    # A change of the configuration reaches the service, once.
    minion.pillar["webserver"]["snippets"]["tls"]["ssl_session_timeout"] = "2d"
    minion.pillar["webserver"]["config"]["options"]["worker_processes"] = 8
    changed = _changed(minion.apply("webserver"))
    assert sorted(name.partition(" ")[0] for name in changed) == [
        "webserver-config-file-main",
        "webserver-config-snippet-tls",
        "webserver-service-run-service",
    ]
    assert (minion.root / "running").read_text() == "reload\n"
    assert [path.name for path in (tmp_path / "cache/file_backup").rglob("nginx.conf_*")] != []

    gone = minion.apply("webserver.clean")
    assert len(gone) >= 5
    assert not (minion.root / "running").exists()
    assert not (minion.root / "etc/nginx/nginx.conf").exists()
    assert "nginx-light" not in minion.host.installed
    assert list(minion.root.glob("etc/rc2.d/S*nginx")) == []


def test_a_webserver_of_another_family_is_foretold(tmp_path: Path) -> None:
    """What a host has no programs for is told by name, and nothing is touched."""
    minion = Minion(tmp_path, "webserver")
    files = LocalFiles({"base": [_FORMULAS / "webserver"]})
    suse = {**_GRAINS, "os": "SUSE", "os_family": "Suse", "osfinger": "Leap-15"}
    runtime = Runtime(minion.opts, files=files, host=minion.host, grains=suse, pillar=minion.pillar)
    before = sorted(str(path) for path in minion.root.rglob("*"))
    told = runtime.call("state.plan", ["webserver"], {"text": True}).value
    assert "webserver-config-file-main" in told
    assert "vhosts.d" in told
    assert sorted(str(path) for path in minion.root.rglob("*")) == before
