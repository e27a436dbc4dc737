"""A minion of plain parts: a host and a tree in temporary directories, ports that remember what they were asked."""

from __future__ import annotations

import itertools
import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from statecore.engine.call import finish
from statecore.host.host import Host
from statecore.loader import Loader
from statecore.loader.tables import attached
from statecore.model.context import Context
from statecore.model.ports import CommandResult
from statecore.sources.local_tree import LocalFiles


class Ports:
    """Events, jobs, the minion, the state system and template engines; ``asked`` is what they were asked, in order."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.jobs: list[dict[str, Any]] = []
        self.compiled: dict[str, Any] = {}
        self.answer: Any = {}
        #: Area -> what the running minion answers.
        #: Command of the master -> what it answers to its fields.
        self.masters: dict[str, Any] = {}
        self.managers: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {}

    def fire(self, tag: str, data: Mapping[str, Any]) -> bool:
        self.asked.append((tag, dict(data) if isinstance(data, Mapping) else data))
        return True

    def running(self) -> list[dict[str, Any]]:
        return self.jobs

    def signal(self, jid: str, number: int) -> str:
        self.asked.append(("signal", jid, number))
        return f"Signal {number} sent to job {jid} at pid 1"

    def refresh_pillar(self) -> bool:
        self.asked.append("refresh_pillar")
        return True

    def refresh_modules(self) -> bool:
        self.asked.append("refresh_modules")
        return True

    def refresh_grains(self) -> bool:
        self.asked.append("refresh_grains")
        return True

    def compile_pillar(
        self,
        saltenv: str | None,
        pillarenv: str | None,
        override: Mapping[str, Any] | None,
        on_demand: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        self.asked.append(("pillar", saltenv, pillarenv, *([on_demand] if on_demand else [])))
        return {**self.compiled, **(override or {})}

    def master_tops(self) -> dict[str, list[str]]:
        return {}

    def ask_master(self, cmd: str, fields: Mapping[str, Any], *, once: bool = False, master: str | None = None) -> Any:
        self.asked.append((cmd, dict(fields)))
        return self.masters[cmd](dict(fields)) if cmd in self.masters else self.answer

    def manage(self, area: str, request: Mapping[str, Any]) -> dict[str, Any]:
        return self.managers[area](request)

    def render(self, text: str, engine: str, context: Mapping[str, Any], *, saltenv: str, source: str = "") -> str:
        return text.replace("{{ name }}", str(context.get("name")))

    def data(self, text: str, pipe: str, names: Mapping[str, Any], *, saltenv: str, source: str = "") -> Any:
        rendered = self.render(text, "jinja", names, saltenv=saltenv, source=source)
        return yaml.safe_load(rendered) if pipe.endswith(("yaml", "json")) else rendered

    def __getattr__(self, verb: str) -> Any:
        """The verbs of the state system: remembered, answered with ``answer``."""
        shows = ("show_top", "show_high", "show_low", "show_usage")
        if verb not in ("highstate", "sls", "high", "low", "template", "template_str", "clear_cache", *shows):
            raise AttributeError(verb)

        def told(*args: Any) -> Any:
            self.asked.append((verb, *args))
            return self.answer

        return told


class Names:
    """The catalog over a loader."""

    def __init__(self, loader: Loader) -> None:
        self.loader = loader
        self.ctx: Any = None

    def names(self, kind: str = "modules", module: str = "") -> list[str]:
        return ["jinja", "yaml"] if kind == "renderers" else self.loader.names(kind, self.ctx, module)

    def doc(self, name: str, kind: str = "modules") -> str | None:
        return self.loader.doc(kind, name, self.ctx)

    def argspec(self, name: str, kind: str = "modules") -> dict[str, Any] | None:
        return self.loader.argspec(kind, name, self.ctx)

    def function(self, name: str, kind: str) -> Any:
        served, function = self.loader.function(kind, name, self.ctx)
        return served.bound(function, self.ctx)


class PlainMinion:
    """What tests of modules and states stand on."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.tree = directory / "tree"
        self.root = directory / "host"
        self.extension_dir = directory / "extmods"
        for path in (self.tree, self.root):
            path.mkdir()
        self.ports = Ports()
        self.loader = Loader(self.extension_dir)
        self.opts: dict[str, Any] = {
            "id": "web1",
            "conf_file": str(directory / "minion"),
            "cachedir": str(directory / "cache"),
            "extension_modules": str(self.extension_dir),
        }
        self.grains: dict[str, Any] = {"os": "Debian", "os_family": "Debian", "id": "web1", "roles": ["web"]}
        self.pillar: dict[str, Any] = {"key": "value", "a": {"b": {"c": [1, {"d": 2}]}}, "none": None, "empty": ""}

    def write(self, name: str, text: str) -> Path:
        """A file of the state tree."""
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def context(self, **changes: Any) -> Context:
        """A context over everything above; each call is a new run."""
        ports: Any = self.ports
        names = Names(self.loader)
        ctx = Context(
            host=Host(self.root),
            grains=self.grains,
            pillar=self.pillar,
            opts=self.opts,
            files=LocalFiles({"base": [self.tree]}),
            templates=ports,
            events=ports,
            jobs=ports,
            minion=ports,
            catalog=names,
            state_system=ports,
            functions={},
            states={},
        )
        names.ctx = attached(replace(ctx, **changes), self.loader, finish)
        return names.ctx

    def call(self, function: str, /, *args: Any, **kwargs: Any) -> Any:
        """Calls an execution function in a run of its own."""
        return self.context().call(function, *args, **kwargs)

    def state(
        self, function: str, /, *, test: bool = False, ctx: Context | None = None, **arguments: Any
    ) -> dict[str, Any]:
        """Calls a state function; its plan applied, or told in test mode."""
        ctx = ctx or self.context(test=test)
        entry: dict[str, Any] = ctx.states[function](**arguments)
        json.dumps(entry)
        return entry


