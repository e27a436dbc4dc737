"""States of a whole host as cases: a directory is the host's root, scripts in ``programs`` are its programs.

A case (``cases/*.yaml``) tells what the host has, the call, and what came of it in test mode, applied, and applied again. Real
Salt plays the same cases (``salt_played.py``): whatever it opens below the host's directories is looked for in the case's
directory, and it finds the same programs. Keys of a case:

``have``
    path -> content, ``/`` for a directory, ``-> target`` for a link, ``block`` for a block device (only root makes one)
``state``, ``args``
    the call
``would``, ``does``, ``again``
    result, changes and comment of each phase (``again`` left out: as ``does``)
``left``
    what differs from ``have`` afterwards: path -> "mode content", ``gone`` for what is there no more
``differs``
    why Salt's answer is another, and ``in`` what: ``would.comment``, ``left``, ...; that much is not compared with Salt's
"""

from __future__ import annotations

import io
import json
import os
import shutil
import stat
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from statecore.engine.call import finish
from statecore.host.host import Host
from statecore.loader import Loader
from statecore.loader.tables import attached
from statecore.model.context import Context
from statecore.model.ports import CommandResult
from statecore.render import SlsTree
from statecore.runtime.masterless_ports import LocalMinion, NoEvents, NoJobs
from statecore.sources.local_tree import LocalFiles
from tests import case_files

_HERE = Path(__file__).parent
PROGRAMS = _HERE / "programs"

#: Phase -> whether it is in test mode.
PHASES: Mapping[str, bool] = {"would": True, "does": False, "again": False}

#: What every host has.
COMMON: Mapping[str, str] = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nweb:x:33:33:Web:/home/web:/bin/sh\n",
    "etc/group": "root:x:0:\nweb:x:33:\n",
    "root": "/",
    "home/web": "/",
    "tmp": "/",
    "spool": "/",
}

GRAINS: Mapping[str, Any] = {
    "os": "Debian",
    "os_family": "Debian",
    "kernel": "Linux",
    "osfinger": "Debian-12",
    "oscodename": "bookworm",
}

#: The state tree of all cases.
TREE: Mapping[str, str] = {
    "tab": "MAILTO=ops\n0 1 * * * /bin/job\n",
    "tab.jinja": "0 {{ hour }} * * * /bin/job\n",
    "keys/two.pub": "# team\nssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQC7 ann@one\nssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB1x bob@two\n",
    "keys/none.pub": "no key at all\n",
}

_UNUSED: Any = None


