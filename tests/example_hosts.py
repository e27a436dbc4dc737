"""The hosts, servers and masters of the examples of states (docs/state-examples/): each example says what it needs.

Keys of an example that this module reads:

``have``
    path on the host -> its text before; ``/`` for a directory
``before``
    shell commands that are run before, in the directory that stands for ``/srv``
``host``
    ``directory`` (default): a directory without programs; ``debian``: a directory with the programs of accounts, services and
    packages, played by a class; ``machine``: this machine, where ``/srv`` stands for a directory of the test
``programs``, ``has``
    command line -> its recorded output, and programs without a record, as in tests/statecore/builtin/recorded/conftest.py
``played``
    directories below tests whose scripts are programs of the host
``server``
    ``mariadb``, ``postgres``, ``etcd`` or ``web``: a server that runs during the test; ``SERVER`` in ``opts`` is its address
``instead``
    text of the SLS -> text that takes its place while the example is applied; ``SERVER`` is the server's address
``varies``
    pattern of what differs from run to run in a comment -> what the page shows
``wheels``
    true: ``/srv/wheels`` has the wheels of tests/statecore/python_environments.py
``master``
    answers of a master to an orchestration, as in tests/statecore/builtin/states/saltmod.yaml
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from saltern.minion.duties.beacons import Beacons
from saltern.minion.duties.schedule import Schedule
from statecore.host.host import Host
from statecore.model.ports import CommandResult
from statecore.runtime.masterless_ports import LocalMinion, NoEvents, NoJobs
from statecore.runtime.runtime import Runtime
from statecore.sources.local_tree import LocalFiles
from tests.statecore import database_servers, python_environments
from tests.statecore.builtin.recorded.conftest import Recorded, RecordedHost, lay_out
from tests.statecore.builtin.sdb import etcd_server
from tests.statecore.builtin.states.test_saltmod import Scripted
from tests.statecore.conftest import Debian
from tests.statecore.loopback_server import serve

_TESTS = Path(__file__).parent

#: What the host has in each example.
_HAVE = {"etc/passwd": "root:x:0:0:root:/root:/bin/sh\n", "etc/group": "root:x:0:\n", "tmp": "/"}

GRAINS = {
    "id": "web1",
    "os": "Debian",
    "os_family": "Debian",
    "osfinger": "Debian-12",
    "oscodename": "bookworm",
    "kernel": "Linux",
    "osmajorrelease": 12,
}

#: Init script of each service that an example of a Debian has: it really runs.
_INIT = """#!/bin/sh
run="$0.run"
case "$1" in
  start|restart) touch "$run" ;;
  stop) rm -f "$run" ;;
  status) test -e "$run" || exit 3 ;;
esac
"""


class Events(NoEvents):
    """A master that takes every event of an example."""

    def fire(self, *_: Any, **__: Any) -> bool:
        return True


class _Master(Scripted):
    """A master that answers an orchestration, which nobody pauses."""

    def orders(self) -> dict[str, Any]:
        return {}

    def end_orders(self) -> None:
        pass


class Servers:
    """The servers that examples ask for. Each is started when it is first asked for, and ends with the run."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._found: dict[str, str] = {}

    def address(self, kind: str) -> str:
        """Return the socket, port or URL of a running server. Skips the test where this machine has no such server."""
        if kind not in self._found:
            self._found[kind] = getattr(self, f"_{kind}")()
        return self._found[kind]

    def close(self) -> None:
        """End all servers."""
        self._stack.close()

    def _mariadb(self) -> str:
        directory = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="examples-")))
        return str(self._stack.enter_context(database_servers.mariadb(directory)))

    def _postgres(self) -> str:
        return str(self._stack.enter_context(database_servers.postgres()))

    def _etcd(self) -> str:
        server = etcd_server.serve()
        self._stack.callback(server.shutdown)
        return str(server.server_port)

    def _web(self) -> str:
        return self._stack.enter_context(serve()).url


class _Programs(RecordedHost):
    """A host that is a directory, whose programs are recorded or played, or are named ones of this machine."""

    def __init__(self, place: Path, variables: Mapping[str, str]) -> None:
        super().__init__(place)
        self._own = variables

    def run(self, cmd: str | Sequence[str], **options: Any) -> CommandResult:
        # A played program that is given a file of the host must not find this machine's.
        if self._own and not isinstance(cmd, str):
            cmd = [f"{self.root}{word}" if word.startswith(("/etc/", "/srv/")) else word for word in cmd]
            if options.get("cwd"):
                where = self.path(str(options["cwd"]))
                cmd = ["sh", "-c", 'cd "$0" && exec "$@"', str(where), cmd[0].rpartition("/")[2], *cmd[1:]]
        return super().run(cmd, **{**options, "env": {**(options.get("env") or {}), **self._own}})


class _Databases(Host):
    """This machine with the clients of its database servers."""

    def which(self, program: str) -> str | None:
        return super().which(f"{database_servers.MARIADB}/usr/bin/{program}") or super().which(program)