@pytest.fixture
def plain(tmp_path: Path) -> PlainMinion:
    """A minion of plain parts."""
    return PlainMinion(tmp_path)


class Debian(Host):
    """A mounted host whose dpkg, APT and account programs are played by this class; its init scripts really run."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.calls: list[str] = []
        #: Programs that it has not.
        self.absent: set[str] = set()
        #: Program -> what it fails with.
        self.broken: dict[str, str] = {}
        self.installed = {"base-files": "12.4", "curl": "7.88.1-10"}
        #: Removed packages whose configuration is left.
        self.left: dict[str, str] = {"oldthing": "1.0"}
        self.held: set[str] = set()
        #: Newest version first.
        self.repository: dict[str, list[str]] = {
            "nginx-light": ["1.22.1-9", "1.22.0-1"],
            "curl": ["7.88.1-10"],
            "base-files": ["12.4"],
            "git": ["1:2.39.2-1", "1:2.30.0-1"],
        }
        for name, text in {
            "etc/passwd": "root:x:0:0:root:/root:/bin/bash\nweb:x:33:33:Web,1,2:/srv/web:/usr/sbin/nologin\n",
            "etc/group": "root:x:0:\nweb:x:33:\nadm:x:4:web\nstaff:x:50:\n",
            "etc/shadow": "root:*:19000:0:99999:7:::\nweb:!:19000:0:99999:7:::\n",
            "etc/login.defs": "# made up\nUSERGROUPS_ENAB yes\n",
            "etc/init.d/README": "",
        }.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        (root / "srv/web").mkdir(parents=True)
        (root / "root").mkdir()

    def which(self, program: str) -> str | None:
        return None if program in self.absent else f"/usr/bin/{program}"

    def script(self, name: str, text: str) -> None:
        """Writes an init script."""
        path = self.root / "etc/init.d" / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def run(self, cmd: str | Sequence[str], **options: Any) -> CommandResult:
        words = list(cmd)
        if words[:2] == ["/bin/sh", "-c"]:
            return self._detached(words)
        self.calls.append(" ".join(words))
        code, out, err = self._play(words, options.get("stdin") or "")
        return CommandResult(code, out, err, 1)

    def _detached(self, words: list[str]) -> CommandResult:
        out, err, *rest = words[4:]
        self.calls.append(" ".join(rest))
        if rest[0].startswith("/etc/init.d/"):
            inside = [str(self.root) + word if word.startswith(("/tmp/", "/etc/")) else word for word in words]
            done = subprocess.run(inside, capture_output=True, text=True, timeout=30, check=False)
            return CommandResult(done.returncode, done.stdout, done.stderr, 1)
        code, text, said = self._play(rest, "")
        self.path(out).write_text(text)
        self.path(err).write_text(said)
        return CommandResult(code, "", "", 1)

    def _play(self, words: list[str], stdin: str) -> tuple[int, str, str]:
        program = words[0]
        if program in self.broken:
            return 1, "", self.broken[program]
        play = getattr(self, "_" + program.replace("-", "_").replace(".", "_"))
        answer = play(words[1:], stdin)
        return answer if isinstance(answer, tuple) else (0, answer or "", "")

    # -------------------------------------------------------------------------------------------------- packages

    def _dpkg_query(self, words: list[str], stdin: str) -> str:
        rows = [
            f"{'hold' if name in self.held else 'install'} ok installed {name} {version} amd64"
            for name, version in self.installed.items()
        ]
        rows += [f"deinstall ok config-files {name} {version} amd64" for name, version in self.left.items()]
        return "\n".join([*rows, "install ok installed libc6 2.36 i386", "unknown ok not-installed"]) + "\n"

    def _dpkg(self, words: list[str], stdin: str) -> str:
        if words[0] == "--print-architecture":
            return "amd64\n"
        if words[0] == "--set-selections":
            name, state = stdin.split()
            (self.held.add if state == "hold" else self.held.discard)(name)
            return ""
        states = {name: "hold" if name in self.held else "install" for name in self.installed}
        return "".join(f"{name}\t\t{state}\n" for name, state in states.items() if words[1] in ("*", name))

    def _apt_cache(self, words: list[str], stdin: str) -> str:
        names = words[words.index("policy") + 1 :] if "policy" in words else words[words.index("show") + 1 :]
        if "show" in words:
            rows = [(name, version) for name in names for version in self.repository.get(name, ())]
            return "".join(f"Package: {name}\nVersion: {version}\nDescription: x\n\n" for name, version in rows)
        return "".join(
            f"{name}:\n  Installed: {self.installed.get(name, '(none)')}\n  Candidate: {self.repository[name][0]}\n"
            "  Version table:\n     1.0 500\n"
            for name in names
            if name in self.repository
        )

    def _apt_get(self, words: list[str], stdin: str) -> Any:
        verbs = ("update", "install", "remove", "purge", "upgrade", "dist-upgrade", "autoremove")
        verb = next(word for word in words if word in verbs)
        if verb == "autoremove":
            if "--simulate" in words:
                return "Reading package lists...\nRemv curl [7.88.1-10]\nRemv base-files [12.4]\n"
            self.installed.pop("curl")
            return ""
        names = words[words.index(verb) + 1 :]
        newer = {name: new[0] for name, new in self.repository.items() if name in self.installed}
        newer = {name: new for name, new in newer.items() if new != self.installed[name]}
        if verb == "update":
            return (
                "Hit:1 http://deb.test bookworm InRelease\n"
                "Get:2 http://deb.test bookworm/main amd64 Packages [8,780 kB]\n"
                "Err:3 http://gone.test bookworm InRelease\nReading package lists...\n"
            )
        if verb in ("upgrade", "dist-upgrade"):
            if "--just-print" not in words:
                self.installed |= newer
            rows = [f"{name} [{self.installed[name]}] ({new} Debian:12 [amd64])" for name, new in newer.items()]
            return "".join(f"Inst {row}\nConf {row}\n" for row in rows)
        for name, _, version in (word.partition("=") for word in names):
            if verb != "install":
                there = self.installed.pop(name, None) or self.left.get(name)
                self.left.pop(name, None)
                if verb == "remove" and there:
                    self.left[name] = there
            elif name.endswith(".deb"):
                assert self.path(name).read_text() == "a package"
                self.installed["local"] = "1.0"
            elif name not in self.repository:
                return 100, "", f"E: Unable to locate package {name}\n"
            else:
                self.installed[name] = version if version and "*" not in version else self.repository[name][0]
        return ""

    # -------------------------------------------------------------------------------------------------- services

    def _update_rc_d(self, words: list[str], stdin: str) -> None:
        name, verb = words
        there = [path for path in self.root.glob("etc/rc*.d/*") if path.name[3:] == name]
        if verb == "defaults" and there:
            return
        for path in there:
            path.unlink()
        for level in "2345":
            directory = self.root / f"etc/rc{level}.d"
            directory.mkdir(exist_ok=True)
            (directory / f"{'K' if verb == 'disable' else 'S'}01{name}").symlink_to(f"../init.d/{name}")

    # -------------------------------------------------------------------------------------------------- accounts

    def _rows(self, file: str) -> dict[str, list[str]]:
        lines = (self.root / "etc" / file).read_text().splitlines()
        return {line.split(":")[0]: line.split(":") for line in lines}

    def _keep(self, file: str, rows: Mapping[str, list[str]]) -> None:
        (self.root / "etc" / file).write_text("".join(":".join(row) + "\n" for row in rows.values()))

    def _member(self, groups: Mapping[str, list[str]], user: str, wanted: Sequence[str], *, append: bool) -> None:
        for name, row in groups.items():
            members = [each for each in row[3].split(",") if each and (each != user or append)]
            row[3] = ",".join([*members, *([user] if name in wanted and user not in members else [])])

    def _useradd(self, words: list[str], stdin: str) -> None:
        users, groups, shadow, name = self._rows("passwd"), self._rows("group"), self._rows("shadow"), words[-1]
        given = dict(itertools.pairwise(words))
        uid = given.get("-u", "1000")
        gid = given.get("-g", uid)
        gid = groups[gid][2] if gid in groups else gid
        if "-g" not in given and "-N" not in words:
            groups[name] = [name, "x", gid, ""]
        home = given.get("-d", f"/home/{name}")
        users[name] = [name, "x", uid, gid, "", home, given.get("-s", "/bin/sh")]
        shadow[name] = [name, "!", "19000", "0", "99999", "7", "", "", ""]
        if "-m" in words:
            (self.root / home.lstrip("/")).mkdir(parents=True)
        for file, rows in (("passwd", users), ("group", groups), ("shadow", shadow)):
            self._keep(file, rows)

    def _usermod(self, words: list[str], stdin: str) -> None:
        users, groups, name = self._rows("passwd"), self._rows("group"), words[-1]
        given = dict(itertools.pairwise(words))
        for option, column in {"-l": 0, "-u": 2, "-g": 3, "-c": 4, "-d": 5, "-s": 6}.items():
            if option in given:
                users[name][column] = given[option]
        if "-G" in given:
            self._member(groups, name, given["-G"].split(","), append="-a" in words)
        self._keep("passwd", users)
        self._keep("group", groups)

    def _userdel(self, words: list[str], stdin: str) -> None:
        for file in ("passwd", "group", "shadow"):
            rows = self._rows(file)
            rows.pop(words[-1], None)
            self._keep(file, rows)

    def _groupadd(self, words: list[str], stdin: str) -> None:
        given = dict(itertools.pairwise(words))
        self._keep("group", self._rows("group") | {words[-1]: [words[-1], "x", given.get("-g", "1000"), ""]})

    def _groupmod(self, words: list[str], stdin: str) -> None:
        rows = self._rows("group")
        rows[words[-1]][2] = words[words.index("-g") + 1]
        self._keep("group", rows)

    def _groupdel(self, words: list[str], stdin: str) -> None:
        rows = self._rows("group")
        del rows[words[-1]]
        self._keep("group", rows)

    def _gpasswd(self, words: list[str], stdin: str) -> None:
        option, users, name = words
        rows = self._rows("group")
        now = [each for each in rows[name][3].split(",") if each]
        new = {"--add": [*now, users], "--delete": [each for each in now if each != users], "--members": [users]}
        rows[name][3] = ",".join(new[option])
        self._keep("group", rows)

    def _chpasswd(self, words: list[str], stdin: str) -> None:
        name, password = stdin.strip().split(":")
        self._shadow(name, 1, lambda _: password)

    def _passwd(self, words: list[str], stdin: str) -> None:
        change = {"-d": lambda old: "", "-l": lambda old: "!" + old, "-u": lambda old: old.lstrip("!")}[words[0]]
        self._shadow(words[-1], 1, change)

    def _chage(self, words: list[str], stdin: str) -> None:
        option, value, name = words
        self._shadow(name, {"-d": 2, "-m": 3, "-M": 4, "-W": 5, "-I": 6, "-E": 7}[option], lambda _: value)

    def _shadow(self, name: str, column: int, change: Any) -> None:
        rows = self._rows("shadow")
        rows[name][column] = change(rows[name][column])
        self._keep("shadow", rows)


@pytest.fixture
def debian(plain: PlainMinion, monkeypatch: pytest.MonkeyPatch) -> Debian:
    """The host of ``plain`` played as a Debian: its contexts are made over this one."""
    host = Debian(plain.root)
    made = plain.context
    monkeypatch.setattr(plain, "context", lambda **changes: made(**{"host": host, **changes}))
    return host