@dataclass(frozen=True, slots=True)
class Case:
    """One case, as in the file."""

    id: str
    state: str
    args: Mapping[str, Any]
    would: Mapping[str, Any] = field(default_factory=dict)
    does: Mapping[str, Any] = field(default_factory=dict)
    again: Mapping[str, Any] | None = None
    have: Mapping[str, str] = field(default_factory=dict)
    left: Mapping[str, str] = field(default_factory=dict)
    grains: Mapping[str, Any] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    differs: Mapping[str, Any] = field(default_factory=dict)

    def expected(self) -> dict[str, Any]:
        return {"would": self.would, "does": self.does, "again": self.again or self.does, "left": dict(self.left)}

    def agreed(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """What was told, without that in which ours and Salt's differ; lines in any order, as Salt keeps sets of them."""
        flat = {f"{phase}.{key}": value for phase in PHASES for key, value in told[phase].items()}
        flat["left"] = told["left"]
        for phase in PHASES:
            flat[f"{phase}.comment"] = sorted(flat[f"{phase}.comment"].split("\n"))
        return {key: value for key, value in flat.items() if key not in self.differs.get("in", ())}


def load() -> list[Case]:
    """All cases, ids "file/case"."""
    found = []
    for path in sorted((_HERE / "cases").glob("*.yaml")):
        for name, case in case_files.read(path).items():
            found.append(Case(id=f"{path.stem}/{name}", **{**case, "without": tuple(case.get("without", ()))}))
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "played" in metafunc.fixturenames:
        cases = load()
        assert len(cases) > 20, "the case files are not found"
        if metafunc.function.__name__ == "test_case_is_as_salt_has_it":
            cases = [case for case in cases if not case.differs.get("all")]
        metafunc.parametrize("played", cases, ids=[case.id for case in cases])


class PlayedHost(Host):
    """A mounted host whose programs are the scripts; whatever else is asked of it is the mounted host's own."""

    def __init__(self, root: Path, without: Sequence[str] = ()) -> None:
        super().__init__(root)
        self._without = without

    def mount_table(self) -> str:
        return (self.root / "proc/self/mountinfo").read_text()

    def which(self, program: str) -> str | None:
        name = program.rpartition("/")[2]
        return f"/usr/bin/{name}" if (PROGRAMS / name).is_file() and name not in self._without else None

    def run(self, cmd: str | Sequence[str], **options: Any) -> CommandResult:
        argv = ["/bin/sh", "-c", cmd] if isinstance(cmd, str) else list(cmd)
        env = {"PATH": f"{PROGRAMS}:/usr/bin:/bin", "PLAYED": str(self.root), **(options.get("env") or {})}
        # What a command is to write goes to the host's own place.
        argv = [f"{self.root}{word}" if word.startswith("/tmp/.saltern-") else word for word in argv]
        given = options.get("stdin") or b""
        data = given.encode() if isinstance(given, str) else given
        # A shell looks for programs on the PATH that it is given, exec on ours.
        done = subprocess.run(["/bin/sh", "-c", 'exec "$@"', "sh", *argv], input=data, capture_output=True, env=env)
        return CommandResult(done.returncode, done.stdout.decode(), done.stderr.decode(), 1)


def play(case: Case, directory: Path, tree: Path) -> dict[str, Any]:
    """What our states tell of a case."""
    before = lay_out(case, directory)
    host = PlayedHost(directory, case.without)
    told: dict[str, Any] = {}
    for phase, test in PHASES.items():
        ctx = context(case, host, tree, test=test)
        told[phase] = shown(ctx.states[case.state](**case.args), directory)
        if test:
            assert changed(before, directory) == {}, "test mode has changed something"
    return told | {"left": changed(before, directory)}


def context(case: Case, host: PlayedHost, tree: Path, *, test: bool) -> Context:
    """What the case's state finds around it; each is a new run."""
    files, unused = LocalFiles({"base": [tree]}), _UNUSED
    grains = {**GRAINS, **case.grains}
    opts = {"id": "web1", "cachedir": str(host.root.with_name("cache"))}
    ctx = Context(
        host=host,
        grains=grains,
        pillar={},
        opts=opts,
        files=files,
        templates=SlsTree(files, opts=opts, grains=grains, pillar={}, functions={}).templates,
        events=NoEvents(),
        jobs=NoJobs(),
        minion=LocalMinion(),
        catalog=unused,
        state_system=unused,
        functions={},
        states={},
        test=test,
    )
    return attached(ctx, Loader(), finish)


def lay_out(case: Case, directory: Path) -> dict[str, str]:
    """Makes the case's host; what is there now."""
    for name, text in {**COMMON, **case.have}.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text == "/":
            path.mkdir(exist_ok=True)
        elif text.startswith("-> "):
            path.symlink_to(text[3:])
        elif text == "block":
            os.mknod(path, 0o600 | stat.S_IFBLK, os.makedev(7, 200))
        elif name.endswith((".tar.gz", ".zip")):
            pack(path, text)
        else:
            path.write_text(text)
            path.chmod(0o644)
    return _tree(directory)


def pack(path: Path, names: str) -> None:
    """Makes an archive of files that hold their own names; ``name/`` is a directory, ``name>target`` a link."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as made:
            for name in names.split():
                member = zipfile.ZipInfo(name)
                member.external_attr = (0o40755 if name.endswith("/") else 0o100640) << 16
                made.writestr(member, "" if name.endswith("/") else name)
        return
    with tarfile.open(path, "w:gz") as tar:
        for name in names.split():
            bare, _, target = name.partition(">")
            entry = tarfile.TarInfo(bare.rstrip("/"))
            entry.mode = 0o755 if name.endswith("/") else 0o640
            entry.type = tarfile.DIRTYPE if name.endswith("/") else tarfile.SYMTYPE if target else tarfile.REGTYPE
            entry.linkname = target
            entry.size = len(bare) if entry.isreg() else 0
            tar.addfile(entry, io.BytesIO(bare.encode()))


def changed(before: Mapping[str, str], directory: Path) -> dict[str, str]:
    """What differs from ``before`` now."""
    now = _tree(directory)
    gone = {name: "gone" for name in before if name not in now}
    return {name: text for name, text in now.items() if before.get(name) != text} | gone


def shown(entry: Mapping[str, Any], directory: Path) -> dict[str, Any]:
    """result, changes, comment (and warnings) with the host's own paths."""
    kept = {key: entry[key] for key in ("result", "changes", "comment", "warnings") if key in entry}
    text: dict[str, Any] = json.loads(json.dumps(kept).replace(str(directory), "").replace(str(PROGRAMS), "/usr/bin"))
    return text | {"comment": text["comment"].rstrip()}


def write_tree(directory: Path) -> None:
    """The state tree."""
    for name, text in TREE.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _tree(directory: Path) -> dict[str, str]:
    return {path.relative_to(directory).as_posix(): _told(path) for path in sorted(directory.rglob("*"))}


def _told(path: Path) -> str:
    if path.is_symlink():
        return f"-> {path.readlink()}"
    mode = f"{stat.S_IMODE(path.stat().st_mode):04o}"
    if path.is_block_device():
        return f"{mode} block"
    return f"{mode} /" if path.is_dir() else f"{mode} {path.read_bytes().decode('utf-8', 'backslashreplace')}"


@pytest.fixture(autouse=True)
def _own_environment() -> Iterator[None]:
    """What a state sets in the environment of this process must not reach real Salt, nor other tests."""
    before = dict(os.environ)
    yield
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)