@dataclass
class Stage:
    """All that an example is applied to: its host, its tree, its minion."""

    example: Mapping[str, Any]
    directory: Path
    servers: Servers
    host: Host = field(init=False)

    def __post_init__(self) -> None:
        """Make the host and what stands on it."""
        self.root = self.directory / "host"
        self.tree = self.directory / "tree"
        self.kind = "programs" if self.example.keys() & {"programs", "has", "played"} else self.example.get("host", "")
        self.host = self._host()
        server = self.example.get("server")
        self._server = self.servers.address(server) if server else ""
        _write(self.tree, {name: self.real(text) for name, text in self.example.get("tree", {}).items()})
        self._schedule = Schedule("web1", {}, self.directory / "schedule.conf")
        self._beacons = Beacons({}, self.directory / "beacons.conf", lambda events: None)
        for command in self.example.get("before", ()):
            (self.root / "srv").mkdir(exist_ok=True)
            subprocess.run(["sh", "-ec", command], cwd=self.root / "srv", env=_environment(), check=True)

    def real(self, text: str) -> str:
        """Return a text of the example with what stands in its place here."""
        for shown, used in self.example.get("instead", {}).items():
            text = text.replace(shown, used.replace("SERVER", self._server).replace("PYTHON", sys.executable))
        return text.replace("/srv/", f"{self.root}/srv/") if self.kind == "machine" else text

    def shown(self, text: str) -> str:
        """Return a text of a return as the page shows it."""
        for shown, used in self.example.get("instead", {}).items():
            text = text.replace(used.replace("SERVER", self._server).replace("PYTHON", sys.executable), shown)
        for pattern, stands in self.example.get("varies", {}).items():
            text = re.sub(pattern, stands, text)
        return text.replace(str(self.root), "").replace(str(self.directory), "")

    def apply(self, sls: str, *, gather: bool = False) -> dict[str, dict[str, Any]]:
        """Apply an SLS file and return {key: entry of a state}. ``gather``: with the grains of the host."""
        (self.tree / "example.sls").write_text(self.real(sls))
        opts = {
            "id": "web1",
            "file_client": "local",
            "host_root": str(self.root),
            "file_roots": {"base": [str(self.tree)]},
            "pillar_roots": {},
            "cachedir": str(self.directory / "cache"),
            "extension_modules": str(self.directory / "extmods"),
            "conf_file": str(self.root / "etc/salt/minion"),
            **{key: self._option(value) for key, value in self.example.get("opts", {}).items()},
        }
        master: Any = _Master(self.example["master"]) if "master" in self.example else None
        runtime = Runtime(
            opts,
            files=LocalFiles.of(opts),
            host=self.host,
            # Gathering takes longer than all the rest.
            grains=None if gather else {**GRAINS, **self.example.get("grains", {})},
            pillar=self.example.get("pillar", {}),
            events=Events(),
            jobs=NoJobs(),
            minion=LocalMinion(manage=self._manage),
            master=master,
        )
        run = runtime.call("state.apply", ["example"], {}).value
        assert isinstance(run, dict), run
        return run

    def _manage(self, area: str, request: Mapping[str, Any]) -> dict[str, Any]:
        return (self._schedule if area == "schedule" else self._beacons).manage(request)

    def _option(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._option(each) for key, each in value.items()}
        return value.replace("SERVER", self._server) if isinstance(value, str) else value

    def _host(self) -> Host:
        have = {name.replace("KERNEL", os.uname().release): text for name, text in self.example.get("have", {}).items()}
        if self.kind == "programs":
            case = Recorded(
                id="example",
                programs=self.example.get("programs", {}),
                has=self.example.get("has", ()),
                have={**_HAVE, **have},
            )
            lay_out(case, self.directory)
            played = ("RABBIT", "GEMS", "NPM") if self.example.get("played") else ()
            variables = {name: str(self.directory / name.lower()) for name in played}
            for folder in self.example.get("played", ()):
                for program in (_TESTS / folder).iterdir():
                    started = f'#!/bin/sh\nPLAYED={shlex.quote(str(self.root))} exec {shlex.quote(str(program))} "$@"\n'
                    own = self.directory / "bin" / program.name
                    own.write_text(started)
                    own.chmod(0o755)
            return _Programs(self.directory, variables)
        if self.kind == "debian":
            self.root.mkdir(parents=True)
            host = Debian(self.root)
            host.absent |= {"systemctl", "initctl", "start-stop-daemon"}
            _write(self.root, have)
            for script in (self.root / "etc/init.d").glob("*"):
                if script.name != "README":
                    script.write_text(_INIT)
                    script.chmod(0o755)
            return host
        _write(self.root, {**_HAVE, **have})
        if self.example.get("wheels"):
            (self.root / "srv").mkdir()
            python_environments.write_wheels(self.root / "srv/wheels")
        if self.kind == "machine":
            return _Databases("/")
        return Host(self.root)


def _environment() -> dict[str, str]:
    """Environment of prepared repositories: the same commits each time, and no configuration of whoever runs the test."""
    who = {f"GIT_{who}_{what}": "you@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    when = {f"GIT_{who}_DATE": "2020-01-01T00:00:00Z" for who in ("AUTHOR", "COMMITTER")}
    return {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_GLOBAL": "/dev/null", **who, **when}


def _write(directory: Path, files: Mapping[str, str]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = directory / name
        (path if text == "/" else path.parent).mkdir(parents=True, exist_ok=True)
        if text != "/":
            path.write_text(text)
