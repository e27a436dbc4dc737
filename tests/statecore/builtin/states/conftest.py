"""State cases as data: what a host has, the state called, and what is told and left: in test mode, applied, applied again.

A case (``cases/*.yaml``) is written with ROOT for its own directory on the host. Its keys:

``have``
    path -> content, ``/`` for a directory, ``-> target`` for a link; ``{text, mode}`` where the mode matters
``state``, ``args``
    the call; ``also``: other calls of the same run, before it; ``needs``: the requisite that names them (require, watch)
``would``, ``does``, ``again``
    result, changes and comment in test mode, applied, applied a second time (left out: as ``does``)
``left``
    the directory afterwards: path -> "mode content", ``/`` for a directory, ``-> target`` for a link
``differs``
    why Salt's answer is another, and ``in`` what: ``would.comment``, ``left``, ...; that much is not compared with Salt's
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from statecore.compile import compile_chunks
from statecore.engine import EngineOptions, run
from statecore.engine.call import finish
from statecore.host.host import Host
from statecore.loader import Loader
from statecore.loader.tables import attached
from statecore.model.context import Context
from statecore.render import SlsTree
from statecore.runtime.masterless_ports import LocalMinion, NoEvents, NoJobs
from statecore.runtime.runtime import local_runtime
from statecore.sources.local_tree import LocalFiles
from tests import case_files

#: Name of each run of a case, and whether it is in test mode.
PHASES: Mapping[str, bool] = {"would": True, "does": False, "again": False}

#: The state tree of all cases; what ends in .sh may be executed.
TREE: Mapping[str, str] = {
    "plain.txt": "plain\ntext\n",
    "binary": "\0\1\2",
    "page.jinja": "{{ what }} for {{ who }}",
    "names.jinja": "{{ name }} {{ user }} {{ group }} {{ mode }} {{ attrs }} {{ source }}",
    "gathered.jinja": "{{ a }} {{ accumulator.one|join(' ') }}\n",
    "broken.jinja": "one\n{{ nothing.at.all }}\n",
    "site/index.html": "index\n",
    "site/run.sh": "#!/bin/sh\n",
    "site/sub/page.html": "page\n",
    "site/sub/deep/er.txt": "er\n",
    "site/empty/": "",
    "pages/a": "{{ who }}",
    "pages/b": "b\n",
    "badpages/a": "{{ nothing.at.all }}",
    "linked/file": "file\n",
    "linked/link": "-> file",
    "run.sh": '#!/bin/sh\necho "$#:$1:$2"\n',
    "fail.sh": "#!/bin/sh\necho bad\nexit 4\n",
    "page.sh": "#!/bin/sh\necho {{ who }}\n",
    "pwd.sh": "#!/bin/sh\npwd\n",
    "env.sh": "#!/bin/sh\necho $A\n",
    "stateful.sh": "#!/bin/sh\necho\necho 'changed=yes comment=done'\n",
}

PILLAR: Mapping[str, Any] = {"app": {"text": "from pillar", "more": "more\nlines\n", "encoded": "aGVsbG8K"}}

GRAINS: Mapping[str, Any] = {"motd": "from grains"}

#: Who owns what is made here, should it not be root.
_ME = f"{Host().user_name(os.geteuid())}:{Host().group_name(os.getegid())}"

#: Ports that no file or command asks.
_UNUSED: Any = None

_DIRECTORY = Path(__file__).parent / "cases"
#: Seconds that real Salt has for the cases of a module, on a machine that does other things too.
_SALT_SECONDS = 240.0

_SALT = Path(__file__).parent / "salt_states.py"


@dataclass(frozen=True, slots=True)
class Case:
    """One case, as in the file."""

    id: str
    state: str
    args: Mapping[str, Any]
    would: Mapping[str, Any]
    does: Mapping[str, Any]
    again: Mapping[str, Any] | None = None
    have: Mapping[str, Any] = field(default_factory=dict)
    left: Mapping[str, str] = field(default_factory=dict)
    also: tuple[Mapping[str, Any], ...] = ()
    needs: str = ""
    differs: Mapping[str, Any] = field(default_factory=dict)

    def expected(self) -> dict[str, Any]:
        """What every phase is to give."""
        return {"would": self.would, "does": self.does, "again": self.again or self.does, "left": dict(self.left)}

    def agreed(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """What was told by phase and key, without that in which ours and Salt's differ."""
        flat = {f"{phase}.{key}": value for phase in PHASES for key, value in told[phase].items()}
        flat["left"] = told["left"]
        for phase in PHASES:
            flat[f"{phase}.comment"] = _sections(flat[f"{phase}.comment"])
        if self.state == "file.recurse":
            for phase in ("does", "again"):
                # Of the directories that it made, Salt tells those that a set's order has before what is in them.
                flat[f"{phase}.changes"] = {
                    path: change
                    for path, change in flat[f"{phase}.changes"].items()
                    if change != {path: {"directory": "new"}}
                }
        return {key: value for key, value in flat.items() if key not in self.differs.get("in", ())}