@pytest.fixture(autouse=True)
def usual_umask():
    """The cases tell modes."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def ours(tmp_path: Path):
    """Plays a case with our states."""
    write_tree(tmp_path / "tree")
    return lambda case: play(case, tmp_path / "host", tmp_path / "tree")


class Answers:
    """What Salt tells of a case. It is asked about all cases of a file at once, when somebody wants one of them."""

    def __init__(self, venv: Path, directory: Path) -> None:
        self._venv = venv
        self._directory = directory
        self._told: dict[str, dict[str, Any]] = {}

    def __getitem__(self, case: Case) -> dict[str, Any]:
        file = case.id.partition("/")[0]
        if file not in self._told:
            cases = [each for each in load() if each.id.startswith(f"{file}/") and not each.differs.get("all")]
            self._told[file] = ask_salt(self._venv, self._directory / file, cases)
        answer: dict[str, Any] = self._told[file][case.id]
        return answer


@pytest.fixture(scope="module")
def salts(oracle: Any, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """What Salt tells of cases: one process for each file."""
    return Answers(oracle.venv, tmp_path_factory.mktemp("salt"))


def ask_salt(venv: Path, directory: Path, cases: Sequence[Case]) -> dict[str, Any]:
    """Plays cases with real Salt."""
    write_tree(directory / "tree")
    old = os.umask(0o022)
    told: dict[str, Any] = {}
    try:
        before = {case.id: lay_out(case, directory / "hosts" / str(at)) for at, case in enumerate(cases)}
        asked = {
            "directory": str(directory),
            "programs": str(PROGRAMS),
            "grains": dict(GRAINS),
            "phases": list(PHASES.values()),
            "cases": [
                [case.state, case.args, dict(case.grains), list(case.without), str(directory / "hosts" / str(at))]
                for at, case in enumerate(cases)
            ],
        }
        done = subprocess.run(
            [venv / "bin/python", _HERE / "salt_played.py"],
            input=json.dumps(asked),
            text=True,
            capture_output=True,
            timeout=240,
        )
        assert done.returncode == 0, done.stderr
        for at, (case, answers) in enumerate(zip(cases, json.loads(done.stdout), strict=True)):
            host = directory / "hosts" / str(at)
            told[case.id] = {phase: shown(entry, host) for phase, entry in zip(PHASES, answers, strict=True)}
            told[case.id]["left"] = changed(before[case.id], host)
    finally:
        os.umask(old)
        shutil.rmtree(directory / "cache", ignore_errors=True)
    return told