def load(prefix: str) -> list[Case]:
    """The cases of the files that begin with ``prefix``, ids "file/case"."""
    found = []
    for path in sorted(_DIRECTORY.glob(f"{prefix}*.yaml")):
        for name, case in case_files.read(path).items():
            found.append(Case(id=f"{path.stem}/{name}", **{**case, "also": tuple(case.get("also", ()))}))
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that asks for ``case`` gets each case of the files that its module's CASES names."""
    if "case" in metafunc.fixturenames:
        cases = load(metafunc.module.CASES)
        assert len(cases) > 20, "the case files are not found"
        if metafunc.function.__name__ == "test_case_in_a_mounted_host":
            # A mounted host has no shell for the command.
            cases = [case for case in cases if "check_cmd" not in case.args]
        metafunc.parametrize("case", cases, ids=[case.id for case in cases])


class Ours:
    """Applies cases with our engine, on a host of the test's own."""

    def __init__(self, directory: Path, *, mounted: bool) -> None:
        self.tree = directory / "tree"
        write_tree(self.tree)
        self._loader = Loader()
        top = directory / "host"
        self.host = Host(top if mounted else "/")
        #: The case's directory: as the host names it, and where it is.
        self.root = "/srv/case" if mounted else str(top / "srv/case")
        self.place = top / "srv/case"
        if mounted:
            (top / "etc").mkdir(parents=True)
            (top / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n")
            (top / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n")
        self.opts: dict[str, Any] = {"id": "web1", "cachedir": str(directory / "cache")}

    def apply(self, case: Case) -> dict[str, Any]:
        """What Salt is asked for too: the case's entry in every phase, and what is left."""
        lay_out(case, self.place, self.root)
        told: dict[str, Any] = {}
        for phase, test in PHASES.items():
            running = run(
                compile_chunks(chunks(case, self.root)).graph, self._context(test), self._loader, EngineOptions()
            )
            own = next(entry for entry in running.values() if entry["__id__"] == case.id)
            told[phase] = shown(own, self.root, self.tree)
        return told | {"left": tree(self.place, self.root)}

    def _context(self, test: bool) -> Context:
        files, unused = LocalFiles({"base": [self.tree]}), _UNUSED
        ctx = Context(
            host=self.host,
            grains=GRAINS,
            pillar=PILLAR,
            opts=self.opts,
            files=files,
            templates=SlsTree(files, opts=self.opts, grains=GRAINS, pillar=PILLAR, functions={}).templates,
            events=NoEvents(),
            jobs=NoJobs(),
            minion=LocalMinion(),
            catalog=unused,
            state_system=unused,
            functions={},
            states={},
            test=test,
        )
        return attached(ctx, self._loader, finish)


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    """The cases tell modes."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def ours(tmp_path: Path) -> Ours:
    """Our engine on this machine, below tmp_path."""
    return Ours(tmp_path, mounted=False)


@pytest.fixture
def ours_mounted(tmp_path: Path) -> Ours:
    """Our engine on a root below tmp_path."""
    return Ours(tmp_path, mounted=True)


@pytest.fixture(scope="module")
def salts(oracle: Any, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What Salt tells of all cases of the module, by case: asked once, in three runs of one process for each case file."""
    directory = tmp_path_factory.mktemp("salt")

    def run_all(wholes: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
        asked = {"directory": str(directory), "tree": str(directory / "tree"), "pillar": PILLAR, "grains": GRAINS}
        asked["phases"] = [[test, whole] for whole in wholes for test in PHASES.values()]
        told = json.loads(oracle.run("python", str(_SALT), stdin=json.dumps(asked), timeout=_SALT_SECONDS))
        return [told[start : start + len(PHASES)] for start in range(0, len(told), len(PHASES))]

    return _together(load(request.module.CASES), directory, run_all)


@pytest.fixture(scope="module")
def runtimes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What our whole system tells of all cases of the module: high data compiled, checked, run as ``state.high``."""
    directory = tmp_path_factory.mktemp("runtime")
    opts = {
        "id": "web1",
        "file_roots": {"base": [str(directory / "tree")]},
        "pillar_roots": {},
        "cachedir": str(directory / "cache"),
        "grains": GRAINS,
    }

    def run_all(wholes: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
        runtime = local_runtime(opts)
        return [
            [runtime.call("state.high", [whole], {"test": test, "pillar": PILLAR}).value for test in PHASES.values()]
            for whole in wholes
        ]

    before = os.umask(0o022)
    try:
        return _together(load(request.module.CASES), directory, run_all)
    finally:
        os.umask(before)


def _together(
    cases: Sequence[Case],
    directory: Path,
    run_all: Callable[[Sequence[Mapping[str, Any]]], Sequence[Sequence[Mapping[str, Any]]]],
) -> dict[str, Any]:
    """What is told of cases by id, when those of a file are the states of one run, in each phase.

    All in one run would be slow: what a run costs grows faster than the number of its states.
    """
    write_tree(directory / "tree")
    roots = {case.id: str(directory / "hosts" / str(number)) for number, case in enumerate(cases)}
    wholes: dict[str, dict[str, Any]] = {}
    for case in cases:
        lay_out(case, Path(roots[case.id]), roots[case.id])
        wholes.setdefault(case.id.partition("/")[0], {}).update(high(case, roots[case.id]))
    told: dict[str, Any] = {case.id: {} for case in cases}
    for phases in run_all(list(wholes.values())):
        for phase, running in zip(PHASES, phases, strict=True):
            for entry in running.values():
                if entry["__id__"] in told:
                    told[entry["__id__"]][phase] = shown(entry, roots[entry["__id__"]], directory / "tree")
    return {id_: each | {"left": tree(Path(roots[id_]), roots[id_])} for id_, each in told.items()}


def place(value: Any, root: str) -> Any:
    """A value with ROOT replaced by the case's directory."""
    return _mapped(value, "ROOT", root)


def shown(entry: Mapping[str, Any], root: str, state_tree: Path) -> dict[str, Any]:
    """result, changes and comment of a running entry, ROOT and TREE for directories.

    Left out: pids, which are no two times the same, and space behind a comment.
    """

    def named(value: Any) -> Any:
        return _mapped(_mapped(_mapped(value, root, "ROOT"), str(state_tree), "TREE"), _ME, "root:root")

    changes = {key: value for key, value in entry["changes"].items() if key != "pid"}
    if isinstance(changes.get("removed"), list):
        changes["removed"] = sorted(changes["removed"])
    return {"result": entry["result"], "changes": named(changes), "comment": named(entry["comment"]).rstrip()}


def lay_out(case: Case, directory: Path, root: str) -> None:
    """Makes what the case's host has."""
    directory.mkdir(parents=True)
    for name, what in case.have.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text, mode = (what.get("text", "/"), what.get("mode")) if isinstance(what, dict) else (what, None)
        if text == "/":
            path.mkdir(exist_ok=True)
        elif text.startswith("-> "):
            path.symlink_to(place(text[3:], root))
        else:
            path.write_text(text)
            path.chmod(0o644)
        if mode is not None:
            path.chmod(int(mode, 8))


def tree(directory: Path, root: str) -> dict[str, str]:
    """What is in a case's directory."""
    return {path.relative_to(directory).as_posix(): _told(path, root) for path in sorted(directory.rglob("*"))}


def chunks(case: Case, root: str) -> list[dict[str, Any]]:
    """Low chunks of a case for our engine, its own last."""
    rows = [_chunk(f"{case.id} {number}", each["state"], each["args"], root) for number, each in enumerate(case.also)]
    own = _chunk(case.id, case.state, case.args, root)
    return [*rows, own | ({case.needs: [{row["state"]: row["__id__"]} for row in rows]} if case.needs else {})]


def high(case: Case, root: str) -> dict[str, Any]:
    """The same as high data for Salt."""
    return {
        chunk["__id__"]: {
            "__sls__": "case",
            "__env__": "base",
            chunk["state"]: [
                chunk["fun"],
                *(
                    {key: value}
                    for key, value in chunk.items()
                    if not key.startswith("__") and key not in ("state", "fun")
                ),
            ],
        }
        for chunk in chunks(case, root)
    }


def write_tree(directory: Path) -> None:
    """The state tree."""
    for name, text in TREE.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir()
        elif text.startswith("-> "):
            path.symlink_to(text[3:])
        else:
            path.write_text(text)
            path.chmod(0o755 if name.endswith(".sh") else 0o644)


def _chunk(id_: str, state: str, args: Mapping[str, Any], root: str) -> dict[str, Any]:
    module, _, function = state.partition(".")
    own = {"name": f"{root}/f", **place(args, root)}
    return {"state": module, "fun": function, "__id__": id_, "__sls__": "case", "__env__": "base", **own}


def _sections(comment: str) -> str:
    """A comment with its sections, one for each path, in order: Salt has them as a set has its members."""
    if not comment.startswith("#### "):
        return comment
    sections = ["\n".join(sorted(each.split("\n"))) for each in comment.strip().replace("\n\n\n", "\n\n").split("\n\n")]
    return "\n\n".join(sorted(sections))


def _told(path: Path, root: str) -> str:
    if path.is_symlink():
        return f"-> {path.readlink()}".replace(root, "ROOT")
    mode = f"{stat.S_IMODE(path.stat().st_mode):04o}"
    if path.is_fifo():
        return f"{mode} |"
    return f"{mode} /" if path.is_dir() else f"{mode} {path.read_bytes().decode('utf-8', 'backslashreplace')}"


def _mapped(value: Any, old: str, new: str) -> Any:
    if isinstance(value, str):
        return value.replace(old, new)
    if isinstance(value, dict):
        return {_mapped(key, old, new): _mapped(item, old, new) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_mapped(item, old, new) for item in value]
    return value
